//! Tensors and kernels straight from an opened device: the short forms of what most programs begin with.

#![allow(unsafe_code, reason = "the caller answers for memory of other libraries")]

use std::sync::Arc;

use crate::code::source::ModuleSource;
use crate::device::common_runtime::CommonRuntime;
use crate::device::host::Host;
use crate::tensor::dlpack::{DLManagedTensor, DLManagedTensorVersioned};
use crate::tensor::host_array::HostArray;
use crate::tensor::layout::checked_elements;
use crate::tensor::safetensors::Safetensors;
use crate::{Element, Error, Kernel, Placement, Result, Tensor};

/// An opened device, shared.
pub type Device = Arc<dyn CommonRuntime>;

/// What every opened device can do, in one call each.
///
/// ```
/// # use runtime_core::{Arg, Geometry, ModuleSource, QueueOptions, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # // SAFETY: the launch below keeps to what the kernel uses.
/// # let source = unsafe { ModuleSource::native("null", "scale_f32") };
/// let x = device.tensor([2], &[1.0f32, 2.0])?;
/// let scale = device.kernel(&source, "scale_f32")?;
/// let queue = device.open_queue(&QueueOptions::default())?;
/// queue.launch(&scale, &Geometry::single(), &[Arg::read_write(&x), Arg::scalar(3.0f32)])?;
/// assert_eq!(x.to_vec::<f32>()?, [3.0, 6.0]);
/// # Ok::<(), runtime_core::Error>(())
/// ```
impl<'d> dyn CommonRuntime + 'd {
    /// Makes a row-major tensor that holds `data`, in the device's default memory space.
    ///
    /// # Errors
    /// `InvalidArgument` for a shape with another number of elements than `data`; `OutOfMemory`.
    pub fn tensor<T: Element>(&self, shape: impl AsRef<[usize]>, data: &[T]) -> Result<Tensor> {
        let shape = shape.as_ref();
        let elements = checked_elements(shape)?;
        if elements != data.len() {
            let message = format!("shape {shape:?} has {elements} elements, data has {}", data.len());
            return Err(Error::invalid(message).in_operation("tensor"));
        }
        let tensor = self.empty::<T>(shape)?;
        tensor.write(data)?;
        Ok(tensor)
    }

    /// Makes a row-major tensor with the type, shape and elements of `array`.
    ///
    /// # Errors
    /// `OutOfMemory`; `InvalidArgument` for a memory space that does not exist.
    pub fn tensor_from_array(&self, array: &HostArray, placement: &Placement) -> Result<Tensor> {
        let tensor = self.allocate(array.dtype(), array.shape(), placement)?;
        tensor.write_array(array)?;
        Ok(tensor)
    }

    /// Allocates a row-major tensor in the device's default memory space. Its content is unspecified until it is written.
    ///
    /// # Errors
    /// `OutOfMemory`; `InvalidArgument` for a shape whose bytes cannot be counted.
    pub fn empty<T: Element>(&self, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        self.allocate(T::DTYPE, shape.as_ref(), &Placement::default())
    }

    /// Makes a row-major tensor of zeros, in the device's default memory space.
    ///
    /// # Errors
    /// As `empty`.
    pub fn zeros<T: Element>(&self, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        let tensor = self.empty::<T>(shape)?;
        tensor.fill(&[0])?;
        Ok(tensor)
    }

    /// Loads code and finds one entry point of it.
    ///
    /// # Errors
    /// As [`load`](CommonRuntime::load) and [`Module::kernel`](crate::Module::kernel).
    pub fn kernel(&self, source: &ModuleSource, name: &str) -> Result<Kernel> {
        self.load(source)?.kernel(name)
    }

    /// Loads a tensor of a file: straight into memory that the program can access, else through a small buffer.
    ///
    /// # Errors
    /// As [`Safetensors::info`]; `Io` for a file that was shortened since it was opened; `OutOfMemory`.
    pub fn load_tensor(&self, file: &Safetensors, name: &str, placement: &Placement) -> Result<Tensor> {
        self.load_through(&mut Vec::new(), file, name, placement)
    }

