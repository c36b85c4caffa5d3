//! The structures that cross the seam as data.

#![allow(missing_debug_implementations, reason = "a union is read only by its kind")]

use super::{Handle, Header, Str};

/// A key with a typed value: device options, load options and open-ended attributes of a device. Frozen.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Property {
    /// Name, lower case with underscores.
    pub key: Str,
    /// One of the `VALUE_*` constants.
    pub kind: u32,
    /// Zero.
    pub reserved: u32,
    /// The value, read according to `kind`.
    pub value: Value,
}

/// The value of a [`Property`]. Frozen.
#[repr(C)]
#[derive(Clone, Copy)]
pub union Value {
    /// For [`VALUE_INTEGER`], and 0 or 1 for [`VALUE_FLAG`].
    pub integer: i64,
    /// For [`VALUE_NUMBER`].
    pub number: f64,
    /// For [`VALUE_TEXT`].
    pub text: Str,
}

/// [`Property::kind`]: `value.integer` is 0 or 1.
pub const VALUE_FLAG: u32 = 1;
/// [`Property::kind`]: `value.integer`.
pub const VALUE_INTEGER: u32 = 2;
/// [`Property::kind`]: `value.number`.
pub const VALUE_NUMBER: u32 = 3;
/// [`Property::kind`]: `value.text`. A key that may be given several times makes a list.
pub const VALUE_TEXT: u32 = 4;

/// Describes one option that a backend accepts. Frozen.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// The key.
    pub key: Str,
    /// `VALUE_*`.
    pub kind: u32,
    /// Where it is accepted: one of the `SCOPE_*` constants.
    pub scope: u32,
    /// Valid values separated by `|`, or empty when any value of the kind will do.
    pub choices: Str,
    /// The default, in words.
    pub default: Str,
    /// One sentence.
    pub doc: Str,
}

/// [`OptionSpec::scope`]: an option of `open_device`.
pub const SCOPE_DEVICE: u32 = 1;
/// [`OptionSpec::scope`]: an option of `load`.
pub const SCOPE_MODULE: u32 = 2;

/// An element type in DLPack's words: code, bits, lanes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DType {
    /// `DLDataTypeCode`: 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool, 7.. fp8.
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// Vector lanes, 1 for scalars.
    pub lanes: u16,
}

/// A memory space of a device. Frozen.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemorySpace {
    /// `device`, `pinned`, `shared`, or a name of the backend's own.
    pub name: Str,
    /// Capacity in bytes, 0 if unknown.
    pub total_bytes: u64,
    /// Alignment of every allocation in bytes, a power of two.
    pub alignment_bytes: u64,
    /// `SPACE_*` bits.
    pub flags: u64,
}

/// [`MemorySpace::flags`]: the program can read and write it through [`Allocation::host_pointer`].
pub const SPACE_HOST_VISIBLE: u64 = 1;
/// [`MemorySpace::flags`]: kernels can use it.
pub const SPACE_KERNEL_VISIBLE: u64 = 2;

/// Everything that is known of a device without opening it.
/// Borrowed from the instance: valid until the next `devices` call on it or until it is closed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceInfo {
    /// End of the last field.
    pub struct_size: u32,
    /// `KIND_*`.
    pub kind: u32,
    /// Index within the backend.
    pub index: u32,
    /// Index of the sub-device, or [`WHOLE_DEVICE`].
    pub sub: u32,
    /// Name for people, e.g. `NVIDIA H200`.
    pub name: Str,
    /// Architecture, e.g. `sm_90`, `x86-64-v4`.
    pub arch: Str,
    /// Vendor's name.
    pub vendor: Str,
    /// Version of the driver, in its own words.
    pub driver_version: Str,
    /// Empty: usable. Otherwise why it cannot be opened.
    pub unusable: Str,
    /// Stable identity, all zero if the driver has none.
    pub uuid: [u8; 16],
    /// PCI address `dddd:bb:dd.f`, empty if there is none.
    pub pci_address: Str,
    /// `DLDeviceType` of the device's memory.
    pub dlpack_type: i32,
    /// Compute units (cores, SMs, clusters).
    pub compute_units: u32,
    /// Highest clock of the compute units in Hz, 0 if unknown.
    pub clock_hz: u64,
    /// `CAP_*` bits.
    pub capabilities: u64,
    /// Most groups of one launch, per dimension.
    pub max_groups: [u64; 3],
    /// Most work-items of one group, per dimension.
    pub max_group_size: [u32; 3],
    /// Most work-items of one group, in all.
    pub max_group_items: u32,
    /// Most bytes of work-group memory.
    pub max_shared_bytes: u64,
    /// Most bytes of one allocation, 0 if unknown.
    pub max_allocation_bytes: u64,
    /// Memory spaces; the first is the default.
    pub spaces: *const MemorySpace,
    /// Number of `spaces`.
    pub space_count: usize,
    /// Accepted code formats, preferred first.
    pub formats: *const Str,
    /// Number of `formats`.
    pub format_count: usize,
    /// Whatever else the backend knows (caches, SIMD level, bandwidth, ...).
    pub properties: *const Property,
    /// Number of `properties`.
    pub property_count: usize,
}

