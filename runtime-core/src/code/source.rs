//! Code to load: its format, where it comes from, and its load options.

#![allow(unsafe_code, reason = "the caller answers for native code")]

use std::fmt;
use std::path::{Path, PathBuf};

use crate::abi::{self, Str};
use crate::model::options::suggest;
use crate::plugin::convert;
use crate::timeline::open_device::OpenDevice;
use crate::{CodeFormat, DType, Error, ErrorKind, OptionScope, Options, Result, Value};

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
    /// The caller answers for what its kernels access.
    trusted: bool,
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
            trusted: false,
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
            trusted: false,
        }
    }

    /// What a lowering made of portable code.
    pub(crate) fn lowered(format: CodeFormat, path: &str, code: Vec<u8>, options: Options) -> Self {
        Self { format, path: path.into(), code: Some(code), options, trusted: true }
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
            trusted: true,
        }
    }

    /// Native code in a file.
    ///
    /// # Safety
    /// As [`ModuleSource::native`]; and the file is not changed while it is loaded.
    #[must_use]
    pub unsafe fn native_file(format: impl Into<CodeFormat>, path: impl Into<PathBuf>) -> Self {
        Self { format: format.into(), path: path.into(), code: None, options: Options::new(), trusted: true }
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
        self.trusted = true;
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

    pub(crate) const fn is_trusted(&self) -> bool {
        self.trusted
    }

    pub(crate) const fn options(&self) -> &Options {
        &self.options
    }

    /// Lends the source to `call` in the form that crosses the seam.
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

    pub(crate) fn check(&self, device: &OpenDevice) -> Result<()> {
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
