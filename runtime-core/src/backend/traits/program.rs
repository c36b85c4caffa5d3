//! Programs of embedded devices.

use crate::{Access, DType};

/// The tensors and arguments of an embedded program.
#[derive(Debug)]
pub struct Program<'a> {
    /// The tensors, which are created, filled and checked on the device.
    pub tensors: Vec<TensorDescription<'a>>,
    /// The arguments. A tensor argument is an index into `tensors`.
    pub args: Vec<ProgramArg<'a>>,
}

/// An argument of an embedded program.
#[derive(Clone, Copy, Debug)]
pub enum ProgramArg<'a> {
    /// Index into [`Program::tensors`].
    Tensor(u32),
    /// A scalar: its type, and its bytes as a little-endian, zero-extended word.
    Scalar(DType, u64),
    /// Bytes passed by value.
    Bytes(&'a [u8]),
}

/// Description of a tensor that an embedded program uses.
#[derive(Clone, Copy, Debug)]
pub struct TensorDescription<'a> {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: &'a [i64],
    /// How the program uses the tensor.
    pub access: Access,
    /// Initial contents; `None` to fill the tensor from `seed`.
    pub data: Option<&'a [u8]>,
    /// Seed of the generator that fills the tensor on the device.
    pub seed: u64,
}
