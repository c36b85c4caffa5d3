//! The portable code that a module was lowered from, kept so that its kernels can be fused.

use std::hash::{BuildHasher, BuildHasherDefault};
use std::sync::Arc;

use rustc_hash::FxHasher;

use crate::code::lowering::{LoweringPlan, read_text};
use crate::model::portable_source::PortableSource;
use crate::{CodeFormat, ModuleSource, Options, Result};

/// Portable code with the load options of its lowering.
#[derive(Debug)]
pub(crate) struct PortableText {
    pub(crate) format: CodeFormat,
    code: String,
    path: String,
    options: Options,
    /// Of everything above; different code rarely has the same.
    pub(crate) hash: u64,
}

impl PortableText {
    /// Keeps the text of `source`. Code whose checks were left out, or that has options of the backend, is not kept: it may only
    /// be loaded by whoever vouches for it.
    ///
    /// # Errors
    /// As [`read_text`].
    pub(crate) fn of(source: &ModuleSource, plan: &LoweringPlan<'_>) -> Result<Option<Arc<Self>>> {
        if source.is_trusted() {
            return Ok(None);
        }
        let (format, options) = (source.format().clone(), plan.options().clone());
        let (code, path) = (read_text(source)?.into_owned(), source.path().to_string_lossy().into_owned());
        let hasher = BuildHasherDefault::<FxHasher>::default();
        let hash = hasher.hash_one((format.as_str(), &code, &path, format!("{options:?}")));
        Ok(Some(Arc::new(Self { format, code, path, options, hash })))
    }

    pub(crate) fn source(&self) -> PortableSource<'_> {
        PortableSource { code: &self.code, path: &self.path, options: &self.options }
    }

    /// Whether both are the same code.
    pub(crate) fn is_same(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other)
            || (self.hash == other.hash
                && self.format == other.format
                && self.code == other.code
                && self.path == other.path
                && self.options == other.options)
    }
}