    /// Loads all tensors of a file, in its order.
    ///
    /// # Errors
    /// As `load_tensor`.
    pub fn load_tensors(&self, file: &Safetensors, placement: &Placement) -> Result<Vec<(String, Tensor)>> {
        let mut piece = Vec::new();
        let load = |name: String| {
            let tensor = self.load_through(&mut piece, file, &name, placement)?;
            Ok((name, tensor))
        };
        file.names().into_iter().map(load).collect()
    }

    fn load_through(
        &self,
        piece: &mut Vec<u8>,
        file: &Safetensors,
        name: &str,
        placement: &Placement,
    ) -> Result<Tensor> {
        file.load_with(name, piece, |dtype, shape| self.allocate(dtype, shape, placement))
    }

    /// Takes over a tensor of another library, without a copy.
    ///
    /// The deleter is called exactly once, on any thread, when neither the tensor, nor a view, nor work in flight uses
    /// the memory any more. **On an error the caller keeps `managed`** and calls the deleter, if it is not needed any
    /// more; nothing was called or kept. A tensor that may only be read ([`FLAG_READ_ONLY`](crate::tensor::dlpack::FLAG_READ_ONLY))
    /// is frozen from the beginning.
    ///
    /// ```
    /// # use runtime_core::Runtime;
    /// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let device = runtime.open("null:0")?;
    /// let ours = device.tensor([2, 2], &[1i32, 2, 3, 4])?;
    /// let managed = ours.permute(&[1, 0])?.to_dlpack()?.into_raw(); // for another library; here it comes back
    /// // SAFETY: the structure is ours and valid, and nobody else uses the memory.
    /// let theirs = unsafe { device.import_dlpack(managed) }?;
    /// assert_eq!(theirs.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    ///
    /// # Safety
    /// `managed` is null, or a managed tensor that its producer made and nobody has consumed, as `dlpack.h` describes
    /// it. Its memory holds every element that shape, strides and offset reach, lives until the deleter is called, and is
    /// memory of the very driver and device that this device is. Until then nobody else writes it, nor reads it while this
    /// tensor writes; the work of the producer on it has ended. The deleter may be called on any thread.
    ///
    /// # Errors
    /// `InvalidArgument`, which names the field, for what cannot be; `Unsupported` for another major version, a type that
    /// is no whole number of bytes, or a device that cannot wrap foreign memory.
    pub unsafe fn import_dlpack(&self, managed: *mut DLManagedTensorVersioned) -> Result<Tensor> {
        // SAFETY: the caller's promise.
        unsafe { Tensor::import_dlpack(self.opened().0, managed) }
    }

    /// Takes over a tensor that a library made before DLPack 1.0, where nothing says whether it may be written.
    ///
    /// # Safety
    /// As `import_dlpack`; and the memory may be written, unless the tensor is only read.
    ///
    /// # Errors
    /// As `import_dlpack`.
    pub unsafe fn import_dlpack_unversioned(&self, managed: *mut DLManagedTensor) -> Result<Tensor> {
        // SAFETY: the caller's promise.
        unsafe { Tensor::import_dlpack_unversioned(self.opened().0, managed) }
    }
}

impl Tensor {
    /// Copies to another device, or another memory space of the same one.
    ///
    /// # Errors
    /// `OutOfMemory`; the failure of the work that wrote the tensor.
    pub fn to_device(&self, device: &dyn CommonRuntime, placement: &Placement) -> Result<Self> {
        device.tensor_from_array(&self.to_array()?, placement)
    }
}

impl Host {
    /// Maps a tensor of a file into the host's memory, frozen: nothing is read before it is used.
    ///
    /// The file stays mapped until the tensor, its views and the work on them are gone.
    ///
    /// # Safety
    /// Until then nobody writes or shortens the file.
    ///
    /// # Errors
    /// As [`Safetensors::info`]; `InvalidArgument` for a tensor that is not aligned in the file, which
    /// [`load_tensor`](trait.CommonRuntime.html#method.load_tensor) takes; `Io`.
    pub unsafe fn map(&self, file: &Safetensors, name: &str) -> Result<Tensor> {
        // SAFETY: the caller's promise.
        unsafe { file.map(name, &self.0) }
    }
}
