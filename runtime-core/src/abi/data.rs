//! The data structures of the ABI.

#![allow(missing_debug_implementations, reason = "the kind decides which member of a union may be read")]

use super::{Handle, Header, Str};

/// A key with a typed value: a device option, a load option, or a further attribute of a device. Frozen.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Property {
    /// Name, in lower case with underscores.
    pub key: Str,
    /// One of the `VALUE_*` constants.
    pub kind: u32,
    /// Zero.
    pub reserved: u32,
    /// The value; `kind` selects the member.
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
/// [`Property::kind`]: `value.text`. A repeated key forms a list.
pub const VALUE_TEXT: u32 = 4;

/// Description of an option that a backend accepts. Frozen.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// The key.
    pub key: Str,
    /// `VALUE_*`.
    pub kind: u32,
    /// Where the option is accepted: one of the `SCOPE_*` constants.
    pub scope: u32,
    /// Valid values separated by `|`; empty if every value of the kind is valid.
    pub choices: Str,
    /// The default, as text.
    pub default: Str,
    /// One sentence of documentation.
    pub doc: Str,
}

/// [`OptionSpec::scope`]: an option of `open_device`.
pub const SCOPE_DEVICE: u32 = 1;
/// [`OptionSpec::scope`]: an option of `open_device` whose value names code, or where code comes from, that is executed. Programs
/// set it by an unsafe call only. A core that does not know this scope does not know the option. Since minor version 3.
pub const SCOPE_DEVICE_CODE: u32 = 3;
/// [`OptionSpec::scope`]: an option of `load`.
pub const SCOPE_MODULE: u32 = 2;

/// An element type as DLPack encodes it: code, bits, lanes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DType {
    /// `DLDataTypeCode`: 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool, 7 and up fp8.
    pub code: u8,
    /// Bits per lane.
    pub bits: u8,
    /// Vector lanes; 1 for scalars.
    pub lanes: u16,
}

/// A memory space of a device. Frozen.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemorySpace {
    /// `device`, `pinned`, `shared`, or a backend-specific name.
    pub name: Str,
    /// Capacity in bytes; 0 if unknown.
    pub total_bytes: u64,
    /// Alignment of every allocation in bytes; a power of two.
    pub alignment_bytes: u64,
    /// `SPACE_*` bits.
    pub flags: u64,
}

/// [`MemorySpace::flags`]: the host can access the memory through [`Allocation::host_pointer`].
pub const SPACE_HOST_VISIBLE: u64 = 1;
/// [`MemorySpace::flags`]: kernels can access the memory.
pub const SPACE_KERNEL_VISIBLE: u64 = 2;

/// Everything that is known about a device before it is opened. Borrowed from the instance: valid until the
/// next `devices` call on the instance, or until the instance is closed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceInfo {
    /// End of the last field.
    pub struct_size: u32,
    /// `KIND_*`.
    pub kind: u32,
    /// Index within the backend.
    pub index: u32,
    /// Index of the sub-device; [`WHOLE_DEVICE`] for a whole device.
    pub sub: u32,
    /// Human-readable name, e.g. `NVIDIA H200`.
    pub name: Str,
    /// Architecture, e.g. `sm_90`, `x86-64-v4`.
    pub arch: Str,
    /// Name of the vendor.
    pub vendor: Str,
    /// Driver version, as the driver reports it.
    pub driver_version: Str,
    /// Why the device cannot be opened; empty if it can.
    pub unavailable_reason: Str,
    /// Stable identifier; all zero if the driver has none.
    pub uuid: [u8; 16],
    /// PCI address `dddd:bb:dd.f`; empty if there is none.
    pub pci_address: Str,
    /// `DLDeviceType` of the device's memory.
    pub dlpack_type: i32,
    /// Compute units (cores, SMs, clusters); 0 if unknown.
    pub compute_units: u32,
    /// Maximum clock of the compute units in Hz; 0 if unknown.
    pub clock_hz: u64,
    /// `CAP_*` bits.
    pub capabilities: u64,
    /// Maximum number of groups in a launch, per dimension.
    pub max_groups: [u64; 3],
    /// Maximum number of work-items in a group, per dimension.
    pub max_group_size: [u32; 3],
    /// Maximum number of work-items in a group, in total.
    pub max_group_items: u32,
    /// Maximum work-group memory in bytes.
    pub max_shared_bytes: u64,
    /// Maximum size of an allocation in bytes; 0 if unknown.
    pub max_allocation_bytes: u64,
    /// Memory spaces; the first is the default.
    pub spaces: *const MemorySpace,
    /// Number of `spaces`.
    pub space_count: usize,
    /// Accepted code formats, in order of preference.
    pub formats: *const Str,
    /// Number of `formats`.
    pub format_count: usize,
    /// Further attributes (cache sizes, SIMD level, bandwidth, ...).
    pub properties: *const Property,
    /// Number of `properties`.
    pub property_count: usize,
}

