//! The driver calls that allocate memory: `cl_mem` buffers and their mappings, shared virtual memory, unified shared memory.

#![allow(unsafe_code, reason = "allocates through the driver")]

use std::ffi::c_void;

use cl3::ext::{
    CL_MAP_READ, CL_MAP_WRITE, CL_MEM_READ_WRITE, CL_MEM_SVM_FINE_GRAIN_BUFFER, CL_TRUE, cl_mem_flags,
};
use runtime_core::{Error, ErrorKind, Result};

use crate::context::SharedContext;
use crate::device_caps::MIN_ALIGNMENT;
use crate::driver::handle::{Memory, Owned};
use crate::driver::{call, create};
use crate::space::Space;

/// `CL_INVALID_BUFFER_SIZE`.
const INVALID_BUFFER_SIZE: i64 = -61;

/// Creates a `cl_mem` buffer, in memory of its own or at `memory`.
pub(crate) fn create_buffer(
    context: &SharedContext,
    flags: cl_mem_flags,
    bytes: usize,
    memory: *mut c_void,
) -> Result<Owned<Memory>> {
    let (handle, flags) = (context.handle.raw(), CL_MEM_READ_WRITE | flags);
    // SAFETY: the context is alive, and `memory`, if passed, outlives the buffer.
    let created = unsafe { create!(context.driver.create, clCreateBuffer(handle, flags, bytes, memory)) };
    created.map_err(|error| match error.driver() {
        Some((_, INVALID_BUFFER_SIZE)) => out_of_memory(bytes, context.caps.allocation_bytes),
        _ => error,
    })
}

/// Fine-grained shared virtual memory, which host and kernels use concurrently.
pub(crate) fn allocate_svm(context: &SharedContext, bytes: usize) -> Result<*mut c_void> {
    let flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER;
    // SAFETY: the context is alive; 0 requests the driver's largest alignment.
    let memory = unsafe { call!(context.driver.call, clSVMAlloc(context.handle.raw(), flags, bytes, 0)) }?;
    if memory.is_null() { Err(out_of_memory(bytes, context.caps.allocation_bytes)) } else { Ok(memory) }
}

pub(crate) fn allocate_usm(context: &SharedContext, space: Space, bytes: usize) -> Result<*mut c_void> {
    let usm = context.caps.usm.ok_or_else(|| Error::unsupported("unified shared memory is not supported"))?;
    let (handle, none) = (context.handle.raw(), std::ptr::null());
    let alignment = u32::try_from(MIN_ALIGNMENT).unwrap_or(0);
    let mut memory = std::ptr::null_mut();
    let mut code = 0;
    let function = if space == Space::UsmHost { "clHostMemAllocINTEL" } else { "clSharedMemAllocINTEL" };
    context.driver.extension(function, || {
        memory = if space == Space::UsmHost {
            // SAFETY: the context is alive, and there are no properties.
            unsafe { (usm.clHostMemAllocINTEL)(handle, none, bytes, alignment, &raw mut code) }
        } else {
            let device = context.listed.device;
            // SAFETY: the context is alive, the device belongs to it, and there are no properties.
            unsafe { (usm.clSharedMemAllocINTEL)(handle, device, none, bytes, alignment, &raw mut code) }
        };
        code
    })?;
    if memory.is_null() { Err(out_of_memory(bytes, context.caps.allocation_bytes)) } else { Ok(memory) }
}

/// Maps a whole buffer for reading and writing.
pub(crate) fn map(context: &SharedContext, object: &Owned<Memory>, bytes: usize) -> Result<*mut c_void> {
    let (queue, flags) = (context.internal_queue()?, CL_MAP_READ | CL_MAP_WRITE);
    let (none, no_event) = (std::ptr::null(), std::ptr::null_mut());
    // SAFETY: queue and buffer are in one context, the range is the whole buffer, and the call blocks.
    unsafe {
        create!(
            context.driver.create_raw,
            clEnqueueMapBuffer(queue, object.raw(), CL_TRUE, flags, 0, bytes, 0, none, no_event)
        )
    }
}

/// Unmaps a buffer. Errors are ignored: a drop cannot return them.
pub(crate) fn unmap(context: &SharedContext, object: &Owned<Memory>, memory: *mut c_void) {
    let Ok(queue) = context.internal_queue() else { return };
    let (none, no_event) = (std::ptr::null(), std::ptr::null_mut());
    // SAFETY: mapped once, and no longer in use.
    let _ = unsafe {
        call!(context.driver.call, clEnqueueUnmapMemObject(queue, object.raw(), memory, 0, none, no_event))
    };
    // Nothing waits for the unmap, and the buffer is released next: start it now.
    // SAFETY: the queue is alive.
    let _ = unsafe { call!(context.driver.call, clFlush(queue)) };
}

#[cold]
pub(crate) fn out_of_memory(bytes: usize, limit: u64) -> Error {
    let limit = if limit == 0 { String::new() } else { format!(" (at most {limit} in one allocation)") };
    let message = format!("cannot allocate {bytes} bytes{limit}; free tensors or use smaller ones");
    Error::new(ErrorKind::OutOfMemory, message)
}
