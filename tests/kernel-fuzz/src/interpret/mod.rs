//! What a kernel must do: an interpreter of naga's IR.
//!
//! All work-items of a group take each statement together, those that are elsewhere are masked. It shares nothing with
//! the analyses of `runtime-kernel`, and refuses what has no single result: races, barriers that not all reach, float
//! results that are not exact, loops that do not end.

#![allow(
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "the arithmetic of WGSL on bit patterns"
)]

mod expression;
mod launch;
mod layout;
mod math;
mod memory;
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

/// Why a kernel has no result that all devices must give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// Two work-items use a slot in an order that nothing fixes.
    Race,
    /// A barrier that not all work-items reach.
    Divergent,
    /// A float result that is rounded.
    Inexact,
    /// Too many steps.
    StepLimit,
    /// The bindings have gaps.
    Bindings,
    /// Something that the interpreter does not know.
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
            Self::StepLimit => write!(f, "it takes too many steps"),
            Self::Bindings => write!(f, "the bindings have gaps"),
            Self::Unknown(what) => write!(f, "the interpreter has no {what}"),
        }
    }
}

/// A module that naga accepts.
#[derive(Debug)]
pub struct Parsed {
    module: Module,
    info: ModuleInfo,
    /// The `var<immediate>`s, which stand as private variables: naga's validator forbids some of their types.
    immediates: Vec<Handle<GlobalVariable>>,
}

impl Parsed {
    /// Parses WGSL.
    ///
    /// # Errors
    /// naga's words.
    pub fn new(text: &str) -> Result<Self, String> {
        let mut module = naga::front::wgsl::parse_str(text).map_err(|error| error.emit_to_string(text))?;
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
    /// Whether the kernel may write it.
    pub written: bool,
    /// Its bytes before the launch.
    pub before: Vec<u8>,
    /// Its bytes after the launch.
    pub after: Vec<u8>,
    /// Its scalars; what is between them is padding.
    pub slots: Vec<Slot>,
    /// What its elements are made of; nothing for structs, which any tensor may hold.
    pub scalar: Option<naga::Scalar>,
}

/// A scalar argument.
pub type Argument = (naga::Scalar, u64);

/// What a launch is given, and what must come out.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The tensors by binding.
    pub tensors: Vec<Tensor>,
    /// The scalars in order.
    pub scalars: Vec<Argument>,
    /// Size of the work-groups.
    pub group: [u32; 3],
    /// How much work the launch was.
    pub steps: u64,
}

/// Runs a launch.
///
/// # Errors
/// It has no single result.
pub fn interpret(parsed: &Parsed, launch: &Launch) -> Result<Expected, Invalid> {
    launch::interpret(parsed, launch)
}

/// The bits of a small whole number as a float.
pub(crate) fn float_word(scalar: naga::Scalar, value: f64) -> u64 {
    scalar::float_bits(scalar, value).unwrap_or_default()
}

/// A launch that runs.
struct Interpreter<'a> {
    module: &'a Module,
    info: &'a ModuleInfo,
    overrides: HashMap<Handle<Override>, Vec<u64>>,
    memories: Vec<Memory>,
    globals: HashMap<Handle<GlobalVariable>, usize>,
    /// Work-group memory, by its place in `memories`.
    is_workgroup: Vec<bool>,
    /// Work-items of a group.
    lanes: usize,
    size: [u32; 3],
    groups: [u32; 3],
    group: u32,
    /// Barriers passed by the group: of work-group memory, of storage.
    epochs: [u32; 2],
    steps: u64,
}
