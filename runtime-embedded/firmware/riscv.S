/* Start-up and traps of RISC-V, in machine mode. */

#if __riscv_xlen == 64
#define WORD 8
#define LOAD ld
#define STORE sd
#else
#define WORD 4
#define LOAD lw
#define STORE sw
#endif

    .section .start, "ax"
    .globl runtime_start
runtime_start:
    csrw mie, zero
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    la sp, runtime_stack_end
    la t0, runtime_trap
    csrw mtvec, t0
#ifdef __riscv_flen
    li t0, 0x6000
    csrs mstatus, t0
    fscsr zero
#endif
    /* The last program may have stopped the counters. Processors without this register trap to the next instruction. */
    la t0, 1f
    csrw mtvec, t0
    csrw mcountinhibit, zero
    .balign 4
    /* The guard below the stack: a naturally aligned region without permissions, which is locked to apply to machine mode. Below
       it, where frames may reach that are larger than the guard, a range that can only be read and executed. Processors without
       physical memory protection trap to what follows it. */
1:  la t0, 2f
    csrw mtvec, t0
    la t0, runtime_guard_pmp
    csrw pmpaddr0, t0
    la t0, runtime_below_stack
    srli t0, t0, 2
    csrw pmpaddr1, t0
    la t0, runtime_guard_begin
    srli t0, t0, 2
    csrw pmpaddr2, t0
    li t0, 0x8d0098
    csrw pmpcfg0, t0
    .balign 4
2:  la t0, runtime_trap
    csrw mtvec, t0

    la a0, runtime_data_begin
    la a1, runtime_data_end
    la a2, runtime_data_load
1:  bgeu a0, a1, 2f
    lw t0, 0(a2)
    sw t0, 0(a0)
    addi a0, a0, 4
    addi a2, a2, 4
    j 1b
2:  la a0, runtime_bss_begin
    la a1, runtime_bss_end
3:  bgeu a0, a1, 4f
    sw zero, 0(a0)
    addi a0, a0, 4
    j 3b
4:  la tp, runtime_tls_begin
    call runtime_main
5:  j 5b

    .text
    .balign 4
runtime_trap:
    /* The stack may be what failed. */
    csrw mscratch, sp
    la sp, runtime_fault_stack_end
    addi sp, sp, -8 * WORD
    STORE t0, 0(sp)
    STORE t1, WORD(sp)
    la t0, runtime_trap_record
    csrr t1, mcause
    STORE t1, 0(t0)
    csrr t1, mstatus
    STORE t1, WORD(t0)
    csrr t1, mepc
    STORE t1, 2 * WORD(t0)
    csrr t1, mtval
    STORE t1, 3 * WORD(t0)
    csrr t1, mscratch
    STORE t1, 4 * WORD(t0)
    STORE ra, 5 * WORD(t0)
    call runtime_trapped

    .section .park, "ax"
    .globl runtime_park, runtime_resume
    .balign 4
runtime_park:
    nop
    nop
runtime_resume:
    ret
