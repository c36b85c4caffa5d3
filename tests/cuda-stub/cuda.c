/* A CUDA driver without a GPU: enough of libcuda.so.1 to run the conformance suite, with faults that tests inject.
 *
 * Streams are threads, device memory is host memory, kernels are found by name (`kernels.c`); events and graphs are in files of
 * their own. It is stricter than the real driver: a call that requires a current context fails without one.
 *
 * STUB_CUDA is a comma-separated list of options: devices=N, init=CODE, count=CODE, memory=BYTES, mig=1 (each device is a MIG
 * instance, with a quarter of the units), counted=1 (it aborts if it is asked for more parameters than a kernel has), and fail=FUNCTION:CODE:NTH, which makes the NTH call of a function return CODE, and
 * every later call of any function too if the code is sticky. `nvml.c` reads them too. */
#define _GNU_SOURCE
#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static __thread void *current[64];
static __thread int depth;
int has_current_context(void) { return depth != 0; }
static char contexts[16];

static int current_device(void) { return depth ? (int)((char *)current[(depth - 1) % 64] - contexts) : 0; }

/* Memory that the driver allocated. */

enum { DEVICE = 2, HOST = 1 };
struct range {
    char *start;
    size_t bytes;
    int kind, device;
    struct range *next;
};
static struct range *ranges;
static size_t used;

