/* What the parts of the stub share. */
#pragma once
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
};

struct kernel_call;

/* A kernel that the stub knows. */
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
