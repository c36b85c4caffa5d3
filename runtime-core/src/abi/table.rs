//! The tables of functions. Handles descend: instance → device → buffer, module → kernel, queue, graph.
//!
//! Threads: every function may be called from any thread. Core never calls two functions of one *queue* at the
//! same time, except `poll`, `wait`, `finish`, `failure` and `run`, which it calls without holding the queue's lock.
//! A device that declares `CAP_SERIAL` is called by one thread at a time.

use super::{
    AllocateRequest, Allocation, Arg, DeviceInfo, GraphNode, Handle, Header, HostTable, KernelInfo, Launch,
    MemoryUsage, ModuleSource, Occupancy, OptionSpec, Place, Progress, Property, QueueOptions, RowCopy,
    RunReport, Status, Str, Telemetry, TensorDescription,
};

/// What [`super::EntryPoint`] returns: a static table that lives as long as the library.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BackendTable {
    /// Version of the backend's side.
    pub header: Header,
    /// Name of the target, e.g. `cuda`: the first part of a device string.
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
    /// Queues; null for a backend that has only embedded devices.
    pub queue: *const QueueTable,
    /// Native graphs; null if there are none.
    pub graph: *const GraphTable,
    /// Embedded devices; null if there are none.
    pub embedded: *const EmbeddedTable,
}

// SAFETY: the table and everything it points to are immutable and live as long as the library.
#[allow(unsafe_code, reason = "the seam is where raw memory is described")]
unsafe impl Send for BackendTable {}
// SAFETY: as above.
#[allow(unsafe_code, reason = "the seam is where raw memory is described")]
unsafe impl Sync for BackendTable {}

/// What a function that a backend lacks returns.
pub(crate) trait Stub {
    fn stub(name: &str) -> Self;
}

/// Declares a table of functions that may be missing, and its resolved twin, in which none is.
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

        #[doc = concat!("[`", stringify!($name), "`] as core calls it: a missing function answers `Unsupported` and names itself.")]
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
/// A backend's state. Several may live side by side.
InstanceTable => InstanceCalls {
    /// The options that the backend understands; static.
    options: fn(out: *mut *const OptionSpec, count: *mut usize) -> Status;
    /// Makes an instance. Touches no driver.
    open: fn(host: *const HostTable, out: *mut Handle) -> Status;
    /// Ends an instance; all its devices are closed before.
    close: fn(instance: Handle);
    /// Lists all devices, unusable ones included, whole devices before their sub-devices.
    /// `Unavailable` when there is no driver. The list is valid until the next call or `close`.
    devices: fn(instance: Handle, out: *mut *const *const DeviceInfo, count: *mut usize) -> Status;
    /// Opens device `index`, or its sub-device `sub` unless that is `WHOLE_DEVICE`.
    open_device: fn(instance: Handle, index: u32, sub: u32, options: *const Property, count: usize, out: *mut Handle) -> Status;
}

/// Opened devices.
DeviceTable => DeviceCalls {
    /// Closes a device; everything made from it is gone before.
    close: fn(device: Handle);
    /// Free and total bytes of memory space `space`.
    memory_usage: fn(device: Handle, space: u32, out: *mut MemoryUsage) -> Status;
    /// Writes 1 if kernels of `device` can use memory of `other` (of the same backend), else 0.
    peer_access: fn(device: Handle, other: Handle, out: *mut u32) -> Status;
    /// Current clocks, temperature, energy.
    telemetry: fn(device: Handle, out: *mut Telemetry) -> Status;
}

/// Device memory.
MemoryTable => MemoryCalls {
    /// Allocates; `OutOfMemory` when there is none.
    allocate: fn(device: Handle, request: *const AllocateRequest, out: *mut Allocation) -> Status;
    /// Frees. With a queue: in order with its work. Without: no work uses the buffer any more.
    free: fn(device: Handle, buffer: Handle, queue: Handle);
    /// Wraps `bytes` of the program's memory at `pointer`, which outlives the buffer.
    import: fn(device: Handle, space: u32, pointer: *mut u8, bytes: u64, out: *mut Allocation) -> Status;
    /// Wraps `bytes` of the device's own memory, which another library allocated and which outlives the buffer.
    /// `memory` is what DLPack's `data` holds for such a device: a device pointer, a `cl_mem`, ... Since minor 1.
    adopt: fn(device: Handle, space: u32, memory: *mut core::ffi::c_void, bytes: u64, out: *mut Allocation) -> Status;
}

/// Loaded code.
ModuleTable => ModuleCalls {
    /// Loads code; `CompileFailed` carries the whole log.
    load: fn(device: Handle, source: *const ModuleSource, out: *mut Handle) -> Status;
    /// Unloads; no work uses it any more and its kernels are released.
    unload: fn(module: Handle);
    /// Names of the entry points, as far as the code tells; borrowed from the module.
    symbols: fn(module: Handle, out: *mut *const Str, count: *mut usize) -> Status;
    /// Finds an entry point; `NotFound` lists those that exist.
    kernel: fn(module: Handle, name: Str, out: *mut Handle) -> Status;
    /// Releases a kernel.
    release_kernel: fn(kernel: Handle);
    /// What the driver says of a kernel.
    kernel_info: fn(kernel: Handle, out: *mut KernelInfo) -> Status;
    /// How much of a compute unit the groups of `launch`, of which the arguments do not count, can fill. Since minor 2.
    occupancy: fn(kernel: Handle, launch: *const Launch, out: *mut Occupancy) -> Status;
}