static int add_range(void **out, size_t bytes, int kind, int device) {
    size_t most = (size_t)option_number("memory", 1l << 30);
    pthread_mutex_lock(&lock);
    char *start = NULL;
    if (bytes <= most && (kind == HOST || used + bytes <= most)) start = aligned_alloc(512, (bytes + 511) / 512 * 512);
    if (start) {
        struct range *made = malloc(sizeof *made);
        *made = (struct range){start, bytes, kind, device, ranges};
        ranges = made;
        if (kind == DEVICE) used += bytes;
        memset(start, 0xa5, bytes < 1 << 20 ? bytes : 1 << 20);
    }
    pthread_mutex_unlock(&lock);
    *out = start;
    return start ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

static int find_range(const void *address, struct range *found) {
    int kind = 0;
    pthread_mutex_lock(&lock);
    for (struct range *range = ranges; range && !kind; range = range->next)
        if ((char *)address >= range->start && (char *)address < range->start + range->bytes) *found = *range, kind = range->kind;
    pthread_mutex_unlock(&lock);
    return kind;
}

static int remove_range(void *start) {
    pthread_mutex_lock(&lock);
    struct range **at = &ranges;
    while (*at && (*at)->start != start) at = &(*at)->next;
    struct range *gone = *at;
    if (gone) {
        *at = gone->next;
        if (gone->kind == DEVICE) used -= gone->bytes;
    }
    pthread_mutex_unlock(&lock);
    if (!gone) return CUDA_ERROR_INVALID_VALUE;
    memset(gone->start, 0x5a, gone->bytes < 1 << 20 ? gone->bytes : 1 << 20);
    free(gone->start);
    free(gone);
    return 0;
}

/* Streams. */

struct stream {
    struct work *first, **last;
    long submitted, ended;
    int stop;
    pthread_t thread;
    void *context;
};

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void execute(struct work *work) {
    switch (work->kind) {
    case COPY: memmove(work->to, work->from, work->bytes); break;
    case COPY_2D:
        for (size_t i = 0; i < work->count; i++)
            memmove(work->to + i * work->to_pitch, work->from + i * work->from_pitch, work->bytes);
        break;
    case FILL:
        for (size_t i = 0; i < work->count; i++) memcpy(work->to + i * work->unit, &work->value, work->unit);
        break;
    case RUN: run_kernel(&work->call); break;
    case FREE: remove_range(work->to); break;
    }
    free(work->owned);
}

static void *run_stream(void *argument) {
    struct stream *stream = argument;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!stream->first && !stream->stop) pthread_cond_wait(&changed, &lock);
        struct work *work = stream->first;
        if (!work) break;
        while (work->kind == WAIT && work->event->completed < work->generation) pthread_cond_wait(&changed, &lock);
        if (work->kind == RECORD) {
            work->event->ms = now_ms();
            work->event->completed = work->generation;
        } else if (work->kind != WAIT) {
            pthread_mutex_unlock(&lock);
            execute(work);
            pthread_mutex_lock(&lock);
        }
        stream->first = work->next;
        if (!stream->first) stream->last = &stream->first;
        stream->ended++;
        pthread_cond_broadcast(&changed);
        free(work);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

int submit(struct stream *stream, struct work work) {
    struct work *copy = malloc(sizeof *copy);
    *copy = work;
    copy->next = NULL;
    pthread_mutex_lock(&lock);
    if (copy->kind == RECORD) copy->generation = ++copy->event->recorded;
    if (copy->kind == WAIT) copy->generation = copy->event->recorded;
    *stream->last = copy;
    stream->last = &copy->next;
    stream->submitted++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return 0;
}

void drain(struct stream *stream) {
    pthread_mutex_lock(&lock);
    long until = stream->submitted;
    while (stream->ended < until) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* Exported functions. */

int cuInit(unsigned flags) {
    (void)flags;
    return (int)option_number("init", 0);
}
int cuDriverGetVersion(int *version) {
    *version = 13000;
    return 0;
}
int cuGetErrorName(int code, const char **name) {
    *name = code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : NULL;
    return *name || (code >= 0 && code < 1000 && (*name = "CUDA_ERROR_INJECTED_BY_STUB")) ? 0 : CUDA_ERROR_INVALID_VALUE;
}
int cuGetErrorString(int code, const char **text) {
    *text = code >= 0 && code < 1000 ? "error injected by the stub" : NULL;
    return *text ? 0 : CUDA_ERROR_INVALID_VALUE;
}
int cuDeviceGetCount(int *count) {
    ENTER;
    *count = (int)option_number("devices", 1);
    return (int)option_number("count", 0);
}
int cuDeviceGet(int *device, int index) {
    ENTER;
    *device = index;
    return index < option_number("devices", 1) ? 0 : CUDA_ERROR_INVALID_DEVICE;
}
int cuDeviceGetName(char *name, int room, int device) {
    ENTER;
    snprintf(name, (size_t)room, "Stub %d", device);
    return 0;
}
int cuDeviceGetUuid(char *uuid, int device) {
    memset(uuid, 0x40 + device, 16);
    return 0;
}
int cuDeviceGetPCIBusId(char *text, int room, int device) {
    snprintf(text, (size_t)room, "0000:0%d:00.0", device);
    return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    (void)device;
    ENTER;
    *bytes = (size_t)option_number("memory", 1l << 30);
    return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    static const int known[][2] = {{1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, {8, 49152},
                                   {10, 32}, {13, 1000000}, {16, 4}, {36, 1000000}, {37, 256}, {38, 1 << 20}, {39, 2048}, {40, 2}, {41, 1},
                                   {75, 9}, {76, 0}, {89, 1}, {95, 1}, {97, 232448}, {115, 1}, {120, 1}};
    enum { UNITS = 16 };
    (void)device;
    ENTER;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i][0] == attribute) return *value = attribute == UNITS && option_number("mig", 0) ? known[i][1] / 4 : known[i][1], 0;
    *value = 0;
    return CUDA_ERROR_INVALID_VALUE;
}
int cuDeviceCanAccessPeer(int *can, int device, int peer) {
    *can = device != peer;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
    ENTER;
    *context = &contexts[device % 16];
    return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    return 0;
}
int cuCtxPushCurrent_v2(void *context) {
    ENTER;
    current[depth++ % 64] = context;
    return 0;
}
int cuCtxPopCurrent_v2(void **context) {
    if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
    *context = current[--depth % 64];
    return 0;
}
int cuCtxSetCurrent(void *context) {
    depth = 1;
    current[0] = context;
    return 0;
}
int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    ENTER_WITH_CONTEXT;
    *least = 0;
    *greatest = -5;
    return 0;
}
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    ENTER_WITH_CONTEXT;
    *total = (size_t)option_number("memory", 1l << 30);
    pthread_mutex_lock(&lock);
    *free_bytes = *total - used;
    pthread_mutex_unlock(&lock);
    return 0;
}
int cuMemAlloc_v2(void **address, size_t bytes) {
    ENTER_WITH_CONTEXT;
    return add_range(address, bytes, DEVICE, current_device());
}
int cuMemFree_v2(void *address) {
    ENTER_WITH_CONTEXT;
    return remove_range(address);
}
int cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
    (void)flags;
    ENTER_WITH_CONTEXT;
    return add_range(address, bytes, HOST, 0);
}
int cuMemFreeHost(void *address) {
    ENTER_WITH_CONTEXT;
    return remove_range(address);
}
int cuMemAllocManaged(void **address, size_t bytes, unsigned flags) {
    (void)flags;
    ENTER_WITH_CONTEXT;
    return add_range(address, bytes, DEVICE, current_device());
}
int cuPointerGetAttributes(unsigned count, int *attributes, void **out, void *address) {
    struct range range;
    int kind = find_range(address, &range);
    for (unsigned i = 0; i < count; i++) *(int *)out[i] = attributes[i] == 2 ? kind : kind ? range.device : -2;
    return 0;
}
int cuMemcpyAsync(char *to, char *from, size_t bytes, struct stream *stream) {
    struct range range;
    ENTER_WITH_CONTEXT;
    struct work work = {.kind = COPY, .to = to, .from = from, .bytes = bytes};
    if (!find_range(from, &range)) work.from = work.owned = memcpy(malloc(bytes), from, bytes);
    int pageable = !find_range(to, &range);
    int code = submit(stream, work);
    if (pageable) drain(stream);
    return code;
}
int cuMemcpyPeerAsync(char *to, void *there, char *from, void *here, size_t bytes, struct stream *stream) {
    ENTER_WITH_CONTEXT;
    if (!there || !here) return CUDA_ERROR_INVALID_CONTEXT;
    return submit(stream, (struct work){.kind = COPY, .to = to, .from = from, .bytes = bytes});
}
struct memcpy2d_endpoint {
    size_t x, y;
    int kind;
    void *host;
    char *address;
    void *array;
    size_t pitch;
};
struct memcpy2d {
    struct memcpy2d_endpoint from, to;
    size_t bytes, count;
};
int cuMemcpy2DAsync_v2(const struct memcpy2d *rows, struct stream *stream) {
    enum { UNIFIED = 4 };
    ENTER_WITH_CONTEXT;
    if (rows->from.kind != UNIFIED || rows->to.kind != UNIFIED) return CUDA_ERROR_INVALID_VALUE;
    if (rows->from.pitch < rows->bytes || rows->to.pitch < rows->bytes) return CUDA_ERROR_INVALID_VALUE;
    return submit(stream, (struct work){.kind = COPY_2D, .to = rows->to.address, .from = rows->from.address, .bytes = rows->bytes,
                                        .count = rows->count, .to_pitch = rows->to.pitch, .from_pitch = rows->from.pitch});
}
static int fill(char *to, unsigned value, size_t unit, size_t count, struct stream *stream) {
    if ((uintptr_t)to % unit) return CUDA_ERROR_INVALID_VALUE;
    return submit(stream, (struct work){.kind = FILL, .to = to, .value = value, .unit = unit, .count = count});
}
int cuMemsetD8Async(char *to, unsigned char value, size_t count, struct stream *stream) {
    ENTER_WITH_CONTEXT;
    return fill(to, value, 1, count, stream);
}
int cuMemsetD16Async(char *to, unsigned short value, size_t count, struct stream *stream) {
    ENTER_WITH_CONTEXT;
    return fill(to, value, 2, count, stream);
}
int cuMemsetD32Async(char *to, unsigned value, size_t count, struct stream *stream) {
    ENTER_WITH_CONTEXT;
    return fill(to, value, 4, count, stream);
}
int cuStreamCreateWithPriority(struct stream **out, unsigned flags, int priority) {
    ENTER_WITH_CONTEXT;
    if (flags != 1 || priority > 0 || priority < -5) return CUDA_ERROR_INVALID_VALUE;
    struct stream *stream = calloc(1, sizeof *stream);
    stream->last = &stream->first;
    stream->context = current[(depth - 1) % 64];
    pthread_create(&stream->thread, NULL, run_stream, stream);
    *out = stream;
    return 0;
}
int cuStreamDestroy_v2(struct stream *stream) {
    ENTER;
    pthread_mutex_lock(&lock);
    stream->stop = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(stream->thread, NULL);
    free(stream);
    return 0;
}
int cuStreamGetCtx(struct stream *stream, void **context) {
    ENTER_WITH_CONTEXT;
    *context = stream->context;
    return 0;
}
int cuStreamQuery(struct stream *stream) {
    ENTER;
    pthread_mutex_lock(&lock);
    int busy = stream->ended != stream->submitted;
    pthread_mutex_unlock(&lock);
    return busy ? CUDA_ERROR_NOT_READY : 0;
}

