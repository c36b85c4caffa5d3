//! Maps the driver's result codes to error kinds and remedies.

use runtime_core::ErrorKind;

use super::abi::CuResult;

/// Sticky codes: they destroy the context and everything in it for good.
const STICKY: &[i32] = &[
    214, // ECC_UNCORRECTABLE
    220, // NVLINK_UNCORRECTABLE
    226, // CONTAINED
    700, // ILLEGAL_ADDRESS
    702, // LAUNCH_TIMEOUT
    709, // CONTEXT_IS_DESTROYED
    710, // ASSERT
    714, // HARDWARE_STACK_ERROR
    715, // ILLEGAL_INSTRUCTION
    716, // MISALIGNED_ADDRESS
    717, // INVALID_ADDRESS_SPACE
    718, // INVALID_PC
    719, // LAUNCH_FAILED
    721, // TENSOR_MEMORY_LEAK
    810, // MPS_CLIENT_TERMINATED
    911, // EXTERNAL_DEVICE
];

/// Whether the device is lost after this code.
pub(crate) fn is_sticky(code: CuResult) -> bool {
    STICKY.contains(&code.0)
}

/// The error kind of a code; an unknown code is a `Driver` error.
pub(super) fn kind(code: CuResult) -> ErrorKind {
    match code.0 {
        _ if is_sticky(code) => ErrorKind::DeviceLost,
        2 => ErrorKind::OutOfMemory,
        34 | 46 | 100 | 101 | 102 | 802..=804 | 221 => ErrorKind::Unavailable,
        200 | 209 | 218 | 222 | 223 | 300 => ErrorKind::CompileFailed,
        301 | 302 | 500 => ErrorKind::NotFound,
        701 | 720 | 807..=809 => ErrorKind::OutOfResources,
        801 => ErrorKind::Unsupported,
        912 => ErrorKind::InvalidArgument,
        909 => ErrorKind::Timeout,
        _ => ErrorKind::Driver,
    }
}

/// What the user can do about a code, if anything.
pub(super) fn remedy(code: CuResult) -> Option<&'static str> {
    Some(match code.0 {
        2 => "free tensors or use smaller ones",
        46 => "another process uses it exclusively; wait for that process, or use another device",
        200 => "pass a complete cubin, fatbin or PTX for this device",
        209 => "compile the code for this device's architecture, or pass PTX",
        221 => "the driver's JIT compiler library is missing; install it, or pass a cubin",
        222 => "the PTX version is newer than the driver; update the driver, or compile to a cubin",
        701 => "use smaller groups, or a kernel with fewer registers",
        720 => "use fewer groups: all groups of a cooperative launch must fit on the device at once",
        912 => "use a smaller cluster, and a number of groups that is a multiple of it",
        999 => "check the system log for `NVRM`",
        _ if is_sticky(code) => "CUDA no longer works in this process; start another one",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sticky_codes_lose_the_device() {
        for code in STICKY {
            assert_eq!(kind(CuResult(*code)), ErrorKind::DeviceLost);
            assert!(remedy(CuResult(*code)).is_some());
        }
        for code in [1, 2, 218, 600, 801] {
            assert!(!is_sticky(CuResult(code)), "{code}");
        }
    }

    #[test]
    fn an_unknown_code_is_a_driver_error() {
        for code in [-1, 12345, i32::MAX, i32::MIN] {
            assert_eq!(kind(CuResult(code)), ErrorKind::Driver);
        }
    }
}
