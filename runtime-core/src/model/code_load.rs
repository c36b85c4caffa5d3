//! Where loaded code came from, and what loading it took.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::CodeFormat;

/// Where the code of a module came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CodeOrigin {
    /// The device has loaded the same code already, and shares it.
    Loaded,
    /// The code cache.
    Cache,
    /// The shared store behind the code cache.
    SharedCache,
    /// The compiler; the code cache keeps it now.
    Compiled,
    /// The compiler; the code cache is read-only, full, or unusable.
    NotKept,
    /// The override folder (`RUNTIME_CACHE_OVERRIDE`).
    Override,
    /// The source, which the backend loads as it is: native code, or code that must not be kept.
    Direct,
}

impl CodeOrigin {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Loaded => "loaded",
            Self::Cache => "cache",
            Self::SharedCache => "shared cache",
            Self::Compiled => "compiled",
            Self::NotKept => "not kept",
            Self::Override => "override",
            Self::Direct => "direct",
        }
    }
}

impl fmt::Display for CodeOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A module that was loaded, for [`RuntimeBuilder::on_load`](crate::RuntimeBuilder::on_load).
///
/// ```
/// # use runtime_core::{ModuleSource, Runtime};
/// use runtime_core::code::CodeOrigin;
///
/// let (sender, loads) = std::sync::mpsc::channel();
/// let runtime = Runtime::builder()
///     .on_load(move |load| sender.send(load.clone()).unwrap_or(()))
///     .register(runtime_null::backend())
/// #   .discover(false)
///     .build();
/// # let source = unsafe { ModuleSource::native("null", "add_f32") };
/// runtime.open("null")?.kernel(&source, "add_f32")?;
/// let load = loads.try_recv().expect("one module was loaded");
/// println!("{} code for {}: {}, {:?} to compile", load.format, load.device, load.origin, load.compile);
/// assert_eq!(load.origin, CodeOrigin::Direct); // native code, which is not compiled
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CodeLoad {
    /// The device string.
    pub device: String,
    /// The format of the source.
    pub format: CodeFormat,
    /// Where the code came from.
    pub origin: CodeOrigin,
    /// Time to look the code up, and to read and check it.
    pub read: Duration,
    /// Time to lower portable code.
    pub lower: Duration,
    /// Time to compile.
    pub compile: Duration,
    /// Time that the backend took to load the code.
    pub load: Duration,
}

/// A callback of the program, called after each load.
#[derive(Clone)]
pub(crate) struct LoadHook(pub(crate) Arc<dyn Fn(&CodeLoad) + Send + Sync>);

impl fmt::Debug for LoadHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoadHook")
    }
}