/* Modules: the source, passed through by the NVRTC stub, or PTX. */

static int loaded_modules;

/* For tests: how many modules are loaded. */
int stub_loaded_modules(void) { return __atomic_load_n(&loaded_modules, __ATOMIC_SEQ_CST); }

int cuModuleLoadDataEx(char **module, const char *image, unsigned count, int *keys, void **values) {
    ENTER_WITH_CONTEXT;
    struct jit_options options = read_jit_options(count, keys, values);
    const char *text = assembled_text(image);
    int code = text == image ? compile_ptx(text, &options) : 0;
    if (!code) *module = strdup(text), __atomic_add_fetch(&loaded_modules, 1, __ATOMIC_SEQ_CST);
    return code;
}
int cuModuleUnload(char *module) {
    ENTER_WITH_CONTEXT;
    free(module);
    __atomic_sub_fetch(&loaded_modules, 1, __ATOMIC_SEQ_CST);
    return 0;
}
static int defines(const char *module, const char *name) {
    size_t length = strlen(name);
    for (const char *at = module; (at = strstr(at, name)); at++)
        if (at > module && at[-1] == ' ' && at[length] == '(') return 1;
    return 0;
}
int cuModuleGetFunction(const struct kernel **function, const char *module, const char *name) {
    ENTER_WITH_CONTEXT;
    *function = find_kernel(name);
    return *function && defines(module, name) ? 0 : CUDA_ERROR_NOT_FOUND;
}
int cuFuncGetAttribute(int *value, int attribute, const struct kernel *function) {
    (void)function;
    ENTER;
    /* Kernels have some private memory, of which a driver does not say what it is for. */
    *value = attribute == 0 ? 1024 : attribute == 3 ? 8 : attribute == 4 ? 16 : attribute == 5 || attribute == 6 ? 90 : 0;
    return 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *groups, const struct kernel *function, int items, size_t shared) {
    (void)function;
    ENTER_WITH_CONTEXT;
    int by_items = 64 / ((items + 31) / 32), by_shared = shared ? (int)(233472 / shared) : 32;
    *groups = by_items < by_shared ? by_items : by_shared;
    if (*groups > 32) *groups = 32;
    return 0;
}
int cuFuncSetAttribute(const struct kernel *function, int attribute, int value) {
    (void)function, (void)attribute, (void)value;
    ENTER_WITH_CONTEXT;
    return 0;
}
void pack_call(struct kernel_call *call, const struct kernel *kernel, const unsigned grid[3], const unsigned block[3],
                    unsigned shared, void **parameters) {
    call->kernel = kernel;
    call->shared_bytes = shared;
    memcpy(call->grid, grid, sizeof call->grid);
    memcpy(call->block, block, sizeof call->block);
    for (int i = 0; i < kernel->count; i++) memcpy(call->parameters[i], parameters[i], (size_t)kernel->sizes[i]);
}
/* Offset of a parameter: as in a C structure, with alignments of at most 8 bytes. */
static size_t offset_of(const struct kernel *kernel, int index) {
    size_t offset = 0;
    for (int i = 0;; i++) {
        size_t alignment = kernel->sizes[i] < 8 ? (size_t)kernel->sizes[i] : 8;
        offset = (offset + alignment - 1) / alignment * alignment;
        if (i == index) return offset;
        offset += (size_t)kernel->sizes[i];
    }
}
static int launch(const struct kernel *kernel, const unsigned grid[3], const unsigned block[3], unsigned shared,
                  struct stream *stream, void **parameters) {
    struct work work = {.kind = RUN};
    pack_call(&work.call, kernel, grid, block, shared, parameters);
    return submit(stream, work);
}
int cuLaunchKernel(const struct kernel *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, struct stream *stream, void **parameters, void **extra) {
    enum { POINTER = 1, SIZE = 2 };
    void *unpacked[20];
    ENTER;
    if (extra) {
        int last = kernel->count - 1;
        if (parameters || extra[0] != (void *)POINTER || extra[2] != (void *)SIZE || extra[4] || last < 0) return CUDA_ERROR_INVALID_VALUE;
        if (*(size_t *)extra[3] != offset_of(kernel, last) + (size_t)kernel->sizes[last]) return CUDA_ERROR_INVALID_VALUE;
        for (int i = 0; i <= last; i++) unpacked[i] = (char *)extra[1] + offset_of(kernel, i);
        parameters = unpacked;
    }
    return launch(kernel, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared, stream, parameters);
}

