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

/// Unified shared memory, `cl_intel_unified_shared_memory`.
#[expect(non_snake_case, reason = "the driver's names")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usm {
    pub(crate) clHostMemAllocINTEL: Function<clHostMemAllocINTEL_fn>,
    pub(crate) clSharedMemAllocINTEL: Function<clSharedMemAllocINTEL_fn>,
    pub(crate) clMemFreeINTEL: Function<clMemFreeINTEL_fn>,
    pub(crate) clSetKernelArgMemPointerINTEL: Function<clSetKernelArgMemPointerINTEL_fn>,
    pub(crate) clEnqueueMemFillINTEL: Function<clEnqueueMemFillINTEL_fn>,
    pub(crate) clEnqueueMemcpyINTEL: Function<clEnqueueMemcpyINTEL_fn>,
}

/// Command buffers, `cl_khr_command_buffer`.
#[expect(non_snake_case, reason = "the driver's names")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandBuffers {
    pub(crate) clCreateCommandBufferKHR: Function<clCreateCommandBufferKHR_fn>,
    pub(crate) clFinalizeCommandBufferKHR: Function<clFinalizeCommandBufferKHR_fn>,
    pub(crate) clReleaseCommandBufferKHR: Function<clReleaseCommandBufferKHR_fn>,
    pub(crate) clEnqueueCommandBufferKHR: Function<clEnqueueCommandBufferKHR_fn>,
    pub(crate) clCommandNDRangeKernelKHR: Function<clCommandNDRangeKernelKHR_fn>,
    /// With the signature of version 0.9.5 and later.
    pub(crate) clCommandCopyBufferKHR: Function<clCommandCopyBufferKHR_fn>,
    /// With the signature of version 0.9.5 and later.
    pub(crate) clCommandFillBufferKHR: Function<clCommandFillBufferKHR_fn>,
}

/// Loads a table of functions; `None` if any is missing.
macro_rules! load_table {
    ($driver:expr, $platform:expr, $table:ident { $($function:ident: $ty:ident),* $(,)? }) => {{
        Some($table {$(
            $function: {
                let name = CStr::from_bytes_with_nul(concat!(stringify!($function), "\0").as_bytes()).ok()?;
                let address = $driver.extension_function($platform, name)?;
                // SAFETY: the extension defines the function with this type.
                unsafe { std::mem::transmute::<*mut c_void, $ty>(address) }?
            },
        )*})
    }};
}

impl Driver {
    /// Address of an extension function of a platform.
    fn extension_function(&self, platform: Raw, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the platform is one of the driver's, and the name is NUL-terminated.
        let found =
            unsafe { call!(self.call, clGetExtensionFunctionAddressForPlatform(platform, name.as_ptr())) };
        found.ok().filter(|address| !address.is_null())
    }

    /// Unified shared memory of a platform.
    pub(crate) fn usm(&self, platform: Raw) -> Option<Usm> {
        load_table!(
            self,
            platform,
            Usm {
                clHostMemAllocINTEL: clHostMemAllocINTEL_fn,
                clSharedMemAllocINTEL: clSharedMemAllocINTEL_fn,
                clMemFreeINTEL: clMemFreeINTEL_fn,
                clSetKernelArgMemPointerINTEL: clSetKernelArgMemPointerINTEL_fn,
                clEnqueueMemFillINTEL: clEnqueueMemFillINTEL_fn,
                clEnqueueMemcpyINTEL: clEnqueueMemcpyINTEL_fn,
            }
        )
    }

    /// Command buffers of a platform.
    pub(crate) fn command_buffers(&self, platform: Raw) -> Option<CommandBuffers> {
        load_table!(
            self,
            platform,
            CommandBuffers {
                clCreateCommandBufferKHR: clCreateCommandBufferKHR_fn,
                clFinalizeCommandBufferKHR: clFinalizeCommandBufferKHR_fn,
                clReleaseCommandBufferKHR: clReleaseCommandBufferKHR_fn,
                clEnqueueCommandBufferKHR: clEnqueueCommandBufferKHR_fn,
                clCommandNDRangeKernelKHR: clCommandNDRangeKernelKHR_fn,
                clCommandCopyBufferKHR: clCommandCopyBufferKHR_fn,
                clCommandFillBufferKHR: clCommandFillBufferKHR_fn,
            }
        )
    }

    /// `clCreateProgramWithILKHR`, the extension that creates programs from SPIR-V.
    pub(crate) fn create_program_with_il(&self, platform: Raw) -> clCreateProgramWithILKHR_fn {
        let address = self.extension_function(platform, c"clCreateProgramWithILKHR")?;
        // SAFETY: the extension defines the function with this type.
        unsafe { std::mem::transmute::<*mut c_void, clCreateProgramWithILKHR_fn>(address) }
    }
}
