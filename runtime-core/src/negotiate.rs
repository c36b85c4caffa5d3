//! Turns a backend's tables, of whatever version, into [`Calls`] of this one.

use std::mem::MaybeUninit;

use crate::abi::{
    self, BackendTable, DeviceCalls, EmbeddedCalls, GraphCalls, Header, InstanceCalls, MemoryCalls, ModuleCalls, QueueCalls, Status,
};
use crate::{Error, ErrorKind, Result};

/// Every function of a backend; what it lacks answers `Unsupported`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calls {
    pub(crate) instance: InstanceCalls,
    pub(crate) device: DeviceCalls,
    pub(crate) memory: MemoryCalls,
    pub(crate) module: ModuleCalls,
    pub(crate) queue: QueueCalls,
    pub(crate) graph: GraphCalls,
    pub(crate) embedded: EmbeddedCalls,
}

/// A backend's table after negotiation.
#[derive(Clone, Debug)]
pub(crate) struct Negotiated {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The backend's ABI minor.
    pub(crate) minor: u16,
    pub(crate) calls: Calls,
}

/// What a missing function returns.
pub(crate) trait Missing {
    fn missing(name: &str) -> Self;
}

impl Missing for Status {
    fn missing(name: &str) -> Self {
        abi::into_status(Error::unsupported(format!("{name}: the backend does not provide it")))
    }
}

impl Missing for u32 {
    fn missing(_: &str) -> Self {
        0
    }
}

impl Missing for () {
    fn missing(_: &str) -> Self {}
}

/// Copies what both sides know of a structure that begins with its size; the rest is zero.
///
/// # Safety
/// `theirs` is readable for the size that it states, and all-zero bytes are a valid `T`.
#[allow(unsafe_code, reason = "reads a structure of unknown length across the seam")]
unsafe fn copy_known<T>(theirs: *const T, stated_bytes: usize) -> T {
    let mut ours = MaybeUninit::<T>::zeroed();
    let bytes = stated_bytes.min(size_of::<T>());
    // SAFETY: `theirs` is readable for `stated_bytes`, `ours` is writable for its size, and they do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(theirs.cast::<u8>(), ours.as_mut_ptr().cast::<u8>(), bytes) };
    // SAFETY: zeroed bytes, partly replaced by the other side's valid fields, are a valid `T`.
    unsafe { ours.assume_init() }
}

/// Copies a sub-table that begins with `struct_size: u32`; null is an empty table.
#[allow(unsafe_code, reason = "reads a structure of unknown length across the seam")]
fn sub_table<T: Default>(theirs: *const T) -> T {
    if theirs.is_null() {
        return T::default();
    }
    // SAFETY: every table begins with its size, and the entry point promised a static table.
    let stated = unsafe { *theirs.cast::<u32>() };
    // SAFETY: it states its own size; zero is a valid table: every function missing.
    unsafe { copy_known(theirs, stated as usize) }
}

/// Checks a backend's table and resolves its functions.
///
/// # Errors
/// `AbiMismatch` for a wrong magic or major.
///
/// # Safety
/// `table` is null, or points to a table that lives forever and begins with a [`Header`].
#[allow(unsafe_code, reason = "reads a structure of unknown length across the seam")]
pub(crate) unsafe fn negotiate(table: *const BackendTable) -> Result<Negotiated> {
    let mismatch = |message: String| Error::new(ErrorKind::AbiMismatch, message);
    if table.is_null() || !table.is_aligned() {
        return Err(mismatch("the entry point returned no table".to_owned()));
    }
    // SAFETY: not null, and the caller promises a header.
    let header = unsafe { *table.cast::<Header>() };
    if header.magic != abi::MAGIC {
        return Err(mismatch(format!("wrong magic {:#018x}: not a table of this project", header.magic)));
    }
    if header.major != abi::MAJOR {
        return Err(mismatch(format!("speaks ABI major {}, this program speaks {}; rebuild the backend", header.major, abi::MAJOR)));
    }
    if (header.struct_size as usize) < size_of::<Header>() + 2 * size_of::<abi::Str>() {
        return Err(mismatch(format!("table of {} bytes has no name", header.struct_size)));
    }
    // SAFETY: the table states its own size; zero is valid in every field.
    let table = unsafe { copy_known(table, header.struct_size as usize) };
    Ok(Negotiated {
        // SAFETY: strings of the table are static.
        name: unsafe { abi::read_str(table.name) }?,
        // SAFETY: strings of the table are static.
        version: unsafe { abi::read_str(table.version) }?,
        minor: header.minor,
        calls: Calls {
            instance: sub_table(table.instance).into(),
            device: sub_table(table.device).into(),
            memory: sub_table(table.memory).into(),
            module: sub_table(table.module).into(),
            queue: sub_table(table.queue).into(),
            graph: sub_table(table.graph).into(),
            embedded: sub_table(table.embedded).into(),
        },
    })
}
