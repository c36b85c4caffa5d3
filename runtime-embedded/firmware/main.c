/* Serves the commands of the host. */

#include "protocol.h"

#ifdef RUNTIME_UART
#include "uart.h"

extern unsigned char runtime_flash_begin[], runtime_flash_end[], runtime_ram_begin[], runtime_ram_end[];

const struct runtime_region runtime_regions[2] = {
    {(uintptr_t)runtime_flash_begin, (uintptr_t)runtime_flash_end, 0},
    {(uintptr_t)runtime_ram_begin, (uintptr_t)runtime_ram_end, 1},
};

#define WAIT runtime_serve
#else
#define WAIT runtime_park

/* A debugger has no channel for messages. */
void runtime_log(const char *text) { (void)text; }
#endif

extern unsigned char runtime_stack_begin[], runtime_stack_end[], runtime_heap_begin[], runtime_heap_end[];

volatile struct runtime_mailbox runtime_mailbox;

static void paint(void) {
    unsigned char *top = __builtin_frame_address(0);
    for (volatile unsigned char *byte = runtime_stack_begin; byte < top - 256; byte++) *byte = RUNTIME_STACK_PAINT;
}

static uint64_t painted(void) {
    const unsigned char *byte = runtime_stack_begin;
    while (byte < runtime_stack_end && *byte == RUNTIME_STACK_PAINT) byte++;
    return (uint64_t)(runtime_stack_end - byte);
}

static void set_guards(volatile struct runtime_tensor *tensor) {
    volatile unsigned char *begin = (volatile unsigned char *)(uintptr_t)tensor->address;
    volatile unsigned char *end = begin + tensor->bytes;
    for (int i = 0; i < RUNTIME_GUARD_BYTES; i++) begin[-1 - i] = end[i] = RUNTIME_GUARD;
}

static uint32_t damaged_guards(volatile struct runtime_tensor *tensor) {
    volatile unsigned char *begin = (volatile unsigned char *)(uintptr_t)tensor->address;
    volatile unsigned char *end = begin + tensor->bytes;
    uint32_t damaged = 0;
    if (tensor->content == RUNTIME_CONSTANT) return 0;
    for (int i = 0; i < RUNTIME_GUARD_BYTES; i++)
        damaged |= (begin[-1 - i] != RUNTIME_GUARD) | (end[i] != RUNTIME_GUARD) << 1;
    return damaged;
}

static void prepare(volatile struct runtime_mailbox *mailbox) {
    for (uint32_t i = 0; i < mailbox->tensor_count; i++) {
        volatile struct runtime_tensor *tensor = &mailbox->tensors[i];
        if (tensor->content != RUNTIME_CONSTANT) set_guards(tensor);
        runtime_fill(tensor);
        tensor->checksum = runtime_crc(tensor->address, tensor->bytes);
    }
}

/* A debugger that traces a run stops here, and in `runtime_counter_start`: a stop in between would change some counters. */
__attribute__((noinline)) void runtime_counted(void) { __asm__ volatile(""); }

/* What the host has written for a run, apart from the command. */
static uint32_t request_crc(volatile struct runtime_mailbox *mailbox) {
    return runtime_crc((uintptr_t)mailbox->tensors, sizeof mailbox->tensors + sizeof mailbox->args);
}

static void run(volatile struct runtime_mailbox *mailbox) {
    int exit_code = 0;
    /* The kernel may write over the mailbox. */
    uint32_t calls = mailbox->calls, tensor_count = mailbox->tensor_count, crc = request_crc(mailbox);
    paint();
    runtime_counter_start();
    uint64_t before = runtime_counter_read();
    mailbox->overhead = runtime_counter_read() - before;
    before = runtime_counter_read();
    for (uint32_t call = 0; call < calls && exit_code == 0; call++) exit_code = runtime_entry(mailbox->args);
    mailbox->count = runtime_counter_read() - before;
    mailbox->exit_code = exit_code;
    runtime_counted();
    mailbox->stack_used = painted();
    if (request_crc(mailbox) != crc) {
        /* Its records may name any address. Without the magic, the host reports it. */
        mailbox->magic = 0;
        return;
    }
    for (uint32_t i = 0; i < tensor_count; i++) {
        volatile struct runtime_tensor *tensor = &mailbox->tensors[i];
        tensor->damaged = damaged_guards(tensor);
        tensor->checksum = runtime_crc(tensor->address, tensor->bytes);
    }
}

void runtime_main(void) {
    volatile struct runtime_mailbox *mailbox = &runtime_mailbox;
    mailbox->magic = RUNTIME_MAGIC;
    mailbox->version = RUNTIME_VERSION;
    mailbox->stack_begin = (uintptr_t)runtime_stack_begin;
    mailbox->stack_end = (uintptr_t)runtime_stack_end;
    mailbox->heap_begin = (uintptr_t)runtime_heap_begin;
    mailbox->heap_end = (uintptr_t)runtime_heap_end;
    mailbox->state = RUNTIME_READY;
#ifdef RUNTIME_UART
    runtime_serve_start();
#endif
    for (;;) {
        WAIT();
        /* Until it is done: a kernel may wait for the host as well. */
        mailbox->state = RUNTIME_INVALID;
        switch (mailbox->tensor_count <= RUNTIME_MAX_TENSORS ? mailbox->command : 0) {
        case RUNTIME_PREPARE: prepare(mailbox); break;
        case RUNTIME_RUN: run(mailbox); break;
        default: continue;
        }
        mailbox->state = RUNTIME_DONE;
    }
}

void runtime_crash(void) {
    runtime_mailbox.state = RUNTIME_CRASHED;
    for (;;) WAIT();
}
