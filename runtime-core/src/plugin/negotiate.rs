//! Converts a backend's tables, of any minor version, to the [`DispatchTable`] of this version.

use std::mem::MaybeUninit;

use crate::abi::{
    self, BackendTable, CounterCalls, DeviceCalls, EmbeddedCalls, GraphCalls, Header, InstanceCalls,
    MemoryCalls, ModuleCalls, NativeCalls, QueueCalls, Status, Stub,
};
use crate::plugin::convert;
use crate::{Error, ErrorKind, Result};

/// Every function of a backend. A stub for a missing one returns `Unsupported`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DispatchTable {
    pub(crate) instance: InstanceCalls,
    pub(crate) device: DeviceCalls,
    pub(crate) memory: MemoryCalls,
    pub(crate) module: ModuleCalls,
    pub(crate) queue: QueueCalls,
    pub(crate) graph: GraphCalls,
    pub(crate) embedded: EmbeddedCalls,
    pub(crate) counters: CounterCalls,
    pub(crate) native: NativeCalls,
}

/// A backend's table after negotiation.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedBackend {
    pub(crate) name: String,
    pub(crate) version: String,
    /// ABI minor version of the backend.
    pub(crate) minor: u16,
    pub(crate) calls: DispatchTable,
}

impl Stub for Status {
    fn stub(name: &str) -> Self {
        convert::into_status(Error::unsupported(format!("the backend does not provide {name}")))
    }
}

impl Stub for u32 {
    fn stub(_: &str) -> Self {
        0
    }
}

impl Stub for () {
    fn stub(_: &str) -> Self {}
}

/// Copies the fields that both sides have of a structure that begins with its size; all others are zero.
///
/// # Safety
/// `theirs` is readable for `struct_size` bytes, and all-zero bytes are a valid `T`.
#[allow(unsafe_code, reason = "reads a structure of unknown length across the ABI")]
pub(crate) unsafe fn copy_common_prefix<T>(theirs: *const T, struct_size: usize) -> T {
    let mut ours = MaybeUninit::<T>::zeroed();
    let bytes = struct_size.min(size_of::<T>());
    // SAFETY: `theirs` is readable for `struct_size` bytes, `ours` is writable for its size, and they do not
    // overlap.
    unsafe { std::ptr::copy_nonoverlapping(theirs.cast::<u8>(), ours.as_mut_ptr().cast::<u8>(), bytes) };
    // SAFETY: zeroed bytes, partly overwritten with the sender's valid fields, are a valid `T`.
    unsafe { ours.assume_init() }
}

/// Rounds the size of a table down to whole pointers, so that a truncated pointer is never called.
const fn round_down_to_pointer(struct_size: u32) -> usize {
    struct_size as usize / size_of::<usize>() * size_of::<usize>()
}

/// Copies a table that begins with `struct_size: u32`; null yields an empty table.
///
/// # Errors
/// `AbiMismatch` for an invalid address, or a table whose `struct_size` is 0.
#[allow(unsafe_code, reason = "reads a structure of unknown length across the ABI")]
fn copy_table<T: Default>(name: &str, theirs: *const T) -> Result<T> {
    if theirs.is_null() {
        return Ok(T::default());
    }
    if !convert::is_plausible_pointer(theirs) {
        return Err(convert::abi_mismatch(format!(
            "BackendTable.{name} is {theirs:p}, which is not a valid address"
        )));
    }
    // SAFETY: every table begins with its size, and by contract the tables are static.
    let struct_size = unsafe { *theirs.cast::<u32>() };
    if struct_size == 0 {
        return Err(convert::abi_mismatch(format!(
            "struct_size of BackendTable.{name} is 0, but the table has {} bytes; set it to the end of its last field",
            size_of::<T>()
        )));
    }
    // SAFETY: it states its size; an all-zero table is valid and lacks every function.
    Ok(unsafe { copy_common_prefix(theirs, round_down_to_pointer(struct_size)) })
}

