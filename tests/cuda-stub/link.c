/* The linker of the stub's driver, which compiles PTX. */
#define _GNU_SOURCE
#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct link {
    struct jit_options options;
    char *text, *cubin;
};

struct jit_options read_jit_options(unsigned count, const int *keys, void **values) {
    struct jit_options options = {0};
    for (unsigned i = 0; i < count; i++) switch (keys[i]) {
        case 0: options.registers = (int)(intptr_t)values[i]; break;
        case 3: options.information = values[i]; break;
        case 12: options.figures = (int)(intptr_t)values[i]; break;
        case 5: options.errors = values[i]; break;
        }
    return options;
}

int compile_ptx(const char *text, const struct jit_options *options) {
    const char *error = strstr(text, "broken ptx") ? "line 1: broken ptx" : assembler_error(text);
    if (error && options->errors && !options->figures) strcpy(options->errors, error);
    if (!error && options->information && options->figures) describe_kernels(text, options->registers, options->information, 1024);
    return error ? CUDA_ERROR_INVALID_PTX : 0;
}

#ifndef LACKS_OPTIONAL
int cuLinkCreate_v2(unsigned count, int *keys, void **values, struct link **out) {
    ENTER_WITH_CONTEXT;
    *out = calloc(1, sizeof **out);
    (*out)->options = read_jit_options(count, keys, values);
    return 0;
}
int cuLinkAddData_v2(struct link *link, int kind, void *data, size_t bytes, const char *name, unsigned count, int *keys,
                     void **values) {
    (void)name, (void)count, (void)keys, (void)values;
    ENTER_WITH_CONTEXT;
    if (kind != 1 || !bytes || ((char *)data)[bytes - 1]) return CUDA_ERROR_INVALID_VALUE;
    link->text = strdup(data);
    return compile_ptx(link->text, &link->options);
}
int cuLinkComplete(struct link *link, void **cubin, size_t *bytes) {
    ENTER_WITH_CONTEXT;
    *cubin = link->cubin = assemble(link->text, bytes);
    return 0;
}
int cuLinkDestroy(struct link *link) {
    ENTER_WITH_CONTEXT;
    free(link->text);
    free(link->cubin);
    free(link);
    return 0;
}
#endif