#ifndef LACKS_OPTIONAL
/* One pool per device. */
static char pools[16];
int cuMemPoolCreate(void **pool, const int properties[4]) {
    ENTER;
    *pool = &pools[properties[3] % 16];
    return 0;
}
int cuMemPoolDestroy(void *pool) { return pool ? 0 : CUDA_ERROR_INVALID_VALUE; }
int cuMemPoolSetAttribute(void *pool, int attribute, void *value) { return pool && attribute && value ? 0 : CUDA_ERROR_INVALID_VALUE; }
int cuMemPoolGetAttribute(void *pool, int attribute, unsigned long long *value) {
    (void)pool, (void)attribute;
    *value = 0;
    return 0;
}
int cuMemPoolSetAccess(void *pool, const void *access, size_t count) { return pool && access && count ? 0 : CUDA_ERROR_INVALID_VALUE; }
int cuMemPoolTrimTo(void *pool, size_t keep) {
    (void)pool, (void)keep;
    return 0;
}
int cuMemAllocFromPoolAsync(void **address, size_t bytes, void *pool, struct stream *stream) {
    (void)stream;
    ENTER;
    return add_range(address, bytes, DEVICE, pool ? (int)((char *)pool - pools) : 0);
}
int cuMemFreeAsync(void *address, struct stream *stream) {
    struct range range;
    ENTER;
    if (!find_range(address, &range)) return CUDA_ERROR_INVALID_VALUE;
    return submit(stream, (struct work){.kind = FREE, .to = address});
}

