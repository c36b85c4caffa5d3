/* Counter and fault record of RISC-V. */

#include "protocol.h"

/* Cause, status, program counter, address, stack pointer and return address, as the trap found them. */
uintptr_t runtime_trap_record[6];

__attribute__((noreturn)) void runtime_trapped(void) {
    volatile struct runtime_fault *fault = &runtime_mailbox.fault;
    fault->cause = runtime_trap_record[0];
    fault->status = runtime_trap_record[1];
    fault->pc = runtime_trap_record[2];
    fault->address = runtime_trap_record[3];
    fault->sp = runtime_trap_record[4];
    fault->lr = runtime_trap_record[5];
    runtime_crash();
    __builtin_unreachable();
}

void runtime_counter_start(void) {}

uint64_t runtime_counter_read(void) {
#if __riscv_xlen == 64
    uint64_t count;
    __asm__ volatile("csrr %0, mcycle" : "=r"(count)::"memory");
    return count;
#else
    uint32_t high, low, again;
    do {
        __asm__ volatile("csrr %0, mcycleh\n csrr %1, mcycle\n csrr %2, mcycleh" : "=r"(high), "=r"(low), "=r"(again)::"memory");
    } while (high != again);
    return (uint64_t)high << 32 | low;
#endif
}

void runtime_start(void);

void runtime_restart(void) { runtime_start(); }
