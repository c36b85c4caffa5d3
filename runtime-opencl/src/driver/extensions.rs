//! Extension functions. Loaders do not export them; they are loaded per platform.

#![allow(unsafe_code, reason = "loads functions of a platform by name")]

use std::ffi::{CStr, c_void};

use cl3::ext::{
    clCommandCopyBufferKHR_fn, clCommandFillBufferKHR_fn, clCommandNDRangeKernelKHR_fn,
    clCreateCommandBufferKHR_fn, clCreateProgramWithILKHR_fn, clEnqueueCommandBufferKHR_fn,
    clEnqueueMemFillINTEL_fn, clEnqueueMemcpyINTEL_fn, clFinalizeCommandBufferKHR_fn, clHostMemAllocINTEL_fn,
    clMemFreeINTEL_fn, clReleaseCommandBufferKHR_fn, clSetKernelArgMemPointerINTEL_fn,
    clSharedMemAllocINTEL_fn,
};

use super::{Driver, Raw, call};

/// The function type inside the `Option` types of `opencl-sys`.
pub(crate) trait Present {
    type Function;
}

impl<F> Present for Option<F> {
    type Function = F;
}

type Function<T> = <T as Present>::Function;

/// Declares the functions of an extension, and `find`, which loads those of a platform; `None` if any is missing.
macro_rules! extension {
    ($(#[$doc:meta])* $table:ident { $($(#[$of:meta])* $function:ident: $ty:ident),* $(,)? }) => {
        $(#[$doc])*
        #[expect(non_snake_case, reason = "the driver's names")]
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $table {
            $($(#[$of])* pub(crate) $function: Function<$ty>,)*
        }

        impl $table {
            pub(crate) fn find(driver: &Driver, platform: Raw) -> Option<Self> {
                Some(Self {$(
                    $function: {
                        let name = CStr::from_bytes_with_nul(concat!(stringify!($function), "\0").as_bytes()).ok()?;
                        let address = driver.extension_function(platform, name)?;
                        // SAFETY: the extension defines the function with this type.
                        unsafe { std::mem::transmute::<*mut c_void, $ty>(address) }?
                    },
                )*})
            }
        }
    };
}

extension! {
    /// Unified shared memory, `cl_intel_unified_shared_memory`.
    Usm {
        clHostMemAllocINTEL: clHostMemAllocINTEL_fn,
        clSharedMemAllocINTEL: clSharedMemAllocINTEL_fn,
        clMemFreeINTEL: clMemFreeINTEL_fn,
        clSetKernelArgMemPointerINTEL: clSetKernelArgMemPointerINTEL_fn,
        clEnqueueMemFillINTEL: clEnqueueMemFillINTEL_fn,
        clEnqueueMemcpyINTEL: clEnqueueMemcpyINTEL_fn,
    }
}

extension! {
    /// Command buffers, `cl_khr_command_buffer`.
    CommandBuffers {
        clCreateCommandBufferKHR: clCreateCommandBufferKHR_fn,
        clFinalizeCommandBufferKHR: clFinalizeCommandBufferKHR_fn,
        clReleaseCommandBufferKHR: clReleaseCommandBufferKHR_fn,
        clEnqueueCommandBufferKHR: clEnqueueCommandBufferKHR_fn,
        clCommandNDRangeKernelKHR: clCommandNDRangeKernelKHR_fn,
        /// With the signature of version 0.9.5 and later.
        clCommandCopyBufferKHR: clCommandCopyBufferKHR_fn,
        /// With the signature of version 0.9.5 and later.
        clCommandFillBufferKHR: clCommandFillBufferKHR_fn,
    }
}

impl Driver {
    /// Address of an extension function of a platform.
    fn extension_function(&self, platform: Raw, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the platform is one of the driver's, and the name is NUL-terminated.
        let found =
            unsafe { call!(self.call, clGetExtensionFunctionAddressForPlatform(platform, name.as_ptr())) };
        found.ok().filter(|address| !address.is_null())
    }

    /// `clCreateProgramWithILKHR`, the extension that creates programs from SPIR-V.
    pub(crate) fn create_program_with_il(&self, platform: Raw) -> clCreateProgramWithILKHR_fn {
        let address = self.extension_function(platform, c"clCreateProgramWithILKHR")?;
        // SAFETY: the extension defines the function with this type.
        unsafe { std::mem::transmute::<*mut c_void, clCreateProgramWithILKHR_fn>(address) }
    }
}
