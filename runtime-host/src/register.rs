//! Values as a C call takes them: one word, and the class that decides where it goes.

use libffi::middle::Type;
use runtime_core::{DType, DTypeClass};

use crate::record_type::RecordType;

/// The class of a value in a C call, which decides the kind of register it goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegClass {
    Integer,
    Bool,
    Pointer,
    /// Pointer to a `DLTensor`.
    Tensor,
    /// 16 bits in a vector register.
    F16,
    F32,
    F64,
    /// A structure by value; the word is the address of its bytes.
    Record(RecordType),
}

impl RegClass {
    pub(crate) const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }

    /// The type as `libffi` describes it.
    pub(crate) fn ffi_type(self) -> Type {
        match self {
            Self::Record(record) => record.ffi_type(),
            Self::F16 | Self::F32 => Type::f32(),
            Self::F64 => Type::f64(),
            // As in the direct call, the extended value takes a whole register or stack slot.
            _ => Type::u64(),
        }
    }
}

/// A value as it is passed in a register, extended to 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegValue {
    pub(crate) bits: u64,
    pub(crate) class: RegClass,
}

impl RegValue {
    /// An address.
    pub(crate) const fn pointer(address: u64) -> Self {
        Self { bits: address, class: RegClass::Pointer }
    }

    /// A scalar from its bytes in `bits`, zero-padded; `None` for a type that is not passed in one register.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low bytes are the value")]
    pub(crate) fn scalar(dtype: DType, bits: u64) -> Option<Self> {
        let word = |bits, class| Some(Self { bits, class });
        let signed = |value: i64| word(value.cast_unsigned(), RegClass::Integer);
        match (dtype.class(), dtype.bytes()) {
            (DTypeClass::Int, 1) => signed(i64::from(bits as i8)),
            (DTypeClass::Int, 2) => signed(i64::from(bits as i16)),
            (DTypeClass::Int, 4) => signed(i64::from(bits as i32)),
            (DTypeClass::Int, 8) | (DTypeClass::UInt, 1 | 2 | 4 | 8) | (DTypeClass::Opaque, 1) => {
                word(bits, RegClass::Integer)
            }
            (DTypeClass::Bool, 1) => word(bits, RegClass::Bool),
            (DTypeClass::Float | DTypeClass::BFloat, 2) => word(bits, RegClass::F16),
            (DTypeClass::Float, 4) => word(bits, RegClass::F32),
            (DTypeClass::Float, 8) => word(bits, RegClass::F64),
            // Two f32 share a register on x86-64; elsewhere they take two.
            (DTypeClass::Complex, 8) if cfg!(target_arch = "x86_64") => word(bits, RegClass::F64),
            _ => None,
        }
    }
}
