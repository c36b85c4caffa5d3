//! Buffers: device memory from a pool, pinned host memory, managed memory, and memory that another library owns.

#![allow(unsafe_code, reason = "allocates and frees through the driver")]

use std::ffi::c_void;
use std::sync::Arc;

use runtime_core::backend::{Buffer, DeviceBytes, check_range};
use runtime_core::{Error, ErrorKind, Result};

use crate::context::PrimaryContext;
use crate::driver::abi::{ATTACH_GLOBAL, CuResult, DevicePtr, HOST_MEMORY, Stream, pointer_attribute};
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
        let found = Self::NAMES[..count.min(3)].get(index as usize);
        found.map(|(space, _)| *space).ok_or_else(|| {
            Error::invalid(format!("space {index} does not exist; valid: 0 to {}", count.saturating_sub(1)))
        })
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
    primary: Arc<PrimaryContext>,
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
        primary: &Arc<PrimaryContext>,
        request: Request,
        queue: Option<&StreamState>,
    ) -> Result<Self> {
        let alignment = request.alignment_bytes.max(ALIGNMENT_BYTES);
        if request.bytes == 0 {
            return Ok(Self::external(primary, alignment as DevicePtr, 0, request.space));
        }
        // The driver's own alignment suffices as a rule.
        let slack = if alignment > ALIGNMENT_BYTES { alignment } else { 0 };
        let bytes = request.bytes.checked_add(slack).ok_or_else(|| too_large(request.bytes))?;
        let (base, origin) = match request.space {
            Space::Device => Self::allocate_device(primary, bytes, queue)?,
            Space::Pinned => {
                let memory = allocate_pinned(primary, bytes)?;
                (memory.as_ptr().expose_provenance() as DevicePtr, Origin::Pinned)
            }
            Space::Managed => (allocate_managed(primary, bytes)?, Origin::Managed),
        };
        let start = base.next_multiple_of(alignment as DevicePtr);
        let buffer = Self {
            primary: Arc::clone(primary),
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
        primary: &Arc<PrimaryContext>,
        bytes: usize,
        queue: Option<&StreamState>,
    ) -> Result<(DevicePtr, Origin)> {
        if let Some(address) = queue.and_then(|queue| queue.free_list.take(bytes)) {
            return Ok((address, Origin::Pool));
        }
        let origin = if primary.pool.is_some() { Origin::Pool } else { Origin::Plain };
        let stream = queue.map(|queue| queue.stream);
        let (address, code) = try_allocate_device(primary, bytes, stream)?;
        let (address, code) = match code {
            CuResult::CUDA_ERROR_OUT_OF_MEMORY => reclaim_and_retry(primary, bytes, stream)?,
            code => (address, code),
        };
        match code {
            CuResult::CUDA_SUCCESS => Ok((address, origin)),
            // The driver returns INVALID_VALUE for sizes beyond its limits.
            CuResult::CUDA_ERROR_OUT_OF_MEMORY | CuResult::CUDA_ERROR_INVALID_VALUE => {
                let (free, total) = primary.memory_info()?;
                let message = format!(
                    "cannot allocate {bytes} bytes: {free} of {total} bytes are free; free tensors first"
                );
                Err(Error::new(ErrorKind::OutOfMemory, message).with_driver("CUDA_ERROR_OUT_OF_MEMORY", 2))
            }
            code => Err(primary.fail("cuMemAllocFromPoolAsync", code)),
        }
    }

    fn external(primary: &Arc<PrimaryContext>, start: DevicePtr, bytes: usize, space: Space) -> Self {
        let origin = Origin::External;
        Self { primary: Arc::clone(primary), base: start, start, bytes, allocated_bytes: 0, space, origin }
    }

    /// Wraps memory of another library that the driver recognises as memory of this device.
    pub(crate) fn import_device_memory(
        primary: &Arc<PrimaryContext>,
        space: Space,
        memory: &DeviceBytes,
    ) -> Result<Self> {
        let start = memory.as_ptr().expose_provenance() as DevicePtr;
        let kind = memory_type(primary, start).ok_or_else(|| {
            Error::invalid(format!("memory at {start:#x} was not allocated by CUDA; pass memory that was"))
        })?;
        let ordinal = primary.driver.pointer_attribute(pointer_attribute::DEVICE_ORDINAL, start);
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
        Ok(Self::external(primary, start, memory.len(), space))
    }

    /// The context that owns the memory.
    pub(crate) fn primary(&self) -> &Arc<PrimaryContext> {
        &self.primary
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
        let driver = self.primary.driver;
        let origin = std::mem::replace(&mut self.origin, Origin::External);
        match (origin, self.primary.pool) {
            (Origin::External, _) | (Origin::Pool, None) => {}
            (Origin::Pool, Some(pool)) => {
                let block = Block { base: self.base, bytes: self.allocated_bytes };
                match queue {
                    Some(queue) => queue.free_list.insert(block, |block| pool.free(block, queue.stream)),
                    None => pool.free(block, self.primary.alloc_stream),
                }
            }
            (Origin::Plain | Origin::Managed, _) => {
                let _current = self.primary.make_current();
                // SAFETY: allocated by the driver, freed once; the call waits for work that uses it.
                let _ = unsafe { (driver.cuMemFree_v2)(self.base) };
            }
            (Origin::Pinned, _) => {
                let _current = self.primary.make_current();
                let memory = host_ptr(self.base).cast::<c_void>();
                // SAFETY: allocated by the driver, freed once.
                let _ = unsafe { (driver.cuMemFreeHost)(memory) };
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
    primary: &PrimaryContext,
    bytes: usize,
    stream: Option<Stream>,
) -> Result<(DevicePtr, CuResult)> {
    let mut address = 0;
    let Some(pool) = primary.pool else {
        let _current = primary.make_current()?;
        // SAFETY: the out-parameter is writable, and the context is current.
        let code = unsafe { (primary.driver.cuMemAlloc_v2)(&raw mut address, bytes) };
        return Ok((address, code));
    };
    let on = stream.unwrap_or(primary.alloc_stream);
    // SAFETY: pool and stream are alive and of one device, and the out-parameter is writable.
    let code = unsafe { (pool.api.cuMemAllocFromPoolAsync)(&raw mut address, bytes, pool.handle.0, on.0) };
    if stream.is_none() && code.is_success() {
        // Any stream may use it from now on, so the allocation must have completed.
        while !primary.is_stream_idle(on)? {
            std::hint::spin_loop();
        }
    }
    Ok((address, code))
}

/// Drains the free lists, waits briefly for running work that frees memory, trims the pool, and tries again.
#[cold]
fn reclaim_and_retry(
    primary: &PrimaryContext,
    bytes: usize,
    stream: Option<Stream>,
) -> Result<(DevicePtr, CuResult)> {
    let Some(pool) = primary.pool else { return Ok((0, CuResult::CUDA_ERROR_OUT_OF_MEMORY)) };
    primary.drain_free_lists();
    for _ in 0..IDLE_POLLS {
        if primary.is_device_idle()? {
            break;
        }
        std::thread::sleep(IDLE_POLL_INTERVAL);
    }
    // SAFETY: the pool is alive; trimming keeps memory that is in use.
    let code = unsafe { (pool.api.cuMemPoolTrimTo)(pool.handle.0, 0) };
    primary.check("cuMemPoolTrimTo", code)?;
    try_allocate_device(primary, bytes, stream)
}

fn allocate_managed(primary: &PrimaryContext, bytes: usize) -> Result<DevicePtr> {
    let _current = primary.make_current()?;
    let mut address = 0;
    // SAFETY: the out-parameter is writable, and the context is current.
    let code = unsafe { (primary.driver.cuMemAllocManaged)(&raw mut address, bytes, ATTACH_GLOBAL) };
    primary.check("cuMemAllocManaged", code)?;
    Ok(address)
}

/// Type of the memory at an address; `None` for memory that the driver does not manage.
pub(crate) fn memory_type(primary: &PrimaryContext, address: DevicePtr) -> Option<u32> {
    let kind = primary.driver.pointer_attribute(pointer_attribute::MEMORY_TYPE, address)?;
    u32::try_from(kind).ok().filter(|&kind| kind != 0)
}
