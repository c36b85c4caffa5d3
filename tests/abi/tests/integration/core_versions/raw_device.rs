//! Opens and calls a backend directly through its table, as core does.

use std::time::{Duration, Instant};

use runtime_core::abi::{self, BackendTable, Handle, HostTable, Status, Str};
use runtime_core::backend::convert;
use runtime_core::{Result, end_of};

/// An instance and one of its devices.
pub(crate) struct RawDevice {
    table: &'static BackendTable,
    instance: Handle,
    device: Handle,
}

/// Calls a function of a sub-table, which must exist; converts its error.
macro_rules! call {
    ($self:ident.$table:ident.$function:ident($($arg:expr),* $(,)?)) => {{
        // SAFETY: a table of the backend.
        let function = unsafe { (*$self.table.$table).$function }.expect(stringify!($function));
        // SAFETY: handles of this backend, and structures that live during the call.
        let status = unsafe { function($($arg),*) };
        from_status(status)
    }};
}

/// Calls a function of a sub-table that cannot fail.
macro_rules! call_void {
    ($self:ident.$table:ident.$function:ident($($arg:expr),* $(,)?)) => {{
        // SAFETY: a table of the backend.
        let function = unsafe { (*$self.table.$table).$function }.expect(stringify!($function));
        // SAFETY: an object of this backend that is no longer used.
        unsafe { function($($arg),*) }
    }};
}

fn from_status(status: Status) -> Result<()> {
    // SAFETY: returned by a function of the table, converted once.
    unsafe { convert::from_status(status) }
}

unsafe extern "C" fn no_log(_: u32, _: Str, _: Str) {
    panic!("the log function beyond the stated end of the host table was called");
}

impl RawDevice {
    pub(crate) fn new(table: &'static BackendTable, index: u32) -> Self {
        Self::with_host_of(table, index, end_of!(HostTable, header))
    }

    /// Opens with a host table that states `host_bytes`.
    pub(crate) fn with_host_of(table: &'static BackendTable, index: u32, host_bytes: u32) -> Self {
        let header = abi::Header { magic: abi::MAGIC, struct_size: host_bytes, major: abi::MAJOR, minor: 0 };
        // The host table is leaked, because backends keep it.
        let host: &HostTable = Box::leak(Box::new(HostTable { header, log: Some(no_log) }));
        let mut this = Self { table, instance: std::ptr::null_mut(), device: std::ptr::null_mut() };
        call!(this.instance.open(host, &raw mut this.instance)).unwrap();
        let out = &raw mut this.device;
        call!(this.instance.open_device(this.instance, index, abi::WHOLE_DEVICE, std::ptr::null(), 0, out))
            .unwrap();
        this
    }

    pub(crate) fn memory_usage(&self, out: *mut abi::MemoryUsage) -> Result<()> {
        call!(self.device.memory_usage(self.device, 0, out))
    }

    pub(crate) fn telemetry(&self, out: *mut abi::Telemetry) -> Result<()> {
        call!(self.device.telemetry(self.device, out))
    }

    pub(crate) fn allocate(&self, request: &abi::AllocateRequest, out: *mut abi::Allocation) -> Result<()> {
        call!(self.memory.allocate(self.device, request, out))
    }

    pub(crate) fn free(&self, buffer: Handle) {
        call_void!(self.memory.free(self.device, buffer, std::ptr::null_mut()));
    }

    /// Loads the builtin `name` as a core without load options does: the fields beyond the stated end are garbage.
    pub(crate) fn with_kernel(&self, name: &'static str, body: impl FnOnce(Handle)) {
        let source = abi::ModuleSource {
            struct_size: end_of!(abi::ModuleSource, code_bytes),
            options: std::ptr::dangling(),
            option_count: usize::MAX,
            ..source(name)
        };
        let (mut module, mut kernel) = (std::ptr::null_mut(), std::ptr::null_mut());
        call!(self.module.load(self.device, &raw const source, &raw mut module)).unwrap();
        call!(self.module.kernel(module, Str::new(name), &raw mut kernel)).unwrap();
        body(kernel);
        call_void!(self.module.release_kernel(kernel));
        call_void!(self.module.unload(module));
    }

    pub(crate) fn occupancy(&self, kernel: Handle, out: *mut abi::Occupancy) -> Result<()> {
        call!(self.module.occupancy(kernel, std::ptr::from_ref(&ONE_CALL), out))
    }

    pub(crate) fn kernel_info(&self, kernel: Handle, out: *mut abi::KernelInfo) -> Result<()> {
        call!(self.module.kernel_info(kernel, out))
    }

