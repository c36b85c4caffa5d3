//! Host views: the memory of a host-visible tensor, mapped as a slice.

#![allow(unsafe_code, reason = "exposes memory of a buffer as a slice")]

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::memory::buffer::Buffer;
use crate::timeline::hazards::HOST;
use crate::timeline::host_access::with_host_access;
use crate::{Access, Element, Error, Result, Tensor};

/// Read access to a tensor's memory, as bytes or as elements: what [`Tensor::map`] returns. While it exists, a
/// launch that writes the buffer is refused.
///
/// ```
/// # use runtime_core::{DType, ModuleSource, Placement, Runtime, write};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let fill = device.kernel(&unsafe { ModuleSource::native("null", "fill_f32") }, "fill_f32")?;
/// let x = device.allocate(DType::F32, &[2], &Placement::space("shared"))?; // a host-visible space
/// device.queue()?.launch(&fill, (1, 1), (write(&x), 1.5f32))?;
/// let view = x.map()?; // waits for the launch
/// assert_eq!(view.as_slice::<f32>()?, [1.5, 1.5]);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Debug)]
pub struct HostView(Mapping);

/// Write access to a tensor's memory, as bytes or as elements: what [`Tensor::map_mut`] returns. While it exists,
/// any launch that uses the buffer is refused.
///
/// ```
/// # use runtime_core::{DType, ModuleSource, Placement, Runtime, read_write};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let scale = device.kernel(&unsafe { ModuleSource::native("null", "scale_f32") }, "scale_f32")?;
/// # let queue = device.queue()?;
/// let x = device.allocate(DType::F32, &[2], &Placement::space("shared"))?;
/// let mut view = x.map_mut()?;
/// view.as_mut_slice::<f32>()?.copy_from_slice(&[1.0, 2.0]);
/// assert!(queue.launch(&scale, (1, 1), (read_write(&x), 3.0f32)).is_err()); // refused, not delayed
/// drop(view);
/// queue.call(&scale, (1, 1), (read_write(&x), 3.0f32))?;
/// assert_eq!(x.to_vec::<f32>()?, [3.0, 6.0]);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Debug)]
pub struct HostViewMut(Mapping);

#[derive(Debug)]
struct Mapping {
    tensor: Tensor,
    buffer: Arc<Buffer>,
}

impl Mapping {
    fn new(tensor: &Tensor, write: bool) -> Result<Self> {
        let buffer = tensor.buffer("map")?.clone();
        if buffer.host_pointer.is_null() && buffer.bytes != 0 {
            let remedy = "place the tensor in a host-visible space, or read it with to_vec";
            return Err(Error::unsupported(format!(
                "memory space \"{}\" cannot be mapped; {remedy}",
                tensor.space()
            ))
            .on_device(&buffer.device.name));
        }
        if !tensor.is_contiguous() {
            return Err(Error::invalid("map needs a contiguous tensor").in_operation("map"));
        }
        let access = if write { Access::ReadWrite } else { Access::Read };
        with_host_access(&buffer.device, &buffer.hazards, (access, HOST), |hazards| {
            // Checked under the lock: the tensor may have been frozen while this waited.
            if write {
                buffer.check_writable("map_mut")?;
            }
            hazards.map(write)
        })?;
        Ok(Self { tensor: tensor.clone(), buffer })
    }

    fn raw_parts(&self) -> (*mut u8, usize) {
        let bytes = self.tensor.size_bytes();
        if bytes == 0 {
            return (std::ptr::NonNull::dangling().as_ptr(), 0);
        }
        (self.buffer.host_pointer.wrapping_add(self.tensor.byte_offset()), bytes)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // In a forked child, the lock may be held by a thread that does not exist.
        if !self.buffer.device.must_leak() {
            self.buffer.hazards.lock().unmap();
        }
    }
}

impl Tensor {
    /// Maps the memory for reading; waits for work that writes it.
    ///
    /// # Errors
    /// `Unsupported` if the memory is not host-visible; `InvalidArgument` for a tensor with gaps, or one that
    /// is already mapped for writing.
    pub fn map(&self) -> Result<HostView> {
        Mapping::new(self, false).map(HostView)
    }

    /// Maps the memory for writing; waits for work that uses it.
    ///
    /// # Errors
    /// As [`Tensor::map`]; `InvalidArgument` for a frozen or mapped tensor.
    pub fn map_mut(&self) -> Result<HostViewMut> {
        Mapping::new(self, true).map(HostViewMut)
    }
}

impl Deref for HostView {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let (pointer, bytes) = self.0.raw_parts();
        // SAFETY: the tensor is within the buffer, and the hazards exclude writers while the view exists.
        unsafe { std::slice::from_raw_parts(pointer, bytes) }
    }
}

impl Deref for HostViewMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let (pointer, bytes) = self.0.raw_parts();
        // SAFETY: the tensor is within the buffer, and the hazards exclude all other users while the view
        // exists.
        unsafe { std::slice::from_raw_parts(pointer, bytes) }
    }
}

impl DerefMut for HostViewMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        let (pointer, bytes) = self.0.raw_parts();
        // SAFETY: as above, and this view is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(pointer, bytes) }
    }
}

impl HostView {
    /// The elements.
    ///
    /// # Errors
    /// `InvalidArgument` for a wrong element type or a misaligned view.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        check_dtype::<T>(&self.0)?;
        bytemuck::try_cast_slice(self).map_err(|error| misaligned(error).in_operation("as_slice"))
    }
}

impl HostViewMut {
    /// The elements.
    ///
    /// # Errors
    /// `InvalidArgument` for a wrong element type or a misaligned view.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        check_dtype::<T>(&self.0)?;
        bytemuck::try_cast_slice_mut(self).map_err(|error| misaligned(error).in_operation("as_mut_slice"))
    }
}

fn check_dtype<T: Element>(mapping: &Mapping) -> Result<()> {
    if mapping.tensor.dtype() == T::DTYPE {
        return Ok(());
    }
    Err(Error::invalid(format!("the tensor holds {}, not {}", mapping.tensor.dtype(), T::DTYPE))
        .in_operation("as_slice"))
}

fn misaligned(error: bytemuck::PodCastError) -> Error {
    Error::invalid(format!("the view cannot be cast to elements: {error}"))
}
