//! Structures that are passed by value.

#![allow(unsafe_code, reason = "holds pointers to its own memory")]

use crate::code::scalar::Scalar;
use crate::{DType, Error, Result, abi};

/// A structure argument, passed by value on every device: fields of known types, laid out as C lays them out.
///
/// ```
/// use runtime_core::code::Record;
/// use runtime_core::DType;
///
/// // struct { float scale; int64_t count; uint8_t flags; }
/// let record = Record::new().with(0.5f32).with(3i64).with(1u8);
/// assert_eq!(record.fields(), [DType::F32, DType::I64, DType::U8]);
/// assert_eq!(record.as_bytes().len(), 24); // with the padding of C
/// ```
#[derive(Debug)]
pub struct Record(Box<Storage>);

/// On the heap, where its address does not change.
#[derive(Debug)]
struct Storage {
    /// Points to `fields` and `bytes`.
    raw: abi::RecordArg,
    fields: Vec<DType>,
    /// Padded at the end.
    bytes: Vec<u8>,
    /// End of the last field.
    end: usize,
    alignment_bytes: usize,
}

// SAFETY: the pointers refer to the record's own memory, which changes only through `&mut self`.
unsafe impl Send for Record {}
// SAFETY: as above.
unsafe impl Sync for Record {}

impl Record {
    /// A structure without fields, to be filled by [`Record::with`].
    #[must_use]
    pub fn new() -> Self {
        Self::from_storage(Vec::new(), Vec::new(), 0, 1)
    }

    fn from_storage(fields: Vec<DType>, bytes: Vec<u8>, end: usize, alignment_bytes: usize) -> Self {
        let raw = abi::RecordArg {
            struct_size: crate::end_of!(abi::RecordArg, data_bytes),
            field_count: u32::try_from(fields.len()).unwrap_or(u32::MAX),
            fields: fields.as_ptr().cast(),
            data: bytes.as_ptr(),
            data_bytes: bytes.len() as u64,
        };
        Self(Box::new(Storage { raw, fields, bytes, end, alignment_bytes }))
    }

    /// Adds a field.
    #[must_use]
    pub fn with<T: Scalar>(self, value: T) -> Self {
        self.push(T::DTYPE, value.bits())
    }

    /// Adds a field of at most 8 bytes, given by its element type and its bytes as a little-endian word.
    ///
    /// # Errors
    /// `InvalidArgument` for an element type that is larger, or is not a scalar of C.
    pub fn with_bits(self, dtype: DType, bits: u64) -> Result<Self> {
        match dtype.bytes() {
            1 | 2 | 4 | 8 if dtype.0.lanes == 1 => Ok(self.push(dtype, bits)),
            _ => Err(Error::invalid(format!("a structure cannot have a field of type {dtype}"))),
        }
    }

    fn push(self, dtype: DType, bits: u64) -> Self {
        let Storage { mut fields, mut bytes, end, alignment_bytes, .. } = *self.0;
        let (size, alignment) = (dtype.bytes(), dtype.alignment_bytes());
        let alignment_bytes = alignment_bytes.max(alignment);
        bytes.resize(end.next_multiple_of(alignment), 0);
        bytes.extend_from_slice(&bits.to_le_bytes()[..size]);
        let end = bytes.len();
        bytes.resize(end.next_multiple_of(alignment_bytes), 0);
        fields.push(dtype);
        Self::from_storage(fields, bytes, end, alignment_bytes)
    }

    /// The element types of the fields.
    #[must_use]
    pub fn fields(&self) -> &[DType] {
        &self.0.fields
    }

    /// The fields with their bytes as little-endian words, as [`Record::with_bits`] takes them.
    pub fn values(&self) -> impl Iterator<Item = (DType, u64)> {
        self.fields().iter().scan(0, |end, dtype| {
            let (at, mut word) = (usize::next_multiple_of(*end, dtype.alignment_bytes()), [0; 8]);
            *end = at + dtype.bytes();
            word[..dtype.bytes()].copy_from_slice(&self.as_bytes()[at..*end]);
            Some((*dtype, u64::from_le_bytes(word)))
        })
    }

    /// The structure as C stores it, with the padding between its fields and at its end.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    pub(crate) const fn raw(&self) -> &abi::RecordArg {
        &self.0.raw
    }
}

impl Clone for Record {
    fn clone(&self) -> Self {
        let storage = &*self.0;
        Self::from_storage(
            storage.fields.clone(),
            storage.bytes.clone(),
            storage.end,
            storage.alignment_bytes,
        )
    }
}

impl Default for Record {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        self.fields() == other.fields() && self.as_bytes() == other.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_laid_out_as_in_c() {
        let record = Record::new().with(1u8).with(2i16).with(true).with(4.0f64).with(5u8);
        let bytes = record.as_bytes();
        assert_eq!(bytes.len(), 24);
        assert_eq!((bytes[0], &bytes[2..4], bytes[4], bytes[16]), (1, &[2, 0][..], 1, 5));
        assert_eq!(&bytes[8..16], 4.0f64.to_le_bytes());
        assert_eq!(Record::new().with(1u8).with(2u8).as_bytes(), [1, 2]);
        let again =
            record.values().try_fold(Record::new(), |record, (dtype, bits)| record.with_bits(dtype, bits));
        assert_eq!(again.unwrap(), record);
        let complex = Record::new().with(1u8).with_bits(DType::COMPLEX64, 7).unwrap();
        assert_eq!(complex.as_bytes().len(), 12, "aligned to a part");
        assert!(Record::new().with_bits(DType::COMPLEX128, 0).unwrap_err().message().contains("complex128"));
    }

    #[test]
    fn the_raw_form_describes_the_record_and_its_clone() {
        let record = Record::new().with(1.5f32).with(7u64);
        let clone = record.clone();
        assert_eq!(record, clone);
        drop(record);
        let raw = clone.raw();
        assert_eq!((raw.field_count, raw.data_bytes), (2, 16));
        // SAFETY: the clone lives.
        let data = unsafe { std::slice::from_raw_parts(raw.data, 16) };
        assert_eq!((&data[..4], data[8]), (&1.5f32.to_le_bytes()[..], 7));
        // SAFETY: as above.
        let fields = unsafe { std::slice::from_raw_parts(raw.fields, 2) };
        assert_eq!(fields, [DType::F32.0, DType::U64.0]);
    }
}
