//! A parsed and checked kernel: the hand-over point between front end and writers.

use std::fmt;

use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{Function, Module, Span};
use runtime_core::{Error, ErrorKind, Result};

use crate::group_loops::GroupLoops;
use crate::interface::{Interface, Override};
use crate::parse::diagnostics::{line, location, path_or_wgsl};
use crate::parse::limits::Depth;
use crate::parse::validate_again;

/// A kernel that has been parsed, specialised and checked, ready to be written in a target language.
///
/// Its module is valid and has no barrier in non-uniform control flow. Overrides have been replaced by constants.
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
    /// Whether work-group memory that may be read before it is written is zero-initialised.
    pub(crate) zeroes: bool,
    /// Whether accesses that were proven in range report it when they are not.
    pub(crate) asserts: bool,
    /// Whether host C runs the invocations of a work-group one after the other, in the order of their local index, each up to
    /// the next barrier: a reference for other code.
    pub(crate) is_serial: bool,
    /// Whether the code refers to the lines of the text, for debuggers.
    pub(crate) has_debug_info: bool,
    /// Whether C refers to the lines of the text, for messages of compilers.
    pub(crate) has_lines: bool,
    /// Work-groups that a compute unit (CUDA: multiprocessor) should hold at least: in CUDA C++ the compiler then limits registers.
    /// 0 leaves it to the compiler, and so do the other languages.
    pub(crate) min_groups: u32,
    /// How work-groups run as loops in OpenCL C, if they do.
    pub(crate) group_loops: Option<GroupLoops>,
}

/// What an out-of-range access does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checks {
    /// A read returns zero, a write is skipped. An entry point may have a second variant without checks, for
    /// launches whose sizes and scalars keep all accesses in range.
    #[default]
    Bounded,
    /// As `Bounded`, with one variant only: for processors, whose compilers produce worse code for two, or run
    /// both.
    BoundedOnce,
    /// Whatever the device does: the author guarantees that there is none.
    Unchecked,
}

/// A language of the C family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenCL C 1.2.
    OpenCl,
    /// CUDA C++ for NVRTC.
    Cuda,
    /// C with GNU extensions, for the host: one function per entry point, which runs a range of work-groups.
    Host,
}

/// An optional feature of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Feature {
    /// Half precision.
    F16,
    /// Double precision.
    F64,
    /// 64-bit integers.
    I64,
    /// Subgroup operations.
    Subgroups,
    /// 32-bit atomic operations.
    Atomics,
    /// 64-bit atomic operations.
    I64Atomics,
    /// Cooperative matrices, which matrix units multiply.
    MatrixUnits,
}

impl Feature {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::F64 => "f64",
            Self::I64 => "i64",
            Self::Subgroups => "subgroups",
            Self::Atomics => "atomics",
            Self::I64Atomics => "i64_atomics",
            Self::MatrixUnits => "matrix_units",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Checks {
    /// Whether accesses are checked.
    pub(crate) const fn are_made(self) -> bool {
        matches!(self, Self::Bounded | Self::BoundedOnce)
    }
}

impl Program {
    /// Leaves work-group memory uninitialised: it holds arbitrary values until the kernel writes it.
    #[must_use]
    pub fn with_uninitialised_workgroup_memory(self) -> Self {
        Self { zeroes: false, ..self }
    }

    /// Keeps each bounds check that was proven unnecessary as an assertion, in C for the host and in CUDA C++: for
    /// tests of the proofs.
    #[must_use]
    pub fn with_asserted_proofs(self) -> Self {
        Self { asserts: true, ..self }
    }

    /// Writes code for a debugger: it refers to the lines of the text, and keeps the program's statements, functions and
    /// variables where the language allows.
    #[must_use]
    pub fn with_debug_info(self) -> Self {
        Self { has_debug_info: true, ..self }
    }

    /// Whether code is written as the program is, rather than for speed.
    pub(crate) const fn is_plain(&self) -> bool {
        self.is_serial || self.has_debug_info
    }

    /// Writes OpenCL C whose work-items each run several invocations of a group in loops.
    #[must_use]
    pub fn with_group_loops(self, loops: GroupLoops) -> Self {
        Self { group_loops: Some(loops), ..self }
    }

    /// The work-items that run a group of entry point `index` as loops, per dimension, if it does.
    #[must_use]
    pub fn work_items(&self, index: usize) -> Option<[u32; 3]> {
        self.group_loops.as_ref().and_then(|loops| loops.work_items.get(index).copied())
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

    /// The optional device features that it needs.
    #[must_use]
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// The underlying module.
    #[must_use]
    pub const fn module(&self) -> &Module {
        &self.module
    }

    /// How work-groups run as loops in a language, if they do.
    pub(crate) fn loops_in(&self, dialect: Dialect) -> Option<&GroupLoops> {
        self.group_loops.as_ref().filter(|_| dialect == Dialect::OpenCl)
    }

    /// All functions, entry points last.
    pub(crate) fn functions(&self) -> impl Iterator<Item = (&Function, &FunctionInfo)> {
        let functions = self.module.functions.iter();
        let functions = functions.map(|(handle, function)| (function, &self.info[handle]));
        let entries = self.module.entry_points.iter().enumerate();
        functions.chain(entries.map(|(index, entry)| (&entry.function, self.info.get_entry_point(index))))
    }

    /// The same program with a transformed module.
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
            is_serial: self.is_serial,
            has_debug_info: self.has_debug_info,
            has_lines: self.has_lines,
            min_groups: self.min_groups,
            group_loops: self.group_loops.clone(),
        })
    }

    /// The name of the text in messages.
    pub(crate) fn path(&self) -> &str {
        path_or_wgsl(&self.path)
    }

    /// The name of the text for debuggers: its path, or the name of its first entry point.
    pub(crate) fn debug_file(&self) -> String {
        match self.interfaces.first() {
            Some(entry) if self.path.is_empty() => format!("{}.wgsl", entry.name),
            _ => self.path().to_owned(),
        }
    }

    /// `path:line` of a span; only the path if the span has no location.
    pub(crate) fn location(&self, span: Span) -> String {
        location(&self.source, &self.path, span)
    }

    /// The line of a span; `None` if it has no location.
    pub(crate) fn line(&self, span: Span) -> Option<u32> {
        line(&self.source, span)
    }

    /// The error for a construct, named by `what`, that a language cannot express.
    pub(crate) fn unsupported(&self, what: impl fmt::Display, span: Span) -> Error {
        Error::new(ErrorKind::Unsupported, format!("{}: {what} is not supported", self.location(span)))
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut program = f.debug_struct("Program");
        program.field("path", &self.path).field("interfaces", &self.interfaces);
        program.field("features", &self.features).finish_non_exhaustive()
    }
}
