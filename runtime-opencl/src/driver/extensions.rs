//! Functions of extensions, which loaders do not export: each platform is asked for its own.

#![allow(unsafe_code, reason = "takes functions of a platform by their names")]

use std::ffi::{CStr, c_int, c_uint, c_void};

use super::{Driver, Raw};

/// Unified shared memory, `cl_intel_unified_shared_memory`.
#[expect(non_snake_case, reason = "the driver's names")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usm {
    pub(crate) clHostMemAllocINTEL:
        unsafe extern "C" fn(Raw, *const u64, usize, c_uint, *mut c_int) -> *mut c_void,
    pub(crate) clSharedMemAllocINTEL:
        unsafe extern "C" fn(Raw, Raw, *const u64, usize, c_uint, *mut c_int) -> *mut c_void,
    pub(crate) clMemFreeINTEL: unsafe extern "C" fn(Raw, *mut c_void) -> c_int,
    pub(crate) clSetKernelArgMemPointerINTEL: unsafe extern "C" fn(Raw, c_uint, *const c_void) -> c_int,
    pub(crate) clEnqueueMemFillINTEL: unsafe extern "C" fn(
        Raw,
        *mut c_void,
        *const c_void,
        usize,
        usize,
        c_uint,
        *const Raw,
        *mut Raw,
    ) -> c_int,
    pub(crate) clEnqueueMemcpyINTEL: unsafe extern "C" fn(
        Raw,
        c_uint,
        *mut c_void,
        *const c_void,
        usize,
        c_uint,
        *const Raw,
        *mut Raw,
    ) -> c_int,
}

/// Programs of SPIR-V on a platform older than OpenCL 2.1, `cl_khr_il_program`.
pub(crate) type CreateProgramWithIl =
    unsafe extern "C" fn(Raw, *const c_void, usize, *mut c_int) -> *mut c_void;

/// Fields of a table of functions, all found or none.
macro_rules! find {
    ($driver:expr, $platform:expr, $table:ident { $($function:ident),* $(,)? }) => {{
        let find = |name: &CStr| $driver.extension_function($platform, name);
        Some($table {$(
            // SAFETY: the extension defines the function with this type.
            $function: unsafe {
                std::mem::transmute::<*mut c_void, _>(find(
                    CStr::from_bytes_with_nul(concat!(stringify!($function), "\0").as_bytes()).ok()?,
                )?)
            },
        )*})
    }};
}

impl Driver {
    /// Address of a function of an extension of a platform.
    fn extension_function(&self, platform: Raw, name: &CStr) -> Option<*mut c_void> {
        let found = self.call("clGetExtensionFunctionAddressForPlatform", |calls| {
            // SAFETY: the platform is one of the driver's, and the name is terminated.
            Some(unsafe { (calls.clGetExtensionFunctionAddressForPlatform?)(platform, name.as_ptr()) })
        });
        found.ok().filter(|address| !address.is_null())
    }

    /// Unified shared memory of a platform.
    pub(crate) fn usm(&self, platform: Raw) -> Option<Usm> {
        find!(
            self,
            platform,
            Usm {
                clHostMemAllocINTEL,
                clSharedMemAllocINTEL,
                clMemFreeINTEL,
                clSetKernelArgMemPointerINTEL,
                clEnqueueMemFillINTEL,
                clEnqueueMemcpyINTEL,
            }
        )
    }

    /// The extension's way to make programs of SPIR-V.
    pub(crate) fn il_program(&self, platform: Raw) -> Option<CreateProgramWithIl> {
        let address = self.extension_function(platform, c"clCreateProgramWithILKHR")?;
        // SAFETY: the extension defines the function with this type.
        Some(unsafe { std::mem::transmute::<*mut c_void, CreateProgramWithIl>(address) })
    }
}