/// [`DeviceInfo::sub`] of a whole device.
pub const WHOLE_DEVICE: u32 = u32::MAX;
/// [`DeviceInfo::kind`]: uses host memory and runs native code.
pub const KIND_HOST: u32 = 1;
/// [`DeviceInfo::kind`]: has its own memory spaces and queues.
pub const KIND_ACCELERATOR: u32 = 2;
/// [`DeviceInfo::kind`]: an external processor that is flashed and then run.
pub const KIND_EMBEDDED: u32 = 3;

/// Capability: `timestamp` and `read_timestamp`.
pub const CAP_TIMESTAMPS: u64 = 1;
/// Capability: native graphs.
pub const CAP_GRAPHS: u64 = 1 << 1;
/// Capability: `wait_for` between queues of one backend.
pub const CAP_WAIT_FOR: u64 = 1 << 2;
/// Capability: a synchronous launch on an idle queue may run on the calling thread (`try_begin_inline` and `run_inline`).
pub const CAP_INLINE: u64 = 1 << 3;
/// Capability: memory can be allocated and freed in queue order (`allocate` and `free` with a queue).
pub const CAP_STREAM_ORDERED: u64 = 1 << 4;
/// Capability: only one thread at a time may call the device; core serialises the calls.
pub const CAP_SERIAL: u64 = 1 << 5;
/// Capability: `import_host`.
pub const CAP_IMPORT_HOST: u64 = 1 << 6;
/// Capability: `noop` submits a no-op kernel.
pub const CAP_NOOP_KERNEL: u64 = 1 << 7;
/// Capability: kernels take [`Launch::range`] and [`Launch::grain`].
pub const CAP_RANGE: u64 = 1 << 8;
/// Capability: kernels take group counts and group sizes other than 1.
pub const CAP_GROUPS: u64 = 1 << 9;
/// Capability: `telemetry`.
pub const CAP_TELEMETRY: u64 = 1 << 10;
/// Capability: cooperative launches ([`LAUNCH_COOPERATIVE`]).
pub const CAP_COOPERATIVE: u64 = 1 << 11;
/// Capability: work-group clusters ([`Launch::cluster`]).
pub const CAP_CLUSTERS: u64 = 1 << 12;
/// Capability: `peer_access` may be granted.
pub const CAP_PEERS: u64 = 1 << 13;
/// Capability: kernels compute in f16.
pub const CAP_F16: u64 = 1 << 14;
/// Capability: kernels compute in f64.
pub const CAP_F64: u64 = 1 << 15;
/// Capability: `import_device_memory` of device memory that another library allocated.
pub const CAP_IMPORT_DEVICE_MEMORY: u64 = 1 << 16;
/// Capability: `copy_2d`, a pitched 2-D copy between buffers of the device.
pub const CAP_COPY_2D: u64 = 1 << 17;
/// Capability: counters ([`super::CounterTable`]).
pub const CAP_COUNTERS: u64 = 1 << 18;
/// Capability: `hold` and `resume` of a queue. Since minor version 2.
pub const CAP_HOLD: u64 = 1 << 19;

/// An allocation request.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AllocateRequest {
    /// End of the last field.
    pub struct_size: u32,
    /// Index into [`DeviceInfo::spaces`].
    pub space: u32,
    /// Size in bytes; 0 is valid and requires no memory.
    pub bytes: u64,
    /// Alignment in bytes: a power of two, at least that of the space; 0 for that of the space.
    pub alignment_bytes: u64,
    /// `ALLOCATE_*` bits.
    pub flags: u64,
    /// The queue that orders the allocation, with [`CAP_STREAM_ORDERED`]; otherwise null.
    pub queue: Handle,
    /// The next ticket of `queue`, which the allocation takes; 0 without a queue.
    pub ticket: u64,
}

/// [`AllocateRequest::flags`]: back the allocation with huge pages; fails if there are none.
pub const ALLOCATE_HUGE_PAGES: u64 = 1;

/// A completed allocation. The buffer handle, the kernel address and the host pointer may all differ.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    /// End of the last field.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// The backend's buffer.
    pub buffer: Handle,
    /// Address that kernels use; 0 if kernels take the handle.
    pub kernel_address: u64,
    /// Address at which the host can access the memory; null if it cannot. The host may read it before
    /// writing it, so every byte must be initialised, to any value.
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
    /// Free bytes.
    pub free_bytes: u64,
    /// Total bytes.
    pub total_bytes: u64,
}