/// [`DeviceInfo::sub`] of a whole device.
pub const WHOLE_DEVICE: u32 = u32::MAX;
/// [`DeviceInfo::kind`]: memory is the program's own, code is native.
pub const KIND_HOST: u32 = 1;
/// [`DeviceInfo::kind`]: own memory spaces, queues.
pub const KIND_ACCELERATOR: u32 = 2;
/// [`DeviceInfo::kind`]: an external processor that is flashed and run.
pub const KIND_EMBEDDED: u32 = 3;

/// Capability: `timestamp` and `read_timestamp` work.
pub const CAP_TIMESTAMPS: u64 = 1;
/// Capability: native graphs.
pub const CAP_GRAPHS: u64 = 1 << 1;
/// Capability: `wait_for` between queues of one backend.
pub const CAP_WAIT_FOR: u64 = 1 << 2;
/// Capability: a synchronous launch on an idle queue can run on the caller's thread (`claim` and `run`).
pub const CAP_INLINE: u64 = 1 << 3;
/// Capability: memory is allocated and freed in order with a queue's work (`allocate` and `free` with a queue).
pub const CAP_STREAM_ORDERED: u64 = 1 << 4;
/// Capability: the device must be called by one thread at a time; core holds one lock for it.
pub const CAP_SERIAL: u64 = 1 << 5;
/// Capability: `import` of host memory.
pub const CAP_IMPORT: u64 = 1 << 6;
/// Capability: `empty` submits a kernel that does nothing.
pub const CAP_EMPTY_KERNEL: u64 = 1 << 7;
/// Capability: kernels take [`Launch::range`] and [`Launch::grain`].
pub const CAP_RANGE: u64 = 1 << 8;
/// Capability: kernels take groups and group sizes other than 1.
pub const CAP_GROUPS: u64 = 1 << 9;
/// Capability: `telemetry` answers.
pub const CAP_TELEMETRY: u64 = 1 << 10;
/// Capability: cooperative launches ([`LAUNCH_COOPERATIVE`]).
pub const CAP_COOPERATIVE: u64 = 1 << 11;
/// Capability: work-group clusters ([`Launch::cluster`]).
pub const CAP_CLUSTERS: u64 = 1 << 12;
/// Capability: `peer_access` may answer yes.
pub const CAP_PEERS: u64 = 1 << 13;
/// Capability: kernels compute in f16.
pub const CAP_F16: u64 = 1 << 14;
/// Capability: kernels compute in f64.
pub const CAP_F64: u64 = 1 << 15;
/// Capability: `adopt` of memory of the device that another library allocated.
pub const CAP_ADOPT: u64 = 1 << 16;

/// Capability: `copy_rows` between buffers of the device. Since minor 2.
pub const CAP_ROWS: u64 = 1 << 17;

/// Request for an allocation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AllocateRequest {
    /// End of the last field.
    pub struct_size: u32,
    /// Index into [`DeviceInfo::spaces`].
    pub space: u32,
    /// Size in bytes; 0 is valid and needs no memory.
    pub bytes: u64,
    /// Wanted alignment in bytes, a power of two, at least the space's own; 0 = the space's own.
    pub alignment_bytes: u64,
    /// `ALLOCATE_*` bits.
    pub flags: u64,
    /// The queue in whose order it is allocated, under [`CAP_STREAM_ORDERED`]; else null.
    pub queue: Handle,
    /// The next ticket of `queue`, which such an allocation takes; 0 without a queue.
    pub ticket: u64,
}

/// [`AllocateRequest::flags`]: back it with huge pages; an error where there are none.
pub const ALLOCATE_HUGE_PAGES: u64 = 1;

/// A made allocation. A buffer's handle, the address that kernels see and the one that transfers use may differ.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    /// End of the last field.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// The backend's buffer object.
    pub buffer: Handle,
    /// Address that kernels see, 0 where kernels take the handle.
    pub kernel_address: u64,
    /// Where the program can reach the memory, null where it cannot. The program may read it before anything was written: all
    /// bytes are initialised, whatever they hold.
    pub host_pointer: *mut u8,
}

/// Free and total memory of a space.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryUsage {
    /// End of the last field.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Bytes that can still be allocated.
    pub free_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
}

