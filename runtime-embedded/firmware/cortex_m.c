/* Start-up, faults and counter of Arm Cortex-M. The program runs on the process stack; handlers have the main stack, so a
   stack overflow can be reported. */

#include "protocol.h"

#ifdef __ARM_ARCH_8M_BASE__
#error "Armv8-M Baseline, such as Cortex-M23, is not supported"
#endif

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define AIRCR REGISTER(0xe000ed0cu)
#define SHCSR REGISTER(0xe000ed24u)
#define CCR REGISTER(0xe000ed14u)
#define CFSR REGISTER(0xe000ed28u)
#define HFSR REGISTER(0xe000ed2cu)
#define MMFAR REGISTER(0xe000ed34u)
#define BFAR REGISTER(0xe000ed38u)
#define CPACR REGISTER(0xe000ed88u)
#define VTOR REGISTER(0xe000ed08u)
#define MPU_TYPE REGISTER(0xe000ed90u)
#define MPU_CTRL REGISTER(0xe000ed94u)
#define MPU_RNR REGISTER(0xe000ed98u)
#define MPU_RBAR REGISTER(0xe000ed9cu)
#define MPU_RASR REGISTER(0xe000eda0u)

extern unsigned char runtime_stack_begin[], runtime_stack_end[], runtime_fault_stack_end[], runtime_guard_begin[];
extern uint32_t runtime_data_begin[], runtime_data_end[], runtime_data_load[], runtime_bss_begin[], runtime_bss_end[];
extern unsigned char runtime_tls_begin[];

void runtime_start(void);
void runtime_handler(void);
extern void _set_tls(void *) __attribute__((weak));

/* The program counter is the last word of a handler's exception frame but one. */
struct frame {
    uint32_t r0, r1, r2, r3, r12, lr, pc, xpsr;
};

__attribute__((section(".vectors"), used)) void *const runtime_vectors[16] = {
    runtime_fault_stack_end, runtime_start,   runtime_handler, runtime_handler, runtime_handler, runtime_handler,
    runtime_handler,         runtime_handler, runtime_handler, runtime_handler, runtime_handler, runtime_handler,
    runtime_handler,         runtime_handler, runtime_handler, runtime_handler,
};

static void protect_stack(void) {
#ifdef __ARM_ARCH_8M_MAIN__
    __asm__ volatile("msr psplim, %0" : : "r"(runtime_stack_begin));
#else
    if (MPU_TYPE >> 8 == 0) return;
    MPU_RNR = 0;
    MPU_RBAR = (uint32_t)runtime_guard_begin;
    /* No access, never executed, 256 bytes; everything else as without the unit. */
    MPU_RASR = 1u << 28 | 7u << 1 | 1u;
    MPU_CTRL = 5;
    __asm__ volatile("dsb\n isb" ::: "memory");
#endif
}

__attribute__((used, noreturn)) static void begin(void) {
    VTOR = (uint32_t)runtime_vectors;
    /* Faults of usage, bus and memory; division by zero and misaligned access trap. */
    SHCSR |= 7u << 16;
    CCR |= 1u << 4 | 1u << 3;
    CFSR = CFSR;
    HFSR = HFSR;
#ifdef __ARM_FP
    CPACR |= 15u << 20;
    __asm__ volatile("dsb\n isb" ::: "memory");
#endif
    const uint32_t *from = runtime_data_load;
    for (uint32_t *to = runtime_data_begin; to < runtime_data_end; to++) *to = *from++;
    for (uint32_t *to = runtime_bss_begin; to < runtime_bss_end; to++) *to = 0;
    if (_set_tls) _set_tls(runtime_tls_begin);
    protect_stack();
    runtime_main();
    __builtin_unreachable();
}

__attribute__((naked, used)) void runtime_start(void) {
    __asm__ volatile("movs r0, #0\n msr control, r0\n isb\n"
                     "ldr r0, =runtime_fault_stack_end\n msr msp, r0\n"
                     "ldr r0, =runtime_stack_end\n msr psp, r0\n"
                     "movs r0, #2\n msr control, r0\n isb\n"
                     "b begin\n");
}

__attribute__((used, noreturn)) static void record(const struct frame *stack, uint32_t exception) {
    volatile struct runtime_fault *fault = &runtime_mailbox.fault;
    uint32_t cfsr = CFSR;
    fault->cause = exception & 0x1ff;
    fault->status = (uint64_t)HFSR << 32 | cfsr;
    fault->sp = (uint32_t)stack;
    fault->address = cfsr & 1u << 7 ? MMFAR : cfsr & 1u << 15 ? BFAR : 0;
    /* There is no frame if stacking is what failed. */
    int has_frame = !(cfsr & (1u << 4 | 1u << 12 | 1u << 20)) && (uint32_t)stack >= (uint32_t)runtime_guard_begin + 256;
    fault->pc = has_frame ? stack->pc : 0;
    fault->lr = has_frame ? stack->lr : 0;
    MPU_CTRL = 0;
    runtime_crash();
    __builtin_unreachable();
}

__attribute__((naked, used)) void runtime_handler(void) {
    __asm__ volatile("mrs r0, psp\n mrs r1, ipsr\n ldr r2, =runtime_fault_stack_end\n msr msp, r2\n b record\n");
}

void runtime_restart(void) {
    __asm__ volatile("dsb" ::: "memory");
    /* Requests a reset of the system. */
    AIRCR = 0x05fa0004u;
    for (;;) {}
}

__attribute__((naked, section(".park"))) void runtime_park(void) {
    __asm__ volatile("nop\n nop\n .globl runtime_resume\n .thumb_func\n runtime_resume:\n bx lr\n");
}

#ifdef RUNTIME_COUNTER_DWT
#define DEMCR REGISTER(0xe000edfcu)
#define DWT_CTRL REGISTER(0xe0001000u)
#define DWT_CYCCNT REGISTER(0xe0001004u)

void runtime_counter_start(void) {
    DEMCR |= 1u << 24;
    DWT_CYCCNT = 0;
    DWT_CTRL |= 1;
}

uint64_t runtime_counter_read(void) { return DWT_CYCCNT; }
#elif defined RUNTIME_COUNTER_CONTROL
/* The system counter of an SSE subsystem, of 64 bits. */
void runtime_counter_start(void) {
    REGISTER(RUNTIME_COUNTER_CONTROL) = 0;
    REGISTER(RUNTIME_COUNTER_CONTROL + 8) = 0;
    REGISTER(RUNTIME_COUNTER_CONTROL + 12) = 0;
    REGISTER(RUNTIME_COUNTER_CONTROL) = 1;
}

uint64_t runtime_counter_read(void) {
    uint32_t high, low;
    do {
        high = REGISTER(RUNTIME_COUNTER_STATUS + 4);
        low = REGISTER(RUNTIME_COUNTER_STATUS);
    } while (high != REGISTER(RUNTIME_COUNTER_STATUS + 4));
    return (uint64_t)high << 32 | low;
}
#else
/* A timer of the board counts down, with 32 bits: longer runs wrap. QEMU has no cycle counter for these processors. */
#define TIMER(offset) REGISTER(RUNTIME_TIMER_BASE + (offset))

void runtime_counter_start(void) {
    TIMER(0) = 0;
    TIMER(8) = UINT32_MAX;
    TIMER(4) = UINT32_MAX;
    TIMER(0) = 1;
}

uint64_t runtime_counter_read(void) { return UINT32_MAX - TIMER(4); }
#endif
