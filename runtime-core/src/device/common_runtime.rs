//! The trait that every opened device implements.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::code::{compile, loading};
use crate::evaluate::{self, Evaluation, Measurement};
use crate::model::compiled::{Compiled, Fit};
use crate::model::device_info::{MemoryUsage, Telemetry};
use crate::model::placement::Placement;
use crate::model::throttle_reasons::ThrottleReasons;
use crate::timeline::open_device::OpenDevice;
use crate::{
    AcceleratorDevice, DType, DeviceId, DeviceInfo, EmbeddedDevice, Host, Module, ModuleSource, Queue,
    QueueOptions, Result, Tensor, abi,
};

pub(crate) mod sealed {
    use std::sync::Arc;

    use crate::timeline::open_device::OpenDevice;

    /// Implemented by core's devices only.
    pub trait Opened {
        /// The shared part of an opened device.
        fn opened(&self) -> Shared<'_>;
    }

    /// A device's shared part, for core alone.
    #[derive(Debug)]
    pub struct Shared<'a>(pub(crate) &'a Arc<OpenDevice>);
}

/// An opened device: identity, description, memory, code, queues, and timed evaluation.
///
/// Returned by [`Runtime::open`](crate::Runtime::open); one of [`Host`], [`AcceleratorDevice`] and
/// [`EmbeddedDevice`]. Everything created from it keeps it open. All methods may be called from any thread. Shorthands such as
/// `tensor`, `kernel` and `bench` are methods of `dyn CommonRuntime`, which [`Device`](crate::Device) lists.
///
/// ```
/// # use runtime_core::{CommonRuntime, Result, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// /// Bytes that are left in the default memory space.
/// fn free_bytes(device: &dyn CommonRuntime) -> Result<u64> {
///     let space = &device.info().spaces[0];
///     Ok(device.memory_usage(&space.name)?.free_bytes)
/// }
/// let device = runtime.open("null")?;
/// let before = free_bytes(&*device)?;
/// let tensor = device.zeros::<f32>([1024])?;
/// assert_eq!(before - free_bytes(&*device)?, 4096);
/// # drop(tensor);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[async_trait]
pub trait CommonRuntime: sealed::Opened + fmt::Debug + Send + Sync {
    /// Name of the target: the first part of the device string, e.g. `cuda`.
    fn target_name(&self) -> &str {
        &self.opened().0.info.id.target
    }

    /// Human-readable name, e.g. `NVIDIA H200`.
    fn device_name(&self) -> &str {
        &self.opened().0.info.name
    }

    /// Architecture, e.g. `sm_90`, `x86-64-v4`, if known.
    fn device_arch(&self) -> Option<&str> {
        self.opened().0.info.arch.as_deref()
    }

    /// Target, index and sub-device; its `Display` is the device string.
    fn device_id(&self) -> &DeviceId {
        &self.opened().0.info.id
    }

    /// The full description, including the limits that launches are checked against.
    fn info(&self) -> &DeviceInfo {
        &self.opened().0.info
    }

    /// The sub-devices of this device.
    ///
    /// # Errors
    /// Any error of the driver.
    fn sub_devices(&self) -> Result<Vec<DeviceInfo>> {
        let id = self.device_id();
        let own = |info: &DeviceInfo| info.id.index == id.index && info.id.sub.is_some() && id.sub.is_none();
        Ok(self.opened().0.instance.devices()?.into_iter().filter(own).collect())
    }

    /// The other devices of the same backend, without sub-devices.
    ///
    /// # Errors
    /// Any error of the driver.
    fn sibling_devices(&self) -> Result<Vec<DeviceInfo>> {
        let id = self.device_id();
        let other = |info: &DeviceInfo| info.id.index != id.index && info.id.sub.is_none();
        Ok(self.opened().0.instance.devices()?.into_iter().filter(other).collect())
    }

    /// Free and total bytes of a memory space.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown space; `Unsupported` if the driver does not report it.
    fn memory_usage(&self, space: &str) -> Result<MemoryUsage> {
        memory_usage(self.opened().0, space)
    }

    /// Current clocks, temperature and energy.
    ///
    /// # Errors
    /// `Unsupported` if the driver does not report them.
    fn telemetry(&self) -> Result<Telemetry> {
        telemetry(self.opened().0)
    }

    /// Why the device runs slower than it could, now or at any time since the last call.
    ///
    /// # Errors
    /// `Unsupported` if the driver does not report it.
    fn throttle_reasons(&self) -> Result<ThrottleReasons> {
        self.opened().0.throttle_reasons()
    }

    /// The IDs of other processes that use the device, at most 256; 0 for a process of another PID namespace.
    ///
    /// # Errors
    /// `Unsupported` if the driver does not report them.
    fn processes(&self) -> Result<Vec<u32>> {
        processes(self.opened().0)
    }

    /// Allocates a row-major tensor. Its content is unspecified until it is written: reading it is allowed, and
    /// returns arbitrary bytes. On an embedded device the tensor is only described, to be filled from seed 0.
    ///
    /// # Errors
    /// `OutOfMemory`; `InvalidArgument` for an invalid shape, space or alignment.
    fn allocate(&self, dtype: DType, shape: &[usize], placement: &Placement) -> Result<Tensor> {
        let device = self.opened().0;
        let allocated = Tensor::allocate(device, dtype, shape, placement);
        allocated.map_err(|error| error.in_operation("allocate").on_device(&device.name))
    }

