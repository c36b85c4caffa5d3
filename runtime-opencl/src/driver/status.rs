//! OpenCL error codes: their names, error kinds and remedies.

use cl3::error_codes::error_text;
use cl3::types::cl_int;
use runtime_core::ErrorKind;

/// Codes after which the device is lost.
const STICKY: &[cl_int] = &[
    -2,    // DEVICE_NOT_AVAILABLE
    -34,   // INVALID_CONTEXT: we still hold ours, so the driver has given it up
    -36,   // INVALID_COMMAND_QUEUE: as above
    -1121, // CONTEXT_TERMINATED_KHR
    -9999, // NVIDIA: illegal memory access in a kernel
];

/// Whether the device is lost after this code.
pub(crate) fn is_sticky(code: cl_int) -> bool {
    STICKY.contains(&code)
}

/// The name of a code.
pub(crate) fn name(code: cl_int) -> &'static str {
    match code {
        -9999 => "NVIDIA: illegal read or write of a buffer",
        -1001 => "CL_PLATFORM_NOT_FOUND_KHR",
        _ => error_text(code),
    }
}

/// The error kind of a code; unknown codes are `Driver` errors.
pub(super) fn kind(code: cl_int) -> ErrorKind {
    match code {
        _ if is_sticky(code) => ErrorKind::DeviceLost,
        -1 | -1001 => ErrorKind::Unavailable,
        -4 | -6 => ErrorKind::OutOfMemory,
        // Core checks groups against the code and the device, so that a group which is refused (-54) is too large for the
        // kernel's resources.
        -5 | -54 => ErrorKind::OutOfResources,
        -3 | -11 | -15 | -17 | -42 | -45 | -67 => ErrorKind::CompileFailed,
        -46 => ErrorKind::NotFound,
        -59 | -1000 => ErrorKind::Unsupported,
        -69..=-55 | -53..=-48 | -44 | -43 | -41..=-30 | -13 => ErrorKind::InvalidArgument,
        _ => ErrorKind::Driver,
    }
}

/// What to do about a code, if there is a remedy.
pub(super) fn remedy(code: cl_int) -> Option<&'static str> {
    Some(match code {
        -1 | -1001 => "no device; see `clinfo -l`",
        -3 => "the driver has no compiler; load an \"opencl-binary\"",
        -4 | -6 => "free tensors or use smaller ones",
        -5 => "use smaller groups, less work-group memory, or a kernel with fewer registers",
        -42 => "the binary is damaged or for another device or driver; rebuild it from source",
        -52 => "an argument is not set; pass as many as the kernel has",
        -54 => "the kernel's resources limit its groups; use smaller ones",
        _ if is_sticky(code) => "the device is lost; open it again or start another process",
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
        for code in [-1, -4, -5, -30, -46, -52, -61] {
            assert!(!is_sticky(code), "{code}");
        }
    }

    #[test]
    fn codes_map_to_error_kinds() {
        for (code, expected) in [
            (-4, ErrorKind::OutOfMemory),
            (-11, ErrorKind::CompileFailed),
            (-42, ErrorKind::CompileFailed),
            (-46, ErrorKind::NotFound),
            (-51, ErrorKind::InvalidArgument),
            (-53, ErrorKind::InvalidArgument),
            (-54, ErrorKind::OutOfResources),
            (-55, ErrorKind::InvalidArgument),
            (-14, ErrorKind::Driver),
            (cl_int::MIN, ErrorKind::Driver),
        ] {
            assert_eq!(kind(code), expected, "{code}");
        }
    }
}
