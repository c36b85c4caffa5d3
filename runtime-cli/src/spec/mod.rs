//! The spec file: a kernel, its arguments, cost and reference. `docs/spec.md` documents every key.

mod argument;
mod document;
pub(crate) mod expression;
pub(crate) mod init;
mod overrides;
mod parse;
pub(crate) mod scalar;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use runtime_core::{
    Access, CodeFormat, Cost, DType, DataLocation, LaunchConfig, Options, Record, Result, Tolerance,
};

use crate::settings::Settings;
use crate::text_file;
use init::Init;
pub(crate) use overrides::Overrides;

/// A parsed and validated spec file.
#[derive(Debug)]
pub(crate) struct Spec {
    /// The file.
    pub(crate) path: PathBuf,
    /// Name of the row.
    pub(crate) name: String,
    /// The kernel.
    pub(crate) kernel: KernelSource,
    /// Its arguments, in order.
    pub(crate) args: Vec<Argument>,
    /// Constants and element type that the code is specialised to.
    pub(crate) specialise: Specialise,
    /// What a launch runs.
    pub(crate) config: LaunchConfig,
    /// Whether the spec gives a group size; otherwise the code may.
    pub(crate) has_group_size: bool,
    /// Operations and bytes of one call.
    pub(crate) cost: Cost,
    /// The expected outputs.
    pub(crate) reference: Option<Reference>,
    /// Defaults of the command's options.
    pub(crate) settings: Settings,
    /// The spec and every file that it names.
    files: Vec<PathBuf>,
}

/// An entry point of a code file.
#[derive(Debug)]
pub(crate) struct KernelSource {
    pub(crate) path: PathBuf,
    pub(crate) entry: String,
    pub(crate) format: CodeFormat,
    pub(crate) options: Options,
}

/// What the code is specialised to when it is loaded.
#[derive(Debug, Default)]
pub(crate) struct Specialise {
    /// Symbols and values of constants.
    pub(crate) constants: Vec<(String, runtime_core::OptionValue)>,
    /// Element type of a generic kernel.
    pub(crate) element: Option<DType>,
}

/// One argument.
#[derive(Debug)]
pub(crate) struct Argument {
    /// Its name; `arg0`, `arg1`, … where the spec gives none.
    pub(crate) name: String,
    /// `file:line`, for messages.
    pub(crate) location: String,
    pub(crate) kind: ArgumentKind,
}

/// The kind of an argument, with its data.
#[derive(Debug)]
pub(crate) enum ArgumentKind {
    Tensor(TensorSpec),
    /// A type, and the bits of its value.
    Scalar(DType, u64),
    /// A structure by value.
    Record(Record),
    /// Opaque bytes by value.
    Bytes(Vec<u8>),
    /// A size of work-group memory in bytes.
    Local(u64),
}

/// A tensor argument.
#[derive(Debug)]
pub(crate) struct TensorSpec {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    /// Strides in elements; `None`: contiguous.
    pub(crate) strides: Option<Vec<usize>>,
    /// Offset of the first element, in elements.
    pub(crate) offset: usize,
    pub(crate) init: Init,
    pub(crate) access: Access,
    /// Where the data is when the clock starts.
    pub(crate) on: DataLocation,
}

/// The expected contents of the written arguments.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) expected: Expected,
    pub(crate) tolerance: Tolerance,
}

/// Where the expected values come from.
#[derive(Debug)]
pub(crate) enum Expected {
    /// A host kernel with the same arguments.
    Kernel(KernelSource),
    /// `.npy` files, one per written argument, in order.
    Files(Vec<PathBuf>),
}

impl Spec {
    /// Reads a spec file and applies `overrides`.
    pub(crate) fn load(path: &Path, overrides: &Overrides) -> Result<Self> {
        parse::parse(path, &text_file::read(path)?, overrides)
    }

    /// The spec file and every file that it names.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    /// The dynamic work-group memory that the arguments ask for.
    pub(crate) fn local_bytes(&self) -> u64 {
        let bytes =
            self.args.iter().map(|arg| if let ArgumentKind::Local(bytes) = arg.kind { bytes } else { 0 });
        bytes.fold(0, u64::saturating_add)
    }

    /// The tensors that the kernel writes, with their argument index.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = (usize, &Argument)> {
        self.args.iter().enumerate().filter(|(_, arg)| arg.is_written())
    }
}

impl Argument {
    pub(crate) const fn is_written(&self) -> bool {
        matches!(&self.kind, ArgumentKind::Tensor(tensor) if tensor.access.writes())
    }
}