    /// Loads code.
    ///
    /// # Errors
    /// `CompileFailed`, with the complete log; `Unsupported` for a format that the device does not accept, with
    /// the accepted ones; `InvalidArgument` for an unknown or invalid load option.
    fn load(&self, source: &ModuleSource) -> Result<Module> {
        Module::load(self.opened().0, source)
    }

    /// Compiles code to native code for this device, without loading it. Portable code is lowered first. The code cache is used as
    /// by [`load`](Self::load).
    ///
    /// # Errors
    /// `CompileFailed`, with the complete log; `Unsupported` for native code, and if the backend does not give out compiled
    /// code; `InvalidArgument` for an unknown or invalid load option.
    fn compile(&self, source: &ModuleSource) -> Result<Compiled> {
        let device = self.opened().0;
        let compiled = loading::compile_through_cache(device, source);
        compiled.map_err(|error| error.in_operation("compile").on_device(&device.name))
    }

    /// How native code fits this device and its driver, for code that was compiled elsewhere or earlier.
    ///
    /// # Errors
    /// `Unsupported` if the backend cannot say.
    fn fits(&self, code: &ModuleSource) -> Result<Fit> {
        compile::fits(self.opened().0, code)
    }

    /// Opens a queue.
    ///
    /// # Errors
    /// `OutOfResources`; `Unsupported` on an embedded device.
    fn open_queue(&self, options: &QueueOptions) -> Result<Queue> {
        Queue::open(self.opened().0, options)
    }

    /// Measures a kernel: validates, warms up, calibrates, samples. See [`Evaluation`].
    ///
    /// Windows timed by the host clock block the thread, so that executor overhead is not measured.
    ///
    /// # Errors
    /// Any error of the launches. A wrong result is not an error but part of the measurement.
    async fn evaluate(&self, evaluation: &mut Evaluation<'_>) -> Result<Measurement> {
        evaluate::evaluate(self.opened().0, evaluation).await
    }

    /// This device as [`Host`], if it is one.
    fn as_host(&self) -> Option<&Host> {
        None
    }

    /// This device as [`AcceleratorDevice`], if it is one.
    fn as_accelerator(&self) -> Option<&AcceleratorDevice> {
        None
    }

    /// This device as [`EmbeddedDevice`], if it is one.
    fn as_embedded(&self) -> Option<&EmbeddedDevice> {
        None
    }
}

#[allow(unsafe_code, reason = "calls a function of a backend's table")]
fn memory_usage(device: &Arc<OpenDevice>, space: &str) -> Result<MemoryUsage> {
    let index = device.info.space_index(space).map_err(|error| error.in_operation("memory_usage"))?;
    let mut raw =
        abi::MemoryUsage { struct_size: crate::end_of!(abi::MemoryUsage, total_bytes), ..Default::default() };
    let index = u32::try_from(index).unwrap_or(u32::MAX);
    // SAFETY: the device is open and the out-structure lives during the call.
    device.call("memory_usage", |calls, device| unsafe {
        (calls.device.memory_usage)(device, index, &raw mut raw)
    })?;
    Ok(MemoryUsage { free_bytes: raw.free_bytes, total_bytes: raw.total_bytes })
}

#[allow(unsafe_code, reason = "calls a function of a backend's table")]
fn telemetry(device: &Arc<OpenDevice>) -> Result<Telemetry> {
    let mut raw = abi::Telemetry {
        struct_size: crate::end_of!(abi::Telemetry, energy_microjoules),
        ..Default::default()
    };
    // SAFETY: the device is open and the out-structure lives during the call.
    device.call("telemetry", |calls, device| unsafe { (calls.device.telemetry)(device, &raw mut raw) })?;
    let valid = |bit: u32| raw.valid & bit != 0;
    Ok(Telemetry {
        clock_hz: valid(abi::TELEMETRY_CLOCK).then_some(raw.clock_hz),
        memory_clock_hz: valid(abi::TELEMETRY_MEMORY_CLOCK).then_some(raw.memory_clock_hz),
        temperature_millicelsius: valid(abi::TELEMETRY_TEMPERATURE).then_some(raw.temperature_millicelsius),
        power_milliwatts: valid(abi::TELEMETRY_POWER).then_some(raw.power_milliwatts),
        energy_microjoules: valid(abi::TELEMETRY_ENERGY).then_some(raw.energy_microjoules),
    })
}

#[allow(unsafe_code, reason = "calls a function of a backend's table")]
fn processes(device: &Arc<OpenDevice>) -> Result<Vec<u32>> {
    const CAPACITY: u32 = 256;
    let mut ids = vec![0; CAPACITY as usize];
    let mut count = 0;
    // SAFETY: the device is open, and the outputs live during the call; there is room for `CAPACITY` IDs.
    device.call("processes", |calls, device| unsafe {
        (calls.device.processes)(device, ids.as_mut_ptr(), CAPACITY, &raw mut count)
    })?;
    ids.truncate(count as usize);
    Ok(ids)
}
