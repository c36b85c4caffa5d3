//! Code to load: its format, bytes or path, and load options.

#![allow(unsafe_code, reason = "the caller is responsible for native code")]

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::abi::{self, Str};
use crate::model::compiled::Compiled;
use crate::model::kernel_info::KernelInfo;
use crate::model::lowering::LoweredKernel;
use crate::model::options::{OptionScope, did_you_mean};
use crate::platform::read_regular_file;
use crate::plugin::convert;
use crate::plugin::instance::Instance;
use crate::{CodeFormat, DType, DeviceInfo, Error, ErrorKind, OptionValue, Options, Result};

/// The load option of code for a debugger.
pub(crate) const DEBUG: &str = "debug";

/// Code that a kernel is taken from: a [`ModuleSource`], or a reference to one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what language it is in",
    label = "expected a `ModuleSource`",
    note = "write `ModuleSource::wgsl(text)` for a portable kernel, or `unsafe {{ ModuleSource::native(\"c\", text) }}`"
)]
pub trait AsSource {
    /// The code.
    fn as_source(&self) -> &ModuleSource;
}

impl AsSource for ModuleSource {
    fn as_source(&self) -> &ModuleSource {
        self
    }
}

impl AsSource for &ModuleSource {
    fn as_source(&self) -> &ModuleSource {
        self
    }
}

/// Code to load, with load options.
///
/// Constructing one from native code is `unsafe`, because the code can do anything; loading and launching it is
/// then safe. The load options are those of the backend, listed by [`Target::options`](crate::Target::options).
///
/// ```
/// # use runtime_core::{DType, ModuleSource, Runtime};
/// # let runtime = Runtime::builder().discover(false);
/// # let runtime = runtime.register(runtime_host::backend()).with_lowering(runtime_kernel::wgsl()).build();
/// # let device = runtime.open("host")?;
/// let source = ModuleSource::wgsl("
///     alias T = f32; // what the text says, unless the program chooses
///     override FACTOR: f32 = 1.0;
///     @group(0) @binding(0) var<storage, read_write> x: array<T>;
///     @compute @workgroup_size(1) fn scale(@builtin(global_invocation_id) id: vec3u) {
///         x[id.x] *= T(FACTOR);
///     }");
/// let scale = device.kernel(source.element(DType::I32).constant("FACTOR", 3), "scale")?;
/// let x = device.tensor([2], &[1i32, 2])?;
/// device.queue()?.call(&scale, (2, 1), (&x,))?;
/// assert_eq!(x.to_vec::<i32>()?, [3, 6]);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ModuleSource {
    format: CodeFormat,
    path: PathBuf,
    code: Option<Vec<u8>>,
    options: Options,
    /// Whether the caller is responsible for what the kernels access.
    trusted: bool,
    /// Whether it is loaded even if the device has loaded the same code already.
    unshared: bool,
    /// What the compilers know of the kernels, if the code was compiled before.
    compiled: Option<Arc<CompiledKernels>>,
    /// Identifies the code within this process; computed once.
    digest: OnceLock<[u8; 32]>,
}

/// What the compilers know of the kernels of compiled code.
#[derive(Debug)]
pub(crate) struct CompiledKernels {
    /// The entry points of the portable code.
    pub(crate) lowered: Option<Vec<LoweredKernel>>,
    /// The entry points of the native code.
    pub(crate) resources: Vec<(String, KernelInfo)>,
}

impl ModuleSource {
    fn new(format: CodeFormat, path: PathBuf, code: Option<Vec<u8>>, trusted: bool) -> Self {
        let (options, digest) = (Options::new(), OnceLock::new());
        Self { format, path, code, options, trusted, unshared: false, compiled: None, digest }
    }

    /// A portable kernel. It is bounds-checked, so it cannot corrupt memory.
    #[must_use]
    pub fn wgsl(text: &str) -> Self {
        Self::new(CodeFormat::WGSL, PathBuf::new(), Some(text.as_bytes().to_vec()), false)
    }

