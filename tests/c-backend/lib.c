/* The exported symbol, the manifest, the tables, and helpers for errors and sized structures. */

#include "backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__) && defined(__linux__)
RT_DEFINE_MANIFEST(NAME, "x86_64-unknown-linux-gnu");
#elif defined(__aarch64__) && defined(__linux__)
RT_DEFINE_MANIFEST(NAME, "aarch64-unknown-linux-gnu");
#else
#error "name the target triple of this platform"
#endif

/* The error for when there is no memory for an error object. */
static rt_Error no_memory = {RT_END_OF(rt_Error, release), RT_ERROR_OUT_OF_MEMORY, 0, TEXT(""),
                             TEXT("host memory is exhausted"), TEXT(""), NULL};

/* An error object and its text, in one allocation. */
struct owned_error {
    rt_Error error;
    char text[];
};

static void release_error(rt_Error *error) { free(error); }

rt_Status fail(uint32_t kind, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    struct owned_error *owned = length < 0 ? NULL : malloc(sizeof *owned + (size_t)length + 1);
    if (owned == NULL) {
        return &no_memory;
    }
    va_start(list, format);
    vsnprintf(owned->text, (size_t)length + 1, format, list);
    va_end(list);
    owned->error = (rt_Error){.struct_size = RT_END_OF(rt_Error, release),
                              .kind = kind,
                              .message = {(const uint8_t *)owned->text, (size_t)length},
                              .release = release_error};
    return &owned->error;
}

rt_Status copy_error(const rt_Error *error) {
    return fail(error->kind, "%.*s", (int)error->message.len, (const char *)error->message.ptr);
}

void read_struct(void *ours, size_t bytes, const void *theirs) {
    uint32_t stated;
    memcpy(&stated, theirs, sizeof stated);
    memset(ours, 0, bytes);
    memcpy(ours, theirs, stated < bytes ? stated : bytes);
}

void write_struct(void *theirs, const void *ours, size_t bytes) {
    uint32_t stated;
    memcpy(&stated, theirs, sizeof stated);
    size_t known = stated < bytes ? stated : bytes;
    if (known > sizeof stated) {
        memcpy((uint8_t *)theirs + sizeof stated, (const uint8_t *)ours + sizeof stated, known - sizeof stated);
    }
}

uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static rt_Status options(const rt_OptionSpec **out, size_t *count) {
    static const rt_OptionSpec specs[] = {
        {TEXT("out_of_memory_after_bytes"), RT_VALUE_INTEGER, RT_SCOPE_DEVICE, TEXT(""), TEXT("0"),
         TEXT("Allocations beyond this many bytes in total fail; 0: no limit.")},
    };
    *out = specs;
    *count = sizeof specs / sizeof *specs;
    return NULL;
}

static rt_Status open_instance(const rt_HostTable *host, rt_Handle *out) {
    struct instance *instance = calloc(1, sizeof *instance);
    if (instance == NULL) {
        return &no_memory;
    }
    if (host->header.struct_size >= RT_END_OF(rt_HostTable, log)) {
        instance->log = host->log;
    }
    if (instance->log != NULL) {
        instance->log(4, (rt_Str)TEXT(NAME), (rt_Str)TEXT("opened"));
    }
    *out = instance;
    return NULL;
}

static void close_instance(rt_Handle instance) { free(instance); }

static const rt_InstanceTable instance_table = {
    .struct_size = sizeof(rt_InstanceTable),
    .options = options,
    .open = open_instance,
    .close = close_instance,
    .devices = list_devices,
    .open_device = open_device,
};

/* A null table or function is not supported by this backend. The size of each table is the one in the header that the
 * backend was built with; tables consist of whole words and have no padding at the end. */
static const rt_BackendTable table = {
    .header = {RT_MAGIC, sizeof(rt_BackendTable), RT_MAJOR, RT_MINOR},
    .name = TEXT(NAME),
    .version = TEXT(VERSION),
    .instance = &instance_table,
    .device = &device_table,
    .memory = &memory_table,
    .module = &module_table,
    .queue = &queue_table,
};

rt_Status runtime_backend_v1(const rt_BackendTable **out) {
    *out = &table;
    return NULL;
}