/// Checks a backend's table and resolves its functions.
///
/// # Errors
/// `AbiMismatch` for a wrong magic or major version, or an invalid table.
///
/// # Safety
/// `table` is null, or points to a static table that begins with a [`Header`].
#[allow(unsafe_code, reason = "reads a structure of unknown length across the ABI")]
pub(crate) unsafe fn negotiate(table: *const BackendTable) -> Result<ResolvedBackend> {
    let abi_mismatch = |message: String| Error::new(ErrorKind::AbiMismatch, message);
    if table.is_null() {
        return Err(abi_mismatch("the entry point returned no table".to_owned()));
    }
    if !convert::is_plausible_pointer(table) {
        return Err(abi_mismatch(format!(
            "the entry point returned {table:p}, which is not a valid address"
        )));
    }
    // SAFETY: not null, and the caller guarantees a header.
    let header = unsafe { *table.cast::<Header>() };
    if header.magic != abi::MAGIC {
        return Err(abi_mismatch(format!(
            "wrong magic {:#018x}: not a backend of this project",
            header.magic
        )));
    }
    if header.major != abi::MAJOR {
        return Err(abi_mismatch(format!(
            "it has ABI major {}, this program has {}; rebuild the backend",
            header.major,
            abi::MAJOR
        )));
    }
    if (header.struct_size as usize) < size_of::<Header>() + 2 * size_of::<abi::Str>() {
        return Err(abi_mismatch(format!("the table of {} bytes has no name", header.struct_size)));
    }
    // SAFETY: the table states its size; zero is valid for every field.
    let table = unsafe { copy_common_prefix(table, round_down_to_pointer(header.struct_size)) };
    Ok(ResolvedBackend {
        // SAFETY: the strings of the table are static.
        name: unsafe { convert::read_str("BackendTable.name", table.name) }?,
        // SAFETY: the strings of the table are static.
        version: unsafe { convert::read_str("BackendTable.version", table.version) }?,
        minor: header.minor,
        calls: DispatchTable {
            instance: copy_table("instance", table.instance)?.into(),
            device: copy_table("device", table.device)?.into(),
            memory: copy_table("memory", table.memory)?.into(),
            module: copy_table("module", table.module)?.into(),
            queue: copy_table("queue", table.queue)?.into(),
            graph: copy_table("graph", table.graph)?.into(),
            embedded: copy_table("embedded", table.embedded)?.into(),
            counters: copy_table("counters", table.counters)?.into(),
            native: copy_table("native", table.native)?.into(),
        },
    })
}

#[cfg(test)]
#[allow(unsafe_code, reason = "calls table functions")]
mod tests {
    use super::*;
    use crate::abi::{DeviceTable, Handle, MAGIC, MAJOR, Str};
    use crate::end_of;

    extern "C" fn close(_: Handle) {}

    extern "C" fn refuse(_: Handle, _: u32, _: *mut abi::MemoryUsage) -> Status {
        convert::into_status(Error::new(ErrorKind::Driver, "called"))
    }

    fn header(struct_size: u32) -> Header {
        Header { magic: MAGIC, struct_size, major: MAJOR, minor: 0 }
    }

    fn table(device: *const DeviceTable) -> BackendTable {
        BackendTable {
            header: header(end_of!(BackendTable, native)),
            name: Str::new("x"),
            version: Str::new("1"),
            instance: std::ptr::null(),
            device,
            memory: std::ptr::null(),
            module: std::ptr::null(),
            queue: std::ptr::null(),
            graph: std::ptr::null(),
            embedded: std::ptr::null(),
            counters: std::ptr::null(),
            native: std::ptr::null(),
        }
    }

