//! Loaded modules and the lookup of their entry points.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::abi::{self, Handle, Str};
use crate::code::compile;
use crate::code::kernel::Kernel;
use crate::code::loading::{self, Prepared, Stages};
use crate::code::lowering::LoweringPlan;
use crate::code::portable::PortableText;
use crate::model::code_load::{CodeLoad, CodeOrigin, LoadHook};
use crate::model::kernel_info::KernelInfo;
use crate::model::lowering::LoweredKernel;
use crate::model::options::did_you_mean;
use crate::plugin::convert;
use crate::timeline::deferred_free::Resource;
use crate::timeline::open_device::OpenDevice;
use crate::{Error, ErrorKind, ModuleSource, Result};

/// Loaded code. Clones share it; it is unloaded once its last user is gone and the work that uses it has ended.
///
/// A device loads the same code once: two loads of equal sources give one module, with its variables, unless the source is
/// [`unshared`](ModuleSource::unshared).
///
/// ```
/// # use runtime_core::{ErrorKind, ModuleSource, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// // SAFETY: nothing is launched here.
/// let source = unsafe { ModuleSource::native("null", "add_f32\nscale_f32") };
/// let module = device.load(&source.option("prefix", "my_"))?;
/// assert_eq!(module.symbols()?, ["my_add_f32", "my_scale_f32"]);
/// assert_eq!(module.kernel("my_scale_f32")?.info().params.as_ref().map(Vec::len), Some(2));
///
/// let error = module.kernel("my_scale").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::NotFound);
/// assert!(error.to_string().contains("my_scale_f32")); // the error lists those that exist
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Module(Arc<ModuleInner>);

#[derive(Debug)]
struct ModuleInner {
    device: Arc<OpenDevice>,
    handle: Handle,
    /// The entry points, if the code was lowered.
    lowered: Option<Vec<Arc<LoweredKernel>>>,
    /// The portable code, if it was lowered here.
    portable: Option<Arc<PortableText>>,
    /// What the compiler reported of the kernels, by name in the native code.
    resources: Vec<(String, KernelInfo)>,
}

// SAFETY: the ABI lets any thread use a module.
unsafe impl Send for ModuleInner {}
// SAFETY: as above.
unsafe impl Sync for ModuleInner {}

impl Module {
    pub(crate) fn load(device: &Arc<OpenDevice>, source: &ModuleSource) -> Result<Self> {
        let (module, load) = Self::load_unreported(device, source)?;
        report(device, &load);
        Ok(module)
    }

    /// Loads code; the caller reports it with [`report`].
    ///
    /// # Errors
    /// As [`CommonRuntime::load`](crate::CommonRuntime::load).
    pub(crate) fn load_unreported(
        device: &Arc<OpenDevice>,
        source: &ModuleSource,
    ) -> Result<(Self, CodeLoad)> {
        device.reap();
        let started = Instant::now();
        let annotate = |error: Error| error.in_operation("load").on_device(&device.name);
        device.check().map_err(annotate)?;
        source.check_trust().map_err(annotate)?;
        let source = loading::read(device, source).map_err(annotate)?;
        let shared = source.shared_key();
        if let Some(loaded) = shared.and_then(|key| device.loaded(&key)) {
            let load = loaded_from(device, &source, CodeOrigin::Loaded, Stages::default(), started.elapsed());
            return Ok((Self(loaded), load));
        }
        let prepared = Prepared::new(device, &source).map_err(annotate)?;
        let loading = Instant::now();
        let (handle, prepared) = match load_native(device, &prepared.source) {
            Err(error) if prepared.is_refused(device, &error) => {
                let direct = Prepared::without_cache(device, &source).map_err(annotate)?;
                let loaded = load_native(device, &direct.source);
                (loaded.map_err(|error| with_own_lines(device, &source, error))?, direct)
            }
            loaded => (loaded.map_err(|error| with_own_lines(device, &source, error))?, prepared),
        };
        let Prepared { lowered, portable, resources, origin, stages, .. } = prepared;
        let load = loaded_from(device, &source, origin, stages, loading.elapsed());
        let lowered = lowered.map(|kernels| kernels.into_iter().map(Arc::new).collect());
        let module = Arc::new(ModuleInner { device: device.clone(), handle, lowered, portable, resources });
        let module = match shared {
            Some(key) => device.share_loaded(key, module, |_| true),
            None => module,
        };
        Ok((Self(module), load))
    }

    /// The portable code that it was lowered from here; `None` for code whose checks were left out.
    pub(crate) fn portable(&self) -> Option<&Arc<PortableText>> {
        self.0.portable.as_ref()
    }

    /// What the compiler reported of a kernel.
    pub(crate) fn resources(&self, symbol: &str) -> Option<&KernelInfo> {
        self.0.resources.iter().find(|(name, _)| name == symbol).map(|(_, info)| info)
    }

