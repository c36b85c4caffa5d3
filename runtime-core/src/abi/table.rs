//! The function tables. Handles form a hierarchy: instance → device → buffer, module → kernel, queue, graph, counter set;
//! compiled code depends on nothing.
//!
//! Threads: every function may be called from any thread. Core serialises calls on one *queue*, except `poll`,
//! `wait`, `wait_blocking`, `failure`, `run_inline`, `read_timestamp` and `resume`, which it calls without holding the
//! queue's lock. A device that declares `CAP_SERIAL` is called by one thread at a time.

use super::{
    AllocateRequest, Allocation, Arg, CompiledCode, Copy2D, Counter, CounterReading, CounterSetInfo,
    DeviceInfo, GraphNode, Handle, Header, HostTable, KernelInfo, Launch, MemoryUsage, ModuleSource,
    NativeHandle, NativeWork, Occupancy, OptionSpec, Progress, Property, QueueOptions, RunReport, Status,
    Str, SubmitInfo, Telemetry, TensorDescription,
};

/// The table that [`super::EntryPoint`] returns; it lives as long as the library.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BackendTable {
    /// ABI version of the backend.
    pub header: Header,
    /// Target name, the first part of a device string, e.g. `cuda`.
    pub name: Str,
    /// Version of the backend itself.
    pub version: Str,
    /// Instances.
    pub instance: *const InstanceTable,
    /// Devices.
    pub device: *const DeviceTable,
    /// Memory.
    pub memory: *const MemoryTable,
    /// Modules and kernels.
    pub module: *const ModuleTable,
    /// Queues; null if the backend has only embedded devices.
    pub queue: *const QueueTable,
    /// Native graphs; null if unsupported.
    pub graph: *const GraphTable,
    /// Embedded devices; null if unsupported.
    pub embedded: *const EmbeddedTable,
    /// Counters; null if unsupported. Since minor version 1.
    pub counters: *const CounterTable,
    /// Objects of the driver; null if unsupported. Since minor version 4.
    pub native: *const NativeTable,
}

// SAFETY: the table and everything it points to are immutable and live as long as the library.
#[allow(unsafe_code, reason = "the ABI describes raw memory")]
unsafe impl Send for BackendTable {}
// SAFETY: as above.
#[allow(unsafe_code, reason = "the ABI describes raw memory")]
unsafe impl Sync for BackendTable {}

/// Return value of the stub that stands in for a function the backend lacks.
pub(crate) trait Stub {
    fn stub(name: &str) -> Self;
}