    /// A portable kernel in a file, which is read at load time.
    #[must_use]
    pub fn wgsl_file(path: impl Into<PathBuf>) -> Self {
        Self::new(CodeFormat::WGSL, path.into(), None, false)
    }

    /// The output of a lowering or of a compiler.
    pub(crate) fn lowered(format: CodeFormat, path: &str, code: Vec<u8>, options: Options) -> Self {
        Self { options, ..Self::new(format, path.into(), Some(code), true) }
    }

    /// Portable code of any format, with load options of its lowering. It is checked like all portable code.
    pub(crate) fn portable(format: CodeFormat, text: String, options: Options) -> Self {
        Self { options, ..Self::new(format, PathBuf::new(), Some(text.into_bytes()), false) }
    }

    /// Native code in memory.
    ///
    /// # Safety
    /// Every launch of its kernels must stay within the memory of its arguments, access them only as the launch
    /// declares, and not harm the process. Adding load options, which may name further code, is safe: whoever hands the
    /// source to others is responsible for theirs, too.
    #[must_use]
    pub unsafe fn native(format: impl Into<CodeFormat>, code: impl Into<Vec<u8>>) -> Self {
        Self::new(format.into(), PathBuf::new(), Some(code.into()), true)
    }

    /// Native code in a file.
    ///
    /// # Safety
    /// As for [`ModuleSource::native`]; in addition, the file must not change while it is being loaded.
    #[must_use]
    pub unsafe fn native_file(format: impl Into<CodeFormat>, path: impl Into<PathBuf>) -> Self {
        Self::new(format.into(), path.into(), None, true)
    }

    /// Code that [`CommonRuntime::compile`](crate::CommonRuntime::compile) or [`Runtime::compile`](crate::Runtime::compile)
    /// returned, in this process or another. Its kernels have the names, the parameters and the checks of the source that it
    /// was compiled from.
    ///
    /// # Safety
    /// As for [`ModuleSource::native`]. Code of a checked portable kernel fulfils it, if neither the code nor what
    /// describes it was changed, and no option was added.
    #[must_use]
    pub unsafe fn compiled(compiled: Compiled) -> Self {
        let Compiled { native, lowered } = compiled;
        let kernels = CompiledKernels { lowered, resources: native.kernels };
        Self {
            options: native.options,
            compiled: Some(Arc::new(kernels)),
            ..Self::new(native.format, PathBuf::new(), Some(native.code), true)
        }
    }

    /// Loads the code even if the device has loaded the same code already: for code with variables of its own that must not
    /// be shared.
    #[must_use]
    pub fn unshared(mut self) -> Self {
        self.unshared = true;
        self
    }

    /// Reads the code from its file.
    ///
    /// # Errors
    /// `Io` that names the file.
    pub(crate) fn read_file(&self) -> Result<Vec<u8>> {
        read_regular_file(&self.path).map_err(|error| {
            let message = format!("cannot read \"{}\": {error}", self.path.display());
            Error::new(ErrorKind::Io, message).with_source(error)
        })
    }

    /// Adds a load option of the backend. Repeating a key makes a list.
    #[must_use]
    pub fn option(mut self, key: &str, value: impl Into<OptionValue>) -> Self {
        self.options.push(key, value);
        self
    }

    /// Sets an `override` constant of portable code, by name or numeric ID.
    #[must_use]
    pub fn constant(self, name: &str, value: impl fmt::Display) -> Self {
        self.option("constant", format!("{name}={value}"))
    }

    /// Sets the element type of portable code, i.e. the definition of `alias T = …;`.
    #[must_use]
    pub fn element(self, dtype: DType) -> Self {
        self.option("element", dtype.to_string())
    }

    /// Sets a further element type of portable code, i.e. the definition of `alias NAME = …;`.
    #[must_use]
    pub fn element_named(self, name: &str, dtype: DType) -> Self {
        self.option("element", format!("{name}={dtype}"))
    }

