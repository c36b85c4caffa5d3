/* Declarations shared by the files of the stub. */
#pragma once
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
};

struct kernel_call;

/* A kernel that the stub implements, with the sizes of its parameters. */
struct kernel {
    const char *name;
    void (*run)(const struct kernel_call *);
    int count;
    int sizes[20];
};

/* A launch with its arguments. */
struct kernel_call {
    const struct kernel *kernel;
    unsigned grid[3], block[3], shared_bytes;
    _Alignas(16) char parameters[20][16];
};

__attribute__((visibility("hidden"))) const struct kernel *find_kernel(const char *name);
__attribute__((visibility("hidden"))) const struct kernel *all_kernels(void);
__attribute__((visibility("hidden"))) void run_kernel(const struct kernel_call *call);

/* Compilation. */
enum { CUBIN_HEADER_BYTES = 64 };
struct jit_options {
    int registers, figures;
    char *information, *errors;
};
__attribute__((visibility("hidden"))) char *assemble(const char *text, size_t *bytes);
__attribute__((visibility("hidden"))) const char *assembled_text(const char *image);
__attribute__((visibility("hidden"))) const char *assembler_error(const char *text);
__attribute__((visibility("hidden"))) void describe_kernels(const char *text, int registers, char *log, size_t room);
__attribute__((visibility("hidden"))) struct jit_options read_jit_options(unsigned count, const int *keys, void **values);
__attribute__((visibility("hidden"))) int compile_ptx(const char *text, const struct jit_options *options);

/* Guards everything that streams share. */
extern __attribute__((visibility("hidden"))) pthread_mutex_t lock;

struct event {
    long recorded, completed;
    double ms;
};

/* A unit of work of a stream. */
struct stream;
enum { COPY, COPY_2D, FILL, RUN, RECORD, WAIT, FREE };
struct work {
    int kind;
    char *to, *from;
    size_t bytes, unit, count, to_pitch, from_pitch;
    unsigned value;
    struct event *event;
    long generation;
    void *owned;
    struct kernel_call call;
    struct work *next;
};

__attribute__((visibility("hidden"))) int submit(struct stream *stream, struct work work);
__attribute__((visibility("hidden"))) void drain(struct stream *stream);
__attribute__((visibility("hidden"))) void pack_call(struct kernel_call *call, const struct kernel *kernel, const unsigned grid[3],
                                                   const unsigned block[3], unsigned shared, void **parameters);

/* A number from the options. */
__attribute__((visibility("hidden"))) long option_number(const char *key, long fallback);

/* Start of a driver function: returns an injected error, or fails without a current context where one is required. */
__attribute__((visibility("hidden"))) int injected_error(const char *function);
__attribute__((visibility("hidden"))) int has_current_context(void);
#define ENTER                                                                                                                      \
    int error_ = injected_error(__func__);                                                                                         \
    if (error_) return error_
#define ENTER_WITH_CONTEXT                                                                                                           \
    ENTER;                                                                                                                         \
    if (!has_current_context()) return CUDA_ERROR_INVALID_CONTEXT
