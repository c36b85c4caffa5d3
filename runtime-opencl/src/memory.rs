//! Memory: buffers of the driver, shared virtual memory, unified shared memory, and what the program lends.

#![allow(unsafe_code, reason = "allocates and frees through the driver")]

use std::ffi::c_void;
use std::sync::Arc;

use cl3::ext::{
    CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE, CL_MEM_SVM_FINE_GRAIN_BUFFER,
    CL_MEM_USE_HOST_PTR, CL_TRUE, cl_mem_flags,
};
use parking_lot::Mutex;
use runtime_core::backend::{Buffer, HostBytesMut};
use runtime_core::{Error, ErrorKind, Result};

use crate::context::Primary;
use crate::deferred_release::Object;
use crate::driver::Raw;
use crate::driver::handle::{Memory, Owned};
use crate::facts::LEAST_ALIGNMENT;
use crate::transfer::End;
use crate::views::Part;

/// `CL_INVALID_BUFFER_SIZE`.
const TOO_LARGE: i64 = -61;

/// A memory space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// Buffers of the driver.
    Device,
    /// Memory of the host that the device reads in place: unified shared memory.
    UsmHost,
    /// The same: shared virtual memory of a device whose memory is the host's.
    SvmHost,
    /// A buffer that the driver has mapped for good: fast to copy, and kernels get a copy.
    Mapped,
    /// Memory that moves to whoever touches it: unified shared memory.
    UsmShared,
    /// The same: shared virtual memory.
    Svm,
}

impl Space {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::UsmHost | Self::SvmHost | Self::Mapped => "pinned",
            Self::UsmShared | Self::Svm => "shared",
        }
    }

    pub(crate) fn host_visible(self) -> bool {
        self != Self::Device
    }
}

/// Who gave the memory behind a pointer, and so who takes it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The driver, with the buffer; or the program.
    Nobody,
    Svm,
    Usm,
    /// The driver, with the buffer that it has mapped.
    Map,
}

/// How kernels and the driver's functions take a buffer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// As a memory object.
    Object(Raw),
    /// As a pointer to shared virtual memory.
    Svm(*mut u8),
    /// As a pointer to unified shared memory.
    Usm(*mut u8),
    /// Not: it is mapped.
    Mapped,
}

/// An allocation, or memory of the program.
#[derive(Debug)]
pub struct OpenClBuffer {
    primary: Arc<Primary>,
    id: u64,
    /// None where kernels take a pointer.
    object: Option<Owned<Memory>>,
    /// What the driver answered, and the first byte, aligned as asked; null where there are no pointers.
    base: *mut u8,
    start: *mut u8,
    bytes: usize,
    origin: Origin,
    host_visible: bool,
    parts: Mutex<Vec<Arc<Part>>>,
}

// SAFETY: the pointers are to memory that is ordered by core's hazards, whatever the thread.
unsafe impl Send for OpenClBuffer {}
// SAFETY: as above.
unsafe impl Sync for OpenClBuffer {}

impl OpenClBuffer {
    /// Allocates.
    pub(crate) fn allocate(
        primary: &Arc<Primary>,
        space: Space,
        bytes: usize,
        alignment: usize,
    ) -> Result<Self> {
        let most = primary.facts.allocation_bytes;
        if most != 0 && bytes as u64 > most {
            return Err(out_of_memory(bytes, most));
        }
        primary.make_room(bytes);
        let mut buffer = Self::empty(primary, bytes, space.host_visible());
        // Something is there even in an allocation of nothing.
        let wanted = bytes.max(1);
        match space {
            Space::Device if !primary.facts.svm => {
                if alignment > primary.facts.alignment_bytes {
                    return Err(Error::unsupported(format!(
                        "memory without addresses has no alignment of {alignment} bytes; use space `shared`"
                    )));
                }
                buffer.object = Some(object(primary, 0, wanted, std::ptr::null_mut())?);
            }
            Space::Device => {
                // With a pointer beside the object, kernels can take views at any offset.
                buffer.take_pointer(Origin::Svm, space, wanted, alignment)?;
                let memory = buffer.start.cast();
                buffer.object = Some(object(primary, CL_MEM_USE_HOST_PTR, wanted, memory)?);
            }
            Space::Svm | Space::SvmHost => buffer.take_pointer(Origin::Svm, space, wanted, alignment)?,
            Space::UsmHost | Space::UsmShared => {
                buffer.take_pointer(Origin::Usm, space, wanted, alignment)?;
            }
            Space::Mapped => buffer.take_pointer(Origin::Map, space, wanted, alignment)?,
        }
        Ok(buffer)
    }