/// Queues. Submissions return at once; an error means that the ticket was not taken.
QueueTable => QueueCalls {
    /// Makes a queue.
    open: fn(device: Handle, options: *const QueueOptions, out: *mut Handle) -> Status;
    /// Ends a queue; all its work has ended, or the device is lost.
    close: fn(queue: Handle);
    /// Submits a kernel. Everything that `launch` points to is valid during the call only; buffers live until the ticket ends.
    launch: fn(queue: Handle, place: Place, kernel: Handle, launch: *const Launch) -> Status;
    /// Claims an idle queue for a synchronous launch: 1 takes the ticket, and `run` follows without the queue's lock. 0 takes nothing.
    claim: fn(queue: Handle, ticket: u64) -> u32;
    /// Runs a claimed launch on this thread and ends its ticket, well or badly. Without `kernel` and `launch`: a call that does nothing.
    run: fn(queue: Handle, ticket: u64, kernel: Handle, launch: *const Launch) -> Status;
    /// Copies host memory into a buffer. `source` lives until the ticket ends.
    write: fn(queue: Handle, place: Place, destination: Handle, offset: u64, source: *const u8, bytes: u64) -> Status;
    /// Copies a buffer into host memory. `destination` lives until the ticket ends.
    read: fn(queue: Handle, place: Place, source: Handle, offset: u64, destination: *mut u8, bytes: u64) -> Status;
    /// Copies between buffers of the backend's devices; ranges do not overlap.
    copy: fn(queue: Handle, place: Place, destination: Handle, destination_offset: u64, source: Handle, source_offset: u64, bytes: u64) -> Status;
    /// Fills with a pattern of 1, 2, 4, 8 or 16 bytes; `bytes` is a multiple of it.
    fill: fn(queue: Handle, place: Place, destination: Handle, offset: u64, bytes: u64, pattern: *const u8, pattern_bytes: u32) -> Status;
    /// Submits a kernel that does nothing, for measuring overhead.
    empty: fn(queue: Handle, place: Place) -> Status;
    /// Submits the recording of a device timestamp.
    timestamp: fn(queue: Handle, place: Place) -> Status;
    /// Reads the timestamp of an ended ticket, in nanoseconds of the device's clock; may be read once.
    read_timestamp: fn(queue: Handle, ticket: u64, out: *mut u64) -> Status;
    /// Makes the end of `ticket`, the last submitted one, observable by itself (records a driver event).
    mark: fn(queue: Handle, ticket: u64) -> Status;
    /// Hands batched submissions to the driver.
    flush: fn(queue: Handle) -> Status;
    /// How far the queue is; observes marked tickets. Never blocks.
    poll: fn(queue: Handle, out: *mut Progress) -> Status;
    /// Waits up to about `slice_ns` for a marked ticket; may return early. Success says nothing: ask `poll`.
    wait: fn(queue: Handle, ticket: u64, slice_ns: u64) -> Status;
    /// Makes later submissions wait, on the device, for the end of marked and flushed `ticket` of `other`, a queue of the same
    /// backend, whether it failed or not. Never blocks; `Unsupported` for what the device cannot wait for.
    wait_for: fn(queue: Handle, other: Handle, ticket: u64) -> Status;
    /// The error of `first_failed`: an owned error, or null if nothing failed.
    failure: fn(queue: Handle) -> Status;
    /// Copies rows between buffers of the backend's devices; no byte is of both. `Unsupported` for buffers or pitches that it
    /// cannot: core then goes another way. Since minor 2.
    copy_rows: fn(queue: Handle, place: Place, rows: *const RowCopy) -> Status;
    /// Blocks in the driver until `ticket`, which need be neither marked nor flushed, has ended, well or badly; waits for
    /// nothing later, and keeps no other call waiting. May return early; success says nothing: ask `poll`. `Unsupported`: core
    /// marks, flushes and waits in slices. Since minor 3.
    finish: fn(queue: Handle, ticket: u64) -> Status;
}

/// Native graphs, built of explicit nodes.
GraphTable => GraphCalls {
    /// Makes an executable graph.
    instantiate: fn(device: Handle, nodes: *const *const GraphNode, count: usize, out: *mut Handle) -> Status;
    /// Replaces the arguments of a launch node.
    update: fn(graph: Handle, node: u32, launch: *const Launch) -> Status;
    /// Submits the whole graph as one ticket.
    replay: fn(queue: Handle, place: Place, graph: Handle) -> Status;
    /// Frees; no work uses it any more.
    close: fn(graph: Handle);
}

/// External processors.
EmbeddedTable => EmbeddedCalls {
    /// Writes an image, with the tensors it creates on the device and the program's arguments. A tensor argument
    /// is a `TensorArg` whose `address` is an index into `tensors`.
    flash: fn(device: Handle, image: *const ModuleSource, tensors: *const *const TensorDescription, count: usize, args: *const Arg, arg_count: usize) -> Status;
    /// Runs the flashed program and blocks; `Timeout` after `deadline_ns`.
    run: fn(device: Handle, deadline_ns: u64, out: *mut RunReport) -> Status;
    /// Reads back bytes of tensor `tensor`.
    read: fn(device: Handle, tensor: u32, offset: u64, destination: *mut u8, bytes: u64) -> Status;
}
}
