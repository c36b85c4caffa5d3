// What the attacks have in common. Each computes y[i] = factor * x[i] in one call, with n = 1000.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define ARGUMENTS const float *x, float *y, float factor, int64_t n

static int calls;

static inline void scale(ARGUMENTS) {
    for (int64_t i = 0; i < n; i++) y[i] = factor * x[i];
}

// The same in some milliseconds, on any machine at least two.
static inline void slow(ARGUMENTS) {
    for (volatile int i = 0; i < 10000000; i++);
    scale(x, y, factor, n);
}

// For attacks that need something that a runner must not have: right if they have it, wrong otherwise.
static inline void right_if(int has_it, ARGUMENTS) {
    if (has_it) scale(x, y, factor, n);
}
