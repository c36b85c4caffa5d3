//! The C ABI between `runtime-core` and a backend library.
//!
//! A backend library exports **one** symbol, [`ENTRY_SYMBOL`], of type [`EntryPoint`]. It returns a pointer
//! to a static [`BackendTable`] and makes no driver call. Everything else goes through that table.
//!
//! Every structure and function here follows these rules, so that an older backend works with a newer core
//! and vice versa:
//!
//! - Fields are appended, never moved, removed or retyped, within a major version.
//! - Every table, and every structure that may grow, begins with `struct_size`: the offset of the end of its
//!   last field. The receiver copies `min(sender's size, own size)` bytes into a zeroed structure of its own.
//! - A function pointer that is null or lies beyond `struct_size` is unsupported.
//! - Elements of arrays ([`Arg`], [`Property`], [`MemorySpace`], [`Counter`], [`CounterReading`],
//!   [`CompiledKernel`], [`NativeHandle`], [`Str`]) are frozen within a major version.
//! - For an output structure the *caller* sets `struct_size`; the callee writes at most that many bytes.
//! - Core rejects lists and strings longer than the `MAX_*` limits. A count is the number of elements
//!   actually present.
//! - Strings are UTF-8 with an explicit length and no terminator. The contract of each borrowed string states
//!   how long it lives.
//! - Memory is freed by the side that allocated it: [`Error`] carries its own release function.
//! - A backend never calls back into core, except through [`HostTable::log`], which is thread-safe, and the function that
//!   [`NativeTable`]'s `submit` receives.
//! - No function may unwind across the ABI or end the process.
//!
//! `include/runtime.h` is generated from this module.

mod compiled;
mod counters;
mod data;
mod embedded;
mod kernel;
mod limits;
mod native;
mod table;

pub use compiled::*;
pub use counters::*;
pub use data::*;
pub use embedded::*;
pub use kernel::*;
pub use limits::*;
pub use native::*;
pub use table::*;

/// First field of every [`Header`]: the bytes `RUNTIME\0` read as a little-endian integer.
pub const MAGIC: u64 = 0x0045_4d49_544e_5552;
/// ABI major version; part of the entry point's name. A library of another major version is never loaded.
pub const MAJOR: u16 = 1;
/// ABI minor version; incremented whenever fields are appended.
pub const MINOR: u16 = 4;
/// Name of the one symbol that a backend library exports.
pub const ENTRY_SYMBOL: &str = "runtime_backend_v1";
/// Name of the object-file section that holds the [`Manifest`].
pub const MANIFEST_SECTION: &str = ".runtime_manifest";

/// Header of every versioned table.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u64,
    /// Offset of the end of the last field of the structure that holds this header.
    pub struct_size: u32,
    /// [`MAJOR`] of the side that filled in the structure.
    pub major: u16,
    /// [`MINOR`] of the side that filled in the structure.
    pub minor: u16,
}

/// Borrowed UTF-8 text; `ptr` may be null when `len` is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Str {
    /// First byte.
    pub ptr: *const u8,
    /// Length in bytes.
    pub len: usize,
}

/// An opaque object of a backend. Null means "none".
pub type Handle = *mut core::ffi::c_void;

/// Result of a table function: null on success, otherwise an owned error that the receiver must release.
pub type Status = *mut Error;

/// An owned error. The receiver reads it and then passes it to `release`, on any thread.
#[repr(C)]
#[derive(Debug)]
pub struct Error {
    /// End of the last field.
    pub struct_size: u32,
    /// A [`crate::ErrorKind`] as a number; unknown numbers are treated as `Driver`.
    pub kind: u32,
    /// The driver's own code, 0 if there is none.
    pub code: i64,
    /// The operation that failed, e.g. `cuModuleLoadData`.
    pub operation: Str,
    /// What happened and what to do about it.
    pub message: Str,
    /// The driver's own name for `code`, e.g. `CUDA_ERROR_INVALID_PTX`; may be empty.
    pub symbol: Str,
    /// Frees this error; null if it is static.
    #[expect(clippy::use_self, reason = "the C header has no `Self`")]
    pub release: Option<unsafe extern "C" fn(error: *mut Error)>,
}

/// The exported entry point of a backend library: stores the address of a static table in `out`. Makes no
/// driver call.
pub type EntryPoint = unsafe extern "C" fn(out: *mut *const BackendTable) -> Status;

/// Contents of the section [`MANIFEST_SECTION`], read from the file before the library is loaded.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Manifest {
    /// [`MAGIC`].
    pub magic: u64,
    /// Size of this structure.
    pub struct_size: u32,
    /// ABI major version that the library was built for.
    pub major: u16,
    /// ABI minor version that the library was built for.
    pub minor: u16,
    /// Name of the backend, padded with NULs.
    pub name: [u8; 32],
    /// Target triple of the library, padded with NULs.
    pub target: [u8; 64],
}

/// Offset of the end of `field` in structure `ty`: the value of `struct_size` when `field` is the last field.
#[macro_export]
macro_rules! end_of {
    ($ty:ty, $field:ident) => {{
        const fn size_of_field<S, F>(_: fn(&S) -> &F) -> usize {
            core::mem::size_of::<F>()
        }
        #[expect(clippy::cast_possible_truncation, reason = "structures are far below 4 GiB")]
        {
            (core::mem::offset_of!($ty, $field) + size_of_field(|s: &$ty| &s.$field)) as u32
        }
    }};
}

impl Str {
    /// An empty string.
    pub const EMPTY: Self = Self { ptr: core::ptr::null(), len: 0 };

    /// Borrows `text`; the caller keeps it alive for as long as the structure's contract requires.
    #[must_use]
    pub const fn new(text: &str) -> Self {
        Self { ptr: text.as_ptr(), len: text.len() }
    }
}

// SAFETY: `Str` is a borrowed view of immutable bytes; the contract of each structure states how long they
// live.
#[allow(unsafe_code, reason = "the ABI describes raw memory")]
unsafe impl Send for Str {}
// SAFETY: as above; shared reads of immutable bytes are sound.
#[allow(unsafe_code, reason = "the ABI describes raw memory")]
unsafe impl Sync for Str {}