    /// Wraps memory of the program, which the device uses in place.
    pub(crate) fn import(primary: &Arc<Primary>, memory: &HostBytesMut) -> Result<Self> {
        let mut buffer = Self::empty(primary, memory.len(), true);
        buffer.start = memory.as_ptr();
        if memory.is_empty() {
            buffer.object = Some(object(primary, 0, 1, std::ptr::null_mut())?);
        } else {
            buffer.object = Some(object(primary, CL_MEM_USE_HOST_PTR, memory.len(), memory.as_ptr().cast())?);
        }
        Ok(buffer)
    }

    fn empty(primary: &Arc<Primary>, bytes: usize, host_visible: bool) -> Self {
        Self {
            primary: Arc::clone(primary),
            id: primary.next_id(),
            object: None,
            base: std::ptr::null_mut(),
            start: std::ptr::null_mut(),
            bytes,
            origin: Origin::Nobody,
            host_visible,
            parts: Mutex::default(),
        }
    }

    /// Allocates memory with an address.
    fn take_pointer(&mut self, origin: Origin, space: Space, bytes: usize, alignment: usize) -> Result<()> {
        // What the driver promises to align to is enough; but some align what they share and what they map as `malloc` does.
        let promised = origin == Origin::Usm && alignment <= LEAST_ALIGNMENT;
        let most = self.primary.facts.allocation_bytes;
        let fits = most == 0 || bytes.checked_add(alignment).is_some_and(|size| size as u64 <= most);
        let slacks: &[usize] = match (promised, fits) {
            (true, _) => &[0],
            (false, true) => &[alignment],
            // At the driver's limit there is no room for slack, and often no need.
            (false, false) => &[0, alignment],
        };
        for slack in slacks {
            self.release();
            let size = bytes.checked_add(*slack).ok_or_else(|| out_of_memory(bytes, 0))?;
            let memory = self.take(origin, space, size)?;
            self.base = memory.cast();
            self.origin = origin;
            let skipped = memory.addr().next_multiple_of(alignment.max(1)) - memory.addr();
            if skipped <= *slack {
                self.start = self.base.wrapping_add(skipped);
                return Ok(());
            }
        }
        let message =
            format!("the driver's memory is not aligned to {alignment} bytes; ask for a smaller alignment");
        Err(Error::new(ErrorKind::Driver, message))
    }

    fn take(&mut self, origin: Origin, space: Space, size: usize) -> Result<*mut c_void> {
        match origin {
            Origin::Usm => usm(&self.primary, space, size),
            Origin::Map => {
                let object = object(&self.primary, CL_MEM_ALLOC_HOST_PTR, size, std::ptr::null_mut())?;
                map(&self.primary, self.object.insert(object), size)
            }
            _ => svm(&self.primary, size),
        }
    }

