//! Why code does not build: compilers report in words that a kernel needs more than the device has.

use runtime_core::ErrorKind;

/// Errors of Intel's compiler for GPUs (private memory), and of NVIDIA's assembler.
const OUT_OF_RESOURCES: [&str; 4] = [
    "total scratch space exceeds HW supported limit",
    "uses too much shared data",
    "uses too much local data",
    "Register allocation failed",
];

/// The kind of a failed build: `OutOfResources` if the log says so, otherwise `kind`.
pub(crate) fn kind_by_log(kind: ErrorKind, log: &str) -> ErrorKind {
    let is_out_of_resources = OUT_OF_RESOURCES.iter().any(|error| log.contains(error));
    match kind {
        ErrorKind::CompileFailed if is_out_of_resources => ErrorKind::OutOfResources,
        kind => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failed_build_that_names_a_resource_lacks_resources() {
        let of = |log| kind_by_log(ErrorKind::CompileFailed, log);
        for log in [
            "error: total scratch space exceeds HW supported limit for kernel k: 295232 bytes (max permitted PTSS 262144 bytes)",
            "ptxas error   : Entry function 'k' uses too much shared data (0x10000 bytes, 0xc000 max)",
            "ptxas error   : Entry function 'k' uses too much local data (0x90000 bytes, 0x80000 max)",
            "ptxas fatal   : (C7600) Register allocation failed with register count of '32'",
        ] {
            assert_eq!(of(log), ErrorKind::OutOfResources, "{log}");
            assert_eq!(kind_by_log(ErrorKind::DeviceLost, log), ErrorKind::DeviceLost);
        }
        assert_eq!(of("error: use of undeclared identifier 'scratch'"), ErrorKind::CompileFailed);
    }
}
