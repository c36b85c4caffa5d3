//! Structure types that are passed by value: numbered, so that a signature can be compared word by word.

use std::sync::{Mutex, PoisonError};

use libffi::middle::Type;
use runtime_core::{DType, DTypeClass, Error, Result};

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
    /// `InvalidArgument` for a structure without fields; `Unsupported` for a field that `libffi` cannot pass.
    pub(crate) fn of(fields: &[DType]) -> Result<Self> {
        if fields.is_empty() {
            return Err(Error::invalid("a structure without fields cannot be passed"));
        }
        if let Some(field) = fields.iter().find(|field| field_type(**field).is_none()) {
            return Err(Error::unsupported(format!(
                "a structure with a field of {field} cannot be passed by value"
            )));
        }
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
        Type::structure(fields.iter().filter_map(|field| field_type(*field)).collect::<Vec<_>>())
    }
}

/// The type of a field. `libffi` has no 16-bit floating-point type, so such fields are refused.
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