    /// Gives back what the driver gave.
    fn release(&mut self) {
        let (origin, memory) =
            (std::mem::replace(&mut self.origin, Origin::Nobody), self.base.cast::<c_void>());
        if let (Some(object), Origin::Map) = (&self.object, origin) {
            unmap(&self.primary, object, memory);
        }
        let primary = &self.primary;
        let svm = if origin == Origin::Svm { memory } else { std::ptr::null_mut() };
        let object = self.object.take();
        if object.is_some() || !svm.is_null() {
            primary.release(Object::Memory { object, svm, bytes: self.bytes });
        }
        if let (Origin::Usm, Some(usm)) = (origin, &primary.facts.usm) {
            let _ = primary.driver.extension("clMemFreeINTEL", || {
                // SAFETY: as above.
                unsafe { (usm.clMemFreeINTEL)(primary.context.raw(), memory) }
            });
        }
    }

    #[inline]
    pub(crate) fn primary(&self) -> &Arc<Primary> {
        &self.primary
    }

    /// A number that no other buffer of the context has, or had.
    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    #[inline]
    pub(crate) fn parts(&self) -> &Mutex<Vec<Arc<Part>>> {
        &self.parts
    }

    /// How the whole is taken.
    #[inline]
    pub(crate) fn reach(&self) -> Reach {
        match (&self.object, self.origin) {
            (_, Origin::Map) => Reach::Mapped,
            (Some(object), _) => Reach::Object(object.raw()),
            (None, Origin::Usm) => Reach::Usm(self.start),
            (None, _) => Reach::Svm(self.start),
        }
    }

    /// Where the bytes from `offset` on are, for moves.
    pub(crate) fn end(&self, offset: usize) -> End {
        match self.reach() {
            Reach::Object(object) => End::Object(object, offset),
            Reach::Svm(start) => End::Svm(start.wrapping_add(offset)),
            Reach::Usm(start) => End::Usm(start.wrapping_add(offset)),
            Reach::Mapped => End::Host(self.start.wrapping_add(offset)),
        }
    }

    /// Whether it is a buffer that is mapped for good.
    #[inline]
    pub(crate) fn is_mapped(&self) -> bool {
        self.origin == Origin::Map
    }

    /// Where the memory is, for a processor that is the device; null where it has no address.
    #[inline]
    pub(crate) fn memory(&self) -> *mut u8 {
        self.start
    }

    /// Where the memory is in the address space of kernels; null where they take an object only.
    #[inline]
    pub(crate) fn pointer(&self) -> *mut u8 {
        match self.origin {
            Origin::Nobody | Origin::Map => std::ptr::null_mut(),
            Origin::Svm | Origin::Usm => self.start,
        }
    }

    /// Checks a range.
    ///
    /// # Errors
    /// `InvalidArgument` if it lies outside.
    #[inline]
    pub(crate) fn range(&self, what: &str, offset: u64, bytes: u64) -> Result<(usize, usize)> {
        match offset.checked_add(bytes) {
            // Within the buffer, so both fit the address space.
            Some(end) if end <= self.bytes as u64 => {
                Ok((usize::try_from(offset).unwrap_or(0), usize::try_from(bytes).unwrap_or(0)))
            }
            _ => Err(Error::invalid(format!(
                "{what}: {bytes} bytes at offset {offset} of a buffer of {} bytes",
                self.bytes
            ))),
        }
    }
}

impl Buffer for OpenClBuffer {
    fn kernel_address(&self) -> u64 {
        self.pointer().expose_provenance() as u64
    }

    fn host_pointer(&self) -> *mut u8 {
        if self.host_visible { self.start } else { std::ptr::null_mut() }
    }
}

impl Drop for OpenClBuffer {
    fn drop(&mut self) {
        self.parts.get_mut().clear();
        self.release();
    }
}

/// A buffer of the driver, in its own memory or at `memory`.
pub(crate) fn object(
    primary: &Primary,
    flags: cl_mem_flags,
    bytes: usize,
    memory: *mut c_void,
) -> Result<Owned<Memory>> {
    let made = primary.driver.make("clCreateBuffer", |calls, code| {
        let context = primary.context.raw();
        // SAFETY: the context is alive, and memory that is passed lives as long as the buffer.
        Some(unsafe { (calls.clCreateBuffer?)(context, CL_MEM_READ_WRITE | flags, bytes, memory, code) })
    });
    let raw = made.map_err(|error| match error.driver() {
        Some((_, TOO_LARGE)) => out_of_memory(bytes, primary.facts.allocation_bytes),
        _ => error,
    })?;
    // SAFETY: it was just made.
    Ok(unsafe { Owned::new(primary.driver, raw) })
}

