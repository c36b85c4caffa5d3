//! Entry points of loaded code, and what the driver reports about them.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::sync::Arc;

use crate::abi::{self, Handle};
use crate::code::module::Module;
use crate::code::portable::PortableText;
use crate::code::raw_launch::{RawLaunch, raw_arg};
use crate::model::geometry::Occupancy;
use crate::model::kernel_info::KernelInfo;
use crate::model::lowering::LoweredKernel;
use crate::plugin::kernel_info;
use crate::timeline::deferred_free::Resource;
use crate::timeline::open_device::OpenDevice;
use crate::{Arg, Geometry, LaunchConfig, Result};

/// An entry point of a module, which it keeps loaded. Clones share it.
///
/// ```
/// # use runtime_core::{DType, Geometry, ModuleSource, Runtime};
/// # let runtime = Runtime::builder().discover(false);
/// # let runtime = runtime.register(runtime_host::backend()).with_lowering(runtime_kernel::wgsl()).build();
/// # let device = runtime.open("host")?;
/// const SQUARE: &str = "
///     @group(0) @binding(0) var<storage, read_write> x: array<f32>;
///     @compute @workgroup_size(64) fn square(@builtin(global_invocation_id) id: vec3u) {
///         x[id.x] *= x[id.x]; // accesses beyond the end do nothing
///     }";
/// let square = device.kernel(ModuleSource::wgsl(SQUARE), "square")?;
/// let [items, ..] = square.info().group_size.unwrap_or([64, 1, 1]); // WGSL fixes the group size
/// let x = device.arange(DType::F32, [100])?;
/// device.queue()?.call(&square, Geometry::cover(100, items), (&x,))?;
/// assert_eq!(x.to_vec::<f32>()?[99], 9801.0);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Kernel(Arc<KernelInner>);

/// Fields that every launch reads come first, next to each other.
#[repr(C)]
#[derive(Debug)]
struct KernelInner {
    device: Arc<OpenDevice>,
    owned: KernelHandle,
    /// Further requirements of the code, if it was lowered.
    lowered: Option<Arc<LoweredKernel>>,
    /// Neither the driver nor a lowering describes the parameters.
    signature_unknown: bool,
    info: KernelInfo,
    name: Arc<str>,
}

/// A backend kernel; keeps its module alive.
#[derive(Debug)]
struct KernelHandle {
    module: Module,
    handle: Handle,
}

// SAFETY: the ABI lets any thread use a kernel.
unsafe impl Send for KernelHandle {}
// SAFETY: as above.
unsafe impl Sync for KernelHandle {}

impl Kernel {
    /// Takes ownership of a kernel handle from the backend.
    pub(crate) fn from_handle(
        module: &Module,
        handle: Handle,
        name: &str,
        symbol: &str,
        lowered: Option<Arc<LoweredKernel>>,
    ) -> Result<Self> {
        let owned = KernelHandle { module: module.clone(), handle };
        let mut info = owned.query_info()?;
        if let Some(compiled) = module.resources(symbol) {
            info.complete(compiled);
        }
        if let Some(lowered) = &lowered {
            lowered.describe(&mut info);
        }
        let (device, signature_unknown) =
            (Arc::clone(module.device()), info.params.is_none() && lowered.is_none());
        Ok(Self(Arc::new(KernelInner { device, owned, lowered, signature_unknown, info, name: name.into() })))
    }

    /// The entry point's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The same, shared.
    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// What the driver reports about it.
    #[must_use]
    pub fn info(&self) -> &KernelInfo {
        &self.0.info
    }

    /// How much of a compute unit its groups can occupy with this geometry and `local_bytes` of dynamic work-group
    /// memory ([`Arg::local`]): the driver's estimate from registers, work-group memory and group size, not a
    /// measurement.
    ///
    /// # Errors
    /// `Unsupported` if the backend does not report it; `InvalidArgument` and `OutOfResources` for what a launch would
    /// refuse.
    pub fn occupancy(&self, geometry: &Geometry, local_bytes: u64) -> Result<Occupancy> {
        let device = self.device();
        let config = LaunchConfig::Groups(*geometry);
        self.check_config(&config)
            .and_then(|()| self.check_local(local_bytes, device))
            .map_err(|error| error.in_operation("occupancy").on_device(&device.name))?;
        let local = raw_arg(&Arg::local(local_bytes))?;
        let launch = abi::Launch {
            args: &raw const local,
            arg_count: 1,
            ..RawLaunch::without_args(self.lowered()).pointed(&config)
        };
        let struct_size = crate::end_of!(abi::Occupancy, max_sub_groups);
        let mut raw = abi::Occupancy { struct_size, ..abi::Occupancy::default() };
        device.call("occupancy", |calls, _| {
            // SAFETY: the kernel exists, `launch` and its argument live during the call, and `raw` is writable.
            unsafe { (calls.module.occupancy)(self.handle(), &raw const launch, &raw mut raw) }
        })?;
        let abi::Occupancy { groups, sub_groups, max_sub_groups, .. } = raw;
        Ok(Occupancy { groups, sub_groups, max_sub_groups })
    }

    #[inline]
    pub(crate) fn handle(&self) -> Handle {
        self.0.owned.handle
    }

    #[inline]
    pub(crate) fn device(&self) -> &Arc<OpenDevice> {
        &self.0.device
    }

    /// Whether neither the driver nor a lowering describes the parameters.
    #[inline]
    pub(crate) fn signature_unknown(&self) -> bool {
        self.0.signature_unknown
    }

    /// The portable code that it was lowered from here.
    pub(crate) fn portable(&self) -> Option<&Arc<PortableText>> {
        self.0.owned.module.portable()
    }

    /// Requirements beyond the signature, if the code was lowered.
    #[inline]
    pub(crate) fn lowered(&self) -> Option<&LoweredKernel> {
        self.0.lowered.as_deref()
    }

    /// As [`Kernel::lowered`], but only for kernels whose launches write a report.
    #[inline]
    pub(crate) fn reporting(&self) -> Option<&LoweredKernel> {
        self.lowered().filter(|lowered| lowered.reports_on.is_some())
    }
}

impl KernelHandle {
    /// Queries the driver for information about the kernel.
    fn query_info(&self) -> Result<KernelInfo> {
        let mut raw = kernel_info::unknown();
        let device = self.module.device();
        let queried = device.call("kernel_info", |calls, _| {
            // SAFETY: the kernel exists and `raw` is writable.
            unsafe { (calls.module.kernel_info)(self.handle, &raw mut raw) }
        });
        match queried {
            Err(error) if error.kind() == crate::ErrorKind::Unsupported => return Ok(KernelInfo::default()),
            other => other?,
        }
        // SAFETY: the parameters belong to the kernel, which is alive.
        unsafe { kernel_info::read("KernelInfo", &raw) }
            .map_err(|error| error.in_operation("kernel_info").on_device(&device.name))
    }
}

impl Drop for KernelHandle {
    fn drop(&mut self) {
        let device = self.module.device();
        let until = if device.must_leak() { return } else { device.all_pending() };
        device.defer(Resource::Kernel(self.handle), until);
    }
}
