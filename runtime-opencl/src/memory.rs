//! Memory: `cl_mem` buffers, shared virtual memory, unified shared memory, and imported host memory.

#![allow(unsafe_code, reason = "allocates and frees through the driver")]

use std::ffi::c_void;
use std::sync::Arc;

use cl3::ext::{CL_MEM_ALLOC_HOST_PTR, CL_MEM_CONTEXT, CL_MEM_SIZE, CL_MEM_USE_HOST_PTR};
use runtime_core::backend::{Buffer, DeviceBytes, HostBytesMut, NativeHandle, check_range};
use runtime_core::{Error, ErrorKind, Result};

use crate::allocation::{allocate_svm, allocate_usm, create_buffer, map, out_of_memory, unmap};
use crate::context::SharedContext;
use crate::deferred_release::DeferredObject;
use crate::device_caps::MIN_ALIGNMENT;
use crate::device_state::DeviceState;
use crate::driver::handle::{Memory, Owned};
use crate::driver::info::decode_u64;
use crate::driver::{Raw, query};
use crate::enqueuer::Location;
use crate::space::Space;
use crate::sub_buffers::SubBuffers;

/// What allocated the memory behind `base`, and so how it is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backing {
    /// No pointer of ours: the memory belongs to the `cl_mem`, or to the host program (imported).
    Object,
    Svm,
    Usm,
    /// A mapping of the `cl_mem`.
    Mapping,
}

/// How kernels and commands access a whole buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferAccess {
    /// As a `cl_mem`.
    Object(Raw),
    /// As a pointer to shared virtual memory.
    Svm(*mut u8),
    /// As a pointer to unified shared memory.
    Usm(*mut u8),
    /// Kernels cannot: it is mapped.
    Mapped,
}

/// An allocation, or imported host memory.
#[derive(Debug)]
pub struct OpenClBuffer {
    shared: Arc<DeviceState>,
    /// A number that no other buffer of the context has or had.
    pub(crate) id: u64,
    /// `None` where kernels get a pointer.
    object: Option<Owned<Memory>>,
    /// What the driver returned; null if the memory has no address.
    base: *mut u8,
    /// The first byte, aligned as requested; null if the memory has no address.
    pub(crate) start: *mut u8,
    bytes: usize,
    backing: Backing,
    host_visible: bool,
    pub(crate) sub_buffers: SubBuffers,
}

// SAFETY: core's hazard tracking orders all accesses to the memory, on every thread.
unsafe impl Send for OpenClBuffer {}
// SAFETY: the same holds for several threads at once.
unsafe impl Sync for OpenClBuffer {}

impl OpenClBuffer {
    /// Allocates `bytes` bytes in a space.
    pub(crate) fn allocate(
        shared: &Arc<DeviceState>,
        space: Space,
        bytes: usize,
        alignment: usize,
    ) -> Result<Self> {
        let context = &shared.context;
        let limit = context.caps.allocation_bytes;
        if limit != 0 && bytes as u64 > limit {
            return Err(out_of_memory(bytes, limit));
        }
        shared.deferred.make_room(bytes);
        let mut buffer = Self::unallocated(shared, bytes, space.host_visible());
        // Drivers refuse allocations of 0 bytes.
        let size = bytes.max(1);
        match space {
            Space::Device if !context.caps.svm => {
                if alignment > context.caps.alignment_bytes {
                    return Err(Error::unsupported(format!(
                        "an alignment of {alignment} bytes needs memory with addresses; use space `shared`"
                    )));
                }
                buffer.object = Some(create_buffer(context, 0, size, std::ptr::null_mut())?);
            }
            Space::Device => {
                // With a pointer besides the `cl_mem`, kernels can access views at any offset.
                buffer.allocate_pointer(Backing::Svm, space, size, alignment)?;
                let memory = buffer.start.cast();
                buffer.object = Some(create_buffer(context, CL_MEM_USE_HOST_PTR, size, memory)?);
            }
            Space::Svm | Space::SvmHost => buffer.allocate_pointer(Backing::Svm, space, size, alignment)?,
            Space::UsmHost | Space::UsmShared => {
                buffer.allocate_pointer(Backing::Usm, space, size, alignment)?;
            }
            Space::Mapped => buffer.allocate_pointer(Backing::Mapping, space, size, alignment)?,
        }
        Ok(buffer)
    }