/// Shared virtual memory, which program and kernels use at a time.
fn svm(primary: &Primary, bytes: usize) -> Result<*mut c_void> {
    let flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER;
    let memory = primary.driver.call("clSVMAlloc", |calls| {
        // SAFETY: the context is alive; 0 is the driver's greatest alignment.
        Some(unsafe { (calls.clSVMAlloc?)(primary.context.raw(), flags, bytes, 0) })
    })?;
    if memory.is_null() { Err(out_of_memory(bytes, primary.facts.allocation_bytes)) } else { Ok(memory) }
}

fn usm(primary: &Primary, space: Space, bytes: usize) -> Result<*mut c_void> {
    let usm =
        primary.facts.usm.ok_or_else(|| Error::unsupported("unified shared memory is not supported"))?;
    let (context, none) = (primary.context.raw(), std::ptr::null());
    let alignment = u32::try_from(LEAST_ALIGNMENT).unwrap_or(0);
    let mut memory = std::ptr::null_mut();
    let mut code = 0;
    let function = if space == Space::UsmHost { "clHostMemAllocINTEL" } else { "clSharedMemAllocINTEL" };
    primary.driver.extension(function, || {
        memory = if space == Space::UsmHost {
            // SAFETY: the context is alive, and there are no properties.
            unsafe { (usm.clHostMemAllocINTEL)(context, none, bytes, alignment, &raw mut code) }
        } else {
            let device = primary.entry.device;
            // SAFETY: as above, and the device is the context's.
            unsafe { (usm.clSharedMemAllocINTEL)(context, device, none, bytes, alignment, &raw mut code) }
        };
        code
    })?;
    if memory.is_null() { Err(out_of_memory(bytes, primary.facts.allocation_bytes)) } else { Ok(memory) }
}

/// Maps a whole buffer.
fn map(primary: &Primary, object: &Owned<Memory>, bytes: usize) -> Result<*mut c_void> {
    let (queue, flags) = (primary.service()?, CL_MAP_READ | CL_MAP_WRITE);
    let (none, no_event) = (std::ptr::null(), std::ptr::null_mut());
    primary.driver.make("clEnqueueMapBuffer", |calls, code| {
        // SAFETY: queue and buffer are of one context, the range is the whole, and the call waits.
        Some(unsafe {
            (calls.clEnqueueMapBuffer?)(
                queue,
                object.raw(),
                CL_TRUE,
                flags,
                0,
                bytes,
                0,
                none,
                no_event,
                code,
            )
        })
    })
}

fn unmap(primary: &Primary, object: &Owned<Memory>, memory: *mut c_void) {
    let Ok(queue) = primary.service() else { return };
    let (none, no_event) = (std::ptr::null(), std::ptr::null_mut());
    let _ = primary.driver.call("clEnqueueUnmapMemObject", |calls| {
        // SAFETY: mapped once, and used by nobody any more.
        Some(unsafe { (calls.clEnqueueUnmapMemObject?)(queue, object.raw(), memory, 0, none, no_event) })
    });
    // Nobody waits for it, and the memory is freed behind it.
    // SAFETY: the queue is alive.
    let _ = primary.driver.call("clFlush", |calls| Some(unsafe { (calls.clFlush?)(queue) }));
}

#[cold]
fn out_of_memory(bytes: usize, most: u64) -> Error {
    Error::new(
        ErrorKind::OutOfMemory,
        format!("{bytes} bytes, of at most {most} in one allocation; free tensors, or use smaller ones"),
    )
}
