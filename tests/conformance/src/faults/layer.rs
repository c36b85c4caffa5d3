//! A layer over a backend's table: its functions count calls, check that the objects they are passed are open, and
//! inject the fault of the run.
//!
//! There is one layer per process, because table functions have no user data.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use runtime_core::abi::{
    self, AllocateRequest, Allocation, Arg, BackendTable, CompiledCode, Copy2D, Counter, CounterReading,
    CounterSetInfo, CounterTable, DeviceInfo, DeviceTable, EmbeddedTable, GraphNode, GraphTable, Handle,
    Header, HostTable, InstanceTable, KernelInfo, Launch, MemoryTable, MemoryUsage, ModuleSource,
    ModuleTable, NativeHandle, NativeTable, NativeWork, Occupancy, OptionSpec, Progress, Property,
    QueueOptions, QueueTable, RunReport, Status, Str, SubmitInfo, Telemetry, TensorDescription,
};
use runtime_core::backend::convert;
use runtime_core::{Error, ErrorKind};

use super::corrupt::{self, Argument, List, Returned};
use super::object_tracker::{self, Kind};
use crate::backend_table::{copy_known, leak, struct_size, sub_table};

/// The tables of the backend below the layer.
struct Below {
    instance: InstanceTable,
    device: DeviceTable,
    memory: MemoryTable,
    module: ModuleTable,
    queue: QueueTable,
    graph: GraphTable,
    embedded: EmbeddedTable,
    counters: CounterTable,
    native: NativeTable,
}

static BELOW: OnceLock<Below> = OnceLock::new();

/// Work of the cases ends within this time, unless it waits for the case itself.
const MAX_WORK_TIME: Duration = Duration::from_millis(500);

