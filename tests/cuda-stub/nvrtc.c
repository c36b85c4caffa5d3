/* NVRTC without a compiler: it returns the source unchanged, unless the source contains "this is not". */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program {
    char *text, *log;
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
    free(*program);
    *program = NULL;
    return 0;
}
int nvrtcCompileProgram(struct program *program, int count, const char **options) {
    if (count < 1 || strncmp(options[0], "--gpu-architecture=", 19) != 0) return 5;
    if (!strstr(program->text, "this is not")) return 0;
    free(program->log);
    program->log = strdup("kernel.cu(1): error: identifier \"is\" is undefined");
    return 6;
}
int nvrtcGetProgramLogSize(struct program *program, size_t *bytes) { return *bytes = strlen(program->log) + 1, 0; }
int nvrtcGetProgramLog(struct program *program, char *log) { return strcpy(log, program->log), 0; }
int nvrtcGetPTXSize(struct program *program, size_t *bytes) { return *bytes = strlen(program->text) + 1, 0; }
int nvrtcGetPTX(struct program *program, char *text) { return strcpy(text, program->text), 0; }
int nvrtcGetCUBINSize(struct program *program, size_t *bytes) { return *bytes = strlen(program->text) + 1, 0; }
int nvrtcGetCUBIN(struct program *program, char *text) { return strcpy(text, program->text), 0; }
const char *nvrtcGetErrorString(int code) { return code == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_INJECTED_BY_STUB"; }
