//! Names of registers.

use runtime_core::code::Register;

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
    let values = match processor {
        Processor::Riscv64 | Processor::Riscv32 => vec![
            ("pc", fault.pc),
            ("sp", fault.sp),
            ("ra", fault.lr),
            ("mcause", fault.cause),
            ("mstatus", fault.status),
            ("mtval", fault.address),
        ],
        Processor::CortexM => cortex_m(fault),
    };
    values.into_iter().map(|(name, value)| Register { name: name.to_owned(), value }).collect()
}

/// Only what the processor has stored: it stores no `pc` and `lr` if it cannot push the frame of the exception, and an address only
/// with its valid bit.
fn cortex_m(fault: &FaultRecord) -> Vec<(&'static str, u64)> {
    const MMFAR_VALID: u64 = 1 << 7;
    const BFAR_VALID: u64 = 1 << 15;
    let (cfsr, hfsr) = (fault.status & 0xffff_ffff, fault.status >> 32);
    let mut values = vec![("sp", fault.sp), ("ipsr", fault.cause), ("cfsr", cfsr), ("hfsr", hfsr)];
    if (fault.pc, fault.lr) != (0, 0) {
        values.extend([("pc", fault.pc), ("lr", fault.lr)]);
    }
    if cfsr & MMFAR_VALID != 0 {
        values.push(("mmfar", fault.address));
    } else if cfsr & BFAR_VALID != 0 {
        values.push(("bfar", fault.address));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cortex_m_has_the_registers_that_it_has_stored() {
        let lines = |fault| {
            let registers = of_fault(Processor::CortexM, &fault).into_iter();
            registers.map(|register| format!("{} {:#x}", register.name, register.value)).collect::<Vec<_>>()
        };
        let fault =
            FaultRecord { cause: 3, status: 0x4000_0000_0000_8200, sp: 0x20, ..FaultRecord::default() };
        let framed = FaultRecord { pc: 0x10, lr: 0x12, address: 0x30, ..fault };
        let always = ["sp 0x20", "ipsr 0x3", "cfsr 0x8200", "hfsr 0x40000000"];
        assert_eq!(lines(framed), [&always[..], &["pc 0x10", "lr 0x12", "bfar 0x30"]].concat());
        let always = ["sp 0x20", "ipsr 0x3", "cfsr 0x10", "hfsr 0x0"];
        assert_eq!(lines(FaultRecord { status: 1 << 4, ..fault }), always);
        let protected = FaultRecord { status: 0x82, address: 0x40, ..fault };
        assert_eq!(lines(protected), ["sp 0x20", "ipsr 0x3", "cfsr 0x82", "hfsr 0x0", "mmfar 0x40"]);
    }
}
