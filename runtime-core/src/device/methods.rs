//! Methods of every opened device: tensors, kernels and benchmarks in one call.

#![allow(unsafe_code, reason = "the caller is responsible for memory of other libraries")]

use std::sync::Arc;

use crate::code::argument_tuples::Arguments;
use crate::code::source::AsSource;
use crate::device::common_runtime::CommonRuntime;
use crate::device::host::Host;
use crate::evaluate::{Benchmark, Evaluation, Measurement, TimedWork, Validation, time_work, validate};
use crate::model::counted::counted;
use crate::queue::device_copy;
use crate::tensor::dlpack::{DLManagedTensor, DLManagedTensorVersioned};
use crate::tensor::host_array::HostArray;
use crate::tensor::layout::checked_elements;
use crate::tensor::safetensors::Safetensors;
use crate::{Element, Error, Kernel, LaunchConfig, Placement, Queue, QueueOptions, Result, Tensor};

/// An opened device, shared: what [`Runtime::open`](crate::Runtime::open) returns.
///
/// Its methods are those of [`dyn CommonRuntime`](CommonRuntime#implementations):
///
/// | for | methods |
/// | --- | --- |
/// | tensors | `tensor`, `tensor_from_array`, `zeros`, `empty`, `allocate`, `load_tensor`; with a type that is chosen at run time `empty_of`, `full`, `arange`, `random` |
/// | code | `kernel`, `load`, `compile` |
/// | work | `queue`, `open_queue`, `default_queue` |
/// | timing | `bench`, `evaluate` |
/// | what it is | `info`, `device_name`, `memory_usage`, `telemetry`, `as_host`, `as_accelerator`, `as_embedded` |
/// | other libraries | `import_dlpack`, `native`, `queue_from_native` |
///
/// ```
/// # use runtime_core::Runtime;
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// use runtime_core::Device;
///
/// fn ones(device: &Device, n: usize) -> runtime_core::Result<runtime_core::Tensor> {
///     device.tensor([n], &vec![1.0f32; n])
/// }
/// assert_eq!(ones(&runtime.open("null")?, 3)?.to_vec::<f32>()?, [1.0; 3]);
/// # Ok::<(), runtime_core::Error>(())
/// ```
pub type Device = Arc<dyn CommonRuntime>;

/// Methods of every opened device, for the common cases.
///
/// ```
/// # use runtime_core::{ModuleSource, Runtime, read_write};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # // SAFETY: the launch below matches what the kernel accesses.
/// # let source = unsafe { ModuleSource::native("null", "scale_f32") };
/// let x = device.tensor([2], &[1.0f32, 2.0])?;
/// let scale = device.kernel(&source, "scale_f32")?;
/// let queue = device.queue()?;
/// queue.launch(&scale, (1, 1), (read_write(&x), 3.0f32))?;
/// assert_eq!(x.to_vec::<f32>()?, [3.0, 6.0]);
/// # Ok::<(), runtime_core::Error>(())
/// ```
impl<'d> dyn CommonRuntime + 'd {
    /// Creates a row-major tensor that holds `data`, in the device's default memory space.
    ///
    /// # Errors
    /// `InvalidArgument` unless `shape` has as many elements as `data`; `OutOfMemory`.
    pub fn tensor<T: Element>(&self, shape: impl AsRef<[usize]>, data: &[T]) -> Result<Tensor> {
        let shape = shape.as_ref();
        let elements = checked_elements(shape)?;
        if elements != data.len() {
            let message =
                format!("shape {shape:?} has {}, data has {}", counted(elements, "element"), data.len());
            return Err(Error::invalid(message).in_operation("tensor"));
        }
        let tensor = self.empty::<T>(shape)?;
        tensor.write(data)?;
        Ok(tensor)
    }

    /// Creates a row-major tensor with the type, shape and elements of `array`.
    ///
    /// # Errors
    /// `OutOfMemory`; `InvalidArgument` for an unknown memory space.
    pub fn tensor_from_array(&self, array: &HostArray, placement: &Placement) -> Result<Tensor> {
        let tensor = self.allocate(array.dtype(), array.shape(), placement)?;
        tensor.write_array(array)?;
        Ok(tensor)
    }

    /// Allocates a row-major tensor in the device's default memory space. Its content is unspecified until
    /// written.
    ///
    /// # Errors
    /// `OutOfMemory`; `InvalidArgument` for a shape whose size in bytes overflows.
    pub fn empty<T: Element>(&self, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        self.allocate(T::DTYPE, shape.as_ref(), &Placement::default())
    }

    /// Creates a row-major tensor of zeros, in the device's default memory space.
    ///
    /// # Errors
    /// As `empty`.
    pub fn zeros<T: Element>(&self, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        let tensor = self.empty::<T>(shape)?;
        tensor.fill(&[0])?;
        Ok(tensor)
    }

