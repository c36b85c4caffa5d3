//! Memory: a pool of the device, pinned host memory, managed memory, and what others own.

#![allow(unsafe_code, reason = "allocates and frees through the driver")]

use std::ffi::c_void;
use std::sync::Arc;

use runtime_core::backend::{Buffer, DeviceBytes};
use runtime_core::{Error, ErrorKind, Result};

use crate::bounce::pinned;
use crate::context::Primary;
use crate::driver::abi::{ATTACH_GLOBAL, Address, Code, Stream, pointer_attribute};
use crate::progress::Shared;
use crate::spares::Block;

/// Alignment of every allocation.
pub(crate) const ALIGNMENT_BYTES: usize = 256;
/// How often, and how far apart, memory is asked for again while work that frees some may still run.
const TRIES: u32 = 100;
const TRY_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

/// A memory space, in the order of `DeviceInfo::spaces`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Device,
    Pinned,
    Shared,
}

impl Space {
    pub(crate) const NAMES: [(Self, &'static str); 3] =
        [(Self::Device, "device"), (Self::Pinned, "pinned"), (Self::Shared, "shared")];

    /// The space of an index.
    ///
    /// # Errors
    /// `InvalidArgument` for one that the device does not have.
    pub(crate) fn of(index: u32, count: usize) -> Result<Self> {
        let found = Self::NAMES[..count.min(3)].get(index as usize);
        found.map(|(space, _)| *space).ok_or_else(|| {
            Error::invalid(format!("space {index} does not exist; valid: 0 to {}", count.saturating_sub(1)))
        })
    }

    fn host_visible(self) -> bool {
        self != Self::Device
    }
}

/// Who gave the memory, and so who takes it back.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// There is none: an allocation of 0 bytes, or memory of another library.
    Nobody,
    Pool,
    Plain,
    Pinned,
    Managed,
}

/// An allocation, or memory that another library owns.
#[derive(Debug)]
pub struct CudaBuffer {
    primary: Arc<Primary>,
    /// What the driver answered.
    base: Address,
    /// The first byte, aligned as asked.
    start: Address,
    bytes: usize,
    /// What was asked of the driver.
    reserved_bytes: usize,
    space: Space,
    origin: Origin,
}

/// What is to be allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) space: Space,
    pub(crate) bytes: usize,
    pub(crate) alignment_bytes: usize,
}

impl CudaBuffer {
    /// Allocates; in order with `queue` if one is given, else for use everywhere at once.
    pub(crate) fn allocate(primary: &Arc<Primary>, wanted: Wanted, queue: Option<&Shared>) -> Result<Self> {
        let alignment = wanted.alignment_bytes.max(ALIGNMENT_BYTES);
        if wanted.bytes == 0 {
            return Ok(Self::of_nobody(primary, alignment as Address, 0, wanted.space));
        }
        // What the driver aligns to by itself is enough as a rule.
        let slack = if alignment > ALIGNMENT_BYTES { alignment } else { 0 };
        let bytes = wanted.bytes.checked_add(slack).ok_or_else(|| too_much(wanted.bytes))?;
        let (base, origin) = match wanted.space {
            Space::Device => Self::on_device(primary, bytes, queue)?,
            Space::Pinned => {
                let memory = pinned(primary, bytes)?;
                (memory.as_ptr().expose_provenance() as Address, Origin::Pinned)
            }
            Space::Shared => (managed(primary, bytes)?, Origin::Managed),
        };
        let start = base.next_multiple_of(alignment as Address);
        let buffer = Self {
            primary: Arc::clone(primary),
            base,
            start,
            bytes: wanted.bytes,
            reserved_bytes: bytes,
            space: wanted.space,
            origin,
        };
        if start - base > slack as Address {
            return Err(Error::new(
                ErrorKind::Driver,
                format!("memory at {base:#x} is aligned to less than 256 bytes"),
            ));
        }
        Ok(buffer)
    }

    fn on_device(primary: &Arc<Primary>, bytes: usize, queue: Option<&Shared>) -> Result<(Address, Origin)> {
        if let Some(address) = queue.and_then(|queue| queue.spares.take(bytes)) {
            return Ok((address, Origin::Pool));
        }
        let origin = if primary.pool.is_some() { Origin::Pool } else { Origin::Plain };
        let stream = queue.map(|queue| queue.stream);
        let (address, code) = device_memory(primary, bytes, stream)?;
        let (address, code) = match code {
            Code::OUT_OF_MEMORY => retry(primary, bytes, stream)?,
            code => (address, code),
        };
        match code {
            Code::SUCCESS => Ok((address, origin)),
            // The driver's answer to sizes beyond all bounds.
            Code::OUT_OF_MEMORY | Code(1) => {
                let (free, total) = primary.memory_info()?;
                let words = format!("{bytes} bytes, of {total} in all and {free} free; free tensors first");
                Err(Error::new(ErrorKind::OutOfMemory, words).with_driver("CUDA_ERROR_OUT_OF_MEMORY", 2))
            }
            code => Err(primary.fail("cuMemAllocFromPoolAsync", code)),
        }
    }

    fn of_nobody(primary: &Arc<Primary>, start: Address, bytes: usize, space: Space) -> Self {
        let origin = Origin::Nobody;
        Self { primary: Arc::clone(primary), base: start, start, bytes, reserved_bytes: 0, space, origin }
    }

