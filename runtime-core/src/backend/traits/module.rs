//! Loaded code and its entry points.

use std::borrow::Cow;
use std::path::Path;

use crate::backend::read_file;
use crate::model::geometry::Occupancy;
use crate::model::kernel_info::KernelInfo;
use crate::{Error, Geometry, Options, Result};

/// A loaded module.
pub trait Module: Send + Sync + 'static {
    /// An entry point of the module. It keeps alive whatever it needs from the module.
    type Kernel: Kernel;

    /// Names of the entry points, as far as they are known.
    fn symbols(&self) -> &[String];

    /// Looks up an entry point.
    ///
    /// # Errors
    /// `NotFound`; core adds the list of [`Module::symbols`].
    fn kernel(&self, name: &str) -> Result<Self::Kernel>;
}

/// An entry point.
pub trait Kernel: Send + Sync + 'static {
    /// Properties of the kernel, as the driver reports them.
    fn info(&self) -> KernelInfo {
        KernelInfo::default()
    }

    /// Occupancy of a compute unit by the kernel's groups when launched with this geometry and so much dynamic
    /// work-group memory.
    ///
    /// # Errors
    /// `Unsupported` by default; `InvalidArgument` for a geometry that cannot run at all.
    fn occupancy(&self, _geometry: &Geometry, _local_bytes: u64) -> Result<Occupancy> {
        Err(Error::unsupported("occupancy is not supported"))
    }
}

/// Code to load.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// A code format.
    pub format: &'a str,
    /// Path of the source file; may be empty.
    pub path: &'a str,
    /// The code; `None` if the backend is to read `path`.
    pub code: Option<&'a [u8]>,
    /// Validated load options.
    pub options: &'a Options,
}

impl<'a> Source<'a> {
    /// The code, read from its file if there is only a path.
    ///
    /// # Errors
    /// `Io`, as for [`read_file`].
    pub fn bytes(&self) -> Result<Cow<'a, [u8]>> {
        match self.code {
            Some(code) => Ok(Cow::Borrowed(code)),
            None => read_file(Path::new(self.path)).map(Cow::Owned),
        }
    }
}
