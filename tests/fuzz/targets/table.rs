//! Backend tables of arbitrary version and size, with arbitrary functions missing: rejected, or every call returns.
//!
//! The functions are those of the null backend, and pointers are valid as the contract requires; all else is arbitrary.
#![no_main]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use runtime_core::abi::{BackendTable, Str};
use runtime_core::backend::LinkedBackend;
use runtime_core::{Arg, CommonRuntime, Geometry, ModuleSource, Runtime};

/// The description of a table.
#[derive(Arbitrary, Debug)]
struct Plan {
    magic: Option<u64>,
    major: Option<u16>,
    minor: u16,
    /// Stated sizes: of the table and of its sub-tables; `None`: null's own.
    sizes: [Option<u16>; 9],
    /// Sub-tables that are null pointers.
    absent: u16,
    /// Functions that are missing, per sub-table.
    missing: [u32; 8],
    name: Option<Vec<u8>>,
    version: Option<Vec<u8>>,
}

/// Functions, by index, that are missing only if a table is too short: without them, objects would pile up.
const KEPT: [u32; 8] = [1 << 2, 1 << 0, 1 << 1, 1 << 1 | 1 << 4, 1 << 1, 1 << 3, 0, 1 << 6];

/// Zeroed memory of a stated size, freed with its owner.
struct Memory(*mut u8, Layout);

impl Memory {
    /// Memory for the larger of `bytes` and `stated`, filled with `bytes`.
    fn holding(bytes: &[u8], stated: usize) -> Self {
        let layout = Layout::from_size_align(bytes.len().max(stated).max(1), 8).expect("64 KiB at most");
        // SAFETY: at least one byte.
        let start = unsafe { alloc_zeroed(layout) };
        // SAFETY: there is room for all of `bytes`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len()) };
        Self(start, layout)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.0, self.1) };
    }
}

/// Copies a sub-table of null, changes its size, and removes functions.
fn sub_table<T>(theirs: *const T, size: Option<u16>, missing: u32) -> Memory {
    // SAFETY: null's sub-tables are static.
    let bytes = unsafe { std::slice::from_raw_parts(theirs.cast::<u8>(), size_of::<T>()) };
    let mut bytes = bytes.to_vec();
    for slot in 0..(bytes.len() - 8) / 8 {
        if missing >> (slot % 32) & 1 == 1 {
            bytes[8 + slot * 8..][..8].fill(0);
        }
    }
    if let Some(size) = size {
        bytes[..4].copy_from_slice(&u32::from(size).to_ne_bytes());
    }
    Memory::holding(&bytes, usize::from(size.unwrap_or(0)))
}

fn text(text: &Option<Vec<u8>>, null: Str) -> Str {
    text.as_ref().map_or(null, |text| Str { ptr: text.as_ptr(), len: text.len() })
}

fuzz_target!(|plan: Plan| {
    let null = *runtime_null::backend().table();
    let mut parts = Vec::new();
    macro_rules! part {
        ($index:expr, $field:ident) => {{
            let missing = plan.missing[$index - 1] & !KEPT[$index - 1];
            let part = sub_table(null.$field, plan.sizes[$index], missing);
            let pointer = if plan.absent >> $index & 1 == 1 { std::ptr::null() } else { part.0.cast() };
            parts.push(part);
            pointer
        }};
    }
    let mut table = BackendTable {
        instance: part!(1, instance),
        device: part!(2, device),
        memory: part!(3, memory),
        module: part!(4, module),
        queue: part!(5, queue),
        graph: part!(6, graph),
        embedded: part!(7, embedded),
        counters: part!(8, counters),
        name: text(&plan.name, null.name),
        version: text(&plan.version, null.version),
        ..null
    };
    table.header.magic = plan.magic.unwrap_or(table.header.magic);
    table.header.major = plan.major.unwrap_or(table.header.major);
    table.header.minor = plan.minor;
    table.header.struct_size = plan.sizes[0].map_or(table.header.struct_size, u32::from);
    // SAFETY: a table is plain data.
    let bytes = unsafe { std::slice::from_raw_parts((&raw const table).cast::<u8>(), size_of_val(&table)) };
    let whole = Memory::holding(bytes, usize::from(plan.sizes[0].unwrap_or(0)));
    // SAFETY: a `Runtime` copies what it needs of a table, and is dropped before the memory.
    let table = unsafe { &*whole.0.cast::<BackendTable>() };
    // SAFETY: as above; the functions are those of null.
    use_all(unsafe { LinkedBackend::from_table(table) });
    drop(parts);
});

/// Makes the calls of a program; errors are valid results.
fn use_all(backend: LinkedBackend) {
    let runtime = Runtime::builder().discover(false).register(backend).build();
    assert_eq!(runtime.load_report().len(), 1);
    for target in runtime.targets() {
        for name in ["0", "1", "2", "9"] {
            if let Ok(device) = runtime.open(&format!("{}:{name}", target.name)) {
                use_device(&*device);
            }
        }
    }
}

fn use_device(device: &dyn CommonRuntime) {
    let _ = device.counters();
    let _ = device.counter_set(&["launches", "misses"]).and_then(|mut set| set.measure(|| Ok(())));
    let _ = (device.telemetry(), device.memory_usage("device"), device.sub_devices());
    let _ = (device.throttle_reasons(), device.processes());
    // SAFETY: null's builtins check their arguments.
    let kernel = device
        .load(&unsafe { ModuleSource::native("null", "scale_f32") })
        .and_then(|module| module.symbols().and_then(|_| module.kernel("scale_f32")));
    let tensor = device.empty::<f32>([4]);
    let queue = device.queue();
    if let (Ok(kernel), Ok(tensor), Ok(queue)) = (&kernel, &tensor, &queue) {
        let args = [Arg::read_write(tensor), Arg::scalar(2f32)];
        let _ = queue.launch(kernel, Geometry::single(), &args).map(|event| event.is_done());
        let _ = (queue.launch_noop().map(drop), queue.timestamp().map(drop), queue.fill(tensor, &[0; 4]).map(drop));
        let _ = queue
            .record(|recorder| recorder.launch(kernel, Geometry::single(), &args))
            .and_then(|graph| queue.instantiate(&graph))
            .map(|graph| queue.replay(&graph).map(drop));
        let _ = queue.wait_idle_timeout(Duration::from_millis(1));
    }
    if let Some(embedded) = device.as_embedded() {
        let _ = (embedded.run(Duration::ZERO), embedded.read(0));
    }
}

/// A backend without `close` cannot be closed; that is not a leak of core.
#[unsafe(no_mangle)]
extern "C" fn __lsan_is_turned_off() -> i32 {
    1
}
