//! CUDA GPUs as devices, `cuda:0`, `cuda:1`, …, through the driver API.
//!
//! The driver is loaded when devices are first listed or opened. A missing or outdated driver is reported as unavailable, with
//! the remedy. The driver itself honours `CUDA_VISIBLE_DEVICES`; a MIG instance is a device with its own
//! multiprocessors and memory. A device uses its primary context, which is retained and never reset, so that other
//! libraries in the process can share it.
//!
//! # Memory
//!
//! | space | memory | allocation |
//! | --- | --- | --- |
//! | `device` | device memory | from a private pool; with a queue, in order with its work and from its free list where the size matches |
//! | `pinned` | cached host memory that the device accesses in place | one driver call each, which is slow |
//! | `shared` | managed memory, which migrates on access | one driver call each |
//!
//! Other host memory is pageable: threads copy it through pinned slots while the device copies between the slots and its own
//! memory. Later submissions to the queue are deferred until the whole transfer is enqueued.
//!
//! # Code
//!
//! The formats are `cubin`, `fatbin`, `ptx` (compiled by the driver) and `cuda-c` (compiled by NVRTC for the exact
//! device). NVRTC is searched for in the dynamic loader's paths, then in `CUDA_HOME`, `CUDA_PATH` and
//! `/usr/local/cuda`. Kernels are looked up by their symbol names: declare them `extern "C"`.
//!
//! | argument | kernel parameter |
//! | --- | --- |
//! | tensor | a pointer to its first element |
//! | scalar | the value, in its own type |
//! | by-value bytes | a structure of exactly that size; [`TensorMap`] is one, for the Tensor Memory Accelerator |
//! | work-group memory | none: the bytes of all such arguments form its `extern __shared__` array |
//!
//! Argument sizes are checked against the code where the driver reports them (CUDA 12.4 and newer).
//!
//! CUDA C and PTX are compiled to a cubin without loading it (`compile`): for an open device, or CUDA C for an architecture by name
//! (`cuda:sm_90`; with `a` for one architecture's own features, `f` for its family's, `compute_80` for PTX), for which only NVRTC
//! is needed. PTX is assembled for an architecture by nvJitLink or, without it, by `ptxas`, which are searched for like NVRTC and
//! beside it; on a device, its driver compiles PTX. The option `registers` limits the registers of each work-item, and `optimization`
//! is the level for PTX. Registers and spills of a kernel are those that the assembler reports; a cubin from elsewhere with private memory has spills that are unknown.
//!
//! # Telemetry
//!
//! Clocks of the multiprocessors and of the memory, temperature, power, and energy since the driver was loaded, from
//! NVML (`libnvidia-ml.so.1`), which the first call initialises. Without NVML, only telemetry, throttle
//! reasons and the list of processes are unavailable. A MIG instance has none: NVML reports most values for the whole GPU
//! only.
//!
//! NVML also gives the reasons for throttling at the moment of the call, and the other processes that compute or draw on
//! the GPU. In a container it may list the processes of the whole machine, whose IDs are then unknown (0).
//!
//! # Counters
//!
//! Those of CUPTI 12.6 and newer (`libcupti.so`), which is searched for like NVRTC when counters are first asked for, and
//! never newer than the driver. Outside a list and a set its profiler is off.
//!
//! # Failure
//!
//! An illegal address, a failed assertion or any other kernel fault disables CUDA in the whole process: every later
//! call returns `DeviceLost` and names the kernels that were most likely running. Run kernels that may fault in a
//! separate process.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod bind;
mod builtin;
mod compile;
mod completion_events;
mod context;
mod convert;
mod counter_state;
mod counters;
mod describe;
mod device;
mod device_state;
mod driver;
mod formats;
mod free_list;
mod graph;
mod interner;
mod launch;
mod launch_log;
mod memory;
mod memory_pool;
mod module;
mod nvml;
mod param_buffer;
mod param_info;
mod pinned_blocks;
mod progress;
mod queue;
mod staging;
mod tensor_map;
mod timer;
mod toolkit;

pub use device::CudaDevice;
pub use graph::CudaGraph;
pub use memory::CudaBuffer;
pub use module::{CudaKernel, CudaModule};
pub use queue::CudaQueue;
pub use tensor_map::{Interleave, L2Promotion, OobFill, Swizzle, TensorMap, TiledLayout};

use runtime_core::backend::{Backend, Level, LinkedBackend, Log, OpenDevices, OptionSpec, Source};
use runtime_core::code::CompiledCode;
use runtime_core::{DeviceInfo, Error, ErrorKind, Options, Result};

use compile::offline_device;
use device_state::DeviceState;
use driver::Driver;
use driver::abi::Ordinal;

/// The state of the backend.
#[derive(Debug)]
pub struct Cuda {
    log: Log,
    open: OpenDevices<Ordinal, DeviceState>,
}

// SAFETY: buffers are driver allocations, queues are streams, and progress is reported from their events.
#[allow(unsafe_code, reason = "vouches for the backend")]
unsafe impl Backend for Cuda {
    const NAME: &'static str = "cuda";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Device = CudaDevice;

    unsafe fn open(log: Log) -> Result<Self> {
        Ok(Self { log, open: OpenDevices::default() })
    }

    fn options() -> Vec<OptionSpec> {
        device::options().into_iter().chain(module::options()).collect()
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        let devices = describe::list(Driver::load()?)?;
        if devices.is_empty() {
            let message = "the NVIDIA driver reports no device; check `nvidia-smi`, and CUDA_VISIBLE_DEVICES if it is set";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        Ok(devices)
    }

    fn open_device(&self, index: u32, sub: Option<u32>, options: &Options) -> Result<CudaDevice> {
        let options = device::DeviceOptions::parse(options)?;
        let driver = Driver::load()?;
        let count = describe::count(driver)?;
        if index >= count || sub.is_some() {
            let message = format!(
                "no such device; valid: cuda:0 to cuda:{}, without sub-devices",
                count.saturating_sub(1)
            );
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let ordinal = describe::ordinal(driver, index)?;
        let is_usable = |open: &DeviceState| open.primary.check_alive().map(|()| true);
        let shared = self.open.get_or_open(ordinal, is_usable, || DeviceState::open(driver, ordinal))?;
        self.log.write(Level::Debug, "cuda", &format!("opened device {index}"));
        Ok(CudaDevice::new(shared, options))
    }

    fn architecture(&self, architecture: &str) -> Result<DeviceInfo> {
        Ok(offline_device::describe(offline_device::find(architecture)?, architecture))
    }

    fn compile_for(&self, architecture: &str, source: &Source<'_>) -> Result<CompiledCode> {
        compile::for_architecture(architecture, source)
    }
}

/// This backend, for programs that link it in and register it.
#[must_use]
pub const fn backend() -> LinkedBackend {
    LinkedBackend::of::<Cuda>()
}
