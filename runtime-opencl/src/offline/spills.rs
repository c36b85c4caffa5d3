//! What Intel's compiler for GPUs logs of a kernel's registers.
//!
//! The text is `kernel NAME compiled SIMD16 allocated 128 regs and spilled around 217`, or `in kernel 'NAME': compiled …`. It is a
//! warning: mostly it is there only for kernels that spill.
//!
//! What is spilled is counted in whole registers of a hardware thread, which runs one sub-group: its scratch memory for spills and saved
//! registers, divided by the size of a register, rounded up and at least 1 (`CISABuilder.cpp` of intel-graphics-compiler). A register
//! has 64 bytes from Xe-HPC on, and 32 before, which the log does not tell. The number is therefore reported as it stands: with 8 to 32
//! work-items per sub-group, the bytes of a work-item are one to four times as many on GPUs with registers of 32 bytes, and two to eight times
//! on the others. It tells whether a kernel spills, and which of two builds of one width spills less.

use runtime_core::code::KernelInfo;

/// The kernels in a compiler's log, with their registers and what they spill; those of which it says nothing are missing.
pub(crate) fn kernels(log: &str) -> Vec<(String, KernelInfo)> {
    let mut kernels: Vec<(String, KernelInfo)> = Vec::new();
    for (name, info) in log.lines().filter_map(kernel) {
        // A kernel that is compiled again has other figures.
        kernels.retain(|(known, _)| *known != name);
        kernels.push((name, info));
    }
    kernels
}

fn kernel(line: &str) -> Option<(String, KernelInfo)> {
    let (before, after) = line.split_once("compiled SIMD")?;
    let mut before = before.trim_end_matches([' ', ':']).rsplit(' ');
    let name = before.next()?.trim_matches('\'');
    before.next().filter(|word| *word == "kernel" && !name.is_empty())?;
    let mut words = after.split_whitespace();
    let width = words.next()?.parse().ok()?;
    words.next().filter(|word| *word == "allocated")?;
    let registers = words.next()?.parse().ok()?;
    words.next().filter(|word| *word == "regs")?;
    let rest: Vec<_> = words.collect();
    let spilled_bytes = match rest[..] {
        [] => Some(0),
        ["and", "spilled", "around", spilled, ..] => spilled.parse().ok(),
        _ => None,
    };
    let info = KernelInfo {
        registers: Some(registers),
        spilled_bytes,
        preferred_multiple: Some(width),
        ..KernelInfo::default()
    };
    Some((name.to_owned(), info))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Figures = (String, Option<u32>, Option<u32>);

    fn figures(log: &str) -> Vec<Figures> {
        kernels(log).into_iter().map(|(name, info)| (name, info.registers, info.spilled_bytes)).collect()
    }

    fn figure(name: &str, registers: u32, spilled: Option<u32>) -> Figures {
        (name.to_owned(), Some(registers), spilled)
    }

    #[test]
    fn a_kernel_that_spills() {
        let log = "Build succeeded.\nwarning: kernel matmul_kernel  compiled SIMD16 allocated 128 regs and spilled around 217\n";
        assert_eq!(figures(log), [figure("matmul_kernel", 128, Some(217))]);
        let log = "[pvc] warning: in kernel 'k': compiled SIMD32 allocated 256 regs and spilled around 2";
        assert_eq!(figures(log), [figure("k", 256, Some(2))]);
        assert_eq!(kernels(log)[0].1.preferred_multiple, Some(32));
    }

    #[test]
    fn a_kernel_that_does_not_spill() {
        assert_eq!(figures("kernel k compiled SIMD16 allocated 128 regs"), [figure("k", 128, Some(0))]);
    }

    #[test]
    fn several_kernels_and_a_second_build() {
        let log = "warning: kernel a compiled SIMD16 allocated 128 regs and spilled around 7\n\
            warning: kernel b compiled SIMD8 allocated 128 regs and spilled around 1\n\
            warning: kernel a compiled SIMD16 allocated 256 regs";
        assert_eq!(figures(log), [figure("b", 128, Some(1)), figure("a", 256, Some(0))]);
    }

    #[test]
    fn other_text_tells_nothing() {
        for log in [
            "",
            "no kernel was compiled",
            "kernel k compiled SIMD16",
            "kernel k compiled SIMDx allocated 128 regs and spilled around 1",
            "kernel k compiled SIMD16 allocated many regs",
            "kernel k compiled SIMD16 allocated 128 registers",
            "kernel k compiled SIMD16 wasted 128 regs",
            "kernel k compiled SIMD16 allocated 99999999999 regs",
            "function f compiled SIMD16 allocated 128 regs",
            "compiled SIMD16 allocated 128 regs and spilled around 1",
            "kernel '' compiled SIMD16 allocated 128 regs",
            "compiled SIMD",
        ] {
            assert_eq!(figures(log), [], "{log}");
        }
        assert_eq!(figures("kernel k compiled SIMD16 allocated 128 regs and more"), [figure("k", 128, None)]);
        let log = "kernel k compiled SIMD16 allocated 128 regs and spilled around -1";
        assert_eq!(figures(log), [figure("k", 128, None)]);
    }
}
