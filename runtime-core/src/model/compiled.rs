//! Native code that was compiled and not loaded.

use crate::model::kernel_info::KernelInfo;
use crate::model::lowering::LoweredKernel;
use crate::{CodeFormat, Options};

/// Native code, with what its compiler reports.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledCode {
    /// Its format, which the device accepts.
    pub format: CodeFormat,
    /// The code.
    pub code: Vec<u8>,
    /// The compiler's messages; may be empty.
    pub log: String,
    /// Load options that the native code needs.
    pub options: Options,
    /// The entry points by name, as far as the compiler describes them. What the driver reports of the loaded kernel
    /// takes precedence.
    pub kernels: Vec<(String, KernelInfo)>,
}

/// Compiled code with all that a launch needs to know of it.
///
/// [`ModuleSource::compiled`](crate::ModuleSource::compiled) loads it, now or in another process.
///
/// ```
/// # use runtime_core::{ModuleSource, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let source = unsafe { ModuleSource::native("null", "add_f32") };
/// let compiled = runtime.compile("null:null", &source)?; // for an architecture, without a device
/// println!("{} bytes of {}", compiled.native.code.len(), compiled.native.format);
/// // SAFETY: the code and what describes it are as the compiler made them.
/// let source = unsafe { ModuleSource::compiled(compiled) };
/// assert_eq!(runtime.open("null")?.kernel(source, "add_f32")?.name(), "add_f32");
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    /// The native code.
    pub native: CompiledCode,
    /// The entry points of the portable code that it was compiled from; `None` if that was not portable.
    pub lowered: Option<Vec<LoweredKernel>>,
}

/// How native code fits a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Recompiling would not improve it.
    Optimal,
    /// It runs, but code that is compiled for this device and driver would be better.
    Recompile,
    /// It does not run on the device, or no longer with this driver.
    Unsupported,
}
