//! Buffers: device memory from a pool, pinned host memory, managed memory, and memory that another library owns.

#![allow(unsafe_code, reason = "allocates and frees through the driver")]

use std::sync::Arc;

use runtime_core::backend::{Buffer, DeviceBytes, check_range, space_at};
use runtime_core::{Error, ErrorKind, Result};

use crate::context::PrimaryContext;
use crate::device_state::DeviceState;
use crate::driver::abi::{ATTACH_GLOBAL, CUpointer_attribute, CuResult, DevicePtr, HOST_MEMORY, Stream};
use crate::free_list::Block;
use crate::pinned_blocks::allocate_pinned;
use crate::progress::StreamState;

/// Alignment of every allocation.
pub(crate) const ALIGNMENT_BYTES: usize = 256;
/// How often, and how long, an allocation that found no memory waits for the device to become idle.
const IDLE_POLLS: u32 = 100;
const IDLE_POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(2);

/// A memory space, in the order of `DeviceInfo::spaces`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Device,
    Pinned,
    Managed,
}

impl Space {
    pub(crate) const NAMES: [(Self, &'static str); 3] =
        [(Self::Device, "device"), (Self::Pinned, "pinned"), (Self::Managed, "shared")];

    /// The space with an index of `DeviceInfo::spaces`.
    ///
    /// # Errors
    /// `InvalidArgument` if the device has no such space.
    pub(crate) fn from_index(index: u32, count: usize) -> Result<Self> {
        space_at(&Self::NAMES[..count.min(3)], index).map(|(space, _)| space)
    }

    fn host_visible(self) -> bool {
        self != Self::Device
    }
}

/// How the memory was allocated, and so how it is freed.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// Not by this backend: memory of another library, or an allocation of 0 bytes.
    External,
    /// `cuMemAllocFromPoolAsync`.
    Pool,
    /// `cuMemAlloc`.
    Plain,
    /// `cuMemHostAlloc`.
    Pinned,
    /// `cuMemAllocManaged`.
    Managed,
}

/// An allocation, or memory that another library owns.
#[derive(Debug)]
pub struct CudaBuffer {
    /// The device that owns the memory.
    pub(crate) shared: Arc<DeviceState>,
    /// The address that the driver returned.
    base: DevicePtr,
    /// The first byte, aligned as requested.
    start: DevicePtr,
    bytes: usize,
    /// The size that the driver allocated.
    allocated_bytes: usize,
    space: Space,
    origin: Origin,
}

/// Parameters of an allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) space: Space,
    pub(crate) bytes: usize,
    pub(crate) alignment_bytes: usize,
}

impl CudaBuffer {
    /// Allocates memory: in order with `queue` if one is given, otherwise ready for use on every queue.
    pub(crate) fn allocate(
        shared: &Arc<DeviceState>,
        request: Request,
        queue: Option<&StreamState>,
    ) -> Result<Self> {
        let alignment = request.alignment_bytes.max(ALIGNMENT_BYTES);
        if request.bytes == 0 {
            return Ok(Self::external(shared, alignment as DevicePtr, 0, request.space));
        }
        // The driver's own alignment suffices as a rule.
        let slack = if alignment > ALIGNMENT_BYTES { alignment } else { 0 };
        let bytes = request.bytes.checked_add(slack).ok_or_else(|| too_large(request.bytes))?;
        let (base, origin) = match request.space {
            Space::Device => Self::allocate_device(shared, bytes, queue)?,
            Space::Pinned => {
                let memory = allocate_pinned(&shared.primary, bytes)?;
                (memory.as_ptr().expose_provenance() as DevicePtr, Origin::Pinned)
            }
            Space::Managed => (allocate_managed(&shared.primary, bytes)?, Origin::Managed),
        };
        let start = base.next_multiple_of(alignment as DevicePtr);
        let buffer = Self {
            shared: Arc::clone(shared),
            base,
            start,
            bytes: request.bytes,
            allocated_bytes: bytes,
            space: request.space,
            origin,
        };
        if start - base > slack as DevicePtr {
            return Err(Error::new(
                ErrorKind::Driver,
                format!("the driver returned memory at {base:#x}, which is not aligned to 256 bytes"),
            ));
        }
        Ok(buffer)
    }

