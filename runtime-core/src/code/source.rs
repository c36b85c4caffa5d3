//! Code to load: its format, bytes or path, and load options.

#![allow(unsafe_code, reason = "the caller is responsible for native code")]

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::abi::{self, Str};
use crate::model::options::did_you_mean;
use crate::plugin::convert;
use crate::plugin::instance::Instance;
use crate::{
    CodeFormat, Compiled, DType, DeviceInfo, Error, ErrorKind, KernelInfo, LoweredKernel, OptionScope,
    OptionValue, Options, Result,
};

/// Code to load, with load options.
///
/// Constructing one from native code is `unsafe`, because the code can do anything; loading and launching it is
/// then safe. The load options are those of the backend, listed by [`Target::options`](crate::Target::options).
#[derive(Clone, Debug)]
pub struct ModuleSource {
    format: CodeFormat,
    path: PathBuf,
    code: Option<Vec<u8>>,
    options: Options,
    /// Whether the caller is responsible for what the kernels access.
    trusted: bool,
    /// What the compilers know of the kernels, if the code was compiled before.
    kernels: Option<Arc<CompiledKernels>>,
}

/// What the compilers know of the kernels of compiled code.
#[derive(Debug)]
pub(crate) struct CompiledKernels {
    /// The entry points of the portable code.
    pub(crate) lowered: Option<Vec<Arc<LoweredKernel>>>,
    /// The entry points of the native code.
    pub(crate) infos: Vec<(String, KernelInfo)>,
}

impl ModuleSource {
    /// A portable kernel. It is bounds-checked, so it cannot corrupt memory.
    #[must_use]
    pub fn wgsl(text: &str) -> Self {
        Self {
            format: CodeFormat::WGSL,
            path: PathBuf::new(),
            code: Some(text.as_bytes().to_vec()),
            options: Options::new(),
            trusted: false,
            kernels: None,
        }
    }

    /// A portable kernel in a file, which is read at load time.
    #[must_use]
    pub fn wgsl_file(path: impl Into<PathBuf>) -> Self {
        Self {
            format: CodeFormat::WGSL,
            path: path.into(),
            code: None,
            options: Options::new(),
            trusted: false,
            kernels: None,
        }
    }

    /// The output of a lowering.
    pub(crate) fn lowered(format: CodeFormat, path: &str, code: Vec<u8>, options: Options) -> Self {
        Self { format, path: path.into(), code: Some(code), options, trusted: true, kernels: None }
    }

    /// Native code in memory.
    ///
    /// # Safety
    /// Every launch of its kernels must stay within the memory of its arguments, access them only as the launch
    /// declares, and not harm the process.
    #[must_use]
    pub unsafe fn native(format: impl Into<CodeFormat>, code: impl Into<Vec<u8>>) -> Self {
        Self {
            format: format.into(),
            path: PathBuf::new(),
            code: Some(code.into()),
            options: Options::new(),
            trusted: true,
            kernels: None,
        }
    }

    /// Native code in a file.
    ///
    /// # Safety
    /// As for [`ModuleSource::native`]; in addition, the file must not change while it is being loaded.
    #[must_use]
    pub unsafe fn native_file(format: impl Into<CodeFormat>, path: impl Into<PathBuf>) -> Self {
        Self {
            format: format.into(),
            path: path.into(),
            code: None,
            options: Options::new(),
            trusted: true,
            kernels: None,
        }
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
        let lowered = lowered.map(|kernels| kernels.into_iter().map(Arc::new).collect());
        Self {
            format: native.format,
            path: PathBuf::new(),
            code: Some(native.code),
            options: native.options,
            trusted: true,
            kernels: Some(Arc::new(CompiledKernels { lowered, infos: native.kernels })),
        }
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

    /// Omits the bounds checks of portable code, which then also accepts load options of the backend.
    ///
    /// # Safety
    /// Every launch of its kernels must stay within the memory of its arguments.
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

    pub(crate) const fn is_trusted(&self) -> bool {
        self.trusted
    }

    pub(crate) const fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) const fn compiled_kernels(&self) -> Option<&Arc<CompiledKernels>> {
        self.kernels.as_ref()
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