    /// Launches on a queue, as a core without queue flags does.
    pub(crate) fn launch(&self, kernel: Handle) {
        let options = abi::QueueOptions {
            struct_size: end_of!(abi::QueueOptions, priority),
            priority: 0,
            flags: u64::MAX,
        };
        let mut queue = std::ptr::null_mut();
        call!(self.queue.open(self.device, &raw const options, &raw mut queue)).unwrap();
        let place = abi::SubmitInfo { ticket: 1, after: 0 };
        call!(self.queue.launch(queue, place, kernel, std::ptr::from_ref(&ONE_CALL))).unwrap();
        self.wait(queue, 1);
        call_void!(self.queue.close(queue));
    }

    /// Fills a buffer of 64 bytes at once, and as a node of a graph.
    pub(crate) fn fill(&self, buffer: Handle, bytes: u64, pattern: &[u8]) -> [Result<()>; 2] {
        let (mut queue, mut graph) = (std::ptr::null_mut(), std::ptr::null_mut());
        let options =
            abi::QueueOptions { struct_size: end_of!(abi::QueueOptions, flags), priority: 0, flags: 0 };
        call!(self.queue.open(self.device, &raw const options, &raw mut queue)).unwrap();
        let (submit, length) =
            (abi::SubmitInfo { ticket: 1, after: 0 }, u32::try_from(pattern.len()).unwrap());
        let filled = call!(self.queue.fill(queue, submit, buffer, 0, bytes, pattern.as_ptr(), length));
        call_void!(self.queue.close(queue));
        // SAFETY: zero is valid for every field.
        let mut node: abi::GraphNode = unsafe { std::mem::zeroed() };
        (node.struct_size, node.kind) = (end_of!(abi::GraphNode, dependencies), abi::NODE_FILL);
        (node.destination, node.bytes, node.pattern_bytes) = (buffer, bytes, length);
        pattern.iter().zip(&mut node.pattern).for_each(|(from, to)| *to = *from);
        let nodes = [&raw const node];
        let recorded = call!(self.graph.instantiate(self.device, nodes.as_ptr(), 1, &raw mut graph));
        if !graph.is_null() {
            call_void!(self.graph.close(graph));
        }
        [filled, recorded]
    }

    fn wait(&self, queue: Handle, ticket: u64) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut progress = abi::Progress::default();
        call!(self.queue.signal(queue, ticket)).unwrap();
        call!(self.queue.flush(queue)).unwrap();
        while progress.completed < ticket {
            assert!(Instant::now() < deadline, "the ticket does not end");
            call!(self.queue.wait(queue, ticket, 1_000_000)).unwrap();
            call!(self.queue.poll(queue, &raw mut progress)).unwrap();
        }
        assert_eq!(progress.first_failed, 0);
    }

    /// Opens a set of one counter around `use_set`.
    pub(crate) fn with_counter_set(&self, name: &'static str, use_set: impl FnOnce(Handle)) {
        let (name, mut set) = (Str::new(name), std::ptr::null_mut());
        call!(self.counters.open(self.device, &raw const name, 1, &raw mut set)).unwrap();
        use_set(set);
        call_void!(self.counters.close(set));
    }

    pub(crate) fn counter_info(&self, set: Handle, out: *mut abi::CounterSetInfo) -> Result<()> {
        call!(self.counters.info(set, out))
    }

    /// Flashes the builtin `name` without tensors.
    pub(crate) fn flash(&self, name: &'static str) {
        let image = source(name);
        let (tensors, args) = (std::ptr::null(), std::ptr::null());
        call!(self.embedded.flash(self.device, &raw const image, tensors, 0, args, 0)).unwrap();
    }

    pub(crate) fn run(&self, out: *mut abi::RunReport) -> Result<()> {
        call!(self.embedded.run(self.device, 10_000_000_000, out))
    }
}

/// One call without arguments.
const ONE_CALL: abi::Launch = abi::Launch {
    struct_size: end_of!(abi::Launch, arg_count),
    flags: 0,
    groups: [1; 3],
    group_size: [1; 3],
    cluster: [1; 3],
    grain: 0,
    range: [0; 2],
    args: std::ptr::null(),
    arg_count: 0,
};

const fn source(code: &'static str) -> abi::ModuleSource {
    abi::ModuleSource {
        struct_size: end_of!(abi::ModuleSource, option_count),
        reserved: 0,
        format: Str::new("null"),
        path: Str::EMPTY,
        code: code.as_ptr(),
        code_bytes: code.len(),
        options: std::ptr::null(),
        option_count: 0,
    }
}

impl Drop for RawDevice {
    fn drop(&mut self) {
        call_void!(self.device.close(self.device));
        call_void!(self.instance.close(self.instance));
    }
}
