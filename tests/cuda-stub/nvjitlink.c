/* nvJitLink without an assembler: the cubin is a header with the text behind it. */
#define _GNU_SOURCE
#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct link {
    char *text, *cubin, errors[4096], information[4096];
    size_t bytes;
    int registers, verbose;
};

int nvJitLinkCreate(struct link **out, uint32_t count, const char **options) {
    struct link *link = calloc(1, sizeof *link);
    int code = 2;
    for (uint32_t i = 0; i < count && code != 1; i++) {
        if (!strncmp(options[i], "-arch=sm_", 9)) code = 0;
        else if (!strcmp(options[i], "-verbose")) link->verbose = 1;
        else if (sscanf(options[i], "-maxrregcount=%d", &link->registers) != 1 && strncmp(options[i], "-Xptxas=-O", 10)) code = 1;
    }
    if (code) free(link);
    /* As the real one, it writes a handle even if there is none. */
    return *out = code ? (struct link *)16 : link, code;
}
int nvJitLinkDestroy(struct link **link) {
    free((*link)->text);
    free((*link)->cubin);
    free(*link);
    return *link = NULL, 0;
}
int nvJitLinkAddData(struct link *link, int kind, const void *data, size_t bytes, const char *name) {
    if (kind != 2 || !bytes || !name) return 3;
    link->text = strndup(data, bytes);
    if (!strstr(link->text, "broken ptx")) return 0;
    strcpy(link->errors, "ptxas application ptx input, line 4; error   : Not a name of any known instruction: 'broken'\n"
                         "ptxas fatal   : Ptx assembly aborted due to errors\n");
    return 4;
}
#ifndef LACKS_COMPLETE
int nvJitLinkComplete(struct link *link) {
    if (link->verbose) describe_kernels(link->text, link->registers, link->information, sizeof link->information);
    const char *error = assembler_error(link->text);
    if (error) return strcpy(link->errors, error), 6;
    link->cubin = assemble(link->text, &link->bytes);
    return 0;
}
#endif
int nvJitLinkGetLinkedCubinSize(struct link *link, size_t *bytes) { return *bytes = link->bytes, 0; }
int nvJitLinkGetLinkedCubin(struct link *link, char *code) { return memcpy(code, link->cubin, link->bytes), 0; }
int nvJitLinkGetErrorLogSize(struct link *link, size_t *bytes) { return *bytes = strlen(link->errors) + 1, 0; }
int nvJitLinkGetErrorLog(struct link *link, char *log) { return strcpy(log, link->errors), 0; }
int nvJitLinkGetInfoLogSize(struct link *link, size_t *bytes) { return *bytes = strlen(link->information) + 1, 0; }
int nvJitLinkGetInfoLog(struct link *link, char *log) { return strcpy(log, link->information), 0; }
