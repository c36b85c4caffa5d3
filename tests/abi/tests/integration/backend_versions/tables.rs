//! Builds tables of other minor versions by truncating and extending the present ones.

use std::mem::offset_of;

use runtime_core::abi::{
    BackendTable, CounterTable, DeviceTable, EmbeddedTable, GraphTable, InstanceTable, MemoryTable,
    ModuleTable, NativeTable, QueueTable,
};

/// Functions that a later version might append.
const EXTRA_SLOTS: usize = 3;
/// The minor version of [`newer`].
pub(crate) const LATER_MINOR: u16 = runtime_core::abi::MINOR + 7;

/// A sub-table: its name, and the offset of its pointer in a [`BackendTable`].
const TABLES: [(&str, usize); 9] = [
    ("InstanceTable", offset_of!(BackendTable, instance)),
    ("DeviceTable", offset_of!(BackendTable, device)),
    ("MemoryTable", offset_of!(BackendTable, memory)),
    ("ModuleTable", offset_of!(BackendTable, module)),
    ("QueueTable", offset_of!(BackendTable, queue)),
    ("GraphTable", offset_of!(BackendTable, graph)),
    ("EmbeddedTable", offset_of!(BackendTable, embedded)),
    ("CounterTable", offset_of!(BackendTable, counters)),
    ("NativeTable", offset_of!(BackendTable, native)),
];

macro_rules! slots {
    ($($table:ident { $($field:ident),* })*) => {
        /// Every function of every table, with its offset.
        pub(crate) const SLOTS: &[(&str, usize)] =
            &[$($((concat!(stringify!($table), ".", stringify!($field)), offset_of!($table, $field)),)*)*];
    };
}

slots! {
    InstanceTable { options, open, close, devices, open_device, architecture, compile_for, diagnose, process_variables }
    DeviceTable { close, memory_usage, peer_access, telemetry, throttle_reasons, processes }
    MemoryTable { allocate, free, import_host, import_device_memory }
    ModuleTable {
        load, unload, symbols, kernel, release_kernel, kernel_info, occupancy, compiler_identity, compile, compiled_code,
        release_compiled, fits
    }
    QueueTable {
        open, close, launch, try_begin_inline, run_inline, write, read, copy, fill, noop, timestamp, read_timestamp, signal, flush, poll,
        wait, wait_for, failure, copy_2d, wait_blocking, hold, resume
    }
    GraphTable { instantiate, update, replay, close }
    EmbeddedTable { flash, run, read, inspect }
    CounterTable { list, open, info, begin, end, read, close }
    NativeTable { device, buffer, submit, open_queue }
}

/// The function beyond the stated end of a table: calling it aborts the test.
extern "C" fn beyond_the_end() {
    std::process::abort();
}

/// A table as words, with room for more functions.
struct TableCopy(Vec<usize>);

impl TableCopy {
    /// Copies the table at `from`, whose size is at offset `size_at`, and appends functions that must not be called.
    fn of(from: *const u8, size_at: usize) -> Self {
        // SAFETY: a table states its size at this offset, which is within the table.
        let size = unsafe { from.add(size_at) }.cast::<u32>();
        // SAFETY: as above.
        let bytes = unsafe { size.read() } as usize;
        let words = bytes / size_of::<usize>();
        assert_eq!(words * size_of::<usize>(), bytes, "tables consist of whole words");
        // SAFETY: the table has that size and the alignment of a pointer.
        let known = unsafe { std::slice::from_raw_parts(from.cast::<usize>(), words) };
        let later = [beyond_the_end as extern "C" fn() as usize; EXTRA_SLOTS];
        Self([known, &later].concat())
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    /// Changes the stated size.
    fn state(&mut self, size_at: usize, bytes: usize) {
        let mut word = self.0[size_at / size_of::<usize>()].to_ne_bytes();
        word[..4].copy_from_slice(&u32::try_from(bytes).unwrap().to_ne_bytes());
        self.0[size_at / size_of::<usize>()] = usize::from_ne_bytes(word);
    }

    /// Leaks it, because tables are static.
    fn leak(self) -> *const u8 {
        self.0.leak().as_ptr().cast()
    }
}

/// The offset of the size in a [`BackendTable`].
const HEADER_SIZE_AT: usize =
    offset_of!(BackendTable, header) + offset_of!(runtime_core::abi::Header, struct_size);

/// Copies a backend's table, with each sub-table modified by `change`; null stays null.
fn remake(
    today: &'static BackendTable,
    change: impl Fn(&str, &mut TableCopy),
    finish: impl Fn(&mut TableCopy),
) -> &'static BackendTable {
    let mut backend = TableCopy::of(std::ptr::from_ref(today).cast(), HEADER_SIZE_AT);
    for (name, at) in TABLES {
        let word = &mut backend.0[at / size_of::<usize>()];
        if *word != 0 {
            let mut table = TableCopy::of(std::ptr::with_exposed_provenance(*word), 0);
            change(name, &mut table);
            *word = table.leak().expose_provenance();
        }
    }
    finish(&mut backend);
    // SAFETY: a copy of a backend's table with valid pointers, which is never freed.
    unsafe { &*backend.leak().cast::<BackendTable>() }
}

/// An older backend: the table of `slot` ends before it.
pub(crate) fn truncated(today: &'static BackendTable, slot: &str) -> &'static BackendTable {
    let (table, offset) = place(slot);
    let cut = |name: &str, copy: &mut TableCopy| {
        if name == table {
            copy.0[offset / size_of::<usize>()..].fill(beyond_the_end as extern "C" fn() as usize);
            copy.state(0, offset);
        }
    };
    remake(today, cut, |_| {})
}

/// A backend that leaves `slot` empty.
pub(crate) fn with_null_slot(today: &'static BackendTable, slot: &str) -> &'static BackendTable {
    let (table, offset) = place(slot);
    let empty = |name: &str, copy: &mut TableCopy| {
        if name == table {
            copy.0[offset / size_of::<usize>()] = 0;
        }
    };
    remake(today, empty, |_| {})
}

/// A newer backend: every table has more functions than today's core knows.
pub(crate) fn extended(today: &'static BackendTable) -> &'static BackendTable {
    let grow = |_: &str, copy: &mut TableCopy| copy.state(0, copy.bytes());
    remake(today, grow, |backend| {
        backend.state(HEADER_SIZE_AT, backend.bytes());
        let word = &mut backend.0[HEADER_SIZE_AT / size_of::<usize>()];
        let mut header = word.to_ne_bytes();
        header[6..].copy_from_slice(&LATER_MINOR.to_ne_bytes());
        *word = usize::from_ne_bytes(header);
    })
}

fn place(slot: &str) -> (&str, usize) {
    let (_, offset) =
        SLOTS.iter().find(|(name, _)| *name == slot).unwrap_or_else(|| panic!("no slot {slot}"));
    (slot.split_once('.').unwrap().0, *offset)
}
