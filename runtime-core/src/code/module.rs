//! Code: formats, sources, loaded modules and their kernels.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::abi::{self, Handle, Str};
use crate::code::kernel::Kernel;
use crate::code::lowering::{self, LoweredKernel};
use crate::device::Device;
use crate::model::options::suggest;
use crate::queue::deferred_free::Remains;
use crate::{DType, Error, ErrorKind, OptionScope, Options, Result, Value};

/// What the bytes of a module are. An open set: backends may name formats of their own.
///
/// | taken by | formats |
/// | --- | --- |
/// | the host | `c`, `object`, `archive`, `shared-object` |
/// | CUDA | `cuda-c`, `ptx`, `cubin`, `fatbin` |
/// | OpenCL | `opencl-c`, `opencl-binary`, `spirv-kernel` |
/// | Vulkan | `spirv-shader` |
/// | embedded devices | `elf` |
/// | all, lowered to one of the above | `wgsl` |
///
/// What a device really takes, and likes best, is in [`DeviceInfo::formats`](crate::DeviceInfo::formats).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CodeFormat(Cow<'static, str>);

#[expect(missing_docs, reason = "the names say it all")]
impl CodeFormat {
    pub const SHARED_OBJECT: Self = Self::named("shared-object");
    pub const ARCHIVE: Self = Self::named("archive");
    pub const OBJECT: Self = Self::named("object");
    pub const C: Self = Self::named("c");
    pub const PTX: Self = Self::named("ptx");
    pub const CUBIN: Self = Self::named("cubin");
    pub const FATBIN: Self = Self::named("fatbin");
    pub const CUDA_C: Self = Self::named("cuda-c");
    pub const OPENCL_C: Self = Self::named("opencl-c");
    pub const OPENCL_BINARY: Self = Self::named("opencl-binary");
    pub const SPIRV_KERNEL: Self = Self::named("spirv-kernel");
    pub const SPIRV_SHADER: Self = Self::named("spirv-shader");
    pub const ELF: Self = Self::named("elf");
    pub const WGSL: Self = Self::named("wgsl");
}

impl CodeFormat {
    const fn named(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// The name, as it stands in `DeviceInfo::formats` and crosses the seam.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The format that a file's extension says.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        Some(match path.extension()?.to_str()? {
            "so" => Self::SHARED_OBJECT,
            "a" => Self::ARCHIVE,
            "o" => Self::OBJECT,
            "c" => Self::C,
            "ptx" => Self::PTX,
            "cubin" => Self::CUBIN,
            "fatbin" => Self::FATBIN,
            "cu" => Self::CUDA_C,
            "cl" => Self::OPENCL_C,
            "spv" => Self::SPIRV_SHADER,
            "elf" => Self::ELF,
            "wgsl" => Self::WGSL,
            other => return Some(Self(Cow::Owned(other.to_owned()))),
        })
    }
}

impl From<&str> for CodeFormat {
    fn from(name: &str) -> Self {
        Self(Cow::Owned(name.to_owned()))
    }
}

impl fmt::Display for CodeFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for CodeFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Code to load, with load options.
///
/// Making one of native code is `unsafe`, since the code may do anything; loading and launching it is safe after that.
/// Load options are those that the backend documents: [`Target::options`](crate::Target::options) lists them.
#[derive(Clone, Debug)]
pub struct ModuleSource {
    format: CodeFormat,
    path: PathBuf,
    code: Option<Vec<u8>>,
    options: Options,
    /// Its author vouched for what its kernels touch.
    vouched: bool,
}

impl ModuleSource {
    /// A portable kernel: bounds-checked, so that it cannot harm the program.
    #[must_use]
    pub fn wgsl(text: &str) -> Self {
        Self {
            format: CodeFormat::WGSL,
            path: PathBuf::new(),
            code: Some(text.as_bytes().to_vec()),
            options: Options::new(),
            vouched: false,
        }
    }

    /// A portable kernel in a file, read when it is loaded.
    #[must_use]
    pub fn wgsl_file(path: impl Into<PathBuf>) -> Self {
        Self {
            format: CodeFormat::WGSL,
            path: path.into(),
            code: None,
            options: Options::new(),
            vouched: false,
        }
    }