    /// Passes a uniform buffer of portable code by value: its numbers are scalar arguments, in the order of its bytes, instead of
    /// a tensor.
    #[must_use]
    pub fn by_value(self, buffer: &str) -> Self {
        self.option("by_value", buffer)
    }

    /// Whether the code is compiled for a debugger: with the lines of its source, and without optimisation. The same as the load
    /// option `debug` of the backend, for portable code also of its lowering.
    #[must_use]
    pub fn debug(self, debug: bool) -> Self {
        if debug { self.option(DEBUG, true) } else { self }
    }

    /// Omits the bounds checks of portable code, which then also accepts load options of the backend.
    ///
    /// # Safety
    /// Every launch of its kernels must stay within the memory of its arguments, with whatever options are added.
    #[must_use]
    pub unsafe fn unchecked(mut self) -> Self {
        self.trusted = true;
        self.option("unchecked", true)
    }

    /// The format of the code.
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

    /// The source with the content of its file.
    pub(crate) fn with_code(&self, code: Vec<u8>) -> Self {
        Self { code: Some(code), ..self.clone() }
    }

    /// Identifies the source among those that a device has loaded; `None` if it is not to be shared.
    pub(crate) fn shared_key(&self) -> Option<[u8; 32]> {
        let code = self.code.as_ref().filter(|_| !self.unshared)?;
        let mut hasher = blake3::Hasher::new();
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        };
        add(self.digest.get_or_init(|| self.digest_of(code)));
        // A caller who may not load unchecked code must not be handed what a caller who may has loaded.
        add(&[u8::from(self.trusted)]);
        add(self.format.as_str().as_bytes());
        add(self.path.as_os_str().as_encoded_bytes());
        for (key, value) in self.options.iter() {
            add(key.as_bytes());
            add(format!("{} {value}", value.type_name()).as_bytes());
        }
        Some(*hasher.finalize().as_bytes())
    }

    fn digest_of(&self, code: &[u8]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(code);
        if let Some(compiled) = &self.compiled {
            // Compiled code with other parameters is another module.
            hasher.update(format!("{compiled:?}").as_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    /// What the compilers know of the kernels, if the code was compiled before.
    pub(crate) fn compiled_kernels(&self) -> Option<&CompiledKernels> {
        self.compiled.as_deref()
    }

    pub(crate) const fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// Refuses the option `unchecked` unless an unsafe call vouched for the code. Cheap enough to run before every look-up of
    /// loaded code.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub(crate) fn check_trust(&self) -> Result<()> {
        if self.trusted || !self.options.flag("unchecked") {
            return Ok(());
        }
        Err(Error::invalid(
            "option \"unchecked\" makes the code as unsafe as native code; set it with ModuleSource::unchecked",
        ))
    }

    pub(crate) const fn options(&self) -> &Options {
        &self.options
    }

    /// Passes the ABI form of the source to `call`.
    pub(crate) fn with_raw<T>(&self, call: impl FnOnce(&abi::ModuleSource) -> T) -> T {
        let path = self.path.to_string_lossy();
        let options = convert::properties(&self.options);
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

    /// Checks the format and the load options.
    pub(crate) fn check(&self, device: &DeviceInfo, instance: &Instance) -> Result<()> {
        if !device.accepts(&self.format) {
            let message = format!(
                "format \"{}\" is not accepted by {}; {}",
                self.format,
                device.id,
                did_you_mean(self.format.as_str(), &device.format_names())
            );
            let error = Error::new(ErrorKind::Unsupported, message);
            return Err(if self.format == CodeFormat::WGSL && instance.lowerings.is_empty() {
                error.with_note(
                    "to lower it, build the Runtime with RuntimeBuilder::with_lowering(runtime_kernel::wgsl())",
                )
            } else {
                error
            });
        }
        self.options.validate(&instance.specs, OptionScope::Module)
    }
}
