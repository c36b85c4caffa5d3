//! The matrices that matrix units multiply.

/// The rows and columns of a matrix.
pub(crate) const EXTENT: u32 = 16;
/// The alignment of rows in memory, in bytes.
pub(crate) const ROW_ALIGNMENT: u32 = 16;
/// A larger stride is out of range, so that the last row's offset fits in 32 bits.
pub(crate) const MAX_STRIDE: u32 = 1 << 28;
