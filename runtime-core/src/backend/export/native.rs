//! Shims for native handles and foreign work.

use std::ffi::c_void;

use super::ffi::{answer, borrow, into_handle, out_param};
use super::panic::guard;
use super::{Backend, BufferOf, QueueOf, Shims};
use crate::abi::{self, Handle, NativeTable, NativeWork, Status, Str, SubmitInfo};
use crate::backend::{Buffer, Device, NativeHandle, Queue};
use crate::{Result, end_of};

impl<B: Backend> Shims<B> {
    pub(super) const NATIVE: &'static NativeTable = &NativeTable {
        struct_size: end_of!(NativeTable, open_queue),
        reserved: 0,
        device: Some(Self::native_device),
        buffer: Some(Self::native_buffer),
        submit: Some(Self::submit_native),
        open_queue: Some(Self::open_native_queue),
    };

    unsafe extern "C" fn native_device(
        device: Handle,
        out: *mut abi::NativeHandle,
        capacity: usize,
        count: *mut usize,
    ) -> Status {
        guard("native_device", || {
            // SAFETY: core passes a live device of this backend.
            let handles = unsafe { borrow::<B::Device>(device) }?.native()?;
            // SAFETY: core passes room for `capacity` handles, and a writable output pointer.
            unsafe { write_handles(&handles, (out, capacity), count) }
        })
    }

    unsafe extern "C" fn native_buffer(
        _device: Handle,
        buffer: Handle,
        out: *mut abi::NativeHandle,
        capacity: usize,
        count: *mut usize,
        offset: *mut u64,
    ) -> Status {
        guard("native_buffer", || {
            // SAFETY: core passes a live buffer of this backend.
            let (handles, byte_offset) = unsafe { borrow::<BufferOf<B>>(buffer) }?.native()?;
            // SAFETY: core passes a writable output pointer.
            unsafe { out_param(offset) }?.write(byte_offset);
            // SAFETY: core passes room for `capacity` handles, and a writable output pointer.
            unsafe { write_handles(&handles, (out, capacity), count) }
        })
    }

    unsafe extern "C" fn submit_native(
        queue: Handle,
        submit: SubmitInfo,
        work: NativeWork,
        context: *mut c_void,
    ) -> Status {
        guard("submit_native", || {
            let mut run = |handles: &[NativeHandle]| {
                let handles: Vec<_> = handles.iter().map(raw).collect();
                // SAFETY: core passes a function that takes this context, and does not unwind.
                unsafe { work(context, handles.as_ptr(), handles.len()) };
            };
            // SAFETY: core passes a live queue of this backend.
            unsafe { borrow::<QueueOf<B>>(queue) }?.submit_native(submit, &mut run)
        })
    }

    unsafe extern "C" fn open_native_queue(device: Handle, native: u64, handle: *mut Handle) -> Status {
        let open = |device: &B::Device| device.open_native_queue(native).map(into_handle);
        // SAFETY: core passes a live device of this backend, and a writable output pointer.
        unsafe { answer("open_native_queue", device, handle, open) }
    }
}

const fn raw(handle: &NativeHandle) -> abi::NativeHandle {
    abi::NativeHandle { name: Str::new(handle.name), value: handle.value }
}

/// Stores as many handles as fit, and their number.
///
/// # Safety
/// There is room for `capacity` handles, and `count` is null or writable.
unsafe fn write_handles(
    handles: &[NativeHandle],
    (out, capacity): (*mut abi::NativeHandle, usize),
    count: *mut usize,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    unsafe { out_param(count) }?.write(handles.len());
    for (index, handle) in handles.iter().take(capacity).enumerate() {
        // SAFETY: there is room for `capacity` handles.
        let place = unsafe { out.add(index) };
        // SAFETY: as above.
        unsafe { out_param(place) }?.write(raw(handle));
    }
    Ok(())
}
