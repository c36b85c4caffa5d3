//! A portable kernel between front end and writers.

use std::fmt;

use naga::valid::ModuleInfo;
use naga::{Module, Span};
use runtime_core::{Error, ErrorKind, Result};

use crate::analysis::features::Feature;
use crate::interface::{Interface, Override};
use crate::parse::diagnostics::{line, path_or_wgsl, place};
use crate::parse::limits::Depth;
use crate::parse::validate_again;

/// A portable kernel that is parsed, specialised and checked: what the writers start from.
///
/// Its module is valid, and has no barrier in non-uniform control flow. Its overrides are constants; only the
/// size of an array may still name one, and `ArraySize::resolve` follows that.
#[derive(Clone)]
pub struct Program {
    pub(crate) module: Module,
    pub(crate) info: ModuleInfo,
    pub(crate) source: String,
    pub(crate) path: String,
    pub(crate) depth: Depth,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) overrides: Vec<Override>,
    pub(crate) features: Vec<Feature>,
    /// Whether work-group memory that may be read before it is written starts as zeros.
    pub(crate) zeroes: bool,
    /// Whether accesses that were proven in range report where they are not.
    pub(crate) asserts: bool,
}

/// What an access out of range does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checks {
    /// A read gives zero, a write is skipped. An entry point may have a second body without checks, for launches by whose
    /// sizes and scalars accesses are in range anyway.
    #[default]
    Bounded,
    /// The same with one body: for processors, whose compilers do worse with two, or run both.
    BoundedOnce,
    /// Whatever the device does with it: the author vouches that there is none.
    Unchecked,
}

/// A C-family language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenCL C 1.2.
    OpenCl,
    /// CUDA C++, as NVRTC compiles it.
    Cuda,
    /// C with GNU extensions, for the host: one function per entry point that runs a range of work-groups.
    Host,
}

impl Checks {
    /// Whether accesses are checked.
    pub(crate) const fn are_made(self) -> bool {
        matches!(self, Self::Bounded | Self::BoundedOnce)
    }
}

impl Program {
    /// The program without the zeros that work-group memory starts with: it holds anything until the kernel writes it.
    #[must_use]
    pub fn with_uninitialised_workgroup_memory(self) -> Self {
        Self { zeroes: false, ..self }
    }

    /// The program with each bounds check that was proven needless kept as an assertion, in C for the host and in CUDA C++:
    /// for tests of the proofs.
    #[must_use]
    pub fn with_asserted_proofs(self) -> Self {
        Self { asserts: true, ..self }
    }

    /// The entry points, in the order of the text.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// The `override` constants that the text declares.
    #[must_use]
    pub fn overrides(&self) -> &[Override] {
        &self.overrides
    }

    /// What it needs that not every device has.
    #[must_use]
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// The module behind it.
    #[must_use]
    pub const fn module(&self) -> &Module {
        &self.module
    }

    /// The program with a module that was made of its own.
    ///
    /// # Errors
    /// `Internal` if the new module is not valid.
    pub(crate) fn with(&self, module: Module) -> Result<Self> {
        let info = validate_again(&module)?;
        Ok(Self {
            module,
            info,
            source: self.source.clone(),
            path: self.path.clone(),
            depth: self.depth,
            interfaces: self.interfaces.clone(),
            overrides: self.overrides.clone(),
            features: self.features.clone(),
            zeroes: self.zeroes,
            asserts: self.asserts,
        })
    }

    /// What messages call the text.
    pub(crate) fn path(&self) -> &str {
        path_or_wgsl(&self.path)
    }

    /// `path:line` of a span; only the path where it has no place in the text.
    pub(crate) fn place(&self, span: Span) -> String {
        place(&self.source, &self.path, span)
    }

    /// The line of a span; `None` where it has no place in the text.
    pub(crate) fn line(&self, span: Span) -> Option<u32> {
        line(&self.source, span)
    }

    /// The error for what a dialect cannot express: `what` names the construct.
    pub(crate) fn unsupported(&self, what: impl fmt::Display, span: Span) -> Error {
        Error::new(ErrorKind::Unsupported, format!("{}: {what} is not supported", self.place(span)))
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut program = f.debug_struct("Program");
        program.field("path", &self.path).field("interfaces", &self.interfaces);
        program.field("features", &self.features).finish_non_exhaustive()
    }
}