    /// What a lowering made of portable code.
    pub(crate) fn lowered(format: CodeFormat, path: &str, code: Vec<u8>, options: Options) -> Self {
        Self { format, path: path.into(), code: Some(code), options, vouched: true }
    }

    /// Native code in memory.
    ///
    /// # Safety
    /// Every launch of its kernels, with the access that the launch states, must keep to the memory of its arguments
    /// and must not harm the process.
    #[must_use]
    pub unsafe fn native(format: impl Into<CodeFormat>, code: impl Into<Vec<u8>>) -> Self {
        Self {
            format: format.into(),
            path: PathBuf::new(),
            code: Some(code.into()),
            options: Options::new(),
            vouched: true,
        }
    }

    /// Native code in a file.
    ///
    /// # Safety
    /// As [`ModuleSource::native`]; and the file is not changed while it is loaded.
    #[must_use]
    pub unsafe fn native_file(format: impl Into<CodeFormat>, path: impl Into<PathBuf>) -> Self {
        Self { format: format.into(), path: path.into(), code: None, options: Options::new(), vouched: true }
    }

    /// Adds a load option of the backend; a key that is given again makes a list.
    #[must_use]
    pub fn option(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.options.push(key, value);
        self
    }

    /// Fixes an `override` constant of portable code, by its name or number.
    #[must_use]
    pub fn constant(self, name: &str, value: impl fmt::Display) -> Self {
        self.option("constant", format!("{name}={value}"))
    }

    /// Sets the element type of portable code: what stands for `alias T = …;`.
    #[must_use]
    pub fn element(self, dtype: DType) -> Self {
        self.option("element", dtype.to_string())
    }

    /// Leaves out the bounds checks of portable code, which then takes load options of the backend too.
    ///
    /// # Safety
    /// Every launch of its kernels must keep to the memory of its arguments.
    #[must_use]
    pub unsafe fn unchecked(mut self) -> Self {
        self.vouched = true;
        self.option("unchecked", true)
    }

    /// What the bytes are.
    #[must_use]
    pub const fn format(&self) -> &CodeFormat {
        &self.format
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn code(&self) -> Option<&[u8]> {
        self.code.as_deref()
    }

    pub(crate) const fn is_vouched(&self) -> bool {
        self.vouched
    }

    pub(crate) const fn options(&self) -> &Options {
        &self.options
    }

    /// Lends the source to `call` in the form that crosses the seam.
    pub(crate) fn with_raw<T>(&self, call: impl FnOnce(&abi::ModuleSource) -> T) -> T {
        let path = self.path.to_string_lossy();
        let options = abi::properties(&self.options);
        let (code, code_bytes) =
            self.code.as_ref().map_or((std::ptr::null(), 0), |code| (code.as_ptr(), code.len()));
        call(&abi::ModuleSource {
            struct_size: crate::end_of!(abi::ModuleSource, option_count),
            reserved: 0,
            format: Str::new(self.format.as_str()),
            path: Str::new(&path),
            code,
            code_bytes,
            options: options.as_ptr(),
            option_count: options.len(),
        })
    }

    pub(crate) fn check(&self, device: &Device) -> Result<()> {
        let formats = &device.info.formats;
        if !formats.iter().any(|format| format == self.format.as_str()) {
            let names: Vec<_> = formats.iter().map(String::as_str).collect();
            let message = format!(
                "format \"{}\" is not accepted by {}; {}",
                self.format,
                device.name,
                suggest(self.format.as_str(), &names)
            );
            let error = Error::new(ErrorKind::Unsupported, message);
            return Err(if self.format == CodeFormat::WGSL && device.instance.lowerings.is_empty() {
                error.with_note(
                    "to lower it, make the Runtime with RuntimeBuilder::lower_with(runtime_kernel::wgsl())",
                )
            } else {
                error
            });
        }
        self.options.validate(&device.instance.specs, OptionScope::Module)
    }
}

/// Loaded code. Cloning shares it; it is unloaded when its last user is gone and the work on it has ended.
///
/// ```
/// # use runtime_core::{ErrorKind, ModuleSource, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// // SAFETY: the launches (none here) keep to what the kernels use.
/// let source = unsafe { ModuleSource::native("null", "add_f32\nscale_f32") };
/// let module = device.load(&source.option("prefix", "my_"))?;
/// assert_eq!(module.symbols()?, ["my_add_f32", "my_scale_f32"]);
/// assert_eq!(module.kernel("my_scale_f32")?.info().params.as_ref().map(Vec::len), Some(2));
///
/// let error = module.kernel("my_scale").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::NotFound);
/// assert!(error.to_string().contains("my_scale_f32")); // it lists those that exist
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Module(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    device: Arc<Device>,
    handle: Handle,
    /// The entry points of lowered code.
    lowered: Option<Vec<Arc<LoweredKernel>>>,
}

// SAFETY: a backend module, which any thread may use.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Module {
    pub(crate) fn load(device: &Arc<Device>, source: &ModuleSource) -> Result<Self> {
        device.reap();
        let named = |error: Error| error.in_operation("load").on_device(&device.name);
        let lowered = lowering::lower(source, &device.instance, &device.info).map_err(named)?;
        let (source, kernels) = match &lowered {
            Some((lowered, kernels)) => (lowered, Some(kernels.iter().cloned().map(Arc::new).collect())),
            None => (source, None),
        };
        source.check(device).map_err(named)?;
        let mut handle = std::ptr::null_mut();
        source.with_raw(|raw| {
            // SAFETY: the device is open and the structures live during the call.
            device.call("load", |calls, device| unsafe { (calls.module.load)(device, raw, &raw mut handle) })
        })?;
        device.check_made("load", "module", handle)?;
        Ok(Self(Arc::new(Loaded { device: device.clone(), handle, lowered: kernels })))
    }

