/* Code: text in the format `null`. A line `NAME = BUILTIN`, or just `BUILTIN`, defines an entry point; `#` starts a
 * comment. */

#include "backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Loaded code: the text, and its entry points, whose names point into it. */
struct module {
    size_t count;
    rt_Str *names;
    const struct builtin **kernels;
    char text[];
};

static void unload(rt_Handle handle) {
    struct module *module = handle;
    free(module->names);
    free(module->kernels);
    free(module);
}

/* Removes white space from both ends. */
static char *trim(char *text) {
    text += strspn(text, " \t\r");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r", text[length - 1]) != NULL) {
        length--;
    }
    text[length] = '\0';
    return text;
}

/* Names are returned to the host, which accepts only UTF-8. */
static int is_printable(const char *name) {
    for (; *name != '\0'; name++) {
        if (*name < '!' || *name > '~') {
            return 0;
        }
    }
    return 1;
}

/* Adds the entry point of a line, if there is one. */
static rt_Status parse_line(struct module *module, size_t number, char *line) {
    line[strcspn(line, "#")] = '\0';
    char *name = trim(line);
    if (*name == '\0') {
        return NULL;
    }
    char *builtin = strchr(name, '=');
    if (builtin != NULL) {
        *builtin = '\0';
        builtin = trim(builtin + 1);
        name = trim(name);
    } else {
        builtin = name;
    }
    const struct builtin *kernel = find_builtin(builtin);
    if (kernel == NULL || !is_printable(name)) {
        return fail(RT_ERROR_COMPILE_FAILED,
                    "line %zu: unknown builtin \"%s\", or a name with unprintable characters; valid: %s", number, builtin,
                    builtin_names);
    }
    module->names[module->count] = (rt_Str){(const uint8_t *)name, strlen(name)};
    module->kernels[module->count++] = kernel;
    return NULL;
}

static rt_Status parse(struct module *module) {
    size_t lines = 1;
    for (const char *c = module->text; *c != '\0'; c++) {
        lines += *c == '\n';
    }
    module->names = calloc(lines, sizeof *module->names);
    module->kernels = calloc(lines, sizeof *module->kernels);
    if (module->names == NULL || module->kernels == NULL) {
        return fail(RT_ERROR_OUT_OF_MEMORY, "no memory for %zu entry points", lines);
    }
    size_t number = 1;
    for (char *line = module->text, *next; line != NULL; line = next, number++) {
        next = strchr(line, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        rt_Status refused = parse_line(module, number, line);
        if (refused != NULL) {
            return refused;
        }
    }
    return NULL;
}

/* Creates a zeroed module with room for `bytes` bytes of text. */
static struct module *new_module(size_t bytes) {
    return bytes < SIZE_MAX / 2 ? calloc(1, sizeof(struct module) + bytes + 1) : NULL;
}

static rt_Status read_file(rt_Str path, struct module **out) {
    char *name = calloc(1, path.len + 1);
    if (name == NULL) {
        return fail(RT_ERROR_OUT_OF_MEMORY, "no memory for a path");
    }
    if (path.len > 0) {
        memcpy(name, path.ptr, path.len);
    }
    FILE *file = fopen(name, "rb");
    long bytes = -1;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        bytes = ftell(file);
        rewind(file);
    }
    struct module *module = bytes < 0 ? NULL : new_module((size_t)bytes);
    if (module != NULL && fread(module->text, 1, (size_t)bytes, file) != (size_t)bytes) {
        free(module);
        module = NULL;
    }
    rt_Status refused = module == NULL ? fail(RT_ERROR_IO, "%s: %s", name, strerror(errno)) : NULL;
    if (file != NULL) {
        fclose(file);
    }
    free(name);
    *out = module;
    return refused;
}

static rt_Status load(rt_Handle device, const rt_ModuleSource *theirs, rt_Handle *out) {
    rt_ModuleSource source;
    struct module *module = NULL;
    (void)device;
    read_struct(&source, sizeof source, theirs);
    if (source.format.len != sizeof FORMAT - 1 || memcmp(source.format.ptr, FORMAT, sizeof FORMAT - 1) != 0) {
        return fail(RT_ERROR_UNSUPPORTED, "code of format \"%.*s\"; pass \"" FORMAT "\"", (int)source.format.len,
                    (const char *)source.format.ptr);
    }
    if (source.code == NULL) {
        rt_Status refused = read_file(source.path, &module);
        if (refused != NULL) {
            return refused;
        }
    } else {
        module = new_module(source.code_bytes);
        if (module == NULL) {
            return fail(RT_ERROR_OUT_OF_MEMORY, "no memory for %zu bytes of code", source.code_bytes);
        }
        memcpy(module->text, source.code, source.code_bytes);
    }
    rt_Status refused = parse(module);
    if (refused != NULL) {
        unload(module);
        return refused;
    }
    *out = module;
    return NULL;
}

static rt_Status symbols(rt_Handle handle, const rt_Str **out, size_t *count) {
    struct module *module = handle;
    *out = module->names;
    *count = module->count;
    return NULL;
}

static rt_Status kernel(rt_Handle handle, rt_Str name, rt_Handle *out) {
    struct module *module = handle;
    for (size_t i = 0; i < module->count; i++) {
        if (module->names[i].len == name.len && memcmp(module->names[i].ptr, name.ptr, name.len) == 0) {
            /* Handles are not const; this backend never writes through this one. */
            *out = (rt_Handle)module->kernels[i];
            return NULL;
        }
    }
    return fail(RT_ERROR_NOT_FOUND, "no entry point \"%.*s\"", (int)name.len, (const char *)name.ptr);
}

/* Kernels are static: there is nothing to release. */
static void release_kernel(rt_Handle kernel) { (void)kernel; }

static rt_Status kernel_info(rt_Handle handle, rt_KernelInfo *out) {
    const struct builtin *kernel = handle;
    rt_KernelInfo info = {.registers = RT_UNKNOWN,
                          .spilled_bytes = 0,
                          .shared_bytes = 0,
                          .max_group_items = RT_UNKNOWN,
                          .params = kernel->params,
                          .param_count = kernel->param_count,
                          .binary_version = RT_UNKNOWN,
                          .virtual_version = RT_UNKNOWN,
                          .preferred_multiple = RT_UNKNOWN,
                          .private_bytes = RT_UNKNOWN};
    write_struct(out, &info, sizeof info);
    return NULL;
}

const rt_ModuleTable module_table = {
    .struct_size = sizeof(rt_ModuleTable),
    .load = load,
    .unload = unload,
    .symbols = symbols,
    .kernel = kernel,
    .release_kernel = release_kernel,
    .kernel_info = kernel_info,
};
