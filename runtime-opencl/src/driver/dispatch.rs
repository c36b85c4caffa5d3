//! The OpenCL functions that this backend calls, loaded by name, with the function types that `cl3` re-exports.
//!
//! `cl3`'s own table cannot be used: there is only one per process, its library is chosen by the environment, and its functions
//! have Rust's calling convention instead of C's. Any function may be missing, because older libraries have fewer.

#![allow(unsafe_code, reason = "loads the functions of a foreign library")]
#![allow(non_snake_case, reason = "OpenCL's own names, so that a search finds them")]

use cl3::ext::cl_function_types as types;
use libloading::Library;

/// Declares the table and its loader.
macro_rules! dispatch_table {
    ($($function:ident: $ty:ident,)*) => {
        /// The functions; `None`: missing in the library.
        #[derive(Debug)]
        pub(crate) struct DispatchTable {
            $(pub(crate) $function: types::$ty,)*
        }

        impl DispatchTable {
            /// Loads every function that the library exports.
            pub(super) fn bind(library: &Library) -> Self {
                Self {$(
                    $function: {
                        // SAFETY: OpenCL's function of this name has this type.
                        let found = unsafe { library.get::<types::$ty>(stringify!($function).as_bytes()) };
                        found.ok().and_then(|function| *function)
                    },
                )*}
            }
        }
    };
}

dispatch_table! {
    clBuildProgram: clBuildProgram_t,
    clCreateBuffer: clCreateBuffer_t,
    clCreateCommandQueue: clCreateCommandQueue_t,
    clCreateCommandQueueWithProperties: clCreateCommandQueueWithProperties_t,
    clCreateContext: clCreateContext_t,
    clCreateKernel: clCreateKernel_t,
    clCreateProgramWithBinary: clCreateProgramWithBinary_t,
    clCreateProgramWithIL: clCreateProgramWithIL_t,
    clCreateProgramWithSource: clCreateProgramWithSource_t,
    clCreateSubBuffer: clCreateSubBuffer_t,
    clCreateSubDevices: clCreateSubDevices_t,
    clCreateUserEvent: clCreateUserEvent_t,
    clEnqueueBarrierWithWaitList: clEnqueueBarrierWithWaitList_t,
    clEnqueueCopyBuffer: clEnqueueCopyBuffer_t,
    clEnqueueCopyBufferRect: clEnqueueCopyBufferRect_t,
    clEnqueueFillBuffer: clEnqueueFillBuffer_t,
    clEnqueueMapBuffer: clEnqueueMapBuffer_t,
    clEnqueueMarkerWithWaitList: clEnqueueMarkerWithWaitList_t,
    clEnqueueNDRangeKernel: clEnqueueNDRangeKernel_t,
    clEnqueueReadBuffer: clEnqueueReadBuffer_t,
    clEnqueueSVMMemFill: clEnqueueSVMMemFill_t,
    clEnqueueSVMMemcpy: clEnqueueSVMMemcpy_t,
    clEnqueueUnmapMemObject: clEnqueueUnmapMemObject_t,
    clEnqueueWriteBuffer: clEnqueueWriteBuffer_t,
    clFinish: clFinish_t,
    clFlush: clFlush_t,
    clGetCommandQueueInfo: clGetCommandQueueInfo_t,
    clGetDeviceIDs: clGetDeviceIDs_t,
    clGetDeviceInfo: clGetDeviceInfo_t,
    clGetEventInfo: clGetEventInfo_t,
    clGetEventProfilingInfo: clGetEventProfilingInfo_t,
    clGetExtensionFunctionAddressForPlatform: clGetExtensionFunctionAddressForPlatform_t,
    clGetKernelArgInfo: clGetKernelArgInfo_t,
    clGetKernelInfo: clGetKernelInfo_t,
    clGetKernelWorkGroupInfo: clGetKernelWorkGroupInfo_t,
    clGetMemObjectInfo: clGetMemObjectInfo_t,
    clGetPlatformIDs: clGetPlatformIDs_t,
    clGetPlatformInfo: clGetPlatformInfo_t,
    clGetProgramBuildInfo: clGetProgramBuildInfo_t,
    clGetProgramInfo: clGetProgramInfo_t,
    clReleaseCommandQueue: clReleaseCommandQueue_t,
    clReleaseContext: clReleaseContext_t,
    clReleaseEvent: clReleaseEvent_t,
    clReleaseKernel: clReleaseKernel_t,
    clReleaseMemObject: clReleaseMemObject_t,
    clReleaseProgram: clReleaseProgram_t,
    clRetainCommandQueue: clRetainCommandQueue_t,
    clRetainEvent: clRetainEvent_t,
    clRetainMemObject: clRetainMemObject_t,
    clSVMAlloc: clSVMAlloc_t,
    clSVMFree: clSVMFree_t,
    clSetKernelArg: clSetKernelArg_t,
    clSetKernelArgSVMPointer: clSetKernelArgSVMPointer_t,
    clSetUserEventStatus: clSetUserEventStatus_t,
    clSetEventCallback: clSetEventCallback_t,
    clWaitForEvents: clWaitForEvents_t,
}
