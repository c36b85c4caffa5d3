//! The driver's result codes that this backend tells apart: the error kind of each, and what the user can do about it.

use std::ffi::c_uint;

use cudarc::driver::sys;
use runtime_core::ErrorKind;

use super::abi::CuResult;

macro_rules! codes {
    ($($code:ident $kind:ident $($remedy:literal)?,)*) => {
        impl CuResult {
            $(pub(crate) const $code: Self = Self(sys::CUresult::$code as c_uint);)*
        }

        /// The error kind of each code, and a remedy if there is one.
        const MEANINGS: &[(CuResult, ErrorKind, &[&str])] =
            &[$((CuResult::$code, ErrorKind::$kind, &[$($remedy)?]),)*];
    };
}

// In the order of their numbers. Those that lose the device destroy the context and everything in it for good.
codes! {
    CUDA_SUCCESS Internal,
    CUDA_ERROR_INVALID_VALUE Driver,
    CUDA_ERROR_OUT_OF_MEMORY OutOfMemory "free tensors or use smaller ones",
    CUDA_ERROR_NOT_INITIALIZED Driver,
    CUDA_ERROR_STUB_LIBRARY Unavailable,
    CUDA_ERROR_DEVICE_UNAVAILABLE Unavailable "another process uses it exclusively; wait for that process, or use another device",
    CUDA_ERROR_NO_DEVICE Unavailable,
    CUDA_ERROR_INVALID_DEVICE Unavailable,
    CUDA_ERROR_DEVICE_NOT_LICENSED Unavailable,
    CUDA_ERROR_INVALID_IMAGE CompileFailed "pass a complete cubin, fatbin or PTX for this device",
    CUDA_ERROR_NO_BINARY_FOR_GPU CompileFailed "compile the code for this device's architecture, or pass PTX",
    CUDA_ERROR_ECC_UNCORRECTABLE DeviceLost,
    CUDA_ERROR_INVALID_PTX CompileFailed,
    CUDA_ERROR_NVLINK_UNCORRECTABLE DeviceLost,
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND Unavailable "the driver's JIT compiler library is missing; install it, or pass a cubin",
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION CompileFailed
        "the PTX version is newer than the driver; update the driver, or compile to a cubin",
    CUDA_ERROR_JIT_COMPILATION_DISABLED CompileFailed,
    CUDA_ERROR_CONTAINED DeviceLost,
    CUDA_ERROR_INVALID_SOURCE CompileFailed,
    CUDA_ERROR_FILE_NOT_FOUND NotFound,
    CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND NotFound,
    CUDA_ERROR_OPERATING_SYSTEM Driver,
    CUDA_ERROR_NOT_FOUND NotFound,
    CUDA_ERROR_NOT_READY Driver,
    CUDA_ERROR_ILLEGAL_ADDRESS DeviceLost,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES OutOfResources "use smaller groups, or a kernel with fewer registers",
    CUDA_ERROR_LAUNCH_TIMEOUT DeviceLost,
    CUDA_ERROR_CONTEXT_IS_DESTROYED DeviceLost,
    CUDA_ERROR_ASSERT DeviceLost,
    CUDA_ERROR_HARDWARE_STACK_ERROR DeviceLost,
    CUDA_ERROR_ILLEGAL_INSTRUCTION DeviceLost,
    CUDA_ERROR_MISALIGNED_ADDRESS DeviceLost,
    CUDA_ERROR_INVALID_ADDRESS_SPACE DeviceLost,
    CUDA_ERROR_INVALID_PC DeviceLost,
    CUDA_ERROR_LAUNCH_FAILED DeviceLost,
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE OutOfResources
        "use fewer groups: all groups of a cooperative launch must fit on the device at once",
    CUDA_ERROR_TENSOR_MEMORY_LEAK DeviceLost,
    CUDA_ERROR_NOT_SUPPORTED Unsupported,
    CUDA_ERROR_SYSTEM_NOT_READY Unavailable,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH Unavailable,
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE Unavailable,
    CUDA_ERROR_MPS_SERVER_NOT_READY OutOfResources,
    CUDA_ERROR_MPS_MAX_CLIENTS_REACHED OutOfResources,
    CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED OutOfResources,
    CUDA_ERROR_MPS_CLIENT_TERMINATED DeviceLost,
    CUDA_ERROR_TIMEOUT Timeout,
    CUDA_ERROR_EXTERNAL_DEVICE DeviceLost,
    CUDA_ERROR_INVALID_CLUSTER_SIZE InvalidArgument "use a smaller cluster, and a number of groups that is a multiple of it",
    CUDA_ERROR_UNKNOWN Driver "check the system log for `NVRM`",
}

fn meaning(code: CuResult) -> Option<&'static (CuResult, ErrorKind, &'static [&'static str])> {
    MEANINGS.iter().find(|(known, ..)| *known == code)
}

/// Whether the device is lost after this code.
pub(crate) fn is_sticky(code: CuResult) -> bool {
    kind(code) == ErrorKind::DeviceLost
}

/// The error kind of a code; an unknown code is a `Driver` error.
pub(super) fn kind(code: CuResult) -> ErrorKind {
    meaning(code).map_or(ErrorKind::Driver, |(_, kind, _)| *kind)
}

/// What the user can do about a code, if anything.
pub(super) fn remedy(code: CuResult) -> Option<&'static str> {
    let sticky = is_sticky(code).then_some("CUDA no longer works in this process; start another one");
    meaning(code).and_then(|(.., remedy)| remedy.first().copied()).or(sticky)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sticky_codes_lose_the_device() {
        let sticky: Vec<_> = MEANINGS.iter().filter(|(code, ..)| is_sticky(*code)).collect();
        assert_eq!(sticky.len(), 16);
        assert!(sticky.iter().all(|(code, ..)| remedy(*code).is_some()));
        for code in [214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719] {
            assert!(is_sticky(CuResult(code)), "{code}");
        }
        for code in [1, 2, 218, 600, 801] {
            assert!(!is_sticky(CuResult(code)), "{code}");
        }
    }

    #[test]
    fn an_unknown_code_is_a_driver_error() {
        for code in [12345, i32::MAX.unsigned_abs(), u32::MAX] {
            assert_eq!(kind(CuResult(code)), ErrorKind::Driver);
        }
    }
}
