//! The spec file: a kernel, its arguments, what it costs, and what is right. `docs/spec.md` has every key.

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

use runtime_core::{Access, CodeFormat, Cost, DType, Geometry, On, Options, Result, Tolerance};

use crate::settings::Settings;
use crate::text_file;
use init::Init;
pub(crate) use overrides::Overrides;

/// A spec file that was read and found possible.
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
    /// What to fix when the code is loaded.
    pub(crate) specialise: Specialise,
    /// How it is spread over the device.
    pub(crate) geometry: Geometry,
    /// The spec says how large a group is; otherwise the code may.
    pub(crate) has_group_size: bool,
    /// What one call computes and moves.
    pub(crate) cost: Cost,
    /// What is right.
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

/// What the code is fixed to when it is loaded.
#[derive(Debug, Default)]
pub(crate) struct Specialise {
    /// Symbols and values of constants.
    pub(crate) constants: Vec<(String, runtime_core::Value)>,
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

/// What an argument is.
#[derive(Debug)]
pub(crate) enum ArgumentKind {
    Tensor(TensorSpec),
    /// A type, and the bits of its value.
    Scalar(DType, u64),
    /// Bytes by value.
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
    /// Elements in front of the first one.
    pub(crate) offset: usize,
    pub(crate) init: Init,
    pub(crate) access: Access,
    /// Where it lives when the clock starts.
    pub(crate) on: On,
}

/// What the written arguments should hold.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) expected: Expected,
    /// The spec says that a host kernel takes bytes by pointer.
    pub(crate) bytes_by_pointer: bool,
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
    /// Reads a spec file, with `changes` to what it says.
    pub(crate) fn load(path: &Path, changes: &Overrides) -> Result<Self> {
        parse::parse(path, &text_file::read(path)?, changes)
    }

    /// The spec file and every file that it names.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    /// The tensors that the kernel writes, with their argument's place in the list.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = (usize, &Argument)> {
        self.args.iter().enumerate().filter(|(_, arg)| arg.is_written())
    }
}

impl Argument {
    pub(crate) const fn is_written(&self) -> bool {
        matches!(&self.kind, ArgumentKind::Tensor(tensor) if tensor.access.writes())
    }
}