    /// Opens a queue with the default options.
    ///
    /// # Errors
    /// As [`open_queue`](CommonRuntime::open_queue).
    pub fn queue(&self) -> Result<Queue> {
        self.open_queue(&QueueOptions::default())
    }

    /// The default queue of the device, which all its users share: that of [`Dispatcher`](crate::dispatch::Dispatcher). One that has
    /// failed is replaced.
    ///
    /// # Errors
    /// As [`open_queue`](CommonRuntime::open_queue).
    pub fn default_queue(&self) -> Result<Arc<Queue>> {
        Queue::default_of(self.opened().0)
    }

    /// Loads code and returns one of its entry points.
    ///
    /// # Errors
    /// As [`load`](CommonRuntime::load) and [`Module::kernel`](crate::Module::kernel).
    #[allow(
        clippy::needless_pass_by_value,
        reason = "a source that nobody needs any more is passed by value"
    )]
    pub fn kernel(&self, source: impl AsSource, name: &str) -> Result<Kernel> {
        self.load(source.as_source())?.kernel(name)
    }

    /// Measures a kernel, step by step: what to expect, how many samples, and so on.
    ///
    /// ```
    /// # use runtime_core::{ModuleSource, Runtime, read, write};
    /// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let device = runtime.open("null")?;
    /// # let source = unsafe { ModuleSource::native("null", "add_f32") };
    /// # let add = device.kernel(&source, "add_f32")?;
    /// let x = device.tensor([3], &[1f32, 2.0, 3.0])?;
    /// let y = device.zeros::<f32>([3])?;
    /// let measurement = device
    ///     .bench(&add, (1, 1), (read(&x), read(&x), write(&y))) // y = x + x
    ///     .expect(2, &[2f32, 4.0, 6.0])
    ///     .samples(7)
    /// #   .sample_time(std::time::Duration::from_millis(1))
    ///     .run()?;
    /// println!("{} ns by {}", measurement.statistics.median_ns, measurement.clock);
    /// assert!(measurement.validation.is_passed());
    /// assert_eq!(measurement.samples_ns.len(), 7);
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    pub fn bench<'a>(
        &self,
        kernel: &'a Kernel,
        config: impl Into<LaunchConfig>,
        args: impl Arguments<'a>,
    ) -> Benchmark<'a> {
        let config = config.into();
        let evaluation = args.with(Some(kernel), |args| {
            let args = args.iter().map(|&arg| arg.into()).collect();
            Ok(Evaluation::new(kernel, config, args))
        });
        Benchmark::new(self.opened().0.clone(), evaluation)
    }

    /// Times work of several launches: warms up, calibrates, samples. See [`TimedWork`].
    ///
    /// # Errors
    /// `InvalidArgument` for inconsistent settings; `Unsupported` for a clock that the device lacks, or that times single kernels
    /// only; any error of the work.
    pub async fn time_work(&self, work: &mut TimedWork<'_>) -> Result<Measurement> {
        time_work(self.opened().0, work).await
    }

    /// Runs a kernel once and compares its outputs, without timing it.
    ///
    /// Outputs are poisoned first, so that an element that the kernel does not write counts as wrong. The tensors
    /// hold the results afterwards. Without a reference, or with [`Evaluation::validate`] off, the kernel runs
    /// and the result is [`Validation::Skipped`]. Ignores timing, cost and
    /// [`DataLocation`](crate::evaluate::DataLocation)s.
    ///
    /// ```
    /// # use runtime_core::{ModuleSource, Runtime};
    /// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let device = runtime.open("null")?;
    /// # let source = unsafe { ModuleSource::native("null", "scale_f32") };
    /// # let scale = device.kernel(&source, "scale_f32")?;
    /// use runtime_core::evaluate::Evaluation;
    /// use runtime_core::{Arg, Geometry, HostArray};
    ///
    /// let x = device.tensor([2], &[1f32, 2.0])?;
    /// let args = vec![Arg::read_write(&x).into(), Arg::scalar(3f32).into()];
    /// let mut evaluation = Evaluation::new(&scale, Geometry::single(), args);
    /// evaluation.reference = vec![(0, HostArray::from_slice(&[2], &[3f32, 6.0])?)];
    /// assert!(device.validate(&mut evaluation)?.is_passed());
    /// assert_eq!(x.to_vec::<f32>()?, [3.0, 6.0]);
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for a reference that fits no written argument; any error of a launch or transfer. A
    /// wrong result is not an error.
    pub fn validate(&self, evaluation: &mut Evaluation<'_>) -> Result<Validation> {
        validate(self.opened().0, evaluation)
    }

    /// Loads a tensor from a file: directly into host-visible memory, otherwise through a small staging buffer.
    ///
    /// # Errors
    /// As [`Safetensors::info`]; `Io` if the file was truncated after it was opened; `OutOfMemory`.
    pub fn load_tensor(&self, file: &Safetensors, name: &str, placement: &Placement) -> Result<Tensor> {
        self.load_through(&mut Vec::new(), file, name, placement)
    }

    /// Loads all tensors of a file, in file order.
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
        let load = file.load_with(name, piece, |dtype, shape| self.allocate(dtype, shape, placement));
        load.map_err(|error| error.in_operation("load_tensor"))
    }

    /// Imports a tensor of another library, without a copy.
    ///
    /// The deleter is called exactly once, on any thread, after the tensor, its views and all work on them are
    /// gone. **On error the caller keeps ownership of `managed`**, and calls the deleter when done with it;
    /// nothing has been called or retained. A read-only tensor
    /// ([`FLAG_READ_ONLY`](crate::tensor::dlpack::FLAG_READ_ONLY)) is imported frozen.
    ///
    /// ```
    /// # use runtime_core::Runtime;
    /// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let device = runtime.open("null:0")?;
    /// let ours = device.tensor([2, 2], &[1i32, 2, 3, 4])?;
    /// let managed = ours.permute(&[1, 0])?.to_dlpack()?.into_raw(); // for another library; here we import it again
    /// // SAFETY: the structure is ours and valid, and nothing else uses the memory.
    /// let theirs = unsafe { device.import_dlpack(managed) }?;
    /// assert_eq!(theirs.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    ///
    /// # Safety
    /// `managed` is null, or a valid managed tensor as `dlpack.h` describes it, which has not been consumed.
    /// Its memory covers every element addressed by shape, strides and offset, lives until the deleter is
    /// called, and belongs to the same driver and device as this device. The producer's work on it has ended.
    /// Until the deleter is called, nothing else writes it, or reads it while this tensor is written. The
    /// deleter may be called on any thread.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the field, for an invalid structure; `Unsupported` for another major version,
    /// a type whose size is not a whole number of bytes, or a device that cannot import memory.
    pub unsafe fn import_dlpack(&self, managed: *mut DLManagedTensorVersioned) -> Result<Tensor> {
        // SAFETY: guaranteed by the caller.
        unsafe { Tensor::import_dlpack(self.opened().0, managed) }
    }

    /// Imports a tensor in the format before DLPack 1.0, which has no read-only flag.
    ///
    /// # Safety
    /// As for `import_dlpack`; in addition, the memory is writable, or the tensor is only read.
    ///
    /// # Errors
    /// As for `import_dlpack`.
    pub unsafe fn import_dlpack_unversioned(&self, managed: *mut DLManagedTensor) -> Result<Tensor> {
        // SAFETY: guaranteed by the caller.
        unsafe { Tensor::import_dlpack_unversioned(self.opened().0, managed) }
    }
}

