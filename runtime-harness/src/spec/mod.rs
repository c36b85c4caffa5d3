//! The spec file: a kernel, its arguments, cost and reference. `docs/spec.md` documents every key.

mod argument;
mod document;
mod expression;
mod init;
mod inline;
mod json;
mod overrides;
mod parse;
mod permutation;
mod scalar;
mod space;
mod space_table;
#[cfg(test)]
mod space_tests;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runtime_core::code::Record;
use runtime_core::evaluate::{Cost, DataLocation, EachCall, Tolerance};
use runtime_core::{Access, CodeFormat, DType, LaunchConfig, Options, Result};

use crate::settings::Settings;
use crate::text_file;
pub(crate) use argument::LOCATIONS;
pub use init::Init;
pub use inline::{InlineSpec, SpecSource};
pub use overrides::{EXTENT_KEYS, Extent, Overrides};
pub use runtime_core::Number;
pub use runtime_core::tensor::Interval;
pub use space::{MAX_TRIED, Point, Space};

/// The most combinations of a sweep.
pub const MAX_SWEPT: u64 = 10_000;

/// A parsed and validated spec file.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The file, or what messages call a spec without one.
    pub path: PathBuf,
    /// Name of the row.
    pub name: String,
    /// The kernel.
    pub kernel: KernelSource,
    /// Its arguments, in order.
    pub args: Vec<Argument>,
    /// Constants and element type that the code is specialised to.
    pub specialise: Specialise,
    /// What a launch runs.
    pub config: LaunchConfig,
    /// Whether the spec gives a group size; otherwise the code may.
    pub has_group_size: bool,
    /// Operations and bytes of one call.
    pub cost: Cost,
    /// The expected outputs.
    pub reference: Option<Reference>,
    /// Defaults of the command's options.
    pub settings: Settings,
    /// What a tuner varies.
    pub tune: Option<Space>,
    /// What a sweep varies, apart from what is overridden.
    pub sweep: Option<Space>,
    /// The overrides in effect.
    pub overrides: Overrides,
    /// The spec and every file that it names.
    files: Vec<PathBuf>,
}

/// An entry point of some code.
#[derive(Clone, Debug)]
pub struct KernelSource {
    /// The file; that of the spec if this has the code itself.
    pub path: PathBuf,
    /// The code, if the spec has it.
    pub text: Option<Arc<str>>,
    /// Name of the entry point.
    pub entry: String,
    /// What the file holds.
    pub format: CodeFormat,
    /// Name of the kernel file in a package; `None` for the one with the entry point.
    pub file: Option<String>,
    /// Options that the code is loaded with.
    pub options: Options,
}

impl KernelSource {
    /// The format of a package, from which each device takes the code that fits it best.
    pub const PACKAGE: &str = "package";
    /// Extension of packages.
    const PACKAGE_EXTENSION: &str = "rtpkg";

    /// Whether the file is a package.
    #[must_use]
    pub fn is_package(&self) -> bool {
        self.format == *Self::PACKAGE
    }

    /// The code as text.
    ///
    /// # Errors
    /// Those of [`text_file::read`].
    pub(crate) fn text(&self) -> Result<Cow<'_, str>> {
        match &self.text {
            Some(text) => Ok(Cow::Borrowed(text)),
            None => text_file::read(&self.path).map(Cow::Owned),
        }
    }

    /// The format that the extension of a file implies.
    fn format_of(path: &Path) -> Option<CodeFormat> {
        match path.extension() {
            Some(extension) if extension == Self::PACKAGE_EXTENSION => Some(Self::PACKAGE.into()),
            _ => CodeFormat::from_path(path),
        }
    }
}

/// What the code is specialised to when it is loaded.
#[derive(Clone, Debug, Default)]
pub struct Specialise {
    /// Symbols and values of constants.
    pub constants: Vec<(String, runtime_core::OptionValue)>,
    /// Element type of a generic kernel.
    pub element: Option<DType>,
}

/// One argument.
#[derive(Clone, Debug)]
pub struct Argument {
    /// Its name; `arg0`, `arg1`, … where the spec gives none.
    pub name: String,
    /// `file:line`, for messages.
    pub location: String,
    /// What it is, with its data.
    pub kind: ArgumentKind,
}