/// Clocks, temperature, power and energy; `valid` marks the fields that the device reports.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Telemetry {
    /// End of the last field.
    pub struct_size: u32,
    /// `TELEMETRY_*` bits of the fields that hold a value.
    pub valid: u32,
    /// Current clock of the compute units in Hz.
    pub clock_hz: u64,
    /// Current clock of the memory in Hz.
    pub memory_clock_hz: u64,
    /// Temperature in thousandths of a degree Celsius.
    pub temperature_millicelsius: i64,
    /// Power in milliwatts.
    pub power_milliwatts: u64,
    /// Energy in microjoules since an arbitrary point in time.
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

/// A reason of `throttle_reasons`: the device exceeds its power limit.
pub const THROTTLE_POWER_CAP: u64 = 1;
/// A reason of `throttle_reasons`: the driver lowers the clocks because of the temperature.
pub const THROTTLE_SOFTWARE_THERMAL: u64 = 1 << 1;
/// A reason of `throttle_reasons`: the hardware lowers the clocks because of the temperature.
pub const THROTTLE_HARDWARE_THERMAL: u64 = 1 << 2;
/// A reason of `throttle_reasons`: the power supply demands less power.
pub const THROTTLE_POWER_BRAKE: u64 = 1 << 3;
/// A reason of `throttle_reasons`: the hardware lowers the clocks, for a reason of its own.
pub const THROTTLE_HARDWARE_SLOWDOWN: u64 = 1 << 4;
/// A reason of `throttle_reasons`: somebody has limited the clocks.
pub const THROTTLE_CLOCK_LIMIT: u64 = 1 << 5;

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
    /// Path of the source file, for messages and relative includes; may be empty.
    pub path: Str,
    /// The code; null if the backend is to read `path`.
    pub code: *const u8,
    /// Size of `code` in bytes.
    pub code_bytes: usize,
    /// Load options.
    pub options: *const Property,
    /// Number of `options`.
    pub option_count: usize,
}

/// A launch argument; 16 bytes. Frozen.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Arg {
    /// `ARG_*`.
    pub kind: u8,
    /// `ACCESS_*` bits of a tensor.
    pub access: u8,
    /// [`DType::code`] of a scalar.
    pub dtype_code: u8,
    /// [`DType::bits`] of a scalar.
    pub dtype_bits: u8,
    /// Size in bytes of a scalar or of by-value data.
    pub bytes: u32,
    /// The value; `kind` selects the member.
    pub value: ArgValue,
}

/// The value of an [`Arg`]. Frozen.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ArgValue {
    /// [`ARG_TENSOR`]: valid during the call.
    pub tensor: *const TensorArg,
    /// [`ARG_SCALAR`]: the bytes of the value, little-endian and zero-extended.
    pub scalar: u64,
    /// [`ARG_BYTES`]: valid during the call.
    pub data: *const u8,
    /// [`ARG_LOCAL`]: size of dynamic work-group memory in bytes.
    pub local_bytes: u64,
    /// [`ARG_RECORD`]: valid during the call.
    pub record: *const RecordArg,
}

/// [`Arg::kind`]: a tensor.
pub const ARG_TENSOR: u8 = 1;
/// [`Arg::kind`]: a scalar of up to 8 bytes.
pub const ARG_SCALAR: u8 = 2;
/// [`Arg::kind`]: bytes passed by value.
pub const ARG_BYTES: u8 = 3;
/// [`Arg::kind`]: the size of a block of dynamic work-group memory.
pub const ARG_LOCAL: u8 = 4;
/// [`Arg::kind`]: a structure passed by value, with the types of its fields.
pub const ARG_RECORD: u8 = 5;

/// [`Arg::access`]: the kernel reads the tensor.
pub const ACCESS_READ: u8 = 1;
/// [`Arg::access`]: the kernel writes the tensor.
pub const ACCESS_WRITE: u8 = 2;
/// `Param::access`: the code uses the strides of the tensor, so non-contiguous views are accepted.
pub const ACCESS_STRIDED: u8 = 4;
/// `Param::access`: the code does not say whether it reads or writes the tensor. Set with `ACCESS_WRITE`, which older
/// cores take it for.
pub const ACCESS_UNKNOWN: u8 = 8;

/// A tensor argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TensorArg {
    /// End of the last field.
    pub struct_size: u32,
    /// Number of dimensions.
    pub ndim: u32,
    /// The buffer that holds the tensor.
    pub buffer: Handle,
    /// Address of the first element for kernels: [`Allocation::kernel_address`] plus `byte_offset`.
    pub address: u64,
    /// Offset of the first element in the buffer, in bytes.
    pub byte_offset: u64,
    /// Bytes from the first element to the end of the element with the highest address;
    /// `byte_offset + span_bytes` never exceeds the size of the buffer. Elements at lower addresses than the
    /// first one (negative strides) are not included.
    pub span_bytes: u64,
    /// Element type.
    pub dtype: DType,
    /// `ndim` extents, in elements.
    pub shape: *const i64,
    /// `ndim` strides, in elements.
    pub strides: *const i64,
}

