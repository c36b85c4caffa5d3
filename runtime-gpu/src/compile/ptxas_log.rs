//! Reads the log of the assembler, which NVRTC and the driver pass on: the resources of each kernel (`ptxas -v`), and errors
//! about resources that the device does not have.
//!
//! ```text
//! ptxas info    : Compiling entry function 'f' for 'sm_90'
//! ptxas info    : Function properties for f
//! ptxas         .     848 bytes stack frame, 1300 bytes spill stores, 1640 bytes spill loads
//! ptxas info    : Used 32 registers, used 0 barriers, 848 bytes cumulative stack size, 400 bytes smem
//! ```

use runtime_core::Options;
use runtime_core::code::{CompiledCode, KernelInfo};

/// The NVRTC option that adds the resources to the log.
pub(crate) const VERBOSE: &str = "--ptxas-options=-v";
/// Errors of kernels that need more than the device has.
const OUT_OF_RESOURCES: [&str; 3] =
    ["uses too much shared data", "uses too much local data", "Register allocation failed"];

/// An assembled cubin with what the log says of it.
pub(crate) fn cubin(code: Vec<u8>, log: &str) -> CompiledCode {
    let (kernels, log, options) = (kernels(log), messages(log), Options::new());
    CompiledCode { format: "cubin".into(), code, kernels, log, options }
}

/// What the log says of each kernel.
pub(crate) fn kernels(log: &str) -> Vec<(String, KernelInfo)> {
    let mut kernels: Vec<(String, KernelInfo)> = Vec::new();
    let mut described = "";
    // A function that is not inlined spills on behalf of kernels that the log does not name.
    let mut callee_spills = false;
    for line in log.lines() {
        if let Some(name) = between(line, "Compiling entry function '", "'") {
            kernels.push((name.to_owned(), KernelInfo::default()));
        } else if let Some((_, name)) = line.split_once("Function properties for ") {
            described = name.trim();
        } else if let Some(stores) = number_before(line, " bytes spill stores") {
            match kernels.iter_mut().find(|(name, _)| name == described) {
                Some((_, info)) => {
                    info.spilled_bytes = Some(stores);
                    info.private_bytes = number_before(line, " bytes stack frame");
                }
                None => callee_spills |= stores > 0,
            }
        } else if let (Some(registers), Some((_, info))) = (used_registers(line), kernels.last_mut()) {
            info.registers = Some(registers);
            info.shared_bytes = Some(number_before(line, " bytes smem").unwrap_or(0));
            info.private_bytes = number_before(line, " bytes cumulative stack size").or(info.private_bytes);
        }
    }
    if callee_spills {
        kernels.iter_mut().for_each(|(_, info)| info.spilled_bytes = None);
    }
    kernels
}

/// The log without the lines about resources.
pub(crate) fn messages(log: &str) -> String {
    let is_message = |line: &&str| {
        let line = line.trim_start();
        let line = line.strip_prefix("ptxas").unwrap_or(line).trim_start();
        let is_info = line.strip_prefix("info").is_some_and(|rest| rest.trim_start().starts_with(':'));
        !is_info && !line.contains(" bytes spill stores")
    };
    log.lines().filter(is_message).collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Whether a kernel was refused because it needs more of a resource than the device has.
pub(crate) fn is_out_of_resources(log: &str) -> bool {
    OUT_OF_RESOURCES.iter().any(|error| log.contains(error))
}

fn between<'t>(line: &'t str, before: &str, after: &str) -> Option<&'t str> {
    Some(line.split_once(before)?.1.split_once(after)?.0)
}

/// The number that ends where `unit` begins.
fn number_before(line: &str, unit: &str) -> Option<u32> {
    let (before, _) = line.split_once(unit)?;
    before.rsplit(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

fn used_registers(line: &str) -> Option<u32> {
    between(line, "Used ", " registers")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NVRTC 12.9, and the driver's compiler, which leaves out the program's name.
    const LOG: &str = "k.cu(3): warning #177-D: unused
ptxas info    : Overriding maximum register limit 256 for 'f' with  32 of maxrregcount option
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z4tmplPf' for 'sm_90'
ptxas info    : Function properties for _Z4tmplPf
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 400 bytes smem
ptxas info    : Compile time = 2.228 ms
info    : Compiling entry function 'f' for 'sm_90'
info    : Function properties for f
    848 bytes stack frame, 1300 bytes spill stores, 1640 bytes spill loads
info    : Used 32 registers, used 0 barriers, 900 bytes cumulative stack size
";

    #[test]
    fn each_kernel_has_its_own_figures() {
        let info = |registers, spilled, shared, private| KernelInfo {
            registers: Some(registers),
            spilled_bytes: Some(spilled),
            shared_bytes: Some(shared),
            private_bytes: Some(private),
            ..KernelInfo::default()
        };
        let expected =
            vec![("_Z4tmplPf".to_owned(), info(10, 0, 400, 0)), ("f".to_owned(), info(32, 1300, 0, 900))];
        assert_eq!(kernels(LOG), expected);
        assert_eq!(messages(LOG), "k.cu(3): warning #177-D: unused");
    }

    #[test]
    fn spills_of_a_function_that_is_not_inlined_make_those_of_kernels_unknown() {
        let callee = |stores: u32| {
            format!(
                "{LOG}info : Function properties for g\n  8 bytes stack frame, {stores} bytes spill stores, 0 bytes spill loads\n"
            )
        };
        let spilled = |log: &str| kernels(log).iter().map(|(_, info)| info.spilled_bytes).collect::<Vec<_>>();
        assert_eq!(spilled(&callee(0)), [Some(0), Some(1300)]);
        assert_eq!(spilled(&callee(4)), [None, None]);
    }

    #[test]
    fn a_log_without_figures_has_no_kernels() {
        for log in [
            "",
            "Used 5 registers",
            "Function properties for f\n 1 bytes spill stores",
            "Compiling entry function 'f",
        ] {
            assert_eq!(kernels(log), [], "{log}");
        }
        let unfinished = kernels("Compiling entry function 'f' for 'sm_1'\nUsed many registers");
        assert_eq!(unfinished, [("f".to_owned(), KernelInfo::default())]);
    }

    #[test]
    fn a_lack_of_resources_is_told_apart_from_other_errors() {
        assert!(is_out_of_resources(
            "ptxas error   : Entry function 'f' uses too much shared data (0x61a80 bytes, 0xc000 max)"
        ));
        assert!(is_out_of_resources(
            "ptxas fatal   : (C7600) Register allocation failed with register count of '16'."
        ));
        assert!(!is_out_of_resources("k.cu(1): error: identifier \"too_much\" is undefined"));
    }
}
