//! What the driver's codes mean to a program.

use runtime_core::ErrorKind;

use super::abi::Code;

/// Codes after which the context, and with it everything on the device, is gone for good.
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

/// Whether nothing works on the device after this code.
pub(crate) fn is_sticky(code: Code) -> bool {
    STICKY.contains(&code.0)
}

/// The kind of a code; a code of the future is a `Driver` error.
pub(super) fn kind(code: Code) -> ErrorKind {
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

/// What to do about a code, where that can be said.
pub(super) fn remedy(code: Code) -> Option<&'static str> {
    Some(match code.0 {
        2 => "free tensors, or use smaller ones",
        46 => "another process has it exclusively; wait for that process, or use another device",
        200 => "pass a complete cubin, fatbin or PTX for this device",
        209 => "compile the code for this device's architecture, or pass PTX",
        221 => "the driver's library for compiling PTX is missing; install it, or pass a cubin",
        222 => "the PTX is newer than the driver; update the driver, or compile to a cubin",
        701 => "use smaller groups, or a kernel with fewer registers",
        720 => "use fewer groups: those of a cooperative launch must all fit on the device at once",
        912 => "use a smaller cluster, and groups that are a multiple of it",
        999 => "see the system's log for `NVRM`",
        _ if is_sticky(code) => "CUDA does not work in this process any more; start another one",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sticky_codes_lose_the_device_and_others_do_not() {
        for code in STICKY {
            assert_eq!(kind(Code(*code)), ErrorKind::DeviceLost);
            assert!(remedy(Code(*code)).is_some());
        }
        for code in [1, 2, 218, 600, 801] {
            assert!(!is_sticky(Code(code)), "{code}");
        }
    }

    #[test]
    fn a_code_of_the_future_is_a_driver_error() {
        for code in [-1, 12345, i32::MAX, i32::MIN] {
            assert_eq!(kind(Code(code)), ErrorKind::Driver);
        }
    }
}