/// A structure passed by value, laid out as C lays it out. Where only its bytes matter, it is like [`ARG_BYTES`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RecordArg {
    /// End of the last field.
    pub struct_size: u32,
    /// Number of `fields`.
    pub field_count: u32,
    /// The types of the fields in order, each a scalar of C.
    pub fields: *const DType,
    /// The structure, with padding between the fields and at the end.
    pub data: *const u8,
    /// Size of `data` in bytes.
    pub data_bytes: u64,
}

/// Geometry and arguments of a kernel launch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    /// End of the last field.
    pub struct_size: u32,
    /// `LAUNCH_*` bits.
    pub flags: u32,
    /// Number of groups, per dimension.
    pub groups: [u32; 3],
    /// Work-items per group, per dimension.
    pub group_size: [u32; 3],
    /// Groups per cluster, per dimension; all 1 without clusters.
    pub cluster: [u32; 3],
    /// Iterations of `range` per call; 0 lets the backend choose.
    pub grain: u32,
    /// Half-open range `[begin, end)` for kernels that take one; both 0 if there is none.
    pub range: [i64; 2],
    /// The arguments in order.
    pub args: *const Arg,
    /// Number of `args`.
    pub arg_count: usize,
}

/// [`Launch::flags`]: all groups are resident at once and may synchronise with each other.
pub const LAUNCH_COOPERATIVE: u32 = 1;

/// Options of a queue.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct QueueOptions {
    /// End of the last field.
    pub struct_size: u32,
    /// Priority: higher runs first, 0 is normal.
    pub priority: i32,
    /// `QUEUE_*` bits.
    pub flags: u64,
}

/// [`QueueOptions::flags`]: timestamps will be recorded on the queue.
pub const QUEUE_TIMESTAMPS: u64 = 1;

/// Progress of a queue. Frozen.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// All tickets up to and including this one have ended, successfully or not.
    pub completed: u64,
    /// The first ticket that failed; 0 if none has. Failure is permanent.
    pub first_failed: u64,
}

/// Position of a submission in its queue: its own ticket, and the latest earlier ticket that must end before
/// it starts (0 if there is none).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmitInfo {
    /// Ticket of this submission: the previous ticket plus one.
    pub ticket: u64,
    /// Latest ticket that it depends on. A backend that executes a queue serially may ignore it.
    pub after: u64,
}

/// A pitched 2-D copy between buffers, e.g. of a block of columns.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy2D {
    /// End of the last field.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Destination buffer.
    pub destination: Handle,
    /// Offset of the first byte written.
    pub destination_offset: u64,
    /// Bytes between the starts of consecutive destination rows; at least `row_bytes`.
    pub destination_pitch: u64,
    /// Source buffer.
    pub source: Handle,
    /// Offset of the first byte read.
    pub source_offset: u64,
    /// Bytes between the starts of consecutive source rows; at least `row_bytes`.
    pub source_pitch: u64,
    /// Bytes per row; at least 1.
    pub row_bytes: u64,
    /// Number of rows; at least 1.
    pub rows: u64,
}

/// A node of a graph.
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
    /// [`NODE_COPY`], [`NODE_FILL`]: destination buffer.
    pub destination: Handle,
    /// [`NODE_COPY`], [`NODE_FILL`]: offset of the first byte written.
    pub destination_offset: u64,
    /// [`NODE_COPY`]: source buffer.
    pub source: Handle,
    /// [`NODE_COPY`]: offset of the first byte read.
    pub source_offset: u64,
    /// [`NODE_COPY`], [`NODE_FILL`]: number of bytes.
    pub bytes: u64,
    /// [`NODE_FILL`]: the pattern to repeat.
    pub pattern: [u8; 16],
    /// [`NODE_FILL`]: size of the pattern in bytes: 1, 2, 4, 8 or 16.
    pub pattern_bytes: u32,
    /// Number of `dependencies`.
    pub dependency_count: u32,
    /// Indices of the earlier nodes that must end first.
    pub dependencies: *const u32,
}

/// [`GraphNode::kind`]: a kernel launch.
pub const NODE_LAUNCH: u32 = 1;
/// [`GraphNode::kind`]: a copy between buffers.
pub const NODE_COPY: u32 = 2;
/// [`GraphNode::kind`]: a fill.
pub const NODE_FILL: u32 = 3;

/// Functions that core provides to a backend; valid for the life of the process.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostTable {
    /// ABI version of the core.
    pub header: Header,
    /// Logs a record: `level` is 1 error, 2 warning, 3 info, 4 debug or 5 trace. Thread-safe.
    pub log: Option<unsafe extern "C" fn(level: u32, target: Str, message: Str)>,
}
