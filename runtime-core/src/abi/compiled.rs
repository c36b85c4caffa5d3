//! Native code that a backend compiled and has not loaded.

use super::{KernelInfo, Property, Str};

/// Native code, with what a compiler reports of it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CompiledCode {
    /// End of the last field.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// The format of `code`, which the device accepts.
    pub format: Str,
    /// The native code.
    pub code: *const u8,
    /// Size of `code` in bytes.
    pub code_bytes: usize,
    /// The compiler's messages; may be empty.
    pub log: Str,
    /// Load options that the native code needs.
    pub options: *const Property,
    /// Number of `options`.
    pub option_count: usize,
    /// The entry points, as far as the compiler describes them.
    pub kernels: *const CompiledKernel,
    /// Number of `kernels`.
    pub kernel_count: usize,
}

/// An entry point of compiled code. Frozen.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CompiledKernel {
    /// Its name.
    pub name: Str,
    /// What the compiler reports of it.
    pub info: *const KernelInfo,
}

/// Native code fits the device: recompiling it would not make it faster.
pub const FITS_OPTIMALLY: u32 = 0;
/// Native code runs on the device, but code that is compiled for it would be better.
pub const FITS_RECOMPILE: u32 = 1;
/// Native code does not run on the device, or no longer with this driver.
pub const FITS_NOT: u32 = 2;
