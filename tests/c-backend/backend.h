/* What the files of this backend share. Nothing of it leaves the library, which is built with -fvisibility=hidden. */

#ifndef BACKEND_H
#define BACKEND_H

/* Strict C11 hides POSIX: threads, clocks and aligned memory are POSIX. */
#define _POSIX_C_SOURCE 200809L

#include <runtime.h>
#include <stdatomic.h>

/* The target: the first part of a device string, and of the file's name, libruntime_cdemo.so. */
#ifndef NAME
#define NAME "cdemo"
#endif
#define VERSION "1.0.0"

/* A constant `rt_Str` of a string literal. */
/* The format of its code. */
#ifndef FORMAT
#define FORMAT "null"
#endif

#define TEXT(literal) {(const uint8_t *)(literal), sizeof(literal) - 1}

/* Queues count their calls, for the kernel `counters`; the order is that of the null backend. */
enum call {
    CALL_LAUNCH,
    CALL_MARK,
    CALL_FLUSH,
    CALL_POLL,
    CALL_WAIT,
    CALL_WAIT_FOR,
    CALL_WRITE,
    CALL_READ,
    CALL_COPY,
    CALL_FILL,
    CALL_NOOP,
    CALL_TIMESTAMP,
    CALL_REPLAY,
    CALLS
};

/* Memory spaces by their index in the device's description. */
enum space { SPACE_DEVICE, SPACE_PINNED, SPACES };

/* A backend's state: one per `Runtime`. */
struct instance {
    /* Where log records go; null when the host has nowhere. */
    void (*log)(uint32_t level, rt_Str target, rt_Str message);
};

struct device {
    /* When it was opened: the zero of its clock. */
    uint64_t opened_ns;
    /* Option `out_of_memory_after_bytes`; 0: no limit. */
    uint64_t limit_bytes;
    _Atomic uint64_t used_bytes[SPACES];
};

struct buffer {
    uint8_t *start;
    uint64_t bytes;
    uint32_t space;
};

/* A tensor argument as a submission keeps it. */
struct tensor {
    const struct buffer *buffer;
    /* Byte offset of the first element. */
    int64_t first;
    uint32_t ndim;
    rt_DType dtype;
    const int64_t *shape;
    const int64_t *strides;
};

struct argument {
    uint8_t kind;
    rt_DType dtype;
    uint64_t scalar;
    struct tensor tensor;
};

/* The arguments of a launch as a submission keeps them. */
struct arguments {
    size_t count;
    /* Owned by the submission. */
    struct argument *list;
    /* Work-items in all groups. */
    uint64_t items;
    /* The queue's calls until this launch, this one included. */
    uint64_t calls[CALLS];
};

/* A kernel: what it takes (null: anything) and what it does. */
struct builtin {
    const char *name;
    const rt_Param *params;
    size_t param_count;
    rt_Status (*run)(const struct arguments *arguments);
};

/* lib.c */
/* An owned error object, made as `printf` would. */
__attribute__((format(printf, 2, 3))) rt_Status fail(uint32_t kind, const char *format, ...);
/* Another owned object that says the same. */
rt_Status fail_again(const rt_Error *error);
/* Reads a structure that begins with its size: what the other side does not know is zero. */
void take_known(void *ours, size_t bytes, const void *theirs);
/* Fills a structure that begins with its size, no further than the other side states. */
void give_known(void *theirs, const void *ours, size_t bytes);
/* Now, by the clock that timestamps are of. */
uint64_t now_ns(void);

/* device.c */
extern const rt_DeviceTable device_table;
rt_Status list_devices(rt_Handle instance, const rt_DeviceInfo *const **out, size_t *count);
rt_Status open_device(rt_Handle instance, uint32_t index, uint32_t sub, const rt_Property *options, size_t count,
                      rt_Handle *out);
extern const uint64_t space_bytes[SPACES];
#define ALIGNMENT_BYTES 256

/* memory.c */
extern const rt_MemoryTable memory_table;
/* Kernels see memory elsewhere than the program does: what takes the one for the other is found at once. */
#define KERNEL_ADDRESS(buffer) ((uint64_t)(uintptr_t)(buffer)->start + (UINT64_C(1) << 56))
/* The address of `bytes` bytes at `offset`; null, with an error, when they are not inside. */
rt_Status reach(const struct buffer *buffer, uint64_t offset, uint64_t bytes, uint8_t **out);

/* module.c */
extern const rt_ModuleTable module_table;

/* builtins.c */
/* The kernel of that name; null when there is none. */
const struct builtin *find_builtin(const char *name);
/* Names of all, separated by commas. */
extern const char *const builtin_names;

/* arguments.c */
/* Keeps the arguments of a launch; refuses what the kernel does not take. */
rt_Status keep_arguments(const rt_Launch *launch, const struct builtin *kernel, struct arguments *out);

/* queue.c */
extern const rt_QueueTable queue_table;

#endif