int cuDeviceGetDefaultMemPool(void **pool, int device) {
    *pool = &pools[device % 16];
    return 0;
}
int cuMemAllocAsync(void **address, size_t bytes, struct stream *stream) { return cuMemAllocFromPoolAsync(address, bytes, NULL, stream); }

struct launch_config {
    unsigned grid[3], block[3], shared;
    struct stream *stream;
    void *attributes;
    unsigned count;
};
int cuLaunchKernelEx(const struct launch_config *config, const struct kernel *kernel, void **parameters, void **extra) {
    (void)extra;
    ENTER;
    return launch(kernel, config->grid, config->block, config->shared, config->stream, parameters);
}
int cuModuleGetFunctionCount(unsigned *count, const char *module) {
    *count = 0;
    for (const struct kernel *kernel = all_kernels(); kernel->name; kernel++) *count += (unsigned)defines(module, kernel->name);
    return 0;
}
int cuModuleEnumerateFunctions(const struct kernel **functions, unsigned count, const char *module) {
    unsigned found = 0;
    for (const struct kernel *kernel = all_kernels(); kernel->name && found < count; kernel++)
        if (defines(module, kernel->name)) functions[found++] = kernel;
    return 0;
}
int cuFuncGetName(const char **name, const struct kernel *function) {
    *name = function->name;
    return 0;
}
int cuFuncGetParamInfo(const struct kernel *function, size_t index, size_t *offset, size_t *bytes) {
    if (index >= (size_t)function->count && option_number("counted", 0)) abort();
    if (index >= (size_t)function->count) return CUDA_ERROR_INVALID_VALUE;
    *offset = offset_of(function, (int)index);
    *bytes = (size_t)function->sizes[index];
    return 0;
}
#ifdef HAS_PARAM_COUNT
int cuFuncGetParamCount(const struct kernel *function, size_t *count) {
    *count = (size_t)function->count;
    return 0;
}
#endif
int cuDeviceGetUuid_v2(char *uuid, int device) {
    memset(uuid, (option_number("mig", 0) ? 0x60 : 0x40) + device, 16);
    return 0;
}
#endif
