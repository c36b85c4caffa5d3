//! A buffer: one allocation of a device, with the hazards of the work on it. Tensors share it.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::abi::{self, Handle};
use crate::model::device_info::MemorySpace;
use crate::plugin::convert;
use crate::timeline::Timeline;
use crate::timeline::deferred_free::{ExternalOwner, Resource};
use crate::timeline::hazards::{HOST, Hazards, Use};
use crate::timeline::host_access::with_host_access;
use crate::timeline::open_device::OpenDevice;
use crate::timeline::queue_table::QueueStatus;
use crate::timeline::word_lock::WordLock;
use crate::{Access, Error, Placement, Result};

/// One allocation. The fields that every launch reads come first.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) device: Arc<OpenDevice>,
    frozen: AtomicBool,
    pub(crate) hazards: WordLock<Hazards>,
    pub(crate) handle: Handle,
    pub(crate) kernel_address: u64,
    pub(crate) host_pointer: *mut u8,
    pub(crate) bytes: usize,
    /// The owner of the memory, if that is not the backend.
    owner: Option<ExternalOwner>,
    pub(crate) space: usize,
}

// SAFETY: the memory is only accessed through the backend, or as the hazards allow.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Allocates `bytes` bytes; their content is unspecified.
    pub(crate) fn allocate(device: &Arc<OpenDevice>, bytes: usize, placement: &Placement) -> Result<Self> {
        device.reap();
        Self::allocate_at(device, bytes, placement, None)
    }

    /// Allocates in order with a queue's work, where the device supports that. It counts as a write by the queue.
    pub(crate) fn allocate_on(
        device: &Arc<OpenDevice>,
        timeline: &Timeline,
        bytes: usize,
        placement: &Placement,
    ) -> Result<Self> {
        if !device.info.capabilities.has(abi::CAP_STREAM_ORDERED) {
            return Self::allocate(device, bytes, placement);
        }
        // Before the lock is taken: reaping may run foreign code, which may use this queue.
        device.reap();
        let _submission = timeline.submission.lock();
        timeline.check_healthy()?;
        timeline.signal_watched()?;
        let ticket = timeline.last_submitted() + 1;
        let mut buffer = Self::allocate_at(device, bytes, placement, Some((timeline.handle, ticket)))?;
        timeline.set_last_submitted(ticket);
        // A wait tries a failed signal again.
        let _ = timeline.signal_submitted(false);
        buffer.hazards.get_mut().record(Access::Write, Use { queue: timeline.id, ticket });
        Ok(buffer)
    }

    /// Allocates another buffer in the same space. It reaps nothing, so it may be called with hazards locked.
    pub(crate) fn scratch(&self, bytes: usize) -> Result<Self> {
        Self::allocate_at(&self.device, bytes, &Placement::space(&self.space().name), None)
    }

    fn allocate_at(
        device: &Arc<OpenDevice>,
        bytes: usize,
        placement: &Placement,
        queue: Option<(Handle, u64)>,
    ) -> Result<Self> {
        let space = find_space(device, placement.space.as_deref())?;
        let alignment_bytes = alignment(&device.info.spaces[space], placement)?;
        if let Some(most) = device.info.limits.allocation_bytes
            && bytes as u64 > most
        {
            let message = format!("an allocation of {bytes} bytes; the limit of {} is {most}", device.name);
            return Err(Error::invalid(message).in_operation("allocate"));
        }
        let (queue, ticket) = queue.unwrap_or((std::ptr::null_mut(), 0));
        let request = abi::AllocateRequest {
            struct_size: crate::end_of!(abi::AllocateRequest, ticket),
            space: u32::try_from(space).unwrap_or(u32::MAX),
            bytes: bytes as u64,
            alignment_bytes,
            flags: if placement.huge_pages { abi::ALLOCATE_HUGE_PAGES } else { 0 },
            queue,
            ticket,
        };
        let mut made = no_allocation();
        device.call("allocate", |calls, handle| {
            // SAFETY: the device is open and the structures live during the call.
            unsafe { (calls.memory.allocate)(handle, &raw const request, &raw mut made) }
        })?;
        Self::new(device, "allocate", &made, (bytes, alignment_bytes), space)
    }

    /// Wraps `bytes` bytes of host memory.
    ///
    /// # Safety
    /// The memory outlives the buffer and all work on it, and nothing else touches it meanwhile.
    pub(crate) unsafe fn import_host(
        device: &Arc<OpenDevice>,
        space: usize,
        pointer: *mut u8,
        bytes: usize,
    ) -> Result<Self> {
        let mut made = no_allocation();
        let index = u32::try_from(space).unwrap_or(u32::MAX);
        // SAFETY: the caller's promise.
        device.call("import_host", |calls, handle| unsafe {
            (calls.memory.import_host)(handle, index, pointer, bytes as u64, &raw mut made)
        })?;
        Self::new(device, "import_host", &made, (bytes, 1), space)
    }

    /// Wraps `bytes` bytes of the device's own memory; `memory` is what the `data` field of DLPack holds for it.
    ///
    /// # Safety
    /// As [`Buffer::import_host`].
    pub(crate) unsafe fn import_device_memory(
        device: &Arc<OpenDevice>,
        space: usize,
        memory: *mut c_void,
        bytes: usize,
    ) -> Result<Self> {
        let mut made = no_allocation();
        let index = u32::try_from(space).unwrap_or(u32::MAX);
        // SAFETY: the caller's promise.
        device.call("import_device_memory", |calls, handle| unsafe {
            (calls.memory.import_device_memory)(handle, index, memory, bytes as u64, &raw mut made)
        })?;
        Self::new(device, "import_device_memory", &made, (bytes, 1), space)
    }

    /// Sets the owner of wrapped memory. Read-only memory is frozen.
    pub(crate) fn owned_by(mut self, owner: ExternalOwner, read_only: bool) -> Self {
        self.owner = Some(owner);
        *self.frozen.get_mut() = read_only;
        self
    }

    /// # Errors
    /// `AbiMismatch` if the backend reports an impossible allocation.
    fn new(
        device: &Arc<OpenDevice>,
        operation: &str,
        made: &abi::Allocation,
        (bytes, alignment_bytes): (usize, u64),
        space: usize,
    ) -> Result<Self> {
        convert::check_allocation(made, bytes, alignment_bytes)
            .map_err(|error| error.in_operation(operation).on_device(&device.name))?;
        Ok(Self {
            device: device.clone(),
            handle: made.buffer,
            kernel_address: made.kernel_address,
            host_pointer: made.host_pointer,
            bytes,
            hazards: WordLock::default(),
            owner: None,
            space,
            frozen: AtomicBool::new(false),
        })
    }

    /// Whether an external owner holds the memory.
    pub(crate) fn has_owner(&self) -> bool {
        self.owner.is_some()
    }

    pub(crate) fn space(&self) -> &MemorySpace {
        &self.device.info.spaces[self.space]
    }

    #[inline]
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen.load(Ordering::Acquire)
    }

    /// Rejects a write to a frozen buffer. While the hazards are locked, it cannot be frozen.
    pub(crate) fn check_writable(&self, operation: &str) -> Result<()> {
        if self.is_frozen() {
            return Err(Error::invalid("the tensor is frozen: its content is final").in_operation(operation));
        }
        Ok(())
    }

    /// Waits for the work that wrote the content.
    ///
    /// # Errors
    /// Its failure; `InvalidArgument` while the program has mapped the buffer for writing.
    pub(crate) fn wait_for_writer(&self) -> Result<()> {
        with_host_access(&self.device, &self.hazards, (Access::Read, HOST), |hazards| {
            hazards.check_unmapped(Access::Read)
        })
    }

    /// Freezes the content: waits for the last writer; from then on accesses are not tracked.
    pub(crate) fn freeze(&self) -> Result<()> {
        with_host_access(&self.device, &self.hazards, (Access::Read, HOST), |hazards| {
            hazards.check_unmapped(Access::Read)?;
            self.frozen.store(true, Ordering::Release);
            Ok(())
        })
    }
}