    fn allocate_device(
        shared: &DeviceState,
        bytes: usize,
        queue: Option<&StreamState>,
    ) -> Result<(DevicePtr, Origin)> {
        if let Some(address) = queue.and_then(|queue| queue.free_list.take(bytes)) {
            return Ok((address, Origin::Pool));
        }
        let origin = if shared.pool.is_some() { Origin::Pool } else { Origin::Plain };
        let stream = queue.map(|queue| queue.stream);
        let (address, code) = try_allocate_device(shared, bytes, stream)?;
        let (address, code) = match code {
            CuResult::CUDA_ERROR_OUT_OF_MEMORY => reclaim_and_retry(shared, bytes, stream)?,
            code => (address, code),
        };
        match code {
            CuResult::CUDA_SUCCESS => Ok((address, origin)),
            // The driver returns INVALID_VALUE for sizes beyond its limits.
            CuResult::CUDA_ERROR_OUT_OF_MEMORY | CuResult::CUDA_ERROR_INVALID_VALUE => {
                let (free, total) = shared.primary.memory_info()?;
                let message = format!(
                    "cannot allocate {bytes} bytes: {free} of {total} bytes are free; free tensors first"
                );
                Err(Error::new(ErrorKind::OutOfMemory, message).with_driver("CUDA_ERROR_OUT_OF_MEMORY", 2))
            }
            code => Err(shared.primary.fail("cuMemAllocFromPoolAsync", code)),
        }
    }

    fn external(shared: &Arc<DeviceState>, start: DevicePtr, bytes: usize, space: Space) -> Self {
        let origin = Origin::External;
        Self { shared: Arc::clone(shared), base: start, start, bytes, allocated_bytes: 0, space, origin }
    }

    /// Wraps memory of another library that the driver recognises as memory of this device.
    pub(crate) fn import_device_memory(
        shared: &Arc<DeviceState>,
        space: Space,
        memory: &DeviceBytes,
    ) -> Result<Self> {
        let primary = &shared.primary;
        let start = memory.as_ptr().expose_provenance() as DevicePtr;
        let kind = memory_type(primary, start).ok_or_else(|| {
            Error::invalid(format!("memory at {start:#x} was not allocated by CUDA; pass memory that was"))
        })?;
        let ordinal =
            primary.driver.pointer_attribute(CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, start);
        if let Some(ordinal) = ordinal.filter(|&ordinal| space == Space::Device && ordinal != primary.ordinal)
        {
            return Err(Error::invalid(format!(
                "memory at {start:#x} belongs to cuda:{ordinal}, not to cuda:{}; open that device",
                primary.ordinal
            )));
        }
        let on_host = kind == HOST_MEMORY;
        if on_host != (space == Space::Pinned) {
            let actual = if on_host { "pinned host memory" } else { "device memory" };
            return Err(Error::invalid(format!("memory at {start:#x} is {actual}; pass the space it is in")));
        }
        Ok(Self::external(shared, start, memory.len(), space))
    }

    /// Whether the memory is in the `device` space.
    pub(crate) fn is_on_device(&self) -> bool {
        self.space == Space::Device
    }

    /// Address of a range.
    ///
    /// # Errors
    /// `InvalidArgument` if it exceeds the buffer.
    pub(crate) fn range(&self, what: &str, offset: u64, bytes: u64) -> Result<DevicePtr> {
        check_range(what, offset, bytes, self.bytes as u64)?;
        Ok(self.start + offset)
    }