    fn reason(table: *const BackendTable) -> String {
        // SAFETY: null or a table of the caller's frame.
        let error = unsafe { negotiate(table) }.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AbiMismatch);
        error.message().to_owned()
    }

    /// The error that `device.memory_usage` of the table returns.
    fn memory_usage(table: &BackendTable) -> Error {
        // SAFETY: a table of the caller's frame.
        let calls = unsafe { negotiate(table) }.unwrap().calls;
        // SAFETY: the function ignores its arguments.
        let status = unsafe { (calls.device.memory_usage)(std::ptr::null_mut(), 0, std::ptr::null_mut()) };
        // SAFETY: an owned error.
        unsafe { convert::from_status(status) }.unwrap_err()
    }

    #[test]
    fn a_foreign_or_incompatible_table_is_rejected() {
        assert!(reason(std::ptr::null()).contains("no table"));
        let mut wrong = table(std::ptr::null());
        wrong.header.magic = 1;
        assert!(reason(&raw const wrong).contains("wrong magic 0x0000000000000001"));
        wrong = table(std::ptr::null());
        for major in [0, 2, u16::MAX] {
            wrong.header.major = major;
            let expected = format!("ABI major {major}, this program has 1");
            assert!(reason(&raw const wrong).contains(&expected), "{major}");
        }
        wrong = table(std::ptr::null());
        for struct_size in [end_of!(BackendTable, name), end_of!(BackendTable, version) - 1] {
            wrong.header.struct_size = struct_size;
            assert!(reason(&raw const wrong).contains("no name"), "{struct_size}");
        }
        wrong.header.struct_size = end_of!(BackendTable, version);
        // SAFETY: a table of this frame.
        assert!(unsafe { negotiate(&raw const wrong) }.is_ok(), "it lacks only functions");
    }

    #[test]
    fn an_invalid_table_is_rejected_before_it_is_read() {
        let broken = table(std::ptr::without_provenance(64));
        assert_eq!(reason(&raw const broken), "BackendTable.device is 0x40, which is not a valid address");
        let unaligned = table((&raw const broken).cast::<u8>().wrapping_add(1).cast());
        assert!(reason(&raw const unaligned).contains("which is not a valid address"));
        let forgotten = DeviceTable { struct_size: 0, close: Some(close), ..DeviceTable::default() };
        let forgotten = table(&raw const forgotten);
        let text = reason(&raw const forgotten);
        assert!(
            text.starts_with("struct_size of BackendTable.device is 0, but the table has 56 bytes"),
            "{text}"
        );
        assert!(reason(std::ptr::without_provenance(5)).contains("not a valid address"));
        let mut wrong = table(std::ptr::null());
        for (len, expected) in [(usize::MAX, "at most 1048576"), (2, "BackendTable.name is not UTF-8")] {
            wrong.name = Str { ptr: b"\xff\xff".as_ptr(), len };
            assert!(reason(&raw const wrong).contains(expected));
        }
    }

    #[test]
    fn functions_beyond_the_size_of_a_table_are_stubs() {
        let device = DeviceTable {
            struct_size: end_of!(DeviceTable, close),
            close: Some(close),
            memory_usage: Some(refuse),
            ..DeviceTable::default()
        };
        let error = memory_usage(&table(&raw const device));
        assert_eq!(error.kind(), ErrorKind::Unsupported, "a function beyond the stated size was called");
        assert!(error.message().contains("DeviceTable.memory_usage"), "{error}");
        let older =
            BackendTable { header: header(end_of!(BackendTable, instance)), ..table(&raw const device) };
        assert_eq!(
            memory_usage(&older).kind(),
            ErrorKind::Unsupported,
            "a table beyond the stated size was used"
        );
    }

    #[test]
    fn a_truncated_pointer_is_not_called() {
        let whole = end_of!(DeviceTable, memory_usage);
        for struct_size in whole - 7..whole {
            let device = DeviceTable { struct_size, memory_usage: Some(refuse), ..DeviceTable::default() };
            assert_eq!(
                memory_usage(&table(&raw const device)).kind(),
                ErrorKind::Unsupported,
                "{struct_size}"
            );
            let whole = DeviceTable { struct_size: whole, ..device };
            let size = end_of!(BackendTable, device) - (end_of!(DeviceTable, memory_usage) - struct_size);
            let backend = BackendTable { header: header(size), ..table(&raw const whole) };
            assert_eq!(memory_usage(&backend).kind(), ErrorKind::Unsupported, "{size}");
        }
    }

    #[test]
    fn unknown_fields_of_a_newer_table_are_ignored() {
        #[repr(C)]
        struct Newer<T>(T, [usize; 9]);
        let device = Newer(
            DeviceTable { struct_size: 0, memory_usage: Some(refuse), ..DeviceTable::default() },
            [usize::MAX; 9],
        );
        let device = Newer(
            DeviceTable { struct_size: u32::try_from(size_of_val(&device)).unwrap(), ..device.0 },
            device.1,
        );
        let backend = Newer(table((&raw const device).cast()), [usize::MAX; 9]);
        let size = u32::try_from(size_of_val(&backend)).unwrap();
        let backend = Newer(BackendTable { header: header(size), ..backend.0 }, backend.1);
        assert_eq!(memory_usage(&backend.0).kind(), ErrorKind::Driver);
    }

    #[test]
    fn a_stub_names_the_missing_function() {
        let device = DeviceTable { struct_size: end_of!(DeviceTable, telemetry), ..DeviceTable::default() };
        assert!(memory_usage(&table(&raw const device)).message().contains("DeviceTable.memory_usage"));
        let error = memory_usage(&table(std::ptr::null()));
        assert_eq!(error.kind(), ErrorKind::Unsupported, "a missing table has only stubs");
    }
}
