//! CUDA GPUs as devices, `cuda:0`, `cuda:1`, …, through the driver API.
//!
//! The driver is loaded when devices are listed or opened for the first time. Where there is none, or an old one, the
//! device list says so and what to do about it. `CUDA_VISIBLE_DEVICES` is honoured by the driver itself; a MIG instance is a
//! device with its own share of units and memory. A device is opened on its primary context, which is retained and never
//! reset, so that other libraries of the process go on with theirs.
//!
//! # Memory
//!
//! | space | what it is | how it is allocated |
//! | --- | --- | --- |
//! | `device` | the device's own | in a pool of our own, in order with a queue where one is named, of what that queue has freed if it fits |
//! | `pinned` | the host's, cached, which the device reads in place | each by a call of the driver, which is slow |
//! | `shared` | managed: it moves to whoever touches it | each by a call of the driver |
//!
//! The program's own memory is pageable: threads copy it through a ring of pinned slots while the device copies. What is
//! submitted to a queue behind such a transfer is handed to the driver when the transfer's last piece is.
//!
//! # Code
//!
//! `cubin`, `fatbin`, `ptx`, which the driver compiles, and `cuda-c`, which NVRTC compiles for the very device. NVRTC is
//! looked for by the system's loader, in `CUDA_HOME` and `CUDA_PATH`, and in `/usr/local/cuda`. Kernels are found by the
//! names in the code: declare them `extern "C"`.
//!
//! | argument | what the kernel takes |
//! | --- | --- |
//! | tensor | a pointer to its first element |
//! | scalar | the value, in its own type |
//! | by-value bytes | a structure of exactly that size; [`TensorMap`] makes one for the bulk copy engine |
//! | work-group memory | nothing: the bytes of all of them, and of `Geometry::shared_bytes`, are its `extern __shared__` array |
//!
//! Sizes of arguments are checked against the code where the driver tells them (CUDA 12.4 and newer).
//!
//! # Failure
//!
//! An illegal address, an assertion, or any other fault of a kernel ends CUDA in the whole process: every call answers
//! `DeviceLost`, with the kernels that were most likely running. Try what may fault in another process.

mod bounce;
mod builtin;
mod context;
mod convert;
mod describe;
mod device;
mod driver;
mod graph;
mod image;
mod launch;
mod marks;
mod memory;
mod module;
mod names;
mod nvrtc;
mod packed;
mod progress;
mod queue;
mod spares;
mod staging;
mod tensor_map;
mod timer;

pub use device::CudaDevice;
pub use graph::CudaGraph;
pub use memory::CudaBuffer;
pub use module::{CudaKernel, CudaModule};
pub use queue::CudaQueue;
pub use tensor_map::{Fill, Interleave, Promotion, Swizzle, TensorMap, Tiles};

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use runtime_core::backend::{Backend, Level, LinkedBackend, Log};
use runtime_core::{DeviceInfo, Error, ErrorKind, OptionSpec, Options, Result};

use context::Primary;
use driver::Driver;
use driver::abi::Ordinal;

/// The backend's state.
#[derive(Debug)]
pub struct Cuda {
    log: Log,
    /// The contexts of the open devices.
    primaries: Mutex<Vec<(Ordinal, Weak<Primary>)>>,
}

impl Cuda {
    /// The context of a device, retained once for all its openings.
    fn primary(&self, driver: &'static Driver, ordinal: Ordinal) -> Result<Arc<Primary>> {
        let mut primaries = self.primaries.lock();
        primaries.retain(|(_, primary)| primary.strong_count() > 0);
        let open = primaries.iter().find(|(known, _)| *known == ordinal);
        if let Some(primary) = open.and_then(|(_, primary)| primary.upgrade()) {
            primary.check_alive()?;
            return Ok(primary);
        }
        let primary = Arc::new(Primary::open(driver, ordinal)?);
        primaries.push((ordinal, Arc::downgrade(&primary)));
        Ok(primary)
    }
}

// SAFETY: buffers are allocations of the driver, queues are its streams, and progress is what its events say.
#[allow(unsafe_code, reason = "vouches for the backend")]
unsafe impl Backend for Cuda {
    const NAME: &'static str = "cuda";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Device = CudaDevice;

    unsafe fn open(log: Log) -> Result<Self> {
        Ok(Self { log, primaries: Mutex::default() })
    }

    fn options() -> Vec<OptionSpec> {
        device::options().into_iter().chain(module::options()).collect()
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        let devices = describe::list(Driver::load()?)?;
        if devices.is_empty() {
            let message =
                "the NVIDIA driver has no device; see `nvidia-smi`, and CUDA_VISIBLE_DEVICES if that is set";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        Ok(devices)
    }

    fn open_device(&self, index: u32, sub: Option<u32>, options: &Options) -> Result<CudaDevice> {
        let choices = device::Choices::of(options)?;
        let driver = Driver::load()?;
        let count = describe::count(driver)?;
        if index >= count || sub.is_some() {
            let message =
                format!("there are cuda:0 to cuda:{}, without sub-devices", count.saturating_sub(1));
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let primary = self.primary(driver, describe::ordinal(driver, index)?)?;
        self.log.write(Level::Debug, "cuda", &format!("opened device {index}"));
        Ok(CudaDevice::new(primary, choices))
    }
}

/// Compiles CUDA C to a cubin as loading it does, without a device: for `arch`, e.g. `sm_90`, with options of NVRTC.
///
/// # Errors
/// `Unavailable` without NVRTC; `CompileFailed` with the whole log; `InvalidArgument` for a wrong option.
pub fn compile(source: &str, arch: &str, options: &[&str]) -> Result<Vec<u8>> {
    let unit = nvrtc::Unit {
        text: source.as_bytes(),
        name: "kernel.cu",
        arch: Some(arch),
        compute: 0,
        include: Vec::new(),
        options: options.to_vec(),
    };
    let (nvrtc::Compiled::Cubin(code) | nvrtc::Compiled::Ptx(code)) = nvrtc::Nvrtc::load()?.compile(&unit)?;
    Ok(code)
}

/// This backend, to register it in a program that links it in.
#[must_use]
pub const fn backend() -> LinkedBackend {
    LinkedBackend::of::<Cuda>()
}
