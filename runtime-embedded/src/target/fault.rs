//! Names of faults.

use std::ops::Range;

use super::mailbox::FaultRecord;
use crate::boards::Processor;

/// Describes a fault of a program with this stack: its cause, and the address that was accessed, if there was one.
pub(super) fn describe(processor: Processor, fault: &FaultRecord, stack: &Range<u64>) -> String {
    let guard = stack.start.saturating_sub(256)..stack.start;
    // The limit of the stack's pointer (Armv8-M), or pushing the frame of an exception, which also fails without privileges.
    let is_limited = fault.status & 0x10_0000 != 0;
    let is_pushed_below = fault.status & 0x1010 != 0 && fault.sp < stack.start;
    let stacking_failed = processor == Processor::CortexM && (is_limited || is_pushed_below);
    // A large frame reaches beyond the guard, where some machines ignore writes.
    let is_below = (1..stack.start).contains(&fault.sp);
    if guard.contains(&fault.address) || is_below || stacking_failed {
        return format!("stack overflow ({} bytes of stack)", stack.end.saturating_sub(stack.start));
    }
    match processor {
        Processor::Riscv64 | Processor::Riscv32 => riscv(fault),
        Processor::CortexM => cortex_m(fault),
    }
}

/// The trap causes of RISC-V's privileged specification.
fn riscv(fault: &FaultRecord) -> String {
    let cause = match fault.cause {
        0 => "misaligned instruction",
        1 => "execution outside memory",
        2 => "illegal instruction",
        3 => "breakpoint instruction",
        4 => "misaligned load",
        5 => "load outside memory",
        6 => "misaligned store",
        7 => "store outside memory",
        11 => "system call",
        other => return format!("trap with mcause {other:#x}"),
    };
    format!("{cause}, address {:#x}", fault.address)
}

/// The bits of CFSR and HFSR, by the reference manuals of Armv7-M and Armv8-M.
fn cortex_m(fault: &FaultRecord) -> String {
    const CFSR: [(u32, &str); 13] = [
        (0, "execution of protected memory"),
        (1, "access to protected memory"),
        (3, "protected memory on return from an exception"),
        (8, "execution outside memory"),
        (9, "access outside memory"),
        (10, "access outside memory (imprecise)"),
        (11, "access outside memory on return from an exception"),
        (16, "illegal instruction"),
        (17, "call of an address that is not Thumb code"),
        (18, "invalid return from an exception"),
        (19, "floating-point instruction without a floating-point unit"),
        (24, "misaligned access"),
        (25, "division by zero"),
    ];
    let cause = CFSR.iter().find(|(bit, _)| fault.status >> bit & 1 == 1).map(|(_, cause)| *cause);
    match (cause, fault.address) {
        (Some(cause), 0) => cause.to_owned(),
        (Some(cause), address) => format!("{cause}, address {address:#x}"),
        _ => format!("exception {} with CFSR and HFSR {:#x}", fault.cause, fault.status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(processor: Processor, fault: FaultRecord) -> String {
        describe(processor, &fault, &(0x2000_0100..0x2000_4100))
    }

    #[test]
    fn faults_have_names() {
        let trap = |cause, address| FaultRecord { cause, address, ..FaultRecord::default() };
        assert_eq!(described(Processor::Riscv64, trap(2, 0)), "illegal instruction, address 0x0");
        assert!(described(Processor::Riscv32, trap(24, 0)).contains("0x18"));
        assert!(described(Processor::Riscv64, trap(7, 0x2000_0080)).contains("stack overflow"));
        let fault = |status| FaultRecord { status, ..FaultRecord::default() };
        assert_eq!(described(Processor::CortexM, fault(1 << 25)), "division by zero");
        assert!(described(Processor::CortexM, fault(1 << 4)).contains("stack overflow (16384 bytes"));
        assert!(described(Processor::CortexM, fault(1 << 20)).contains("stack overflow"));
        assert!(described(Processor::CortexM, fault(1 << 62)).contains("exception 0"));
        let unprivileged = FaultRecord { sp: 0x2000_4000, status: 1 << 4, ..FaultRecord::default() };
        assert!(!described(Processor::CortexM, unprivileged).contains("stack overflow"));
        let far = FaultRecord { sp: 0x1ffd_8428, status: 1 << 17, ..FaultRecord::default() };
        assert!(described(Processor::CortexM, far).contains("stack overflow"));
    }
}