/// Puts the layer over a backend; only the first backend of a process gets one.
pub(super) fn wrap_backend(backend_table: &'static BackendTable) -> &'static BackendTable {
    // SAFETY: the header of a table states its size.
    let table: BackendTable = unsafe { copy_known(backend_table, backend_table.header.struct_size) };
    let below = BELOW.get_or_init(|| Below {
        instance: sub_table(table.instance),
        device: sub_table(table.device),
        memory: sub_table(table.memory),
        module: sub_table(table.module),
        queue: sub_table(table.queue),
        graph: sub_table(table.graph),
        embedded: sub_table(table.embedded),
        counters: sub_table(table.counters),
        native: sub_table(table.native),
    });
    leak(BackendTable {
        header: Header { struct_size: struct_size::<BackendTable>(), ..table.header },
        instance: leak(instance::wrap(&below.instance)),
        device: leak(device::wrap(&below.device)),
        memory: leak(memory::wrap(&below.memory)),
        module: leak(module::wrap(&below.module)),
        queue: leak(queue::wrap(&below.queue)),
        graph: leak(graph::wrap(&below.graph)),
        embedded: leak(embedded::wrap(&below.embedded)),
        counters: leak(counters::wrap(&below.counters)),
        native: leak(native::wrap(&below.native)),
        ..table
    })
}

/// Intercepts a call of the backend.
trait Intercept<R> {
    fn intercept(self, name: &'static str, call: impl FnOnce() -> R) -> R;
}

/// The call uses these objects.
struct Uses<const N: usize>([(Kind, Handle); N]);
/// The call opens an object of this kind and parent; the backend writes its handle to `.2`.
struct Opens(Kind, (Kind, Handle), *mut Handle);
/// The call allocates a buffer.
struct Allocates((Kind, Handle), *mut Allocation);
/// The call closes an object.
struct Closes(Kind, Handle);
/// The call uses a queue, a kernel, and the buffers of a launch.
struct Launches((Kind, Handle), (Kind, Handle), *const Launch);
/// Like `Launches`, but runs a claimed ticket: it is executed even if an error is injected.
struct Runs(Launches);
/// The call uses a queue and two buffers.
struct Copies2d((Kind, Handle), *const Copy2D);
/// The call submits work to a queue.
struct Submits<A>(Handle, SubmitInfo, A);
/// The call claims an idle queue: an injected fault makes it return 0, which is not an error.
struct Claims(Handle);
/// The call reads why a queue failed: an injected fault makes it return no reason.
struct ReadsFailure(Handle);

fn injected_error(name: &str, kind: ErrorKind) -> Status {
    convert::into_status(Error::new(kind, format!("an error injected into {name}")))
}

impl<const N: usize> Intercept<Status> for Uses<N> {
    fn intercept(self, name: &'static str, call: impl FnOnce() -> Status) -> Status {
        object_tracker::before_call(name, &self.0).map_or_else(call, |kind| injected_error(name, kind))
    }
}

impl Intercept<Status> for Opens {
    fn intercept(self, name: &'static str, call: impl FnOnce() -> Status) -> Status {
        let parents = if self.1.1.is_null() { &[][..] } else { &[self.1] };
        if let Some(kind) = object_tracker::before_call(name, parents) {
            return injected_error(name, kind);
        }
        let status = call();
        if status.is_null() {
            // SAFETY: `out` is valid, and the backend has written the handle.
            object_tracker::opened((self.0, unsafe { *self.2 }), self.1);
        }
        status
    }
}

impl Intercept<Status> for Allocates {
    fn intercept(self, name: &'static str, call: impl FnOnce() -> Status) -> Status {
        if let Some(kind) = object_tracker::before_call(name, &[self.0]) {
            return injected_error(name, kind);
        }
        let status = call();
        if status.is_null() {
            // SAFETY: the pointer is valid, and the backend has written the allocation.
            object_tracker::opened((Kind::Buffer, unsafe { (*self.1).buffer }), self.0);
        }
        status
    }
}

impl Intercept<()> for Closes {
    fn intercept(self, name: &'static str, call: impl FnOnce()) {
        object_tracker::closing(name, (self.0, self.1));
        call();
    }
}

impl Launches {
    fn enter(&self, name: &'static str) -> Option<ErrorKind> {
        let mut used = vec![self.0];
        if !self.1.1.is_null() {
            used.push(self.1);
        }
        // SAFETY: null, or core's launch, which is valid during the call.
        if let Some(launch) = unsafe { self.2.as_ref() } {
            // SAFETY: the arguments are valid as long as the launch.
            let args =
                unsafe { convert::borrow_slice::<Arg>("args", launch.args, launch.arg_count, usize::MAX) };
            let args = args.unwrap_or_default();
            for arg in args.iter().filter(|arg| arg.kind == abi::ARG_TENSOR) {
                // SAFETY: the kind says which member is set.
                let tensor = unsafe { arg.value.tensor };
                // SAFETY: core's tensor, which is valid during the call.
                used.push((Kind::Buffer, unsafe { (*tensor).buffer }));
            }
        }
        object_tracker::before_call(name, &used)
    }
}

impl Intercept<Status> for Launches {
    fn intercept(self, name: &'static str, call: impl FnOnce() -> Status) -> Status {
        self.enter(name).map_or_else(call, |kind| injected_error(name, kind))
    }
}

impl Intercept<Status> for Copies2d {
    fn intercept(self, name: &'static str, call: impl FnOnce() -> Status) -> Status {
        // SAFETY: core's copy, which is valid during the call.
        let Copy2D { destination, source, .. } = unsafe { *self.1 };
        Uses([self.0, buffer_of(destination), buffer_of(source)]).intercept(name, call)
    }
}

impl Intercept<Status> for Runs {
    fn intercept(self, name: &'static str, call: impl FnOnce() -> Status) -> Status {
        let injected = self.0.enter(name);
        let status = call();
        match injected {
            Some(kind) if status.is_null() => injected_error(name, kind),
            _ => status,
        }
    }
}

impl<A: Intercept<Status>> Intercept<Status> for Submits<A> {
    fn intercept(self, name: &'static str, call: impl FnOnce() -> Status) -> Status {
        let Self(queue, place, inner) = self;
        let status = inner.intercept(name, call);
        if status.is_null() && corrupt::is_spurious_error() {
            wait_for_end(queue, place.ticket);
        }
        status
    }
}

/// Waits until a ticket ends, before its submission is reported as failed: core then frees the memory that the work
/// uses, so the work must not still be running.
fn wait_for_end(queue: Handle, ticket: u64) {
    let Some((flush, poll)) = BELOW.get().and_then(|below| below.queue.flush.zip(below.queue.poll)) else {
        return;
    };
    let deadline = Instant::now() + MAX_WORK_TIME;
    // SAFETY: the queue is open: a call on it has just returned.
    let mut status = unsafe { flush(queue) };
    while status.is_null() && Instant::now() < deadline {
        let mut progress = Progress::default();
        // SAFETY: as above.
        status = unsafe { poll(queue, &raw mut progress) };
        if progress.completed >= ticket {
            return;
        }
        thread::sleep(Duration::from_micros(100));
    }
}

impl Intercept<u32> for Claims {
    fn intercept(self, name: &'static str, call: impl FnOnce() -> u32) -> u32 {
        object_tracker::before_call(name, &[(Kind::Queue, self.0)]).map_or_else(call, |_| 0)
    }
}

impl Intercept<Status> for ReadsFailure {
    fn intercept(self, name: &'static str, call: impl FnOnce() -> Status) -> Status {
        object_tracker::before_call(name, &[(Kind::Queue, self.0)])
            .map_or_else(call, |_| std::ptr::null_mut())
    }
}

/// Defines a wrapper for each function of the tables; a function missing in the backend stays missing.
macro_rules! layer {
    ($($table:ident: $type:ident { $($slot:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $intercept:expr $(, $list:expr)?;)* })*) => {$(
        mod $table {
            use super::*;

            pub(super) fn wrap(below: &$type) -> $type {
                $type {
                    struct_size: struct_size::<$type>(),
                    reserved: 0,
                    $($slot: below.$slot.map(|_| {
                        let function: unsafe extern "C" fn($($ty),*) $(-> $ret)? = $slot;
                        function
                    }),)*
                }
            }

            $(unsafe extern "C" fn $slot($($arg: $ty),*) $(-> $ret)? {
                let below = BELOW.get().and_then(|below| below.$table.$slot).expect("only present functions are wrapped");
                let call = || match corrupt::is_skipped() {
                    true => Returned::skipped(),
                    // SAFETY: forwards core's arguments.
                    false => unsafe { below($($arg),*) },
                };
                let returned = $intercept.intercept(concat!(stringify!($table), ".", stringify!($slot)), call);
                let Some(corruption) = corrupt::take() else { return returned };
                // SAFETY: output pointers to a list and its length, which the backend has written.
                $(unsafe { $list.corrupt(corruption) };)?
                // SAFETY: core's output pointers are valid, and so are the values behind them.
                $(unsafe { Argument::corrupt_output($arg, corruption) };)*
                Returned::corrupted(returned, corruption)
            })*
        }
    )*

        /// The functions that return a value.
        pub(super) const FUNCTIONS: &[&str] =
            &[$($($(named(concat!(stringify!($table), ".", stringify!($slot)), PhantomData::<$ret>),)?)*)*];
    };
}

/// Returns `name`; accepts functions with a return type only.
const fn named<R>(name: &str, _: PhantomData<R>) -> &str {
    name
}

const fn instance_of(handle: Handle) -> (Kind, Handle) {
    (Kind::Instance, handle)
}

const fn device_of(handle: Handle) -> (Kind, Handle) {
    (Kind::Device, handle)
}

const fn buffer_of(handle: Handle) -> (Kind, Handle) {
    (Kind::Buffer, handle)
}

const fn queue_of(handle: Handle) -> (Kind, Handle) {
    (Kind::Queue, handle)
}

const fn module_of(handle: Handle) -> (Kind, Handle) {
    (Kind::Module, handle)
}

const fn kernel_of(handle: Handle) -> (Kind, Handle) {
    (Kind::Kernel, handle)
}

const fn graph_of(handle: Handle) -> (Kind, Handle) {
    (Kind::Graph, handle)
}

const fn counter_set(handle: Handle) -> (Kind, Handle) {
    (Kind::CounterSet, handle)
}

const NULL: Handle = std::ptr::null_mut();

layer! {
    instance: InstanceTable {
        options(out: *mut *const OptionSpec, count: *mut usize) -> Status = Uses([]), List(out, count);
        open(host: *const HostTable, out: *mut Handle) -> Status = Opens(Kind::Instance, instance_of(NULL), out);
        close(instance: Handle) = Closes(Kind::Instance, instance);
        devices(instance: Handle, out: *mut *const *const DeviceInfo, count: *mut usize) -> Status = Uses([instance_of(instance)]), List(out, count);
        open_device(instance: Handle, index: u32, sub: u32, options: *const Property, count: usize, out: *mut Handle) -> Status = Opens(Kind::Device, instance_of(instance), out);
        architecture(instance: Handle, architecture: Str, out: *mut *const DeviceInfo) -> Status = Uses([instance_of(instance)]);
        compile_for(instance: Handle, architecture: Str, source: *const ModuleSource, out: *mut Handle) -> Status = Opens(Kind::Compiled, instance_of(instance), out);
        diagnose(instance: Handle, out: *mut *const Property, count: *mut usize) -> Status = Uses([instance_of(instance)]), List(out, count);
        process_variables(instance: Handle, device: Str, options: *const Property, option_count: usize, out: *mut *const Property, count: *mut usize) -> Status = Uses([instance_of(instance)]), List(out, count);
    }
    device: DeviceTable {
        close(device: Handle) = Closes(Kind::Device, device);
        memory_usage(device: Handle, space: u32, out: *mut MemoryUsage) -> Status = Uses([device_of(device)]);
        peer_access(device: Handle, other: Handle, out: *mut u32) -> Status = Uses([device_of(device), device_of(other)]);
        telemetry(device: Handle, out: *mut Telemetry) -> Status = Uses([device_of(device)]);
        throttle_reasons(device: Handle, out: *mut u64) -> Status = Uses([device_of(device)]);
        processes(device: Handle, ids: *mut u32, capacity: u32, count: *mut u32) -> Status = Uses([device_of(device)]);
    }
    memory: MemoryTable {
        allocate(device: Handle, request: *const AllocateRequest, out: *mut Allocation) -> Status = Allocates(device_of(device), out);
        free(device: Handle, buffer: Handle, queue: Handle) = Closes(Kind::Buffer, buffer);
        import_host(device: Handle, space: u32, pointer: *mut u8, bytes: u64, out: *mut Allocation) -> Status = Allocates(device_of(device), out);
        import_device_memory(device: Handle, space: u32, memory: *mut c_void, bytes: u64, out: *mut Allocation) -> Status = Allocates(device_of(device), out);
    }
    module: ModuleTable {
        load(device: Handle, source: *const ModuleSource, out: *mut Handle) -> Status = Opens(Kind::Module, device_of(device), out);
        unload(module: Handle) = Closes(Kind::Module, module);
        symbols(module: Handle, out: *mut *const Str, count: *mut usize) -> Status = Uses([module_of(module)]), List(out, count);
        kernel(module: Handle, name: Str, out: *mut Handle) -> Status = Opens(Kind::Kernel, module_of(module), out);
        release_kernel(kernel: Handle) = Closes(Kind::Kernel, kernel);
        kernel_info(kernel: Handle, out: *mut KernelInfo) -> Status = Uses([kernel_of(kernel)]);
        occupancy(kernel: Handle, launch: *const Launch, out: *mut Occupancy) -> Status = Uses([kernel_of(kernel)]);
        compiler_identity(device: Handle, source: *const ModuleSource, buffer: *mut u8, capacity: usize, bytes: *mut usize) -> Status = Uses([device_of(device)]);
        compile(device: Handle, source: *const ModuleSource, out: *mut Handle) -> Status = Opens(Kind::Compiled, device_of(device), out);
        compiled_code(compiled: Handle, out: *mut CompiledCode) -> Status = Uses([(Kind::Compiled, compiled)]);
        release_compiled(compiled: Handle) = Closes(Kind::Compiled, compiled);
        fits(device: Handle, code: *const ModuleSource, out: *mut u32) -> Status = Uses([device_of(device)]);
    }
    queue: QueueTable {
        open(device: Handle, options: *const QueueOptions, out: *mut Handle) -> Status = Opens(Kind::Queue, device_of(device), out);
        close(queue: Handle) = Closes(Kind::Queue, queue);
        launch(queue: Handle, submit: SubmitInfo, kernel: Handle, launch: *const Launch) -> Status = Submits(queue, submit, Launches(queue_of(queue), kernel_of(kernel), launch));
        try_begin_inline(queue: Handle, ticket: u64) -> u32 = Claims(queue);
        run_inline(queue: Handle, ticket: u64, kernel: Handle, launch: *const Launch) -> Status = Runs(Launches(queue_of(queue), kernel_of(kernel), launch));
        write(queue: Handle, submit: SubmitInfo, destination: Handle, offset: u64, source: *const u8, bytes: u64) -> Status = Submits(queue, submit, Uses([queue_of(queue), buffer_of(destination)]));
        read(queue: Handle, submit: SubmitInfo, source: Handle, offset: u64, destination: *mut u8, bytes: u64) -> Status = Submits(queue, submit, Uses([queue_of(queue), buffer_of(source)]));
        copy(queue: Handle, submit: SubmitInfo, destination: Handle, destination_offset: u64, source: Handle, source_offset: u64, bytes: u64) -> Status = Submits(queue, submit, Uses([queue_of(queue), buffer_of(destination), buffer_of(source)]));
        fill(queue: Handle, submit: SubmitInfo, destination: Handle, offset: u64, bytes: u64, pattern: *const u8, pattern_bytes: u32) -> Status = Submits(queue, submit, Uses([queue_of(queue), buffer_of(destination)]));
        noop(queue: Handle, submit: SubmitInfo) -> Status = Submits(queue, submit, Uses([queue_of(queue)]));
        timestamp(queue: Handle, submit: SubmitInfo) -> Status = Submits(queue, submit, Uses([queue_of(queue)]));
        read_timestamp(queue: Handle, ticket: u64, out: *mut u64) -> Status = Uses([queue_of(queue)]);
        signal(queue: Handle, ticket: u64) -> Status = Uses([queue_of(queue)]);
        flush(queue: Handle) -> Status = Uses([queue_of(queue)]);
        poll(queue: Handle, out: *mut Progress) -> Status = Uses([queue_of(queue)]);
        wait(queue: Handle, ticket: u64, slice_ns: u64) -> Status = Uses([queue_of(queue)]);
        wait_for(queue: Handle, other: Handle, ticket: u64) -> Status = Uses([queue_of(queue), queue_of(other)]);
        failure(queue: Handle) -> Status = ReadsFailure(queue);
        copy_2d(queue: Handle, submit: SubmitInfo, rows: *const Copy2D) -> Status = Submits(queue, submit, Copies2d(queue_of(queue), rows));
        wait_blocking(queue: Handle, ticket: u64) -> Status = Uses([queue_of(queue)]);
        hold(queue: Handle) -> Status = Uses([queue_of(queue)]);
        resume(queue: Handle, lasted: *mut u32) -> Status = Uses([queue_of(queue)]);
    }
    graph: GraphTable {
        instantiate(device: Handle, nodes: *const *const GraphNode, count: usize, out: *mut Handle) -> Status = Opens(Kind::Graph, device_of(device), out);
        update(graph: Handle, node: u32, launch: *const Launch) -> Status = Launches(graph_of(graph), kernel_of(NULL), launch);
        replay(queue: Handle, submit: SubmitInfo, graph: Handle) -> Status = Submits(queue, submit, Uses([queue_of(queue), graph_of(graph)]));
        close(graph: Handle) = Closes(Kind::Graph, graph);
    }
    embedded: EmbeddedTable {
        flash(device: Handle, image: *const ModuleSource, tensors: *const *const TensorDescription, count: usize, args: *const Arg, arg_count: usize) -> Status = Uses([device_of(device)]);
        run(device: Handle, deadline_ns: u64, out: *mut RunReport) -> Status = Uses([device_of(device)]);
        read(device: Handle, tensor: u32, offset: u64, destination: *mut u8, bytes: u64) -> Status = Uses([device_of(device)]);
        inspect(device: Handle, what: u32, address: u64, buffer: *mut u8, capacity: usize, bytes: *mut usize) -> Status = Uses([device_of(device)]);
    }
    counters: CounterTable {
        list(device: Handle, out: *mut *const Counter, count: *mut usize) -> Status = Uses([device_of(device)]), List(out, count);
        open(device: Handle, names: *const Str, count: usize, out: *mut Handle) -> Status = Opens(Kind::CounterSet, device_of(device), out);
        info(set: Handle, out: *mut CounterSetInfo) -> Status = Uses([counter_set(set)]);
        begin(set: Handle, pass: u32) -> Status = Uses([counter_set(set)]);
        end(set: Handle) -> Status = Uses([counter_set(set)]);
        read(set: Handle, out: *mut CounterReading, count: usize) -> Status = Uses([counter_set(set)]);
        close(set: Handle) = Closes(Kind::CounterSet, set);
    }
    native: NativeTable {
        device(device: Handle, out: *mut NativeHandle, capacity: usize, count: *mut usize) -> Status = Uses([device_of(device)]);
        buffer(device: Handle, buffer: Handle, out: *mut NativeHandle, capacity: usize, count: *mut usize, offset: *mut u64) -> Status = Uses([device_of(device), buffer_of(buffer)]);
        submit(queue: Handle, submit: SubmitInfo, work: NativeWork, context: *mut c_void) -> Status = Submits(queue, submit, Uses([queue_of(queue)]));
        open_queue(device: Handle, native: u64, out: *mut Handle) -> Status = Opens(Kind::Queue, device_of(device), out);
    }
}