    /// Wraps host memory, which the device uses in place.
    pub(crate) fn import(shared: &Arc<DeviceState>, memory: &HostBytesMut) -> Result<Self> {
        let context = &shared.context;
        let mut buffer = Self::unallocated(shared, memory.len(), true);
        buffer.start = memory.as_ptr();
        if memory.is_empty() {
            buffer.object = Some(create_buffer(context, 0, 1, std::ptr::null_mut())?);
        } else {
            buffer.object =
                Some(create_buffer(context, CL_MEM_USE_HOST_PTR, memory.len(), memory.as_ptr().cast())?);
        }
        Ok(buffer)
    }

    /// Wraps a `cl_mem` of the same context.
    ///
    /// # Errors
    /// `InvalidArgument` for one of another context, and for one that is too small.
    pub(crate) fn import_object(shared: &Arc<DeviceState>, memory: &DeviceBytes) -> Result<Self> {
        let (context, raw) = (&shared.context, memory.as_ptr());
        // SAFETY: the caller vouches for the object, and `value` has room for `size` bytes.
        let info = |key| unsafe { query!(context.driver, clGetMemObjectInfo(raw, key)) };
        let number = |key| info(key).and_then(|bytes| decode_u64(&bytes));
        if number(CL_MEM_CONTEXT) != Some(context.handle.raw().addr() as u64) {
            let message = "the `cl_mem` is not of the device's context; create it in the `cl_context` of `Device::native`";
            return Err(Error::invalid(message));
        }
        let size = number(CL_MEM_SIZE).unwrap_or(0);
        if size < memory.len() as u64 {
            let message = format!("the `cl_mem` has {size} bytes; the tensor ends after {}", memory.len());
            return Err(Error::invalid(message));
        }
        let mut buffer = Self::unallocated(shared, memory.len(), false);
        // SAFETY: the driver knows the object.
        buffer.object = Some(unsafe { Owned::<Memory>::retain(context.driver, raw) }?);
        Ok(buffer)
    }

    fn unallocated(shared: &Arc<DeviceState>, bytes: usize, host_visible: bool) -> Self {
        Self {
            shared: Arc::clone(shared),
            id: shared.context.next_id(),
            object: None,
            base: std::ptr::null_mut(),
            start: std::ptr::null_mut(),
            bytes,
            backing: Backing::Object,
            host_visible,
            sub_buffers: SubBuffers::default(),
        }
    }

    /// Allocates memory with an address, aligned as requested.
    fn allocate_pointer(
        &mut self,
        backing: Backing,
        space: Space,
        bytes: usize,
        alignment: usize,
    ) -> Result<()> {
        // USM is aligned as requested. Some drivers align SVM and mappings only as `malloc` does.
        let is_aligned = backing == Backing::Usm && alignment <= MIN_ALIGNMENT;
        let limit = self.context().caps.allocation_bytes;
        let fits = limit == 0 || bytes.checked_add(alignment).is_some_and(|size| size as u64 <= limit);
        let slacks: &[usize] = match (is_aligned, fits) {
            (true, _) => &[0],
            (false, true) => &[alignment],
            // At the driver's size limit there is no room for slack, and often no need.
            (false, false) => &[0, alignment],
        };
        for slack in slacks {
            self.free();
            let size = bytes.checked_add(*slack).ok_or_else(|| out_of_memory(bytes, 0))?;
            let memory = self.allocate_backing(backing, space, size)?;
            self.base = memory.cast();
            self.backing = backing;
            let skipped = memory.addr().next_multiple_of(alignment.max(1)) - memory.addr();
            if skipped <= *slack {
                self.start = self.base.wrapping_add(skipped);
                return Ok(());
            }
        }
        let message =
            format!("the driver's memory is not aligned to {alignment} bytes; use a smaller alignment");
        Err(Error::new(ErrorKind::Driver, message))
    }

