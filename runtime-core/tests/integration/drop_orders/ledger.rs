//! A layer over the null backend's table that counts objects, to check that everything is closed, parents last.
//!
//! Each worker of a test has its own table and counts, so that workers can run in parallel.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

use runtime_core::abi::{
    AllocateRequest, Allocation, BackendTable, DeviceTable, GraphNode, GraphTable, Handle, HostTable,
    InstanceTable, MemoryTable, ModuleSource, ModuleTable, Property, QueueOptions, QueueTable, Status, Str,
};
use runtime_core::backend::LinkedBackend;

/// Maximum number of workers.
pub(crate) const WORKERS: usize = 8;

/// The kinds of counted objects.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Instance,
    Device,
    Buffer,
    Module,
    Kernel,
    Queue,
    Graph,
    /// Parents that were closed before their children.
    Orphans,
}

const KINDS: usize = Kind::Orphans as usize + 1;

static COUNTS: [[AtomicI64; KINDS]; WORKERS] = [const { [const { AtomicI64::new(0) }; KINDS] }; WORKERS];

/// How many objects of each kind worker `W` has.
pub(crate) fn counts<const W: usize>() -> [i64; KINDS] {
    std::array::from_fn(|kind| COUNTS[W][kind].load(Ordering::SeqCst))
}

fn add<const W: usize>(kind: Kind, change: i64) {
    COUNTS[W][kind as usize].fetch_add(change, Ordering::SeqCst);
}

fn opened<const W: usize>(kind: Kind, status: Status) -> Status {
    if status.is_null() {
        add::<W>(kind, 1);
    }
    status
}

/// Records the end of an object; its `children` must have ended before.
fn closing<const W: usize>(kind: Kind, children: &[Kind]) {
    let counts = counts::<W>();
    if children.iter().any(|&child| counts[child as usize] != 0) {
        add::<W>(Kind::Orphans, 1);
    }
    add::<W>(kind, -1);
}

/// Null's table of one kind.
fn null<T: Copy>(table: impl FnOnce(&BackendTable) -> *const T) -> T {
    // SAFETY: null's table has all sub-tables, and they are static.
    unsafe { *table(runtime_null::backend().table()) }
}

macro_rules! counted {
    ($(opens $name:ident = $table:ident.$slot:ident: $type:ident, $kind:ident($($arg:ident: $ty:ty),*);)*) => {$(
        unsafe extern "C" fn $name<const W: usize>($($arg: $ty),*) -> Status {
            let call = null::<$type>(|backend| backend.$table).$slot.unwrap();
            // SAFETY: core's arguments, passed on.
            opened::<W>(Kind::$kind, unsafe { call($($arg),*) })
        }
    )*};
    ($(closes $name:ident = $table:ident.$slot:ident: $type:ident, $kind:ident $children:expr, ($($arg:ident: $ty:ty),*);)*) => {$(
        unsafe extern "C" fn $name<const W: usize>($($arg: $ty),*) {
            closing::<W>(Kind::$kind, $children);
            let call = null::<$type>(|backend| backend.$table).$slot.unwrap();
            // SAFETY: core's arguments, passed on.
            unsafe { call($($arg),*) }
        }
    )*};
}

counted! {
    opens open_instance = instance.open: InstanceTable, Instance(host: *const HostTable, out: *mut Handle);
    opens open_device = instance.open_device: InstanceTable, Device(instance: Handle, index: u32, sub: u32, options: *const Property, count: usize, out: *mut Handle);
    opens allocate = memory.allocate: MemoryTable, Buffer(device: Handle, request: *const AllocateRequest, out: *mut Allocation);
    opens load = module.load: ModuleTable, Module(device: Handle, source: *const ModuleSource, out: *mut Handle);
    opens kernel = module.kernel: ModuleTable, Kernel(module: Handle, name: Str, out: *mut Handle);
    opens open_queue = queue.open: QueueTable, Queue(device: Handle, options: *const QueueOptions, out: *mut Handle);
    opens instantiate = graph.instantiate: GraphTable, Graph(device: Handle, nodes: *const *const GraphNode, count: usize, out: *mut Handle);
}

counted! {
    closes close_instance = instance.close: InstanceTable, Instance &[Kind::Device], (instance: Handle);
    closes close_device = device.close: DeviceTable, Device &[Kind::Buffer, Kind::Module, Kind::Kernel, Kind::Queue, Kind::Graph], (device: Handle);
    closes free = memory.free: MemoryTable, Buffer &[], (device: Handle, buffer: Handle, queue: Handle);
    closes unload = module.unload: ModuleTable, Module &[Kind::Kernel], (module: Handle);
    closes release_kernel = module.release_kernel: ModuleTable, Kernel &[], (kernel: Handle);
    closes close_queue = queue.close: QueueTable, Queue &[], (queue: Handle);
    closes close_graph = graph.close: GraphTable, Graph &[], (graph: Handle);
}

/// Null's table, counted for worker `W`. Made once per worker and kept.
pub(crate) fn backend<const W: usize>() -> LinkedBackend {
    static MADE: [OnceLock<LinkedBackend>; WORKERS] = [const { OnceLock::new() }; WORKERS];
    *MADE[W].get_or_init(|| {
        let instance = InstanceTable {
            open: Some(open_instance::<W>),
            open_device: Some(open_device::<W>),
            close: Some(close_instance::<W>),
            ..null(|backend| backend.instance)
        };
        let module = ModuleTable {
            load: Some(load::<W>),
            unload: Some(unload::<W>),
            kernel: Some(kernel::<W>),
            release_kernel: Some(release_kernel::<W>),
            ..null(|backend| backend.module)
        };
        let device = DeviceTable { close: Some(close_device::<W>), ..null(|backend| backend.device) };
        let memory = MemoryTable {
            allocate: Some(allocate::<W>),
            free: Some(free::<W>),
            ..null(|backend| backend.memory)
        };
        let queue = QueueTable {
            open: Some(open_queue::<W>),
            close: Some(close_queue::<W>),
            ..null(|backend| backend.queue)
        };
        let graph = GraphTable {
            instantiate: Some(instantiate::<W>),
            close: Some(close_graph::<W>),
            ..null(|backend| backend.graph)
        };
        let table = kept(BackendTable {
            instance: kept(instance),
            device: kept(device),
            memory: kept(memory),
            module: kept(module),
            queue: kept(queue),
            graph: kept(graph),
            ..*runtime_null::backend().table()
        });
        // SAFETY: every function counts, and calls null's.
        unsafe { LinkedBackend::from_table(table) }
    })
}

fn kept<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}
