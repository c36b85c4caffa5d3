/* NVRTC without a compiler: it returns the source, as a cubin behind a header, unless the source contains "this is not". */
#define _GNU_SOURCE
#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program {
    char *text, *log, *cubin;
    size_t cubin_bytes;
};

int nvrtcCreateProgram(struct program **out, const char *text, const char *name, int count, const char **headers,
                       const char **names) {
    (void)name, (void)count, (void)headers, (void)names;
    *out = calloc(1, sizeof **out);
    (*out)->text = strdup(text);
    (*out)->log = strdup("");
    return 0;
}
int nvrtcDestroyProgram(struct program **program) {
    free((*program)->text);
    free((*program)->log);
    free((*program)->cubin);
    free(*program);
    *program = NULL;
    return 0;
}
int nvrtcCompileProgram(struct program *program, int count, const char **options) {
    if (count < 1 || strncmp(options[0], "--gpu-architecture=", 19) != 0) return 5;
    int registers = 0;
    for (int i = 1; i < count; i++) sscanf(options[i], "--maxrregcount=%d", &registers);
    const char *error = strstr(program->text, "this is not") ? "kernel.cu(1): error: identifier \"is\" is undefined" : NULL;
    int figures = 0;
    for (int i = 1; i < count; i++) figures |= !strcmp(options[i], "--ptxas-options=-v");
    free(program->log);
    program->log = calloc(1, 4096);
    if (error) return strcpy(program->log, error), 6;
    strcpy(program->log, strstr(program->text, "unused") ? "kernel.cu(1): warning: unused\n" : "");
    if (figures) describe_kernels(program->text, registers, program->log, 4096);
    /* As the real one, the log has either the figures or the assembler's error. */
    error = assembler_error(program->text);
    if (error) return figures ? 0 : (strcpy(program->log, error), 0), 6;
    program->cubin = assemble(program->text, &program->cubin_bytes);
    return 0;
}
int nvrtcGetNumSupportedArchs(int *count) { return *count = 3, 0; }
int nvrtcGetSupportedArchs(int *archs) { return memcpy(archs, (int[]){75, 80, 90}, 12), 0; }
int nvrtcGetProgramLogSize(struct program *program, size_t *bytes) { return *bytes = strlen(program->log) + 1, 0; }
int nvrtcGetProgramLog(struct program *program, char *log) { return strcpy(log, program->log), 0; }
int nvrtcGetPTXSize(struct program *program, size_t *bytes) { return *bytes = strlen(program->text) + 1, 0; }
int nvrtcGetPTX(struct program *program, char *text) { return strcpy(text, program->text), 0; }
int nvrtcGetCUBINSize(struct program *program, size_t *bytes) { return *bytes = program->cubin_bytes, 0; }
int nvrtcGetCUBIN(struct program *program, char *code) { return memcpy(code, program->cubin, program->cubin_bytes), 0; }
const char *nvrtcGetErrorString(int code) { return code == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_INJECTED_BY_STUB"; }