    fn allocate_backing(&mut self, backing: Backing, space: Space, size: usize) -> Result<*mut c_void> {
        match backing {
            Backing::Usm => allocate_usm(self.context(), space, size),
            Backing::Mapping => {
                let object =
                    create_buffer(self.context(), CL_MEM_ALLOC_HOST_PTR, size, std::ptr::null_mut())?;
                map(&self.shared.context, self.object.insert(object), size)
            }
            _ => allocate_svm(self.context(), size),
        }
    }

    /// Frees the memory; of imported memory, only the `cl_mem`.
    fn free(&mut self) {
        let (backing, memory) =
            (std::mem::replace(&mut self.backing, Backing::Object), self.base.cast::<c_void>());
        if let (Some(object), Backing::Mapping) = (&self.object, backing) {
            unmap(self.context(), object, memory);
        }
        let svm = if backing == Backing::Svm { memory } else { std::ptr::null_mut() };
        let object = self.object.take();
        if object.is_some() || !svm.is_null() {
            self.shared.deferred.release(DeferredObject::Memory { object, svm, bytes: self.bytes });
        }
        let context = self.context();
        if let (Backing::Usm, Some(usm)) = (backing, &context.caps.usm) {
            let _ = context.driver.extension("clMemFreeINTEL", || {
                // SAFETY: allocated in this context, freed once, and no longer in use.
                unsafe { (usm.clMemFreeINTEL)(context.handle.raw(), memory) }
            });
        }
    }

    #[inline]
    pub(crate) fn context(&self) -> &Arc<SharedContext> {
        &self.shared.context
    }

    /// How kernels and commands access the whole buffer.
    #[inline]
    pub(crate) fn access(&self) -> BufferAccess {
        match (&self.object, self.backing) {
            (_, Backing::Mapping) => BufferAccess::Mapped,
            (Some(object), _) => BufferAccess::Object(object.raw()),
            (None, Backing::Usm) => BufferAccess::Usm(self.start),
            (None, _) => BufferAccess::Svm(self.start),
        }
    }

    /// The location of byte `offset`, for copies and fills.
    pub(crate) fn location(&self, offset: usize) -> Location {
        match self.access() {
            BufferAccess::Object(object) => Location::Object(object, offset),
            BufferAccess::Svm(start) => Location::Svm(start.wrapping_add(offset)),
            BufferAccess::Usm(start) => Location::Usm(start.wrapping_add(offset)),
            BufferAccess::Mapped => Location::Host(self.start.wrapping_add(offset)),
        }
    }

    /// Whether it is a permanently mapped buffer.
    #[inline]
    pub(crate) fn is_mapped(&self) -> bool {
        self.backing == Backing::Mapping
    }

    /// The first byte, for kernels; null if they access it as a `cl_mem` only.
    #[inline]
    pub(crate) fn kernel_pointer(&self) -> *mut u8 {
        match self.backing {
            Backing::Object | Backing::Mapping => std::ptr::null_mut(),
            Backing::Svm | Backing::Usm => self.start,
        }
    }

    /// Checks that a range lies within the buffer.
    ///
    /// # Errors
    /// `InvalidArgument` if it does not.
    #[inline]
    pub(crate) fn range(&self, what: &str, offset: u64, bytes: u64) -> Result<(usize, usize)> {
        check_range(what, offset, bytes, self.bytes as u64)?;
        // Within the buffer, so both fit a `usize`.
        Ok((usize::try_from(offset).unwrap_or(0), usize::try_from(bytes).unwrap_or(0)))
    }
}

impl Buffer for OpenClBuffer {
    fn kernel_address(&self) -> u64 {
        self.kernel_pointer().expose_provenance() as u64
    }

    fn host_pointer(&self) -> *mut u8 {
        if self.host_visible { self.start } else { std::ptr::null_mut() }
    }

    fn native(&self) -> Result<(Vec<NativeHandle>, u64)> {
        match self.access() {
            BufferAccess::Object(object) => Ok((vec![NativeHandle::pointer("cl_mem", object)], 0)),
            BufferAccess::Svm(_) | BufferAccess::Usm(_) => Ok((Vec::new(), 0)),
            BufferAccess::Mapped => Err(Error::unsupported(
                "memory that is mapped for good cannot be used by other work; use another space",
            )),
        }
    }
}

impl Drop for OpenClBuffer {
    fn drop(&mut self) {
        self.sub_buffers.clear();
        self.free();
    }
}
