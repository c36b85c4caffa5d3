//! What embedded programs take and report.

use super::DType;

/// `EmbeddedTable.inspect`: the memory at `address`, as many bytes as the buffer has.
pub const INSPECT_MEMORY: u32 = 1;
/// `EmbeddedTable.inspect`: the registers, as UTF-8 text: lines `NAME 0xVALUE`, with the value in hexadecimal. Names contain no spaces.
/// After a flash or a run without errors, one of them is `pc`, and memory can be read at its value. `address` is 0.
pub const INSPECT_REGISTERS: u32 = 2;

/// Description of a tensor that an embedded program uses.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TensorDescription {
    /// End of the last field.
    pub struct_size: u32,
    /// Number of dimensions.
    pub ndim: u32,
    /// Element type.
    pub dtype: DType,
    /// `ACCESS_*` bits.
    pub access: u32,
    /// `ndim` extents.
    pub shape: *const i64,
    /// Initial contents; null to fill the tensor from `seed`.
    pub data: *const u8,
    /// Size of `data` in bytes.
    pub data_bytes: usize,
    /// Seed of the deterministic generator that fills the tensor on the device.
    pub seed: u64,
}

/// Result of running an embedded program.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RunReport {
    /// End of the last field.
    pub struct_size: u32,
    /// Exit code of the program.
    pub exit_code: i32,
    /// Cycles counted on the device; 0 if it has no counter.
    pub cycles: u64,
    /// Wall-clock time of the run in nanoseconds, as the backend measured it.
    pub elapsed_ns: u64,
    /// Count between two readings of the counter, which is part of `cycles`.
    pub overhead: u64,
    /// Peak stack use of the run in bytes; 0 if unknown.
    pub stack_bytes: u64,
    /// Bytes of code in the image; 0 if the sizes of the image are unknown.
    pub code_bytes: u64,
    /// Bytes of constants in the image.
    pub constant_bytes: u64,
    /// Bytes of initialised data in the image.
    pub data_bytes: u64,
    /// Bytes of zero-initialised data (.bss).
    pub zeroed_bytes: u64,
}