    /// Wraps memory of another library, if the driver knows it as memory of this device.
    pub(crate) fn adopt(primary: &Arc<Primary>, space: Space, memory: &DeviceBytes) -> Result<Self> {
        let start = memory.as_ptr().expose_provenance() as Address;
        let kind = memory_type(primary, start).ok_or_else(|| {
            Error::invalid(format!(
                "memory at {start:#x} is not known to CUDA; pass memory that CUDA allocated"
            ))
        })?;
        let ordinal = primary.driver.pointer_attribute(pointer_attribute::DEVICE_ORDINAL, start);
        if let Some(ordinal) = ordinal.filter(|&ordinal| space == Space::Device && ordinal != primary.ordinal)
        {
            return Err(Error::invalid(format!(
                "memory at {start:#x} is of cuda:{ordinal}, not of cuda:{}; open that device",
                primary.ordinal
            )));
        }
        let on_host = kind == pointer_attribute::HOST_MEMORY;
        if on_host != (space == Space::Pinned) {
            let is = if on_host { "pinned host memory" } else { "memory of a device" };
            return Err(Error::invalid(format!("memory at {start:#x} is {is}; name its own space")));
        }
        Ok(Self::of_nobody(primary, start, memory.len(), space))
    }

    /// The context that the memory belongs to.
    pub(crate) fn primary(&self) -> &Arc<Primary> {
        &self.primary
    }

    /// Whether the memory is the device's own.
    pub(crate) fn is_on_device(&self) -> bool {
        self.space == Space::Device
    }

    /// Address of a range.
    ///
    /// # Errors
    /// `InvalidArgument` if it lies outside.
    pub(crate) fn range(&self, what: &str, offset: u64, bytes: u64) -> Result<Address> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes as u64 => Ok(self.start + offset),
            _ => Err(Error::invalid(format!(
                "{what}: {bytes} bytes at offset {offset} of a buffer of {} bytes",
                self.bytes
            ))),
        }
    }

    /// Frees in order with a queue of this device, which keeps the memory for its next allocations.
    pub(crate) fn free(mut self, queue: Option<&Shared>) {
        self.release(queue);
    }

    /// Errors of earlier work surface here too, and are of no interest: whoever waits for that work gets them.
    fn release(&mut self, queue: Option<&Shared>) {
        let driver = self.primary.driver;
        let origin = std::mem::replace(&mut self.origin, Origin::Nobody);
        match (origin, self.primary.pool) {
            (Origin::Nobody, _) | (Origin::Pool, None) => {}
            (Origin::Pool, Some(pool)) => {
                let block = Block { base: self.base, bytes: self.reserved_bytes };
                match queue {
                    Some(queue) => queue.spares.keep(block, |block| pool.free(block, queue.stream)),
                    None => pool.free(block, self.primary.service),
                }
            }
            (Origin::Plain | Origin::Managed, _) => {
                let _current = self.primary.enter();
                // SAFETY: allocated by the driver, freed once; the call waits for work that uses it.
                let _ = unsafe { (driver.cuMemFree_v2)(self.base) };
            }
            (Origin::Pinned, _) => {
                let _current = self.primary.enter();
                let memory = pointer(self.base).cast::<c_void>();
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
        if self.space.host_visible() { pointer(self.start) } else { std::ptr::null_mut() }
    }
}

impl Drop for CudaBuffer {
    fn drop(&mut self) {
        self.release(None);
    }
}

fn pointer(address: Address) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0))
}

fn too_much(bytes: usize) -> Error {
    Error::new(ErrorKind::OutOfMemory, format!("{bytes} bytes are more than there are addresses"))
}

/// One try to get memory of the device.
fn device_memory(primary: &Primary, bytes: usize, stream: Option<Stream>) -> Result<(Address, Code)> {
    let mut address = 0;
    let Some(pool) = primary.pool else {
        let _current = primary.enter()?;
        // SAFETY: the out-parameter is writable, and the context is current.
        let code = unsafe { (primary.driver.cuMemAlloc_v2)(&raw mut address, bytes) };
        return Ok((address, code));
    };
    let on = stream.unwrap_or(primary.service);
    // SAFETY: pool and stream are alive and of one device, and the out-parameter is writable.
    let code = unsafe { (pool.calls.cuMemAllocFromPoolAsync)(&raw mut address, bytes, pool.handle, on) };
    if stream.is_none() && code.is_success() {
        // It may be used on any stream from now on, so it must be there.
        while !primary.is_idle(on)? {
            std::hint::spin_loop();
        }
    }
    Ok((address, code))
}

/// Takes what queues keep, waits a moment for work that frees some, gives unused memory back to the system, tries again.
#[cold]
fn retry(primary: &Primary, bytes: usize, stream: Option<Stream>) -> Result<(Address, Code)> {
    let Some(pool) = primary.pool else { return Ok((0, Code::OUT_OF_MEMORY)) };
    primary.free_spares();
    for _ in 0..TRIES {
        if primary.is_all_idle()? {
            break;
        }
        std::thread::sleep(TRY_PAUSE);
    }
    // SAFETY: the pool is alive; memory in use stays.
    let code = unsafe { (pool.calls.cuMemPoolTrimTo)(pool.handle, 0) };
    primary.check("cuMemPoolTrimTo", code)?;
    device_memory(primary, bytes, stream)
}

fn managed(primary: &Primary, bytes: usize) -> Result<Address> {
    let _current = primary.enter()?;
    let mut address = 0;
    // SAFETY: the out-parameter is writable, and the context is current.
    let code = unsafe { (primary.driver.cuMemAllocManaged)(&raw mut address, bytes, ATTACH_GLOBAL) };
    primary.check("cuMemAllocManaged", code)?;
    Ok(address)
}

/// Type of the memory at an address, if the driver knows it.
pub(crate) fn memory_type(primary: &Primary, address: Address) -> Option<u32> {
    let kind = primary.driver.pointer_attribute(pointer_attribute::MEMORY_TYPE, address)?;
    u32::try_from(kind).ok().filter(|&kind| kind != 0)
}
