/* Declarations shared by the files of this backend. The library is built with -fvisibility=hidden, so none is exported. */

#ifndef BACKEND_H
#define BACKEND_H

/* Strict C11 hides POSIX: threads, clocks and aligned memory are POSIX. */
#define _POSIX_C_SOURCE 200809L

#include <runtime.h>
#include <stdatomic.h>

/* The target: the first part of device strings, and part of the file name, libruntime_cdemo.so. */
#ifndef NAME
#define NAME "cdemo"
#endif
#define VERSION "1.0.0"

/* The code format. */
#ifndef FORMAT
#define FORMAT "null"
#endif

/* An `rt_Str` constant from a string literal. */
#define TEXT(literal) {(const uint8_t *)(literal), sizeof(literal) - 1}

/* Queues count their calls for the kernel `counters`, in the order of the null backend. */
enum call {
    CALL_LAUNCH,
    CALL_SIGNAL,
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

/* Memory spaces, by index in the device description. */
enum space { SPACE_DEVICE, SPACE_PINNED, SPACES };

/* The state of the backend: one per `Runtime`. */
struct instance {
    /* The host's log function; null if it has none. */
    void (*log)(uint32_t level, rt_Str target, rt_Str message);
};

struct device {
    /* When the device was opened: the zero of its clock. */
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

/* A tensor argument, as a submission stores it. */
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

/* The arguments of a launch, as a submission stores them. */
struct arguments {
    size_t count;
    /* Owned by the submission. */
    struct argument *list;
    /* The number of work-items in all groups. */
    uint64_t items;
    /* The queue's calls up to and including this launch. */
    uint64_t calls[CALLS];
};

/* A kernel: its parameters (null: any) and its function. */
struct builtin {
    const char *name;
    const rt_Param *params;
    size_t param_count;
    rt_Status (*run)(const struct arguments *arguments);
};

/* lib.c */
/* Creates an owned error object; the message is formatted as by `printf`. */
__attribute__((format(printf, 2, 3))) rt_Status fail(uint32_t kind, const char *format, ...);
/* Creates an owned copy of an error. */
rt_Status copy_error(const rt_Error *error);
/* Reads a structure that begins with its size; fields that the other side does not have are zero. */
void read_struct(void *ours, size_t bytes, const void *theirs);
/* Writes a structure that begins with its size, up to the size that the other side states. */
void write_struct(void *theirs, const void *ours, size_t bytes);
/* The current time, by the clock of the timestamps. */
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
/* Kernel addresses differ from host addresses, so that any confusion of the two is detected. */
#define KERNEL_ADDRESS(buffer) ((uint64_t)(uintptr_t)(buffer)->start + (UINT64_C(1) << 56))
/* The address of `bytes` bytes at `offset`; an error if they are not inside the buffer. */
rt_Status checked_address(const struct buffer *buffer, uint64_t offset, uint64_t bytes, uint8_t **out);

/* module.c */
extern const rt_ModuleTable module_table;

/* builtins.c */
/* The kernel of that name; null if there is none. */
const struct builtin *find_builtin(const char *name);
/* The names of all kernels, separated by commas. */
extern const char *const builtin_names;

/* arguments.c */
/* Copies the arguments of a launch; rejects those that do not match the kernel's parameters. */
rt_Status copy_arguments(const rt_Launch *launch, const struct builtin *kernel, struct arguments *out);

/* queue.c */
extern const rt_QueueTable queue_table;

#endif