/// Clocks, temperature and energy, as far as the device tells: `valid` says which.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Telemetry {
    /// End of the last field.
    pub struct_size: u32,
    /// `TELEMETRY_*` bits of the fields that hold a reading.
    pub valid: u32,
    /// Current clock of the compute units in Hz.
    pub clock_hz: u64,
    /// Current clock of the memory in Hz.
    pub memory_clock_hz: u64,
    /// Temperature in thousandths of a degree Celsius.
    pub temperature_millicelsius: i64,
    /// Power draw in milliwatts.
    pub power_milliwatts: u64,
    /// Energy since an arbitrary point in microjoules.
    pub energy_microjoules: u64,
}

/// [`Telemetry::valid`]: `clock_hz`.
pub const TELEMETRY_CLOCK: u32 = 1;
/// [`Telemetry::valid`]: `memory_clock_hz`.
pub const TELEMETRY_MEMORY_CLOCK: u32 = 1 << 1;
/// [`Telemetry::valid`]: `temperature_millicelsius`.
pub const TELEMETRY_TEMPERATURE: u32 = 1 << 2;
/// [`Telemetry::valid`]: `power_milliwatts`.
pub const TELEMETRY_POWER: u32 = 1 << 3;
/// [`Telemetry::valid`]: `energy_microjoules`.
pub const TELEMETRY_ENERGY: u32 = 1 << 4;

/// Code to load.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ModuleSource {
    /// End of the last field.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// A code format, e.g. `c`, `cubin`, `spirv-shader`.
    pub format: Str,
    /// The file the code came from, for messages and relative includes; may be empty.
    pub path: Str,
    /// The code. When null, the backend reads `path`.
    pub code: *const u8,
    /// Bytes of `code`.
    pub code_bytes: usize,
    /// Load options of the backend.
    pub options: *const Property,
    /// Number of `options`.
    pub option_count: usize,
}

/// One argument of a launch: 16 bytes. Frozen.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Arg {
    /// `ARG_*`.
    pub kind: u8,
    /// `ACCESS_*` of a tensor.
    pub access: u8,
    /// [`DType::code`] of a scalar.
    pub dtype_code: u8,
    /// [`DType::bits`] of a scalar.
    pub dtype_bits: u8,
    /// Bytes of a scalar or of by-value data.
    pub bytes: u32,
    /// The value, read according to `kind`.
    pub value: ArgValue,
}

/// The value of an [`Arg`]. Frozen.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ArgValue {
    /// [`ARG_TENSOR`]: valid during the call.
    pub tensor: *const TensorArg,
    /// [`ARG_SCALAR`]: the value's bytes, the rest zero (little-endian).
    pub scalar: u64,
    /// [`ARG_BYTES`]: valid during the call.
    pub data: *const u8,
    /// [`ARG_LOCAL`]: bytes of dynamic work-group memory.
    pub local_bytes: u64,
}

/// [`Arg::kind`]: a tensor.
pub const ARG_TENSOR: u8 = 1;
/// [`Arg::kind`]: a scalar of up to 8 bytes.
pub const ARG_SCALAR: u8 = 2;
/// [`Arg::kind`]: bytes passed by value.
pub const ARG_BYTES: u8 = 3;
/// [`Arg::kind`]: a size of dynamic work-group memory.
pub const ARG_LOCAL: u8 = 4;

/// [`Arg::access`]: the kernel reads.
pub const ACCESS_READ: u8 = 1;
/// [`Arg::access`]: the kernel writes.
pub const ACCESS_WRITE: u8 = 2;
/// [`Param::access`](super::Param::access): the code computes with the strides of the tensor, so that a view with gaps may be
/// passed.
pub const ACCESS_STRIDED: u8 = 4;

/// A tensor argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TensorArg {
    /// End of the last field.
    pub struct_size: u32,
    /// Number of dimensions.
    pub ndim: u32,
    /// The backend's buffer.
    pub buffer: Handle,
    /// [`Allocation::kernel_address`] plus `byte_offset`: the first element for kernels.
    pub address: u64,
    /// Offset of the first element in the buffer.
    pub byte_offset: u64,
    /// Bytes from the first element to the end of the one that lies last, so that `byte_offset` and these end within the
    /// buffer. Elements before the first one, which negative strides reach, do not count.
    pub span_bytes: u64,
    /// Element type.
    pub dtype: DType,
    /// Extents, `ndim` of them, in elements.
    pub shape: *const i64,
    /// Strides, `ndim` of them, in elements.
    pub strides: *const i64,
}

/// How and on what a kernel is launched.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    /// End of the last field.
    pub struct_size: u32,
    /// `LAUNCH_*` bits.
    pub flags: u32,
    /// Number of groups per dimension.
    pub groups: [u32; 3],
    /// Work-items of a group per dimension.
    pub group_size: [u32; 3],
    /// Groups of a cluster per dimension, all 1 for none.
    pub cluster: [u32; 3],
    /// Extra dynamic work-group memory in bytes.
    pub shared_bytes: u32,
    /// Half-open range `[begin, end)` for kernels that take one; both 0 for none.
    pub range: [i64; 2],
    /// Iterations of `range` given to one call, 0 = the backend chooses.
    pub grain: i64,
    /// The arguments in order.
    pub args: *const Arg,
    /// Number of `args`.
    pub arg_count: usize,
}