/// Declares a function table, and its resolved form, in which a stub replaces every missing function.
macro_rules! tables {
    ($($(#[$meta:meta])* $name:ident => $calls:ident { $($(#[$doc:meta])* $field:ident: fn($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)* })*) => {$(
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name {
            /// End of the last field.
            pub struct_size: u32,
            /// Zero.
            pub reserved: u32,
            $($(#[$doc])* pub $field: Option<unsafe extern "C" fn($($arg: $ty),*) $(-> $ret)?>,)*
        }

        #[doc = concat!("[`", stringify!($name), "`] with every function present: a stub for a missing one returns `Unsupported` and names it.")]
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $calls {
            $(pub(crate) $field: unsafe extern "C" fn($($arg: $ty),*) $(-> $ret)?,)*
        }

        impl From<$name> for $calls {
            fn from(table: $name) -> Self {
                Self {$(
                    $field: table.$field.unwrap_or({
                        extern "C" fn stub($(_: $ty),*) $(-> $ret)? {
                            Stub::stub(concat!(stringify!($name), ".", stringify!($field)))
                        }
                        stub
                    }),
                )*}
            }
        }
    )*};
}

tables! {
/// The state of a backend. Several instances may coexist.
InstanceTable => InstanceCalls {
    /// Lists the options that the backend accepts. The list is static.
    options: fn(out: *mut *const OptionSpec, count: *mut usize) -> Status;
    /// Creates an instance. Makes no driver call.
    open: fn(host: *const HostTable, out: *mut Handle) -> Status;
    /// Destroys an instance. All its devices have been closed.
    close: fn(instance: Handle);
    /// Lists all devices, including unusable ones, each whole device before its sub-devices. Fails with
    /// `Unavailable` if there is no driver. The list is valid until the next call or `close`.
    devices: fn(instance: Handle, out: *mut *const *const DeviceInfo, count: *mut usize) -> Status;
    /// Opens device `index`, or its sub-device `sub` if that is not `WHOLE_DEVICE`.
    open_device: fn(instance: Handle, index: u32, sub: u32, options: *const Property, count: usize, out: *mut Handle) -> Status;
    /// Describes the device that code for `architecture` is compiled for: its formats, capabilities and limits, as far
    /// as they follow from the architecture. Needs no device. `NotFound` lists the architectures. Valid until the next
    /// call or `close`. Since minor version 2.
    architecture: fn(instance: Handle, architecture: Str, out: *mut *const DeviceInfo) -> Status;
    /// Compiles code for an architecture; needs no device. As `ModuleTable.compile` otherwise. Since minor version 2.
    compile_for: fn(instance: Handle, architecture: Str, source: *const ModuleSource, out: *mut Handle) -> Status;
    /// Reports what the backend finds on this machine, which users send to its authors when something fails: texts, with a
    /// title as the key of each. Calls no driver, and is bounded in size and time. Valid until the next call or `close`.
    /// Since minor version 3.
    diagnose: fn(instance: Handle, out: *mut *const Property, count: *mut usize) -> Status;
    /// Lists the environment variables that a process needs from its start to open `device`, the part of a device string
    /// behind the target, with `options`: texts, with a name as the key of each. There are none if the process can open it
    /// as it is, or if no variable would help. Calls no driver. Valid until the next call or `close`. Since minor version 3.
    process_variables: fn(instance: Handle, device: Str, options: *const Property, option_count: usize, out: *mut *const Property, count: *mut usize) -> Status;
}

/// Open devices.
DeviceTable => DeviceCalls {
    /// Closes a device. Everything created from it has been destroyed.
    close: fn(device: Handle);
    /// Reports the free and total bytes of memory space `space`.
    memory_usage: fn(device: Handle, space: u32, out: *mut MemoryUsage) -> Status;
    /// Stores 1 if kernels on `device` can access memory of `other`, a device of the same backend; 0
    /// otherwise.
    peer_access: fn(device: Handle, other: Handle, out: *mut u32) -> Status;
    /// Reads current clocks, temperature, power and energy.
    telemetry: fn(device: Handle, out: *mut Telemetry) -> Status;
    /// Stores the `THROTTLE_*` reasons for which the device runs slower than it could, now or at any time since the
    /// last call. Core calls it between kernels, so it must be fast.
    throttle_reasons: fn(device: Handle, out: *mut u64) -> Status;
    /// Stores the IDs of other processes that use the device, at most `capacity`, and how many there are. The ID of a
    /// process of another PID namespace is 0.
    processes: fn(device: Handle, ids: *mut u32, capacity: u32, count: *mut u32) -> Status;
}

/// Device memory.
MemoryTable => MemoryCalls {
    /// Allocates memory. Fails with `OutOfMemory` when it is exhausted.
    allocate: fn(device: Handle, request: *const AllocateRequest, out: *mut Allocation) -> Status;
    /// Frees a buffer: in order with the work of `queue`, or, if `queue` is null, at once because no work
    /// uses the buffer.
    free: fn(device: Handle, buffer: Handle, queue: Handle);
    /// Makes a buffer of `bytes` bytes of host memory at `pointer`. The memory outlives the buffer.
    import_host: fn(device: Handle, space: u32, pointer: *mut u8, bytes: u64, out: *mut Allocation) -> Status;
    /// Makes a buffer of `bytes` bytes of device memory that another library allocated. The memory outlives
    /// the buffer. `memory` is the value of DLPack's `data` for such a device: a device pointer, a `cl_mem`,
    /// ...
    import_device_memory: fn(device: Handle, space: u32, memory: *mut core::ffi::c_void, bytes: u64, out: *mut Allocation) -> Status;
}

/// Loaded code.
ModuleTable => ModuleCalls {
    /// Loads code. `CompileFailed` carries the complete compiler log.
    load: fn(device: Handle, source: *const ModuleSource, out: *mut Handle) -> Status;
    /// Unloads a module. No work uses it, and its kernels have been released.
    unload: fn(module: Handle);
    /// Lists the names of the entry points, as far as they are known. Borrowed from the module.
    symbols: fn(module: Handle, out: *mut *const Str, count: *mut usize) -> Status;
    /// Looks up an entry point. `NotFound` lists those that exist.
    kernel: fn(module: Handle, name: Str, out: *mut Handle) -> Status;
    /// Releases a kernel.
    release_kernel: fn(kernel: Handle);
    /// Reports the properties of a kernel.
    kernel_info: fn(kernel: Handle, out: *mut KernelInfo) -> Status;
    /// Computes the occupancy of a compute unit by the groups of `launch`, whose only argument is the size of its
    /// dynamic work-group memory ([`super::ARG_LOCAL`]).
    occupancy: fn(kernel: Handle, launch: *const Launch, out: *mut Occupancy) -> Status;
    /// Stores a text that identifies everything outside `source` that compiled code depends on: the compiler and its
    /// version, the processor, environment variables, the content of included files. Stores at most `capacity` bytes,
    /// and the length of the whole text. The code may be missing, if its format and options suffice. `Unsupported`: such
    /// code is not compiled, or must not be kept. Since minor version 2.
    compiler_identity: fn(device: Handle, source: *const ModuleSource, buffer: *mut u8, capacity: usize, bytes: *mut usize) -> Status;
    /// Compiles code to native code that `load` accepts, without loading it. `Unsupported` if such code is not compiled
    /// or the driver does not give it out; `CompileFailed` carries the complete compiler log. Since minor version 2.
    compile: fn(device: Handle, source: *const ModuleSource, out: *mut Handle) -> Status;
    /// Reports the compiled code, borrowed from `compiled`. Since minor version 2.
    compiled_code: fn(compiled: Handle, out: *mut CompiledCode) -> Status;
    /// Releases compiled code. Since minor version 2.
    release_compiled: fn(compiled: Handle);
    /// Stores how native code fits the device: a `FITS_*` value. Since minor version 2.
    fits: fn(device: Handle, code: *const ModuleSource, out: *mut u32) -> Status;
}

/// Queues. A submission returns without waiting; if it fails, its ticket has not been taken.
QueueTable => QueueCalls {
    /// Creates a queue.
    open: fn(device: Handle, options: *const QueueOptions, out: *mut Handle) -> Status;
    /// Destroys a queue. All its work has ended, or the device is lost.
    close: fn(queue: Handle);
    /// Submits a kernel launch. Everything that `launch` points to is valid only during the call; buffers
    /// live until the ticket ends.
    launch: fn(queue: Handle, submit: SubmitInfo, kernel: Handle, launch: *const Launch) -> Status;
    /// Tries to claim an idle queue for a synchronous launch. Returns 1 if the ticket was taken: core then
    /// calls `run_inline`, without holding the queue's lock. Returns 0 if nothing was taken.
    try_begin_inline: fn(queue: Handle, ticket: u64) -> u32;
    /// Runs a claimed launch on the calling thread and ends its ticket, successfully or not. If `kernel` and
    /// `launch` are null, the launch is a no-op.
    run_inline: fn(queue: Handle, ticket: u64, kernel: Handle, launch: *const Launch) -> Status;
    /// Submits a copy from host memory to a buffer. `source` stays valid until the ticket ends.
    write: fn(queue: Handle, submit: SubmitInfo, destination: Handle, offset: u64, source: *const u8, bytes: u64) -> Status;
    /// Submits a copy from a buffer to host memory. `destination` stays valid until the ticket ends.
    read: fn(queue: Handle, submit: SubmitInfo, source: Handle, offset: u64, destination: *mut u8, bytes: u64) -> Status;
    /// Submits a copy between buffers of devices of this backend. The ranges do not overlap.
    copy: fn(queue: Handle, submit: SubmitInfo, destination: Handle, destination_offset: u64, source: Handle, source_offset: u64, bytes: u64) -> Status;
    /// Submits a fill with a pattern of 1, 2, 4, 8 or 16 bytes; `bytes` is a multiple of `pattern_bytes`.
    fill: fn(queue: Handle, submit: SubmitInfo, destination: Handle, offset: u64, bytes: u64, pattern: *const u8, pattern_bytes: u32) -> Status;
    /// Submits a no-op kernel, to measure launch overhead.
    noop: fn(queue: Handle, submit: SubmitInfo) -> Status;
    /// Submits a device timestamp.
    timestamp: fn(queue: Handle, submit: SubmitInfo) -> Status;
    /// Reads the timestamp of an ended ticket, in nanoseconds of the device's clock. Each timestamp can be
    /// read once.
    read_timestamp: fn(queue: Handle, ticket: u64, out: *mut u64) -> Status;
    /// Makes the completion of `ticket`, the last one submitted, individually observable (records a driver
    /// event).
    signal: fn(queue: Handle, ticket: u64) -> Status;
    /// Submits batched work to the driver.
    flush: fn(queue: Handle) -> Status;
    /// Reports the progress of the queue, including that of signaled tickets. Never blocks.
    poll: fn(queue: Handle, out: *mut Progress) -> Status;
    /// Waits about `slice_ns` at most for a signaled ticket. May return early; success does not mean that the
    /// ticket has ended: call `poll`.
    wait: fn(queue: Handle, ticket: u64, slice_ns: u64) -> Status;
    /// Makes later submissions wait, on the device, until `ticket` of `other` has ended, whether it failed or
    /// not. `other` is a queue of the same backend; the ticket has been signaled and flushed. Never blocks;
    /// fails with `Unsupported` if the device cannot wait for it.
    wait_for: fn(queue: Handle, other: Handle, ticket: u64) -> Status;
    /// Returns the error of `first_failed`: an owned error, or null if no ticket failed.
    failure: fn(queue: Handle) -> Status;
    /// Submits a pitched 2-D copy between buffers of devices of this backend; source and destination do not
    /// overlap. Fails with `Unsupported` for buffers or pitches that the device cannot handle; core then
    /// falls back to other copies.
    copy_2d: fn(queue: Handle, submit: SubmitInfo, rows: *const Copy2D) -> Status;
    /// Blocks in the driver until `ticket` has ended, successfully or not. The ticket need not be signaled or
    /// flushed. Must not wait for later tickets or hold up other calls. May return early; success does not
    /// mean that the ticket has ended: call `poll`. On `Unsupported`, core signals, flushes and waits in
    /// slices.
    wait_blocking: fn(queue: Handle, ticket: u64) -> Status;
    /// Holds a queue: launches, no-ops and timestamps submitted from now on do not start until `resume`, so that they
    /// then follow each other without gaps. Earlier work is not affected. A backend ends the hold itself before a
    /// submission that it cannot hold, or that would block because the driver's queue is full. Since minor version 2.
    hold: fn(queue: Handle) -> Status;
    /// Ends a hold, if there is one, and submits the held work to the driver. Stores 1 if the queue was held until now, 0
    /// otherwise. Core calls it before it waits for held work, makes another queue wait for it, or closes the queue; it
    /// may be called during any other call on the queue. Since minor version 2.
    resume: fn(queue: Handle, lasted: *mut u32) -> Status;
}

/// Native graphs, built from explicit nodes.
GraphTable => GraphCalls {
    /// Creates an executable graph.
    instantiate: fn(device: Handle, nodes: *const *const GraphNode, count: usize, out: *mut Handle) -> Status;
    /// Replaces the arguments of a launch node.
    update: fn(graph: Handle, node: u32, launch: *const Launch) -> Status;
    /// Submits the entire graph under one ticket.
    replay: fn(queue: Handle, submit: SubmitInfo, graph: Handle) -> Status;
    /// Destroys a graph. No work uses it.
    close: fn(graph: Handle);
}

/// Embedded devices: external processors.
EmbeddedTable => EmbeddedCalls {
    /// Flashes an image, together with the tensors to create on the device and the arguments of the program.
    /// A tensor argument is a `TensorArg` whose `address` is an index into `tensors`.
    flash: fn(device: Handle, image: *const ModuleSource, tensors: *const *const TensorDescription, count: usize, args: *const Arg, arg_count: usize) -> Status;
    /// Runs the flashed program and waits for it. Fails with `Timeout` after `deadline_ns`.
    run: fn(device: Handle, deadline_ns: u64, out: *mut RunReport) -> Status;
    /// Reads bytes of tensor `tensor`.
    read: fn(device: Handle, tensor: u32, offset: u64, destination: *mut u8, bytes: u64) -> Status;
    /// Reads the memory at `address`, or the registers, of a target that has stopped, also after a run that failed. `what` is an
    /// `INSPECT_*` constant. Stores up to `capacity` bytes, and reports the total number of bytes. Since minor version 3.
    inspect: fn(device: Handle, what: u32, address: u64, buffer: *mut u8, capacity: usize, bytes: *mut usize) -> Status;
}

/// Counters of the hardware and the system. Core serialises calls on one *set*.
CounterTable => CounterCalls {
    /// Lists the counters of a device, including those that cannot be read on this machine. Further names may be
    /// valid, e.g. raw codes. The list is valid, and the same in each call, until the device is closed.
    list: fn(device: Handle, out: *mut *const Counter, count: *mut usize) -> Status;
    /// Opens a set of `count` counters; no name occurs twice. Fails with `NotFound` for an unknown name. A counter
    /// that exists but cannot be read is part of the set, with its reason.
    open: fn(device: Handle, names: *const Str, count: usize, out: *mut Handle) -> Status;
    /// Reports the passes of a set, and which of its counters cannot be read.
    info: fn(set: Handle, out: *mut CounterSetInfo) -> Status;
    /// Begins pass `pass`, counted from 0. No work of the device is in flight. Pass 0 discards earlier values.
    begin: fn(set: Handle, pass: u32) -> Status;
    /// Ends the pass. All work submitted since `begin` has ended.
    end: fn(set: Handle) -> Status;
    /// Reads the values after the last pass, in the order of the names; `count` is their number.
    read: fn(set: Handle, out: *mut CounterReading, count: usize) -> Status;
    /// Closes a set. A pass that has begun is abandoned.
    close: fn(set: Handle);
}

/// Objects of the driver, for work that the runtime does not submit. A list is stored up to `capacity`, with the number of its
/// elements in `count`. Since minor version 4.
NativeTable => NativeCalls {
    /// Lists the objects of a device.
    device: fn(device: Handle, out: *mut NativeHandle, capacity: usize, count: *mut usize) -> Status;
    /// Lists the objects that hold a buffer, and stores the offset of its first byte in them.
    buffer: fn(device: Handle, buffer: Handle, out: *mut NativeHandle, capacity: usize, count: *mut usize, offset: *mut u64) -> Status;
    /// Submits foreign work: calls `work` once, on this thread, with the objects of the queue. What it hands to the driver
    /// runs behind earlier submissions, and the ticket ends with it. Fails only before `work` is called; afterwards, work
    /// whose end cannot be observed is waited for.
    submit: fn(queue: Handle, submit: SubmitInfo, work: NativeWork, context: *mut core::ffi::c_void) -> Status;
    /// Creates a queue of one that the program owns: `native` is its handle, which outlives the queue's work and is never
    /// destroyed.
    open_queue: fn(device: Handle, native: u64, out: *mut Handle) -> Status;
}
}