    /// The names of the entry points, as far as the code declares them.
    ///
    /// # Errors
    /// Any error of the device.
    pub fn symbols(&self) -> Result<Vec<String>> {
        if let Some(kernels) = &self.0.lowered {
            return Ok(kernels.iter().map(|kernel| kernel.name.clone()).collect());
        }
        let (mut list, mut count) = (std::ptr::null(), 0);
        // SAFETY: the module is loaded and the out-parameters live during the call.
        self.0.device.call("symbols", |calls, _| unsafe {
            (calls.module.symbols)(self.0.handle, &raw mut list, &raw mut count)
        })?;
        // SAFETY: the list is borrowed from the module, which is alive.
        unsafe { read_symbols(list, count) }
            .map_err(|error| error.in_operation("symbols").on_device(&self.0.device.name))
    }

    /// Finds an entry point.
    ///
    /// # Errors
    /// `NotFound`, with the entry points that exist.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let device = &self.0.device;
        let (symbol, lowered) = match &self.0.lowered {
            None => (name, None),
            Some(kernels) => match kernels.iter().find(|kernel| kernel.name == name) {
                Some(kernel) => (kernel.symbol.as_str(), Some(kernel)),
                None => return Err(self.kernel_not_found(name, kernels)),
            },
        };
        let mut handle = std::ptr::null_mut();
        // SAFETY: the module is loaded and the parameters live during the call.
        let found = device.call("kernel", |calls, _| unsafe {
            (calls.module.kernel)(self.0.handle, Str::new(symbol), &raw mut handle)
        });
        found.map_err(|error| match (error.kind(), self.symbols()) {
            (ErrorKind::NotFound, Ok(names)) => {
                let names: Vec<_> = names.iter().map(String::as_str).collect();
                error.with_note(did_you_mean(name, &names))
            }
            _ => error,
        })?;
        device.check_made("kernel", "kernel", handle)?;
        Kernel::from_handle(self, handle, name, symbol, lowered.cloned())
    }

    fn kernel_not_found(&self, name: &str, kernels: &[Arc<LoweredKernel>]) -> Error {
        let names: Vec<_> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        let message = format!("no entry point \"{name}\"; {}", did_you_mean(name, &names));
        Error::new(ErrorKind::NotFound, message).in_operation("kernel").on_device(&self.0.device.name)
    }

    pub(crate) fn device(&self) -> &Arc<OpenDevice> {
        &self.0.device
    }
}

/// The error for code that the device has not loaded, with the lines of its text if it is portable.
fn with_own_lines(device: &OpenDevice, source: &ModuleSource, error: Error) -> Error {
    match LoweringPlan::of(source, &device.instance, &device.info) {
        Ok(Some(plan)) => plan
            .with_own_lines(error, source, &device.info, |lowered| compile::compile(device, lowered, "load")),
        _ => error,
    }
}

/// Loads code that the device accepts.
fn load_native(device: &OpenDevice, source: &ModuleSource) -> Result<Handle> {
    let mut handle = std::ptr::null_mut();
    source.with_raw(|raw| {
        // SAFETY: the device is open and the structures live during the call.
        device.call("load", |calls, device| unsafe { (calls.module.load)(device, raw, &raw mut handle) })
    })?;
    device.check_made("load", "module", handle)?;
    Ok(handle)
}

fn loaded_from(
    device: &OpenDevice,
    source: &ModuleSource,
    origin: CodeOrigin,
    stages: Stages,
    load: Duration,
) -> CodeLoad {
    let Stages { read, lower, compile } = stages;
    let (device, format) = (device.name.clone(), source.format().clone());
    CodeLoad { device, format, origin, read, lower, compile, load }
}

/// Tells the program and the log about a load.
pub(crate) fn report(device: &OpenDevice, event: &CodeLoad) {
    let CodeLoad { format, origin, read, lower, compile, load, .. } = event;
    tracing::debug!(target: "runtime::load", device = %device.name, %format, %origin, ?read, ?lower, ?compile, ?load, "loaded code");
    device.instance.cache.count(event);
    if let Some(LoadHook(hook)) = &device.instance.load_hook {
        hook(event);
    }
}

/// Copies the names of entry points.
///
/// # Safety
/// `list` is null or points to `count` readable strings.
unsafe fn read_symbols(list: *const Str, count: usize) -> Result<Vec<String>> {
    // SAFETY: guaranteed by the caller.
    let names = unsafe { convert::borrow_slice("the list of symbols", list, count, abi::MAX_SYMBOLS) }?;
    let (mut read, mut bytes) = (Vec::with_capacity(names.len()), 0usize);
    for (at, &name) in names.iter().enumerate() {
        // SAFETY: guaranteed by the caller.
        let name = unsafe { convert::borrow_str(format_args!("symbols[{at}]"), name) }?;
        bytes = bytes.saturating_add(name.len());
        if bytes > abi::MAX_LOG_BYTES {
            return Err(convert::abi_mismatch(format!(
                "the names up to symbols[{at}] have {bytes} bytes in all"
            )));
        }
        read.push(name.to_owned());
    }
    Ok(read)
}

impl Drop for ModuleInner {
    fn drop(&mut self) {
        let until = if self.device.must_leak() { return } else { self.device.all_pending() };
        self.device.defer(Resource::Module(self.handle), until);
    }
}
