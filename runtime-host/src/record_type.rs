//! Structure types that are passed by value: numbered, so that a signature can be compared word by word.
//!
//! `libffi` has no 16-bit floating-point type. On x86-64, it needs none: a structure is passed by its eightbytes,
//! each in an integer or a vector register, or on the stack (System V ABI for AMD64, 3.2.3). So a structure with such a field is
//! described by one 64-bit number per eightbyte. Elsewhere, no other type stands for one: AArch64, for example, passes two of
//! them in two registers, or in four bytes of the stack.

use std::sync::{Mutex, PoisonError};

use libffi::middle::Type;
use runtime_core::{DType, DTypeClass, Error, Result};

/// Whether structures are passed by their eightbytes.
const BY_EIGHTBYTES: bool = cfg!(target_arch = "x86_64");
const EIGHTBYTE: usize = 8;
/// More structure types than any program has.
const MAX_TYPES: usize = 1 << 16;

/// The field types of every structure that was passed so far. They are never removed.
static TYPES: Mutex<Vec<Box<[DType]>>> = Mutex::new(Vec::new());

/// A structure type. Equal field types give equal values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordType(usize);

impl RecordType {
    /// The type of a structure with these fields.
    ///
    /// # Errors
    /// `InvalidArgument` for a structure without fields; `Unsupported` for a field that cannot be passed.
    pub(crate) fn of(fields: &[DType]) -> Result<Self> {
        if fields.is_empty() {
            return Err(Error::invalid("a structure without fields cannot be passed"));
        }
        fields.iter().try_for_each(|field| check_field(*field))?;
        let mut types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = types.iter().position(|known| **known == *fields) {
            return Ok(Self(known));
        }
        if types.len() == MAX_TYPES {
            return Err(Error::unsupported(format!(
                "more than {MAX_TYPES} structure types are not supported"
            )));
        }
        types.push(fields.into());
        Ok(Self(types.len() - 1))
    }

    /// The type as `libffi` describes it.
    pub(crate) fn ffi_type(self) -> Type {
        let types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
        let fields = types.get(self.0).map_or(&[][..], |fields| fields);
        let has_halves = fields.iter().any(|field| is_half(*field));
        if has_halves {
            Type::structure(eightbytes(fields))
        } else {
            Type::structure(fields.iter().filter_map(|field| field_type(*field)).collect::<Vec<_>>())
        }
    }
}

/// # Errors
/// `Unsupported` for a field that cannot be passed.
fn check_field(field: DType) -> Result<()> {
    if is_half(field) && !BY_EIGHTBYTES {
        return Err(Error::unsupported(format!(
            "a structure with a field of {field} cannot be passed by value on {}: libffi has no 16-bit floating-point type",
            std::env::consts::ARCH
        )));
    }
    if is_half(field) || field_type(field).is_some() {
        return Ok(());
    }
    Err(Error::unsupported(format!("a structure with a field of {field} cannot be passed by value")))
}

fn is_half(dtype: DType) -> bool {
    matches!((dtype.class(), dtype.bytes()), (DTypeClass::Float | DTypeClass::BFloat, 2))
}

/// A number for each eightbyte of a structure: a floating-point number if all its fields are.
fn eightbytes(fields: &[DType]) -> Vec<Type> {
    let mut has_integer = Vec::new();
    let mut end = 0_usize;
    for field in fields {
        // A complex number is aligned like its parts.
        let parts = if field.class() == DTypeClass::Complex { 2 } else { 1 };
        let start = end.next_multiple_of(field.bytes() / parts);
        end = start + field.bytes();
        has_integer.resize(end.div_ceil(EIGHTBYTE), false);
        // An integer is aligned to its size, so that it is in one eightbyte.
        let is_float = matches!(field.class(), DTypeClass::Float | DTypeClass::BFloat | DTypeClass::Complex);
        has_integer[start / EIGHTBYTE] |= !is_float;
    }
    has_integer.into_iter().map(|integer| if integer { Type::u64() } else { Type::f64() }).collect()
}

/// The type of a field, if `libffi` has it.
fn field_type(dtype: DType) -> Option<Type> {
    Some(match (dtype.class(), dtype.bytes()) {
        (DTypeClass::Int, 1) => Type::i8(),
        (DTypeClass::Int, 2) => Type::i16(),
        (DTypeClass::Int, 4) => Type::i32(),
        (DTypeClass::Int, 8) => Type::i64(),
        (DTypeClass::UInt | DTypeClass::Bool | DTypeClass::Opaque, 1) => Type::u8(),
        (DTypeClass::UInt, 2) => Type::u16(),
        (DTypeClass::UInt, 4) => Type::u32(),
        (DTypeClass::UInt, 8) => Type::u64(),
        (DTypeClass::Float, 4) => Type::f32(),
        (DTypeClass::Float, 8) => Type::f64(),
        (DTypeClass::Complex, 8) => Type::structure([Type::f32(), Type::f32()]),
        _ => return None,
    })
}