impl Tensor {
    /// Copies to another device, or to another memory space of the same device, into a contiguous tensor. Waits for
    /// the work that wrote the tensor, and for the copy.
    ///
    /// Devices of one backend copy directly, and gather a view with gaps first if they can; transfers to and from
    /// host memory need no further copy. Anything else, such as a copy between two backends, is staged through
    /// host memory.
    ///
    /// # Errors
    /// `OutOfMemory`; the failure of the work that wrote the tensor, or of the copy.
    pub fn to_device(&self, device: &dyn CommonRuntime, placement: &Placement) -> Result<Self> {
        let copied = self.buffer("to_device").and_then(|source| source.wait_for_writer()).and_then(|()| {
            let copy = device.allocate(self.dtype(), self.shape(), placement)?;
            device_copy::copy_blocking(&copy, self)?;
            Ok(copy)
        });
        copied.map_err(|error| error.in_operation("to_device"))
    }
}

impl Host {
    /// Memory-maps a tensor of a file as a frozen host tensor. Pages are read on first use.
    ///
    /// The file stays mapped until the tensor, its views and all work on them are gone.
    ///
    /// # Safety
    /// Until then nothing writes or truncates the file.
    ///
    /// # Errors
    /// As [`Safetensors::info`]; `InvalidArgument` for a tensor that is misaligned in the file (use
    /// [`load_tensor`](trait.CommonRuntime.html#method.load_tensor) for it); `Io`.
    pub unsafe fn map(&self, file: &Safetensors, name: &str) -> Result<Tensor> {
        // SAFETY: guaranteed by the caller.
        unsafe { file.map(name, &self.0) }.map_err(|error| error.in_operation("map"))
    }
}