/// The kind of an argument, with its data.
#[derive(Clone, Debug)]
pub enum ArgumentKind {
    /// A tensor.
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
#[derive(Clone, Debug)]
pub struct TensorSpec {
    /// Element type.
    pub dtype: DType,
    /// Extent of each dimension.
    pub shape: Vec<usize>,
    /// Strides in elements; `None`: contiguous.
    pub strides: Option<Vec<usize>>,
    /// Offset of the first element, in elements.
    pub offset: usize,
    /// Initial content.
    pub init: Init,
    /// How the kernel uses it.
    pub access: Access,
    /// What it holds before each call, if it is read and written.
    pub each_call: EachCall,
    /// Where the data is when the clock starts.
    pub on: DataLocation,
}

/// The expected contents of the written arguments.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Where they come from.
    pub expected: Expected,
    /// How far an output may deviate from them.
    pub tolerance: Tolerance,
}

/// Where the expected values come from.
#[derive(Clone, Debug)]
pub enum Expected {
    /// A host kernel with the same arguments.
    Kernel(KernelSource),
    /// `.npy` files, one per written argument, in order.
    Files(Vec<PathBuf>),
}

impl SpecSource {
    /// Reads the spec and applies `overrides`.
    ///
    /// # Errors
    /// Those of [`Spec::load`]. About an inline spec they name the key, such as `candidate.spec.arg[1].shape`.
    pub fn load(&self, overrides: &Overrides) -> Result<Spec> {
        match self {
            Self::File(path) => Spec::load(path, overrides),
            Self::Inline(spec) => parse::parse_inline(spec, overrides),
        }
    }
}

impl Spec {
    /// Reads a spec file and applies `overrides`.
    ///
    /// # Errors
    /// `InvalidArgument` that names the file and the line; `Io` if the file cannot be read.
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Self> {
        parse::parse(path, &text_file::read(path)?, overrides)
    }

    /// Reads a spec file, once for each combination of its `[sweep]` table, or once if it has none. What is overridden is
    /// not swept.
    ///
    /// # Errors
    /// Those of [`Spec::load`] and [`Space::all`]; there may be at most [`MAX_SWEPT`] combinations.
    pub fn load_sweep(path: &Path, overrides: &Overrides) -> Result<Vec<Self>> {
        let spec = Self::load(path, overrides)?;
        let Some(space) = &spec.sweep else { return Ok(vec![spec]) };
        let points = space.all(MAX_SWEPT)?;
        points.iter().map(|point| Self::load(path, &overrides.with(&point.overrides))).collect()
    }

    /// The spec file, if there is one, and every file that it names.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    /// The folder of the spec file; `None` if there is no file.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let file = self.files.first().filter(|file| **file == self.path)?;
        std::path::absolute(file).ok()?.parent().map(Path::to_owned)
    }

    /// The dynamic work-group memory that the arguments ask for.
    #[must_use]
    pub fn local_bytes(&self) -> u64 {
        let bytes =
            self.args.iter().map(|arg| if let ArgumentKind::Local(bytes) = arg.kind { bytes } else { 0 });
        bytes.fold(0, u64::saturating_add)
    }

    /// The tensors in which a call finds what earlier ones have left.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &Argument> {
        self.args.iter().filter(|arg| arg.each_call() == Some(EachCall::Keep))
    }

    /// Whether a tensor holds its initial contents before each call.
    pub(crate) fn restores_each_call(&self) -> bool {
        self.args.iter().any(|arg| arg.each_call() == Some(EachCall::Initial))
    }

    /// The tensors that the kernel writes, with their argument index.
    pub fn outputs(&self) -> impl Iterator<Item = (usize, &Argument)> {
        self.args.iter().enumerate().filter(|(_, arg)| arg.is_written())
    }
}

impl Argument {
    /// Whether it is a tensor that the kernel writes.
    #[must_use]
    pub const fn is_written(&self) -> bool {
        matches!(&self.kind, ArgumentKind::Tensor(tensor) if tensor.access.writes())
    }

    /// What it holds before each call, if it is a tensor that the kernel both reads and writes.
    fn each_call(&self) -> Option<EachCall> {
        match &self.kind {
            ArgumentKind::Tensor(tensor) if tensor.access == Access::ReadWrite => Some(tensor.each_call),
            _ => None,
        }
    }
}
