//! Maps the driver's result codes to error kinds and remedies.

use runtime_core::ErrorKind;

use super::abi::CuResult;

/// Sticky codes: they destroy the context and everything in it for good.
const STICKY: &[CuResult] = &[
    CuResult::CUDA_ERROR_ECC_UNCORRECTABLE,
    CuResult::CUDA_ERROR_NVLINK_UNCORRECTABLE,
    CuResult::CUDA_ERROR_CONTAINED,
    CuResult::CUDA_ERROR_ILLEGAL_ADDRESS,
    CuResult::CUDA_ERROR_LAUNCH_TIMEOUT,
    CuResult::CUDA_ERROR_CONTEXT_IS_DESTROYED,
    CuResult::CUDA_ERROR_ASSERT,
    CuResult::CUDA_ERROR_HARDWARE_STACK_ERROR,
    CuResult::CUDA_ERROR_ILLEGAL_INSTRUCTION,
    CuResult::CUDA_ERROR_MISALIGNED_ADDRESS,
    CuResult::CUDA_ERROR_INVALID_ADDRESS_SPACE,
    CuResult::CUDA_ERROR_INVALID_PC,
    CuResult::CUDA_ERROR_LAUNCH_FAILED,
    CuResult::CUDA_ERROR_TENSOR_MEMORY_LEAK,
    CuResult::CUDA_ERROR_MPS_CLIENT_TERMINATED,
    CuResult::CUDA_ERROR_EXTERNAL_DEVICE,
];

/// Whether the device is lost after this code.
pub(crate) fn is_sticky(code: CuResult) -> bool {
    STICKY.contains(&code)
}

/// The error kind of a code; an unknown code is a `Driver` error.
pub(super) fn kind(code: CuResult) -> ErrorKind {
    match code {
        _ if is_sticky(code) => ErrorKind::DeviceLost,
        CuResult::CUDA_ERROR_OUT_OF_MEMORY => ErrorKind::OutOfMemory,
        CuResult::CUDA_ERROR_STUB_LIBRARY
        | CuResult::CUDA_ERROR_DEVICE_UNAVAILABLE
        | CuResult::CUDA_ERROR_NO_DEVICE
        | CuResult::CUDA_ERROR_INVALID_DEVICE
        | CuResult::CUDA_ERROR_DEVICE_NOT_LICENSED
        | CuResult::CUDA_ERROR_SYSTEM_NOT_READY
        | CuResult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
        | CuResult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
        | CuResult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND => ErrorKind::Unavailable,
        CuResult::CUDA_ERROR_INVALID_IMAGE
        | CuResult::CUDA_ERROR_NO_BINARY_FOR_GPU
        | CuResult::CUDA_ERROR_INVALID_PTX
        | CuResult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        | CuResult::CUDA_ERROR_JIT_COMPILATION_DISABLED
        | CuResult::CUDA_ERROR_INVALID_SOURCE => ErrorKind::CompileFailed,
        CuResult::CUDA_ERROR_FILE_NOT_FOUND
        | CuResult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
        | CuResult::CUDA_ERROR_NOT_FOUND => ErrorKind::NotFound,
        CuResult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
        | CuResult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
        | CuResult::CUDA_ERROR_MPS_SERVER_NOT_READY
        | CuResult::CUDA_ERROR_MPS_MAX_CLIENTS_REACHED
        | CuResult::CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED => ErrorKind::OutOfResources,
        CuResult::CUDA_ERROR_NOT_SUPPORTED => ErrorKind::Unsupported,
        CuResult::CUDA_ERROR_INVALID_CLUSTER_SIZE => ErrorKind::InvalidArgument,
        CuResult::CUDA_ERROR_TIMEOUT => ErrorKind::Timeout,
        _ => ErrorKind::Driver,
    }
}

/// What the user can do about a code, if anything.
pub(super) fn remedy(code: CuResult) -> Option<&'static str> {
    Some(match code {
        CuResult::CUDA_ERROR_OUT_OF_MEMORY => "free tensors or use smaller ones",
        CuResult::CUDA_ERROR_DEVICE_UNAVAILABLE => {
            "another process uses it exclusively; wait for that process, or use another device"
        }
        CuResult::CUDA_ERROR_INVALID_IMAGE => "pass a complete cubin, fatbin or PTX for this device",
        CuResult::CUDA_ERROR_NO_BINARY_FOR_GPU => {
            "compile the code for this device's architecture, or pass PTX"
        }
        CuResult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND => {
            "the driver's JIT compiler library is missing; install it, or pass a cubin"
        }
        CuResult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
            "the PTX version is newer than the driver; update the driver, or compile to a cubin"
        }
        CuResult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => {
            "use smaller groups, or a kernel with fewer registers"
        }
        CuResult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE => {
            "use fewer groups: all groups of a cooperative launch must fit on the device at once"
        }
        CuResult::CUDA_ERROR_INVALID_CLUSTER_SIZE => {
            "use a smaller cluster, and a number of groups that is a multiple of it"
        }
        CuResult::CUDA_ERROR_UNKNOWN => "check the system log for `NVRM`",
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
            assert_eq!(kind(*code), ErrorKind::DeviceLost);
            assert!(remedy(*code).is_some());
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
