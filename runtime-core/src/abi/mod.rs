//! The seam: what a backend library and `runtime-core` say to each other, in C.
//!
//! A backend library exports **one** symbol, [`ENTRY_SYMBOL`], of type [`EntryPoint`]. It answers with a
//! pointer to a static [`BackendTable`] and touches no driver. Everything else is reached through that table.
//!
//! Rules that every structure here keeps, so that an older backend works with a newer core and the reverse:
//!
//! - Fields are appended, never moved, removed or retyped, within a major version.
//! - Every table and every structure that may grow begins with `struct_size`, the offset of the end of its last
//!   field. The receiver copies `min(theirs, ours)` bytes into a zeroed structure of its own.
//! - A function pointer that is null or beyond `struct_size` means "unsupported".
//! - Elements of arrays ([`Arg`], [`Property`], [`MemorySpace`], [`Str`]) are frozen within a major version.
//! - For an out-structure the *caller* sets `struct_size`; the callee writes at most that many bytes.
//! - Core refuses lists and texts beyond the `MAX_*` limits: a count is a count of elements that are there.
//! - Strings are UTF-8, with a length, not terminated. Whoever returns a borrowed string says how long it lives.
//! - Nothing allocated on one side is freed by the other: [`Error`] carries its own release function.
//! - No function of a table calls back into core, except [`HostTable::log`], which is thread-safe.
//! - No function of a table may unwind or end the process.
//!
//! The C form of this module is `include/runtime.h`, generated from it.

mod data;
mod kernel;
mod limits;
mod table;

pub use data::*;
pub use kernel::*;
pub use limits::*;
pub use table::*;

/// First field of every [`Header`]: the bytes `RUNTIME\0` read as a little-endian integer.
pub const MAGIC: u64 = 0x0045_4d49_544e_5552;
/// ABI major version: part of the entry point's name. A different major never loads.
pub const MAJOR: u16 = 1;
/// ABI minor version: counts the appended fields.
pub const MINOR: u16 = 3;
/// Name of the only symbol that a backend library exports.
pub const ENTRY_SYMBOL: &str = "runtime_backend_v1";
/// Name of the object-file section that holds the [`Manifest`].
pub const MANIFEST_SECTION: &str = ".runtime_manifest";

/// What every versioned table begins with.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u64,
    /// Offset of the end of the last field of the structure that holds this header.
    pub struct_size: u32,
    /// [`MAJOR`] of the side that filled the structure.
    pub major: u16,
    /// [`MINOR`] of the side that filled the structure.
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

/// Result of a table function: null is success, anything else an owned error that the receiver must release.
pub type Status = *mut Error;

/// An owned error object. The receiver reads it, then calls `release` with it, on any thread.
#[repr(C)]
#[derive(Debug)]
pub struct Error {
    /// End of the last field.
    pub struct_size: u32,
    /// An [`crate::ErrorKind`] by number; an unknown number is read as `Driver`.
    pub kind: u32,
    /// The driver's own code, 0 if there is none.
    pub code: i64,
    /// The operation that failed, e.g. `cuModuleLoadData`.
    pub operation: Str,
    /// What happened and what to do about it.
    pub message: Str,
    /// The driver's own name for `code`, e.g. `CUDA_ERROR_INVALID_PTX`; may be empty.
    pub symbol: Str,
    /// Frees this object. Null: the object is static.
    #[expect(clippy::use_self, reason = "the C header knows no `Self`")]
    pub release: Option<unsafe extern "C" fn(error: *mut Error)>,
}

/// The exported entry point of a backend library: fills `out` with a static table. Pure: touches no driver.
pub type EntryPoint = unsafe extern "C" fn(out: *mut *const BackendTable) -> Status;

/// What stands in the section [`MANIFEST_SECTION`]: read from the file, before anything is loaded.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Manifest {
    /// [`MAGIC`].
    pub magic: u64,
    /// Size of this structure.
    pub struct_size: u32,
    /// ABI major that the library was built for.
    pub major: u16,
    /// ABI minor that the library was built for.
    pub minor: u16,
    /// Name of the backend, NUL-padded.
    pub name: [u8; 32],
    /// Target triple of the library, NUL-padded.
    pub target: [u8; 64],
}

/// The end of `field` in structure `ty`: what belongs into `struct_size` when `field` is the last one.
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

    /// Borrows `text`; the caller keeps it alive for as long as the contract of the structure says.
    #[must_use]
    pub const fn new(text: &str) -> Self {
        Self { ptr: text.as_ptr(), len: text.len() }
    }
}

// SAFETY: `Str` is a borrowed view of immutable bytes; the contract of each structure says how long they live.
#[allow(unsafe_code, reason = "the seam is where raw memory is described")]
unsafe impl Send for Str {}
// SAFETY: as above, shared reads of immutable bytes are fine.
#[allow(unsafe_code, reason = "the seam is where raw memory is described")]
unsafe impl Sync for Str {}