/// [`Launch::flags`]: all groups run at once and may synchronise.
pub const LAUNCH_COOPERATIVE: u32 = 1;

/// Options of a queue.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct QueueOptions {
    /// End of the last field.
    pub struct_size: u32,
    /// Higher runs first; 0 is normal.
    pub priority: i32,
    /// `QUEUE_*` bits.
    pub flags: u64,
}

/// [`QueueOptions::flags`]: the queue will be asked for timestamps.
pub const QUEUE_TIMESTAMPS: u64 = 1;

/// How far a queue is. Frozen.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Every ticket up to this one has ended, well or badly.
    pub completed: u64,
    /// The first ticket that failed, 0 if none did. Failure is permanent.
    pub first_failed: u64,
}

/// A submission's place: its own ticket, and the latest of the same queue that must end before it starts (0: none).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Ticket of this submission, one more than the last.
    pub ticket: u64,
    /// Ticket it depends on. A backend whose queue runs one thing at a time ignores it.
    pub after: u64,
}

/// A copy of rows between buffers: of a block of columns, say. Since minor 2.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RowCopy {
    /// End of the last field.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Where to.
    pub destination: Handle,
    /// First byte written.
    pub destination_offset: u64,
    /// Bytes from one written row to the next, at least `row_bytes`.
    pub destination_pitch: u64,
    /// Where from.
    pub source: Handle,
    /// First byte read.
    pub source_offset: u64,
    /// Bytes from one read row to the next, at least `row_bytes`.
    pub source_pitch: u64,
    /// Bytes of a row, at least 1.
    pub row_bytes: u64,
    /// Number of rows, at least 1.
    pub rows: u64,
}

/// One node of a graph.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GraphNode {
    /// End of the last field.
    pub struct_size: u32,
    /// `NODE_*`.
    pub kind: u32,
    /// [`NODE_LAUNCH`]: the kernel.
    pub kernel: Handle,
    /// [`NODE_LAUNCH`]: geometry and arguments, valid during the call.
    pub launch: *const Launch,
    /// [`NODE_COPY`], [`NODE_FILL`]: where to.
    pub destination: Handle,
    /// [`NODE_COPY`], [`NODE_FILL`]: first byte written.
    pub destination_offset: u64,
    /// [`NODE_COPY`]: where from.
    pub source: Handle,
    /// [`NODE_COPY`]: first byte read.
    pub source_offset: u64,
    /// [`NODE_COPY`], [`NODE_FILL`]: bytes.
    pub bytes: u64,
    /// [`NODE_FILL`]: the pattern, repeated.
    pub pattern: [u8; 16],
    /// [`NODE_FILL`]: bytes of the pattern: 1, 2, 4, 8 or 16.
    pub pattern_bytes: u32,
    /// Number of `dependencies`.
    pub dependency_count: u32,
    /// Indices of earlier nodes that must end first.
    pub dependencies: *const u32,
}

/// [`GraphNode::kind`]: a kernel launch.
pub const NODE_LAUNCH: u32 = 1;
/// [`GraphNode::kind`]: a copy between buffers.
pub const NODE_COPY: u32 = 2;
/// [`GraphNode::kind`]: a fill.
pub const NODE_FILL: u32 = 3;

/// A tensor of an embedded device: described, not held.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TensorDescription {
    /// End of the last field.
    pub struct_size: u32,
    /// Number of dimensions.
    pub ndim: u32,
    /// Element type.
    pub dtype: DType,
    /// `ACCESS_*`.
    pub access: u32,
    /// Extents, `ndim` of them.
    pub shape: *const i64,
    /// Initial bytes, or null: filled from `seed`.
    pub data: *const u8,
    /// Bytes of `data`.
    pub data_bytes: usize,
    /// Seed of the deterministic generator that fills the tensor on the device.
    pub seed: u64,
}

/// What an embedded run reports.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RunReport {
    /// End of the last field.
    pub struct_size: u32,
    /// Exit code of the program.
    pub exit_code: i32,
    /// Cycles counted on the device, 0 if it has no counter.
    pub cycles: u64,
    /// Wall time of the run in nanoseconds, by the backend's clock.
    pub elapsed_ns: u64,
}

/// What core offers to a backend; valid for the life of the process.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostTable {
    /// Version of the offering core.
    pub header: Header,
    /// Takes a log record: `level` is 1 error, 2 warning, 3 info, 4 debug, 5 trace. Thread-safe.
    pub log: Option<unsafe extern "C" fn(level: u32, target: Str, message: Str)>,
}
