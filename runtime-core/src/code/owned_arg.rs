//! Launch arguments that are kept after the call.

use crate::code::arg::ArgValue;
use crate::code::record::Record;
use crate::{Access, Arg, DType, Tensor};

/// A launch argument that owns what it refers to, so that it keeps its tensor alive.
#[derive(Clone, Debug)]
pub(crate) enum OwnedArg {
    /// With its access, and whether the kernel handles its strides.
    Tensor(Tensor, Access, bool),
    Scalar(DType, u64),
    Bytes(Vec<u8>),
    Record(Record),
    Local(u64),
}

impl OwnedArg {
    pub(crate) fn new(arg: &Arg<'_>) -> Self {
        match arg.value {
            ArgValue::Tensor(tensor, access, strided) => Self::Tensor(tensor.clone(), access, strided),
            ArgValue::Scalar(dtype, bits) => Self::Scalar(dtype, bits),
            ArgValue::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            ArgValue::Record(record) => Self::Record(record.clone()),
            ArgValue::Local(bytes) => Self::Local(bytes),
        }
    }

    pub(crate) fn borrow(&self) -> Arg<'_> {
        match self {
            Self::Tensor(tensor, access, false) => Arg::tensor(tensor, *access),
            Self::Tensor(tensor, access, true) => Arg::tensor(tensor, *access).strided(),
            Self::Scalar(dtype, bits) => Arg::scalar_bits(*dtype, *bits),
            Self::Bytes(bytes) => Arg::bytes(bytes),
            Self::Record(record) => Arg::record(record),
            Self::Local(bytes) => Arg::local(*bytes),
        }
    }

    /// The tensor, with its access.
    pub(crate) fn tensor(&self) -> Option<(&Tensor, Access)> {
        match self {
            Self::Tensor(tensor, access, _) => Some((tensor, *access)),
            _ => None,
        }
    }
}
