//! Names of registers.

use runtime_core::Register;

use super::mailbox::FaultRecord;
use crate::boards::Processor;

/// In the order of the remote protocol's numbers. The program counter is the last one.
const RISCV: [&str; 33] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6",
    "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6", "pc",
];
const CORTEX_M: [&str; 16] =
    ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "sp", "lr", "pc"];

/// The names of a processor's registers; each has its index as number in the remote protocol. The program counter is the last one.
pub(super) const fn names(processor: Processor) -> &'static [&'static str] {
    match processor {
        Processor::Riscv64 | Processor::Riscv32 => &RISCV,
        Processor::CortexM => &CORTEX_M,
    }
}

/// The registers that the firmware records of a crash.
pub(super) fn of_fault(processor: Processor, fault: &FaultRecord) -> Vec<Register> {
    let [link, cause, status, address] = match processor {
        Processor::Riscv64 | Processor::Riscv32 => ["ra", "mcause", "mstatus", "mtval"],
        Processor::CortexM => ["lr", "ipsr", "hfsr:cfsr", "mmfar/bfar"],
    };
    let values = [
        ("pc", fault.pc),
        ("sp", fault.sp),
        (link, fault.lr),
        (cause, fault.cause),
        (status, fault.status),
        (address, fault.address),
    ];
    values.into_iter().map(|(name, value)| Register { name: name.to_owned(), value }).collect()
}