/// How the memory of a dropped buffer is freed.
enum Release {
    /// It is leaked: the driver may be gone, or may still use it.
    Leak,
    /// In order with the work of a queue, by the driver, without a wait or a poll.
    InOrder(Arc<Timeline>),
    /// By [`OpenDevice::defer`], once these tickets have ended.
    Deferred(Vec<(Arc<Timeline>, u64)>),
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let owner = self.owner.take();
        match self.plan_release(owner.is_some()) {
            Release::Leak => std::mem::forget(owner),
            Release::InOrder(timeline) => self.free_after(&timeline),
            Release::Deferred(until) => self.device.defer(Resource::Buffer(self.handle, owner), until),
        }
    }
}

impl Buffer {
    fn plan_release(&mut self, has_owner: bool) -> Release {
        if self.device.must_leak() {
            return Release::Leak;
        }
        // An external owner must not be released before the work has ended, which only deferred freeing ensures.
        let may_be_in_order = !has_owner && self.device.info.capabilities.has(abi::CAP_STREAM_ORDERED);
        if may_be_in_order && let Some(timeline) = self.only_queue() {
            return Release::InOrder(timeline);
        }
        // Readers of a frozen buffer are not recorded: any work in flight may use it.
        let mut until = if self.is_frozen() { self.device.any_in_flight() } else { Vec::new() };
        until.extend(self.device.pending(self.hazards.get_mut().uses()));
        match &*until {
            [(timeline, _)] if may_be_in_order && timeline.is_of(&self.device) => {
                Release::InOrder(timeline.clone())
            }
            _ => Release::Deferred(until),
        }
    }

