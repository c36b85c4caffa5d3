/* The mailbox between host and target. The host accesses it through the debugger while the target is stopped at
   `runtime_park`, or through the UART while the firmware waits for a command. Every field has the same size and offset on all targets. */

#ifndef RUNTIME_PROTOCOL_H
#define RUNTIME_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#define RUNTIME_MAGIC 0x314445424d455452u /* "RTEMBED1", little-endian */
#define RUNTIME_VERSION 1u

enum { RUNTIME_STARTING, RUNTIME_READY, RUNTIME_DONE, RUNTIME_CRASHED, RUNTIME_INVALID };
enum { RUNTIME_PREPARE = 1, RUNTIME_RUN = 2 };
/* A constant is in flash, without guards. */
enum { RUNTIME_KEEP, RUNTIME_SEED, RUNTIME_POISON, RUNTIME_CONSTANT };
enum { RUNTIME_INT, RUNTIME_UINT, RUNTIME_FLOAT, RUNTIME_BFLOAT, RUNTIME_BOOL, RUNTIME_COMPLEX };

#define RUNTIME_MAX_TENSORS 32
#define RUNTIME_MAX_ARGS 64
#define RUNTIME_GUARD_BYTES 32
#define RUNTIME_GUARD 0xc5
#define RUNTIME_POISON_BYTE 0xff
#define RUNTIME_STACK_PAINT 0xa7

struct runtime_tensor {
    uint64_t address; /* guards lie before and behind */
    uint64_t bytes;
    uint64_t seed;
    uint32_t content;
    uint32_t class;
    uint32_t element_bytes;
    uint32_t checksum; /* CRC-32 after the last command */
    uint32_t damaged;  /* whether a guard has been overwritten: 1 before, 2 behind */
    uint32_t reserved;
};

struct runtime_fault {
    uint64_t cause;   /* mcause, or the exception number */
    uint64_t status;  /* mstatus, or CFSR in the low and HFSR in the high half */
    uint64_t pc;
    uint64_t address; /* mtval, MMFAR or BFAR */
    uint64_t sp;
    uint64_t lr;
};

struct runtime_mailbox {
    uint64_t magic;
    uint32_t version;
    uint32_t state;
    uint32_t command;
    int32_t exit_code;
    uint32_t tensor_count;
    uint32_t calls; /* calls per run */
    uint64_t count; /* of the counter, for all calls */
    uint64_t overhead; /* of reading the counter, included in `count` */
    uint64_t stack_begin;
    uint64_t stack_end;
    uint64_t stack_used;
    uint64_t heap_begin; /* memory for tensors */
    uint64_t heap_end;
    struct runtime_fault fault;
    struct runtime_tensor tensors[RUNTIME_MAX_TENSORS];
    uint64_t args[RUNTIME_MAX_ARGS];
};

_Static_assert(offsetof(struct runtime_mailbox, tensors) == 136, "the host reads at fixed offsets");
_Static_assert(sizeof(struct runtime_tensor) == 48, "the host reads at fixed offsets");
_Static_assert(sizeof(struct runtime_mailbox) == 2184, "the host checks that it is in RAM");

extern volatile struct runtime_mailbox runtime_mailbox;

/* Stops here for the host. */
void runtime_park(void);
/* The kernel with its arguments; generated. */
int runtime_entry(const volatile uint64_t *args);
/* Starts and reads the counter. */
void runtime_counter_start(void);
uint64_t runtime_counter_read(void);
/* Called when a run has been counted. */
void runtime_counted(void);
/* Called by the start-up code with a valid stack. */
void runtime_main(void);
/* Sends a message to the host's log, where the link carries messages. */
void runtime_log(const char *text);
/* Called by fault handlers, on a stack of their own. */
void runtime_crash(void);

void runtime_fill(volatile struct runtime_tensor *tensor);
uint32_t runtime_crc(uint64_t address, uint64_t bytes);

#endif