    /// Names of the entry points, as far as the code tells.
    ///
    /// # Errors
    /// Whatever the device says.
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
        unsafe { names(list, count) }
            .map_err(|error| error.in_operation("symbols").on_device(&self.0.device.name))
    }

    /// Finds an entry point.
    ///
    /// # Errors
    /// `NotFound`, which lists the entry points that exist.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let device = &self.0.device;
        let (symbol, lowered) = match &self.0.lowered {
            None => (name, None),
            Some(kernels) => match kernels.iter().find(|kernel| kernel.name == name) {
                Some(kernel) => (kernel.symbol.as_str(), Some(kernel)),
                None => return Err(self.no_kernel(name, kernels)),
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
                error.with_note(suggest(name, &names))
            }
            _ => error,
        })?;
        device.check_made("kernel", "kernel", handle)?;
        Kernel::adopt(self, handle, name, lowered.cloned())
    }

    fn no_kernel(&self, name: &str, kernels: &[Arc<LoweredKernel>]) -> Error {
        let names: Vec<_> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        let message = format!("no entry point \"{name}\"; {}", suggest(name, &names));
        Error::new(ErrorKind::NotFound, message).in_operation("kernel").on_device(&self.0.device.name)
    }

    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.0.device
    }
}

/// Reads names of entry points.
///
/// # Safety
/// `list` is null or points to `count` readable texts.
unsafe fn names(list: *const Str, count: usize) -> Result<Vec<String>> {
    // SAFETY: the caller's promise.
    let names = unsafe { abi::borrow_slice("the list of symbols", list, count, abi::MAX_SYMBOLS) }?;
    let (mut read, mut bytes) = (Vec::with_capacity(names.len()), 0usize);
    for (at, &name) in names.iter().enumerate() {
        // SAFETY: the caller's promise.
        let name = unsafe { abi::borrow_str(format_args!("symbols[{at}]"), name) }?;
        bytes = bytes.saturating_add(name.len());
        if bytes > abi::MAX_LOG_BYTES {
            return Err(abi::mismatch(format!("the names up to symbols[{at}] have {bytes} bytes in all")));
        }
        read.push(name.to_owned());
    }
    Ok(read)
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let until = if self.device.must_leak() { return } else { self.device.all_pending() };
        self.device.graves.bury(&self.device, Remains::Module(self.handle), until);
    }
}