    /// Frees the memory; with a queue of this device, in order with its work and onto its free list.
    pub(crate) fn free(mut self, queue: Option<&StreamState>) {
        self.release(queue);
    }

    /// Errors are ignored: those that surface here come from earlier work, and a wait for that work reports them.
    fn release(&mut self, queue: Option<&StreamState>) {
        let (driver, primary) = (self.shared.primary.driver, &self.shared.primary);
        match (std::mem::replace(&mut self.origin, Origin::External), &self.shared.pool) {
            (Origin::External, _) | (Origin::Pool, None) => {}
            (Origin::Pool, Some(pool)) => {
                let block = Block { base: self.base, bytes: self.allocated_bytes };
                let stream = queue.map(|queue| queue.stream);
                match queue {
                    Some(queue) => queue.free_list.insert(block, |block| pool.free(block, stream)),
                    None => pool.free(block, stream),
                }
            }
            (Origin::Plain | Origin::Managed, _) => {
                let _current = primary.make_current();
                // SAFETY: allocated by the driver, freed once; the call waits for work that uses it.
                let _ = unsafe { (driver.cuMemFree_v2)(self.base) };
            }
            (Origin::Pinned, _) => {
                let _current = primary.make_current();
                // SAFETY: allocated by the driver, freed once.
                let _ = unsafe { (driver.cuMemFreeHost)(host_ptr(self.base).cast()) };
            }
        }
    }
}

impl Buffer for CudaBuffer {
    fn kernel_address(&self) -> u64 {
        self.start
    }

    fn host_pointer(&self) -> *mut u8 {
        if self.space.host_visible() { host_ptr(self.start) } else { std::ptr::null_mut() }
    }
}

impl Drop for CudaBuffer {
    fn drop(&mut self) {
        self.release(None);
    }
}

fn host_ptr(address: DevicePtr) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0))
}

fn too_large(bytes: usize) -> Error {
    Error::new(ErrorKind::OutOfMemory, format!("{bytes} bytes exceed the address space"))
}

/// Tries once to allocate device memory.
fn try_allocate_device(
    shared: &DeviceState,
    bytes: usize,
    stream: Option<Stream>,
) -> Result<(DevicePtr, CuResult)> {
    if let Some(pool) = &shared.pool {
        return pool.allocate(bytes, stream);
    }
    let (mut address, _current) = (0, shared.primary.make_current()?);
    // SAFETY: the out-parameter is writable, and the context is current.
    let code = unsafe { (shared.primary.driver.cuMemAlloc_v2)(&raw mut address, bytes) };
    Ok((address, code))
}

/// Drains the free lists, waits briefly for running work that frees memory, trims the pool, and tries again.
#[cold]
fn reclaim_and_retry(
    shared: &DeviceState,
    bytes: usize,
    stream: Option<Stream>,
) -> Result<(DevicePtr, CuResult)> {
    let Some(pool) = &shared.pool else { return Ok((0, CuResult::CUDA_ERROR_OUT_OF_MEMORY)) };
    shared.drain_free_lists();
    for _ in 0..IDLE_POLLS {
        if shared.is_idle()? {
            break;
        }
        std::thread::sleep(IDLE_POLL_INTERVAL);
    }
    pool.trim()?;
    try_allocate_device(shared, bytes, stream)
}

fn allocate_managed(primary: &PrimaryContext, bytes: usize) -> Result<DevicePtr> {
    primary.query("cuMemAllocManaged", 0, |driver, address| {
        // SAFETY: the out-parameter is writable, and the context is current.
        unsafe { (driver.cuMemAllocManaged)(address, bytes, ATTACH_GLOBAL) }
    })
}

/// Type of the memory at an address; `None` for memory that the driver does not manage.
pub(crate) fn memory_type(primary: &PrimaryContext, address: DevicePtr) -> Option<u32> {
    let kind =
        primary.driver.pointer_attribute(CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address)?;
    u32::try_from(kind).ok().filter(|&kind| kind != 0)
}
