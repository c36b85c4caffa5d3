//! The reference: an interpreter of naga's IR.
//!
//! All work-items of a group execute each statement together; inactive ones are masked. The interpreter shares no
//! code with the analyses of `runtime-kernel`. It rejects kernels without a unique result: those with races, barriers
//! in divergent control flow, inexact float results, or endless loops.

#![allow(
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "WGSL arithmetic on bit patterns"
)]

mod expression;
mod launch;
mod layout;
mod math;
mod memory;
mod packing;
pub(crate) mod reference;
mod scalar;
mod statement;

use std::collections::HashMap;
use std::fmt;

use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, GlobalVariable, Handle, Module, Override};
use runtime_kernel::naga;

use crate::case::Launch;
pub use layout::Slot;
use memory::Memory;

/// Why a kernel has no result that every device must produce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// Two work-items access a slot in undefined order.
    Race,
    /// Not all work-items reach a barrier.
    Divergent,
    /// A float result is rounded.
    Inexact,
    /// The kernel takes too many steps.
    StepLimit,
    /// The bindings have gaps.
    Bindings,
    /// An access is out of range, which the module itself was to prevent.
    OutOfRange,
    /// A feature that the interpreter does not support.
    Unknown(String),
}

impl Invalid {
    fn unknown(what: &str) -> Self {
        Self::Unknown(what.to_owned())
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Race => write!(f, "two work-items race"),
            Self::Divergent => write!(f, "not all work-items reach a barrier"),
            Self::Inexact => write!(f, "a float result is not exact"),
            Self::StepLimit => write!(f, "the kernel takes too many steps"),
            Self::Bindings => write!(f, "the bindings have gaps"),
            Self::OutOfRange => write!(f, "an access is out of range"),
            Self::Unknown(what) => write!(f, "the interpreter does not support {what}"),
        }
    }
}

/// A module that naga accepts.
#[derive(Debug)]
pub struct Parsed {
    module: Module,
    info: ModuleInfo,
    /// The `var<immediate>`s; they become private variables, because naga's validator rejects some of their types.
    immediates: Vec<Handle<GlobalVariable>>,
}

impl Parsed {
    /// Parses WGSL.
    ///
    /// # Errors
    /// naga's message.
    pub fn new(text: &str) -> Result<Self, String> {
        let text = reference::reference(text);
        let module = naga::front::wgsl::parse_str(&text).map_err(|error| error.emit_to_string(&text))?;
        Self::of_module(module, &text)
    }

    /// Validates a module; messages show lines of `text`.
    ///
    /// # Errors
    /// naga's message.
    pub fn of_module(mut module: Module, text: &str) -> Result<Self, String> {
        let is_immediate = |space| space == AddressSpace::Immediate;
        let globals = module.global_variables.iter();
        let immediates: Vec<_> =
            globals.filter(|(_, global)| is_immediate(global.space)).map(|(handle, _)| handle).collect();
        for handle in &immediates {
            module.global_variables.get_mut(*handle).space = AddressSpace::Private;
        }
        let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
        let info = validator.validate(&module).map_err(|error| error.emit_to_string(text))?;
        Ok(Self { module, info, immediates })
    }
}

/// A tensor argument.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Its binding.
    pub binding: usize,
    /// Whether the kernel may write it.
    pub written: bool,
    /// Its bytes before the launch.
    pub before: Vec<u8>,
    /// Its bytes after the launch.
    pub after: Vec<u8>,
    /// Its scalars; bytes between them are padding.
    pub slots: Vec<Slot>,
    /// The scalar type of its elements; `None` for structures, which tensors of any type may hold.
    pub scalar: Option<naga::Scalar>,
}

/// A scalar argument.
pub type Argument = (naga::Scalar, u64);

/// The arguments of a launch, and the expected result.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The tensors, ordered by binding.
    pub tensors: Vec<Tensor>,
    /// The scalars in order.
    pub scalars: Vec<Argument>,
    /// Size of the work-groups.
    pub group: [u32; 3],
    /// The number of steps that the launch took.
    pub steps: u64,
}

/// Runs a launch.
///
/// # Errors
/// It has no unique result.
pub fn interpret(parsed: &Parsed, launch: &Launch) -> Result<Expected, Invalid> {
    launch::interpret(parsed, launch, (Rules::default(), None))
}

/// Runs a launch on tensors with these bytes, by binding, instead of random ones.
///
/// # Errors
/// It has no unique result.
pub fn interpret_on(parsed: &Parsed, launch: &Launch, tensors: &[Vec<u8>]) -> Result<Expected, Invalid> {
    launch::interpret(parsed, launch, (Rules::default(), Some(tensors)))
}

/// Runs a launch of a module to which other rules apply.
///
/// # Errors
/// It has no unique result, or breaks a rule.
pub fn interpret_by(rules: Rules, parsed: &Parsed, launch: &Launch) -> Result<Expected, Invalid> {
    launch::interpret(parsed, launch, (rules, None))
}

/// What holds for a module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// No access is out of range.
    pub in_range: bool,
    /// Work-group memory is written before it is read: it does not start as zeros.
    pub zeroes_memory: bool,
    /// It may leave tensors unused, which are then missing from the result, and copy results of atomic operations that
    /// nothing uses.
    pub is_transformed: bool,
}

/// The bits of a small whole number as a float.
pub(crate) fn float_word(scalar: naga::Scalar, value: f64) -> u64 {
    scalar::float_bits(scalar, value).unwrap_or_default()
}

/// A launch in progress.
struct Interpreter<'a> {
    module: &'a Module,
    info: &'a ModuleInfo,
    overrides: HashMap<Handle<Override>, Vec<u64>>,
    memories: Vec<Memory>,
    globals: HashMap<Handle<GlobalVariable>, usize>,
    /// Whether each of `memories` is work-group memory.
    is_workgroup: Vec<bool>,
    /// Work-items per group.
    lanes: usize,
    size: [u32; 3],
    groups: [u32; 3],
    group: u32,
    /// Barriers that the group has passed: for work-group memory, for storage.
    epochs: [u32; 2],
    steps: u64,
    rules: Rules,
}
