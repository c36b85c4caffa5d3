//! Shims for queues.

use std::time::Duration;

use super::ffi::{borrow, byte_len, from_handle, into_handle, out_param, read_struct};
use super::module::{kernel, launch};
use super::panic::{catch_panic, guard};
use super::{Backend, BufferOf, GraphOf, QueueOf, Shims};
use crate::abi::{self, Handle, Progress, QueueTable, Status, SubmitInfo};
use crate::backend::{Copy2D, Device, FillPattern, HostBytes, HostBytesMut, Queue};
use crate::plugin::convert;
use crate::{QueueOptions, end_of};

impl<B: Backend> Shims<B> {
    pub(super) const QUEUE: &'static QueueTable = &QueueTable {
        struct_size: end_of!(QueueTable, resume),
        reserved: 0,
        open: Some(Self::open_queue),
        close: Some(Self::close_queue),
        launch: Some(Self::launch),
        try_begin_inline: Some(Self::try_begin_inline),
        run_inline: Some(Self::run_inline),
        write: Some(Self::write),
        read: Some(Self::read),
        copy: Some(Self::copy),
        fill: Some(Self::fill),
        noop: Some(Self::noop),
        timestamp: Some(Self::timestamp),
        read_timestamp: Some(Self::read_timestamp),
        signal: Some(Self::signal),
        flush: Some(Self::flush),
        poll: Some(Self::poll),
        wait: Some(Self::wait),
        wait_for: Some(Self::wait_for),
        failure: Some(Self::failure),
        copy_2d: Some(Self::copy_2d),
        wait_blocking: Some(Self::wait_blocking),
        hold: Some(Self::hold),
        resume: Some(Self::resume),
    };

    unsafe extern "C" fn open_queue(
        device: Handle,
        options: *const abi::QueueOptions,
        handle: *mut Handle,
    ) -> Status {
        guard("open_queue", || {
            // SAFETY: core passes a live device of this backend.
            let device = unsafe { borrow::<B::Device>(device) }?;
            // SAFETY: core passes a writable output pointer.
            let handle = unsafe { out_param(handle) }?;
            // SAFETY: core passes a structure that states its size.
            let raw = unsafe { read_struct(options) }?;
            let timestamps = raw.flags & abi::QUEUE_TIMESTAMPS != 0;
            handle
                .write(into_handle(device.open_queue(&QueueOptions { priority: raw.priority, timestamps })?));
            Ok(())
        })
    }

    unsafe extern "C" fn close_queue(queue: Handle) {
        // The hook logs a panic in `drop`; there is no status to return it in.
        let _ = catch_panic("close_queue", || {
            // SAFETY: core passes each queue that `open_queue` created exactly once.
            drop(unsafe { from_handle::<QueueOf<B>>(queue) });
        });
    }

    unsafe extern "C" fn launch(
        queue: Handle,
        submit: SubmitInfo,
        code: Handle,
        arguments: *const abi::Launch,
    ) -> Status {
        guard("launch", || {
            // SAFETY: core passes a live kernel of this backend.
            let code = unsafe { kernel::<B>(code) }?;
            // SAFETY: core passes a launch that is valid during the call.
            let arguments = unsafe { launch::<B>(arguments) }?;
            // SAFETY: core passes a live queue of this backend.
            unsafe { borrow::<QueueOf<B>>(queue) }?.launch(submit, code, &arguments)
        })
    }

    unsafe extern "C" fn try_begin_inline(queue: Handle, ticket: u64) -> u32 {
        let began_inline = catch_panic("try_begin_inline", || {
            // SAFETY: core passes a live queue of this backend.
            unsafe { borrow::<QueueOf<B>>(queue) }.is_ok_and(|queue| queue.try_begin_inline(ticket))
        });
        began_inline.map_or(0, u32::from)
    }

    unsafe extern "C" fn run_inline(
        queue: Handle,
        ticket: u64,
        code: Handle,
        arguments: *const abi::Launch,
    ) -> Status {
        guard("run_inline", || {
            if code.is_null() {
                // SAFETY: core passes a live queue of this backend.
                return unsafe { borrow::<QueueOf<B>>(queue) }?.run_inline_noop(ticket);
            }
            // SAFETY: core passes a live kernel of this backend.
            let code = unsafe { kernel::<B>(code) }?;
            // SAFETY: core passes a launch that is valid during the call.
            let arguments = unsafe { launch::<B>(arguments) }?;
            // SAFETY: core passes a live queue of this backend.
            unsafe { borrow::<QueueOf<B>>(queue) }?.run_inline(ticket, code, &arguments)
        })
    }

    unsafe extern "C" fn write(
        queue: Handle,
        submit: SubmitInfo,
        destination: Handle,
        offset: u64,
        source: *const u8,
        bytes: u64,
    ) -> Status {
        guard("write", || {
            // SAFETY: core passes a live buffer of this backend.
            let destination = unsafe { borrow::<BufferOf<B>>(destination) }?;
            // SAFETY: core keeps the source unchanged until the ticket ends.
            let source = unsafe { HostBytes::new(source, byte_len(bytes)?) };
            // SAFETY: core passes a live queue of this backend.
            unsafe { borrow::<QueueOf<B>>(queue) }?.write(submit, destination, offset, source)
        })
    }

    unsafe extern "C" fn read(
        queue: Handle,
        submit: SubmitInfo,
        source: Handle,
        offset: u64,
        destination: *mut u8,
        bytes: u64,
    ) -> Status {
        guard("read", || {
            // SAFETY: core passes a live buffer of this backend.
            let source = unsafe { borrow::<BufferOf<B>>(source) }?;
            // SAFETY: core does not access the destination until the ticket ends.
            let destination = unsafe { HostBytesMut::new(destination, byte_len(bytes)?) };
            // SAFETY: core passes a live queue of this backend.
            unsafe { borrow::<QueueOf<B>>(queue) }?.read(submit, source, offset, destination)
        })
    }

    unsafe extern "C" fn copy(
        queue: Handle,
        submit: SubmitInfo,
        destination: Handle,
        destination_offset: u64,
        source: Handle,
        source_offset: u64,
        bytes: u64,
    ) -> Status {
        guard("copy", || {
            // SAFETY: core passes a live buffer of this backend.
            let destination = unsafe { borrow::<BufferOf<B>>(destination) }?;
            // SAFETY: as above.
            let source = unsafe { borrow::<BufferOf<B>>(source) }?;
            // SAFETY: core passes a live queue of this backend.
            let queue = unsafe { borrow::<QueueOf<B>>(queue) }?;
            queue.copy(submit, (destination, destination_offset), (source, source_offset), bytes)
        })
    }

    unsafe extern "C" fn copy_2d(queue: Handle, submit: SubmitInfo, rows: *const abi::Copy2D) -> Status {
        guard("copy_2d", || {
            // SAFETY: core passes a structure that states its size.
            let raw = unsafe { read_struct(rows) }?;
            // SAFETY: core passes a live buffer of this backend.
            let destination = unsafe { borrow::<BufferOf<B>>(raw.destination) }?;
            // SAFETY: as above.
            let source = unsafe { borrow::<BufferOf<B>>(raw.source) }?;
            let rows = Copy2D {
                destination: (destination, raw.destination_offset),
                destination_pitch: raw.destination_pitch,
                source: (source, raw.source_offset),
                source_pitch: raw.source_pitch,
                row_bytes: raw.row_bytes,
                rows: raw.rows,
            };
            // SAFETY: core passes a live queue of this backend.
            unsafe { borrow::<QueueOf<B>>(queue) }?.copy_2d(submit, &rows)
        })
    }

    unsafe extern "C" fn fill(
        queue: Handle,
        submit: SubmitInfo,
        destination: Handle,
        offset: u64,
        bytes: u64,
        pattern: *const u8,
        pattern_bytes: u32,
    ) -> Status {
        guard("fill", || {
            // SAFETY: core passes a live buffer of this backend.
            let destination = unsafe { borrow::<BufferOf<B>>(destination) }?;
            // SAFETY: the pattern is readable during the call.
            let pattern = unsafe { convert::borrow_slice("pattern", pattern, pattern_bytes as usize, 16) }?;
            let pattern = FillPattern::new(pattern, bytes)?;
            // SAFETY: core passes a live queue of this backend.
            unsafe { borrow::<QueueOf<B>>(queue) }?.fill(submit, (destination, offset), bytes, pattern)
        })
    }

    unsafe extern "C" fn noop(queue: Handle, submit: SubmitInfo) -> Status {
        // SAFETY: core passes a live queue of this backend.
        guard("noop", || unsafe { borrow::<QueueOf<B>>(queue) }?.noop(submit))
    }

    unsafe extern "C" fn timestamp(queue: Handle, submit: SubmitInfo) -> Status {
        // SAFETY: core passes a live queue of this backend.
        guard("timestamp", || unsafe { borrow::<QueueOf<B>>(queue) }?.timestamp(submit))
    }

    unsafe extern "C" fn read_timestamp(queue: Handle, ticket: u64, nanoseconds: *mut u64) -> Status {
        guard("read_timestamp", || {
            // SAFETY: core passes a writable output pointer.
            let nanoseconds = unsafe { out_param(nanoseconds) }?;
            // SAFETY: core passes a live queue of this backend.
            nanoseconds.write(unsafe { borrow::<QueueOf<B>>(queue) }?.read_timestamp(ticket)?);
            Ok(())
        })
    }

    pub(super) unsafe extern "C" fn replay(queue: Handle, submit: SubmitInfo, graph: Handle) -> Status {
        guard("replay", || {
            // SAFETY: core passes a live graph of this backend.
            let graph = unsafe { borrow::<GraphOf<B>>(graph) }?;
            // SAFETY: core passes a live queue of this backend.
            unsafe { borrow::<QueueOf<B>>(queue) }?.replay(submit, graph)
        })
    }

    unsafe extern "C" fn signal(queue: Handle, ticket: u64) -> Status {
        // SAFETY: core passes a live queue of this backend.
        guard("signal", || unsafe { borrow::<QueueOf<B>>(queue) }?.signal(ticket))
    }

    unsafe extern "C" fn flush(queue: Handle) -> Status {
        // SAFETY: core passes a live queue of this backend.
        guard("flush", || unsafe { borrow::<QueueOf<B>>(queue) }?.flush())
    }

    unsafe extern "C" fn poll(queue: Handle, progress: *mut Progress) -> Status {
        guard("poll", || {
            // SAFETY: core passes a writable output pointer.
            let progress = unsafe { out_param(progress) }?;
            // SAFETY: core passes a live queue of this backend.
            progress.write(unsafe { borrow::<QueueOf<B>>(queue) }?.poll()?);
            Ok(())
        })
    }

    unsafe extern "C" fn wait(queue: Handle, ticket: u64, slice_ns: u64) -> Status {
        // SAFETY: core passes a live queue of this backend.
        guard("wait", || unsafe { borrow::<QueueOf<B>>(queue) }?.wait(ticket, Duration::from_nanos(slice_ns)))
    }

    unsafe extern "C" fn wait_blocking(queue: Handle, ticket: u64) -> Status {
        // SAFETY: core passes a live queue of this backend.
        guard("wait_blocking", || unsafe { borrow::<QueueOf<B>>(queue) }?.wait_blocking(ticket))
    }

    unsafe extern "C" fn hold(queue: Handle) -> Status {
        // SAFETY: core passes a live queue of this backend.
        guard("hold", || unsafe { borrow::<QueueOf<B>>(queue) }?.hold())
    }

    unsafe extern "C" fn resume(queue: Handle, lasted: *mut u32) -> Status {
        guard("resume", || {
            // SAFETY: core passes a writable output pointer.
            let lasted = unsafe { out_param(lasted) }?;
            // SAFETY: core passes a live queue of this backend.
            lasted.write(u32::from(unsafe { borrow::<QueueOf<B>>(queue) }?.resume()?));
            Ok(())
        })
    }

    unsafe extern "C" fn wait_for(queue: Handle, other: Handle, ticket: u64) -> Status {
        guard("wait_for", || {
            // SAFETY: core passes a live queue of this backend.
            let other = unsafe { borrow::<QueueOf<B>>(other) }?;
            // SAFETY: as above.
            unsafe { borrow::<QueueOf<B>>(queue) }?.wait_for(other, ticket)
        })
    }

    unsafe extern "C" fn failure(queue: Handle) -> Status {
        // SAFETY: core passes a live queue of this backend.
        guard("failure", || unsafe { borrow::<QueueOf<B>>(queue) }?.failure().map_or(Ok(()), Err))
    }
}