    /// The only queue that has used the buffer, if its work may be in flight. Found without polling: a signal and a query would
    /// cost more than the allocation.
    fn only_queue(&mut self) -> Option<Arc<Timeline>> {
        if self.is_frozen() {
            return None;
        }
        let hazards = self.hazards.get_mut();
        let first = hazards.uses().next()?;
        if hazards.uses().any(|used| used.queue != first.queue) {
            return None;
        }
        let QueueStatus::Live(timeline) = self.device.queues.find(first.queue) else { return None };
        // If it has ended, the memory need not wait for later work of the queue.
        let is_in_flight = !timeline.has_ended(first.ticket);
        (is_in_flight && timeline.is_of(&self.device)).then_some(timeline)
    }

    /// Frees the memory in order with the work of the last queue that uses it.
    fn free_after(&self, timeline: &Timeline) {
        let _submission = timeline.submission.lock();
        let _serial = self.device.lock_serial();
        // SAFETY: the buffer is not used by any other queue, and the queue's lock orders the call.
        unsafe { (self.device.calls.memory.free)(self.device.handle, self.handle, timeline.handle) };
    }
}

fn no_allocation() -> abi::Allocation {
    abi::Allocation {
        struct_size: crate::end_of!(abi::Allocation, host_pointer),
        reserved: 0,
        buffer: std::ptr::null_mut(),
        kernel_address: 0,
        host_pointer: std::ptr::null_mut(),
    }
}

fn find_space(device: &OpenDevice, name: Option<&str>) -> Result<usize> {
    let found = match name {
        Some(name) => device.info.space_index(name),
        None if device.info.spaces.is_empty() => {
            Err(Error::unsupported("memory of this device is not supported"))
        }
        None => Ok(0),
    };
    found.map_err(|error| error.in_operation("allocate").on_device(&device.name))
}

fn alignment(space: &MemorySpace, placement: &Placement) -> Result<u64> {
    let wanted = placement.alignment_bytes as u64;
    if wanted != 0 && !wanted.is_power_of_two() {
        return Err(Error::invalid(format!("alignment_bytes is {wanted}, which is not a power of two"))
            .in_operation("allocate"));
    }
    Ok(wanted.max(space.alignment_bytes).max(1))
}
