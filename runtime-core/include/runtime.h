// The C ABI between `runtime-core` and a backend library.
//
// A backend library exports **one** symbol, `ENTRY_SYMBOL`, of type `EntryPoint`. It returns a pointer
// to a static `BackendTable` and makes no driver call. Everything else goes through that table.
//
// Every structure and function here follows these rules, so that an older backend works with a newer core
// and vice versa:
//
// - Fields are appended, never moved, removed or retyped, within a major version.
// - Every table, and every structure that may grow, begins with `struct_size`: the offset of the end of its
//   last field. The receiver copies `min(sender's size, own size)` bytes into a zeroed structure of its own.
// - A function pointer that is null or lies beyond `struct_size` is unsupported.
// - Elements of arrays (`Arg`, `Property`, `MemorySpace`, `Counter`, `CounterReading`,
//   `CompiledKernel`, `NativeHandle`, `Str`) are frozen within a major version.
// - For an output structure the *caller* sets `struct_size`; the callee writes at most that many bytes.
// - Core rejects lists and strings longer than the `MAX_*` limits. A count is the number of elements
//   actually present.
// - Strings are UTF-8 with an explicit length and no terminator. The contract of each borrowed string states
//   how long it lives.
// - Memory is freed by the side that allocated it: `Error` carries its own release function.
// - A backend never calls back into core, except through `HostTable::log`, which is thread-safe, and the function that
//   `NativeTable`'s `submit` receives.
// - No function may unwind across the ABI or end the process.
//
// `include/runtime.h` is generated from this module.
//
// Generated from runtime-core/src/abi: do not edit. After a change there:
// RUNTIME_UPDATE_GOLDEN=1 cargo test -p runtime-abi-tests
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef RUNTIME_H
#define RUNTIME_H

#include <stddef.h>
#include <stdint.h>

// Name of the only symbol that a backend library exports.
#define RT_ENTRY_SYMBOL "runtime_backend_v1"
// Name of the section that holds the manifest (ELF).
#define RT_MANIFEST_SECTION ".runtime_manifest"

// `Error::kind`, and what a program decides on.
#define RT_ERROR_UNAVAILABLE 1
#define RT_ERROR_UNSUPPORTED 2
#define RT_ERROR_INVALID_ARGUMENT 3
#define RT_ERROR_NOT_FOUND 4
#define RT_ERROR_COMPILE_FAILED 5
#define RT_ERROR_OUT_OF_MEMORY 6
#define RT_ERROR_OUT_OF_RESOURCES 7
#define RT_ERROR_TIMEOUT 8
#define RT_ERROR_DEVICE_LOST 9
#define RT_ERROR_FAILED 10
#define RT_ERROR_CANCELLED 11
#define RT_ERROR_ABI_MISMATCH 12
#define RT_ERROR_IO 13
#define RT_ERROR_DRIVER 14
#define RT_ERROR_INTERNAL 15
#define RT_ERROR_CRASHED 16


// First field of every `Header`: the bytes `RUNTIME\0` read as a little-endian integer.
#define RT_MAGIC 19506750735406418

// ABI major version; part of the entry point's name. A library of another major version is never loaded.
#define RT_MAJOR 1

// ABI minor version; incremented whenever fields are appended.
#define RT_MINOR 4

// Native code fits the device: recompiling it would not make it faster.
#define RT_FITS_OPTIMALLY 0

// Native code runs on the device, but code that is compiled for it would be better.
#define RT_FITS_RECOMPILE 1

// Native code does not run on the device, or no longer with this driver.
#define RT_FITS_NOT 2

// `CounterReading::flags`: there is a value.
#define RT_READING_VALID 1

// `CounterReading::flags`: the value is a ratio, a rate or a percentage, which does not grow with the amount of work.
#define RT_READING_RATIO (1 << 1)

// `Property::kind`: `value.integer` is 0 or 1.
#define RT_VALUE_FLAG 1

// `Property::kind`: `value.integer`.
#define RT_VALUE_INTEGER 2

// `Property::kind`: `value.number`.
#define RT_VALUE_NUMBER 3

// `Property::kind`: `value.text`. A repeated key forms a list.
#define RT_VALUE_TEXT 4

// `OptionSpec::scope`: an option of `open_device`.
#define RT_SCOPE_DEVICE 1

// `OptionSpec::scope`: an option of `open_device` whose value names code, or where code comes from, that is executed. Programs
// set it by an unsafe call only. A core that does not know this scope does not know the option. Since minor version 3.
#define RT_SCOPE_DEVICE_CODE 3

// `OptionSpec::scope`: an option of `load`.
#define RT_SCOPE_MODULE 2

// `MemorySpace::flags`: the host can access the memory through `Allocation::host_pointer`.
#define RT_SPACE_HOST_VISIBLE 1

// `MemorySpace::flags`: kernels can access the memory.
#define RT_SPACE_KERNEL_VISIBLE 2

// `DeviceInfo::sub` of a whole device.
#define RT_WHOLE_DEVICE UINT32_MAX

// `DeviceInfo::kind`: uses host memory and runs native code.
#define RT_KIND_HOST 1

// `DeviceInfo::kind`: has its own memory spaces and queues.
#define RT_KIND_ACCELERATOR 2

// `DeviceInfo::kind`: an external processor that is flashed and then run.
#define RT_KIND_EMBEDDED 3

// Capability: `timestamp` and `read_timestamp`.
#define RT_CAP_TIMESTAMPS 1

// Capability: native graphs.
#define RT_CAP_GRAPHS (1 << 1)

// Capability: `wait_for` between queues of one backend.
#define RT_CAP_WAIT_FOR (1 << 2)

// Capability: a synchronous launch on an idle queue may run on the calling thread (`try_begin_inline` and `run_inline`).
#define RT_CAP_INLINE (1 << 3)

// Capability: memory can be allocated and freed in queue order (`allocate` and `free` with a queue).
#define RT_CAP_STREAM_ORDERED (1 << 4)

// Capability: only one thread at a time may call the device; core serialises the calls.
#define RT_CAP_SERIAL (1 << 5)

// Capability: `import_host`.
#define RT_CAP_IMPORT_HOST (1 << 6)

// Capability: `noop` submits a no-op kernel.
#define RT_CAP_NOOP_KERNEL (1 << 7)

// Capability: kernels take `Launch::range` and `Launch::grain`.
#define RT_CAP_RANGE (1 << 8)

// Capability: kernels take group counts and group sizes other than 1.
#define RT_CAP_GROUPS (1 << 9)

// Capability: `telemetry`.
#define RT_CAP_TELEMETRY (1 << 10)

// Capability: cooperative launches (`LAUNCH_COOPERATIVE`).
#define RT_CAP_COOPERATIVE (1 << 11)

// Capability: work-group clusters (`Launch::cluster`).
#define RT_CAP_CLUSTERS (1 << 12)

// Capability: `peer_access` may be granted.
#define RT_CAP_PEERS (1 << 13)

// Capability: kernels compute in f16.
#define RT_CAP_F16 (1 << 14)

// Capability: kernels compute in f64.
#define RT_CAP_F64 (1 << 15)

// Capability: `import_device_memory` of device memory that another library allocated.
#define RT_CAP_IMPORT_DEVICE_MEMORY (1 << 16)

// Capability: `copy_2d`, a pitched 2-D copy between buffers of the device.
#define RT_CAP_COPY_2D (1 << 17)

// Capability: counters (`CounterTable`).
#define RT_CAP_COUNTERS (1 << 18)

// Capability: `hold` and `resume` of a queue. Since minor version 2.
#define RT_CAP_HOLD (1 << 19)

// `AllocateRequest::flags`: back the allocation with huge pages; fails if there are none.
#define RT_ALLOCATE_HUGE_PAGES 1

// `Telemetry::valid`: `clock_hz`.
#define RT_TELEMETRY_CLOCK 1

// `Telemetry::valid`: `memory_clock_hz`.
#define RT_TELEMETRY_MEMORY_CLOCK (1 << 1)

// `Telemetry::valid`: `temperature_millicelsius`.
#define RT_TELEMETRY_TEMPERATURE (1 << 2)

// `Telemetry::valid`: `power_milliwatts`.
#define RT_TELEMETRY_POWER (1 << 3)

// `Telemetry::valid`: `energy_microjoules`.
#define RT_TELEMETRY_ENERGY (1 << 4)

// A reason of `throttle_reasons`: the device exceeds its power limit.
#define RT_THROTTLE_POWER_CAP 1

// A reason of `throttle_reasons`: the driver lowers the clocks because of the temperature.
#define RT_THROTTLE_SOFTWARE_THERMAL (1 << 1)

// A reason of `throttle_reasons`: the hardware lowers the clocks because of the temperature.
#define RT_THROTTLE_HARDWARE_THERMAL (1 << 2)

// A reason of `throttle_reasons`: the power supply demands less power.
#define RT_THROTTLE_POWER_BRAKE (1 << 3)

// A reason of `throttle_reasons`: the hardware lowers the clocks, for a reason of its own.
#define RT_THROTTLE_HARDWARE_SLOWDOWN (1 << 4)

// A reason of `throttle_reasons`: somebody has limited the clocks.
#define RT_THROTTLE_CLOCK_LIMIT (1 << 5)

// `Arg::kind`: a tensor.
#define RT_ARG_TENSOR 1

// `Arg::kind`: a scalar of up to 8 bytes.
#define RT_ARG_SCALAR 2

// `Arg::kind`: bytes passed by value.
#define RT_ARG_BYTES 3

// `Arg::kind`: the size of a block of dynamic work-group memory.
#define RT_ARG_LOCAL 4

// `Arg::kind`: a structure passed by value, with the types of its fields.
#define RT_ARG_RECORD 5

// `Arg::access`: the kernel reads the tensor.
#define RT_ACCESS_READ 1

// `Arg::access`: the kernel writes the tensor.
#define RT_ACCESS_WRITE 2

// `Param::access`: the code uses the strides of the tensor, so non-contiguous views are accepted.
#define RT_ACCESS_STRIDED 4

// `Param::access`: the code does not say whether it reads or writes the tensor. Set with `ACCESS_WRITE`, which older
// cores take it for.
#define RT_ACCESS_UNKNOWN 8

// `Launch::flags`: all groups are resident at once and may synchronise with each other.
#define RT_LAUNCH_COOPERATIVE 1

// `QueueOptions::flags`: timestamps will be recorded on the queue.
#define RT_QUEUE_TIMESTAMPS 1

// `GraphNode::kind`: a kernel launch.
#define RT_NODE_LAUNCH 1

// `GraphNode::kind`: a copy between buffers.
#define RT_NODE_COPY 2

// `GraphNode::kind`: a fill.
#define RT_NODE_FILL 3

// `EmbeddedTable.inspect`: the memory at `address`, as many bytes as the buffer has.
#define RT_INSPECT_MEMORY 1

// `EmbeddedTable.inspect`: the registers, as UTF-8 text: lines `NAME 0xVALUE`, with the value in hexadecimal. Names contain no spaces.
// After a flash or a run without errors, one of them is `pc`, and memory can be read at its value. `address` is 0.
#define RT_INSPECT_REGISTERS 2

// A value that the driver does not report.
#define RT_UNKNOWN UINT32_MAX

// Maximum number of devices of a backend, including sub-devices.
#define RT_MAX_DEVICES 65536

// Maximum number of memory spaces of a device.
#define RT_MAX_SPACES 1024

// Maximum number of code formats of a device.
#define RT_MAX_FORMATS 1024

// Maximum number of properties of a device and of options of a call.
#define RT_MAX_PROPERTIES 65536

// Maximum number of options that a backend describes.
#define RT_MAX_OPTIONS 65536

// Maximum number of entry points of a module.
#define RT_MAX_SYMBOLS 1048576

// Maximum size of compiled code, in bytes.
#define RT_MAX_CODE_BYTES 4294967296

// Maximum number of counters of a device, and of a set.
#define RT_MAX_COUNTERS 65536

// Maximum number of passes of a set of counters.
#define RT_MAX_COUNTER_PASSES 4096

// Maximum number of parameters of a kernel.
#define RT_MAX_PARAMS 65536

// Maximum length of a name or other short string, in bytes.
#define RT_MAX_TEXT_BYTES 1048576

// Maximum length of an error message, compiler log or log record, in bytes.
#define RT_MAX_LOG_BYTES 268435456

// Header of every versioned table.
typedef struct rt_Header {
    // `MAGIC`.
    uint64_t magic;
    // Offset of the end of the last field of the structure that holds this header.
    uint32_t struct_size;
    // `MAJOR` of the side that filled in the structure.
    uint16_t major;
    // `MINOR` of the side that filled in the structure.
    uint16_t minor;
} rt_Header;

// Borrowed UTF-8 text; `ptr` may be null when `len` is 0.
typedef struct rt_Str {
    // First byte.
    const uint8_t *ptr;
    // Length in bytes.
    size_t len;
} rt_Str;

// An owned error. The receiver reads it and then passes it to `release`, on any thread.
typedef struct rt_Error {
    // End of the last field.
    uint32_t struct_size;
    // A `ErrorKind` as a number; unknown numbers are treated as `Driver`.
    uint32_t kind;
    // The driver's own code, 0 if there is none.
    int64_t code;
    // The operation that failed, e.g. `cuModuleLoadData`.
    struct rt_Str operation;
    // What happened and what to do about it.
    struct rt_Str message;
    // The driver's own name for `code`, e.g. `CUDA_ERROR_INVALID_PTX`; may be empty.
    struct rt_Str symbol;
    // Frees this error; null if it is static.
    void (*release)(struct rt_Error *error);
} rt_Error;

// Contents of the section `MANIFEST_SECTION`, read from the file before the library is loaded.
typedef struct rt_Manifest {
    // `MAGIC`.
    uint64_t magic;
    // Size of this structure.
    uint32_t struct_size;
    // ABI major version that the library was built for.
    uint16_t major;
    // ABI minor version that the library was built for.
    uint16_t minor;
    // Name of the backend, padded with NULs.
    uint8_t name[32];
    // Target triple of the library, padded with NULs.
    uint8_t target[64];
} rt_Manifest;

// An opaque object of a backend. Null means "none".
typedef void *rt_Handle;

// Result of a table function: null on success, otherwise an owned error that the receiver must release.
typedef struct rt_Error *rt_Status;

// Description of an option that a backend accepts. Frozen.
typedef struct rt_OptionSpec {
    // The key.
    struct rt_Str key;
    // `VALUE_*`.
    uint32_t kind;
    // Where the option is accepted: one of the `SCOPE_*` constants.
    uint32_t scope;
    // Valid values separated by `|`; empty if every value of the kind is valid.
    struct rt_Str choices;
    // The default, as text.
    struct rt_Str default_;
    // One sentence of documentation.
    struct rt_Str doc;
} rt_OptionSpec;

// Functions that core provides to a backend; valid for the life of the process.
typedef struct rt_HostTable {
    // ABI version of the core.
    struct rt_Header header;
    // Logs a record: `level` is 1 error, 2 warning, 3 info, 4 debug or 5 trace. Thread-safe.
    void (*log)(uint32_t level, struct rt_Str target, struct rt_Str message);
} rt_HostTable;

// A memory space of a device. Frozen.
typedef struct rt_MemorySpace {
    // `device`, `pinned`, `shared`, or a backend-specific name.
    struct rt_Str name;
    // Capacity in bytes; 0 if unknown.
    uint64_t total_bytes;
    // Alignment of every allocation in bytes; a power of two.
    uint64_t alignment_bytes;
    // `SPACE_*` bits.
    uint64_t flags;
} rt_MemorySpace;

// The value of a `Property`. Frozen.
typedef union rt_Value {
    // For `VALUE_INTEGER`, and 0 or 1 for `VALUE_FLAG`.
    int64_t integer;
    // For `VALUE_NUMBER`.
    double number;
    // For `VALUE_TEXT`.
    struct rt_Str text;
} rt_Value;

// A key with a typed value: a device option, a load option, or a further attribute of a device. Frozen.
typedef struct rt_Property {
    // Name, in lower case with underscores.
    struct rt_Str key;
    // One of the `VALUE_*` constants.
    uint32_t kind;
    // Zero.
    uint32_t reserved;
    // The value; `kind` selects the member.
    union rt_Value value;
} rt_Property;

// Everything that is known about a device before it is opened. Borrowed from the instance: valid until the
// next `devices` call on the instance, or until the instance is closed.
typedef struct rt_DeviceInfo {
    // End of the last field.
    uint32_t struct_size;
    // `KIND_*`.
    uint32_t kind;
    // Index within the backend.
    uint32_t index;
    // Index of the sub-device; `WHOLE_DEVICE` for a whole device.
    uint32_t sub;
    // Human-readable name, e.g. `NVIDIA H200`.
    struct rt_Str name;
    // Architecture, e.g. `sm_90`, `x86-64-v4`.
    struct rt_Str arch;
    // Name of the vendor.
    struct rt_Str vendor;
    // Driver version, as the driver reports it.
    struct rt_Str driver_version;
    // Why the device cannot be opened; empty if it can.
    struct rt_Str unavailable_reason;
    // Stable identifier; all zero if the driver has none.
    uint8_t uuid[16];
    // PCI address `dddd:bb:dd.f`; empty if there is none.
    struct rt_Str pci_address;
    // `DLDeviceType` of the device's memory.
    int32_t dlpack_type;
    // Compute units (cores, SMs, clusters); 0 if unknown.
    uint32_t compute_units;
    // Maximum clock of the compute units in Hz; 0 if unknown.
    uint64_t clock_hz;
    // `CAP_*` bits.
    uint64_t capabilities;
    // Maximum number of groups in a launch, per dimension.
    uint64_t max_groups[3];
    // Maximum number of work-items in a group, per dimension.
    uint32_t max_group_size[3];
    // Maximum number of work-items in a group, in total.
    uint32_t max_group_items;
    // Maximum work-group memory in bytes.
    uint64_t max_shared_bytes;
    // Maximum size of an allocation in bytes; 0 if unknown.
    uint64_t max_allocation_bytes;
    // Memory spaces; the first is the default.
    const struct rt_MemorySpace *spaces;
    // Number of `spaces`.
    size_t space_count;
    // Accepted code formats, in order of preference.
    const struct rt_Str *formats;
    // Number of `formats`.
    size_t format_count;
    // Further attributes (cache sizes, SIMD level, bandwidth, ...).
    const struct rt_Property *properties;
    // Number of `properties`.
    size_t property_count;
} rt_DeviceInfo;

// Code to load.
typedef struct rt_ModuleSource {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // A code format, e.g. `c`, `cubin`, `spirv-shader`.
    struct rt_Str format;
    // Path of the source file, for messages and relative includes; may be empty.
    struct rt_Str path;
    // The code; null if the backend is to read `path`.
    const uint8_t *code;
    // Size of `code` in bytes.
    size_t code_bytes;
    // Load options.
    const struct rt_Property *options;
    // Number of `options`.
    size_t option_count;
} rt_ModuleSource;

// The state of a backend. Several instances may coexist.
typedef struct rt_InstanceTable {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Lists the options that the backend accepts. The list is static.
    rt_Status (*options)(const struct rt_OptionSpec **out, size_t *count);
    // Creates an instance. Makes no driver call.
    rt_Status (*open)(const struct rt_HostTable *host, rt_Handle *out);
    // Destroys an instance. All its devices have been closed.
    void (*close)(rt_Handle instance);
    // Lists all devices, including unusable ones, each whole device before its sub-devices. Fails with
    // `Unavailable` if there is no driver. The list is valid until the next call or `close`.
    rt_Status (*devices)(rt_Handle instance, const struct rt_DeviceInfo *const **out, size_t *count);
    // Opens device `index`, or its sub-device `sub` if that is not `WHOLE_DEVICE`.
    rt_Status (*open_device)(rt_Handle instance,
                             uint32_t index,
                             uint32_t sub,
                             const struct rt_Property *options,
                             size_t count,
                             rt_Handle *out);
    // Describes the device that code for `architecture` is compiled for: its formats, capabilities and limits, as far
    // as they follow from the architecture. Needs no device. `NotFound` lists the architectures. Valid until the next
    // call or `close`. Since minor version 2.
    rt_Status (*architecture)(rt_Handle instance, struct rt_Str architecture, const struct rt_DeviceInfo **out);
    // Compiles code for an architecture; needs no device. As `ModuleTable.compile` otherwise. Since minor version 2.
    rt_Status (*compile_for)(rt_Handle instance,
                             struct rt_Str architecture,
                             const struct rt_ModuleSource *source,
                             rt_Handle *out);
    // Reports what the backend finds on this machine, which users send to its authors when something fails: texts, with a
    // title as the key of each. Calls no driver, and is bounded in size and time. Valid until the next call or `close`.
    // Since minor version 3.
    rt_Status (*diagnose)(rt_Handle instance, const struct rt_Property **out, size_t *count);
    // Lists the environment variables that a process needs from its start to open `device`, the part of a device string
    // behind the target, with `options`: texts, with a name as the key of each. There are none if the process can open it
    // as it is, or if no variable would help. Calls no driver. Valid until the next call or `close`. Since minor version 3.
    rt_Status (*process_variables)(rt_Handle instance,
                                   struct rt_Str device,
                                   const struct rt_Property *options,
                                   size_t option_count,
                                   const struct rt_Property **out,
                                   size_t *count);
} rt_InstanceTable;

// Free and total memory of a space.
typedef struct rt_MemoryUsage {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Free bytes.
    uint64_t free_bytes;
    // Total bytes.
    uint64_t total_bytes;
} rt_MemoryUsage;

// Clocks, temperature, power and energy; `valid` marks the fields that the device reports.
typedef struct rt_Telemetry {
    // End of the last field.
    uint32_t struct_size;
    // `TELEMETRY_*` bits of the fields that hold a value.
    uint32_t valid;
    // Current clock of the compute units in Hz.
    uint64_t clock_hz;
    // Current clock of the memory in Hz.
    uint64_t memory_clock_hz;
    // Temperature in thousandths of a degree Celsius.
    int64_t temperature_millicelsius;
    // Power in milliwatts.
    uint64_t power_milliwatts;
    // Energy in microjoules since an arbitrary point in time.
    uint64_t energy_microjoules;
} rt_Telemetry;

// Open devices.
typedef struct rt_DeviceTable {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Closes a device. Everything created from it has been destroyed.
    void (*close)(rt_Handle device);
    // Reports the free and total bytes of memory space `space`.
    rt_Status (*memory_usage)(rt_Handle device, uint32_t space, struct rt_MemoryUsage *out);
    // Stores 1 if kernels on `device` can access memory of `other`, a device of the same backend; 0
    // otherwise.
    rt_Status (*peer_access)(rt_Handle device, rt_Handle other, uint32_t *out);
    // Reads current clocks, temperature, power and energy.
    rt_Status (*telemetry)(rt_Handle device, struct rt_Telemetry *out);
    // Stores the `THROTTLE_*` reasons for which the device runs slower than it could, now or at any time since the
    // last call. Core calls it between kernels, so it must be fast.
    rt_Status (*throttle_reasons)(rt_Handle device, uint64_t *out);
    // Stores the IDs of other processes that use the device, at most `capacity`, and how many there are. The ID of a
    // process of another PID namespace is 0.
    rt_Status (*processes)(rt_Handle device, uint32_t *ids, uint32_t capacity, uint32_t *count);
} rt_DeviceTable;

// An allocation request.
typedef struct rt_AllocateRequest {
    // End of the last field.
    uint32_t struct_size;
    // Index into `DeviceInfo::spaces`.
    uint32_t space;
    // Size in bytes; 0 is valid and requires no memory.
    uint64_t bytes;
    // Alignment in bytes: a power of two, at least that of the space; 0 for that of the space.
    uint64_t alignment_bytes;
    // `ALLOCATE_*` bits.
    uint64_t flags;
    // The queue that orders the allocation, with `CAP_STREAM_ORDERED`; otherwise null.
    rt_Handle queue;
    // The next ticket of `queue`, which the allocation takes; 0 without a queue.
    uint64_t ticket;
} rt_AllocateRequest;

// A completed allocation. The buffer handle, the kernel address and the host pointer may all differ.
typedef struct rt_Allocation {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // The backend's buffer.
    rt_Handle buffer;
    // Address that kernels use; 0 if kernels take the handle.
    uint64_t kernel_address;
    // Address at which the host can access the memory; null if it cannot. The host may read it before
    // writing it, so every byte must be initialised, to any value.
    uint8_t *host_pointer;
} rt_Allocation;

// Device memory.
typedef struct rt_MemoryTable {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Allocates memory. Fails with `OutOfMemory` when it is exhausted.
    rt_Status (*allocate)(rt_Handle device,
                          const struct rt_AllocateRequest *request,
                          struct rt_Allocation *out);
    // Frees a buffer: in order with the work of `queue`, or, if `queue` is null, at once because no work
    // uses the buffer.
    void (*free)(rt_Handle device, rt_Handle buffer, rt_Handle queue);
    // Makes a buffer of `bytes` bytes of host memory at `pointer`. The memory outlives the buffer.
    rt_Status (*import_host)(rt_Handle device,
                             uint32_t space,
                             uint8_t *pointer,
                             uint64_t bytes,
                             struct rt_Allocation *out);
    // Makes a buffer of `bytes` bytes of device memory that another library allocated. The memory outlives
    // the buffer. `memory` is the value of DLPack's `data` for such a device: a device pointer, a `cl_mem`,
    // ...
    rt_Status (*import_device_memory)(rt_Handle device,
                                      uint32_t space,
                                      void *memory,
                                      uint64_t bytes,
                                      struct rt_Allocation *out);
} rt_MemoryTable;

// An element type as DLPack encodes it: code, bits, lanes.
typedef struct rt_DType {
    // `DLDataTypeCode`: 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool, 7 and up fp8.
    uint8_t code;
    // Bits per lane.
    uint8_t bits;
    // Vector lanes; 1 for scalars.
    uint16_t lanes;
} rt_DType;

// One parameter of a kernel. Frozen.
typedef struct rt_Param {
    // `ARG_*`. `ARG_SCALAR` without an element type takes any value: a scalar or a structure.
    uint8_t kind;
    // `ACCESS_*` bits of a tensor; older cores ignore `ACCESS_STRIDED` and `ACCESS_UNKNOWN`.
    uint8_t access;
    // Zero.
    uint16_t reserved;
    // Element type; all zero if the code does not state it.
    struct rt_DType dtype;
} rt_Param;

// Properties of a kernel; `UNKNOWN` where the driver does not report one.
typedef struct rt_KernelInfo {
    // End of the last field.
    uint32_t struct_size;
    // Registers per work-item.
    uint32_t registers;
    // Bytes spilled to memory per work-item.
    uint32_t spilled_bytes;
    // Bytes of work-group memory that the code declares.
    uint32_t shared_bytes;
    // Maximum number of work-items in a group of this kernel.
    uint32_t max_group_items;
    // Group size fixed by the code; all zero if the launch chooses it.
    uint32_t group_size[3];
    // The parameters; null if the code does not describe them. Borrowed from the kernel.
    const struct rt_Param *params;
    // Number of `params`.
    size_t param_count;
    // Version of the instruction set that the code targets, in the driver's numbering (CUDA: 90 for
    // `sm_90`); 0 means `UNKNOWN`.
    uint32_t binary_version;
    // Version of the virtual instruction set that it was compiled from (CUDA: 90 for `compute_90`); 0 means
    // `UNKNOWN`.
    uint32_t virtual_version;
    // The group size should be a multiple of this number; 0 means `UNKNOWN`.
    uint32_t preferred_multiple;
    // Bytes of private memory per work-item, including spills.
    uint32_t private_bytes;
} rt_KernelInfo;

// A tensor argument.
typedef struct rt_TensorArg {
    // End of the last field.
    uint32_t struct_size;
    // Number of dimensions.
    uint32_t ndim;
    // The buffer that holds the tensor.
    rt_Handle buffer;
    // Address of the first element for kernels: `Allocation::kernel_address` plus `byte_offset`.
    uint64_t address;
    // Offset of the first element in the buffer, in bytes.
    uint64_t byte_offset;
    // Bytes from the first element to the end of the element with the highest address;
    // `byte_offset + span_bytes` never exceeds the size of the buffer. Elements at lower addresses than the
    // first one (negative strides) are not included.
    uint64_t span_bytes;
    // Element type.
    struct rt_DType dtype;
    // `ndim` extents, in elements.
    const int64_t *shape;
    // `ndim` strides, in elements.
    const int64_t *strides;
} rt_TensorArg;

// A structure passed by value, laid out as C lays it out. Where only its bytes matter, it is like `ARG_BYTES`.
typedef struct rt_RecordArg {
    // End of the last field.
    uint32_t struct_size;
    // Number of `fields`.
    uint32_t field_count;
    // The types of the fields in order, each a scalar of C.
    const struct rt_DType *fields;
    // The structure, with padding between the fields and at the end.
    const uint8_t *data;
    // Size of `data` in bytes.
    uint64_t data_bytes;
} rt_RecordArg;

// The value of an `Arg`. Frozen.
typedef union rt_ArgValue {
    // `ARG_TENSOR`: valid during the call.
    const struct rt_TensorArg *tensor;
    // `ARG_SCALAR`: the bytes of the value, little-endian and zero-extended.
    uint64_t scalar;
    // `ARG_BYTES`: valid during the call.
    const uint8_t *data;
    // `ARG_LOCAL`: size of dynamic work-group memory in bytes.
    uint64_t local_bytes;
    // `ARG_RECORD`: valid during the call.
    const struct rt_RecordArg *record;
} rt_ArgValue;

// A launch argument; 16 bytes. Frozen.
typedef struct rt_Arg {
    // `ARG_*`.
    uint8_t kind;
    // `ACCESS_*` bits of a tensor.
    uint8_t access;
    // `DType::code` of a scalar.
    uint8_t dtype_code;
    // `DType::bits` of a scalar.
    uint8_t dtype_bits;
    // Size in bytes of a scalar or of by-value data.
    uint32_t bytes;
    // The value; `kind` selects the member.
    union rt_ArgValue value;
} rt_Arg;

// Geometry and arguments of a kernel launch.
typedef struct rt_Launch {
    // End of the last field.
    uint32_t struct_size;
    // `LAUNCH_*` bits.
    uint32_t flags;
    // Number of groups, per dimension.
    uint32_t groups[3];
    // Work-items per group, per dimension.
    uint32_t group_size[3];
    // Groups per cluster, per dimension; all 1 without clusters.
    uint32_t cluster[3];
    // Iterations of `range` per call; 0 lets the backend choose.
    uint32_t grain;
    // Half-open range `[begin, end)` for kernels that take one; both 0 if there is none.
    int64_t range[2];
    // The arguments in order.
    const struct rt_Arg *args;
    // Number of `args`.
    size_t arg_count;
} rt_Launch;

// Occupancy of a compute unit by the groups of a launch.
typedef struct rt_Occupancy {
    // End of the last field.
    uint32_t struct_size;
    // Groups that are resident on one compute unit at the same time.
    uint32_t groups;
    // Sub-groups of those groups.
    uint32_t sub_groups;
    // Maximum number of sub-groups resident on one compute unit, for any kernel.
    uint32_t max_sub_groups;
} rt_Occupancy;

// An entry point of compiled code. Frozen.
typedef struct rt_CompiledKernel {
    // Its name.
    struct rt_Str name;
    // What the compiler reports of it.
    const struct rt_KernelInfo *info;
} rt_CompiledKernel;

// Native code, with what a compiler reports of it.
typedef struct rt_CompiledCode {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // The format of `code`, which the device accepts.
    struct rt_Str format;
    // The native code.
    const uint8_t *code;
    // Size of `code` in bytes.
    size_t code_bytes;
    // The compiler's messages; may be empty.
    struct rt_Str log;
    // Load options that the native code needs.
    const struct rt_Property *options;
    // Number of `options`.
    size_t option_count;
    // The entry points, as far as the compiler describes them.
    const struct rt_CompiledKernel *kernels;
    // Number of `kernels`.
    size_t kernel_count;
} rt_CompiledCode;

// Loaded code.
typedef struct rt_ModuleTable {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Loads code. `CompileFailed` carries the complete compiler log.
    rt_Status (*load)(rt_Handle device, const struct rt_ModuleSource *source, rt_Handle *out);
    // Unloads a module. No work uses it, and its kernels have been released.
    void (*unload)(rt_Handle module);
    // Lists the names of the entry points, as far as they are known. Borrowed from the module.
    rt_Status (*symbols)(rt_Handle module, const struct rt_Str **out, size_t *count);
    // Looks up an entry point. `NotFound` lists those that exist.
    rt_Status (*kernel)(rt_Handle module, struct rt_Str name, rt_Handle *out);
    // Releases a kernel.
    void (*release_kernel)(rt_Handle kernel);
    // Reports the properties of a kernel.
    rt_Status (*kernel_info)(rt_Handle kernel, struct rt_KernelInfo *out);
    // Computes the occupancy of a compute unit by the groups of `launch`, whose only argument is the size of its
    // dynamic work-group memory (`ARG_LOCAL`).
    rt_Status (*occupancy)(rt_Handle kernel, const struct rt_Launch *launch, struct rt_Occupancy *out);
    // Stores a text that identifies everything outside `source` that compiled code depends on: the compiler and its
    // version, the processor, environment variables, the content of included files. Stores at most `capacity` bytes,
    // and the length of the whole text. The code may be missing, if its format and options suffice. `Unsupported`: such
    // code is not compiled, or must not be kept. Since minor version 2.
    rt_Status (*compiler_identity)(rt_Handle device,
                                   const struct rt_ModuleSource *source,
                                   uint8_t *buffer,
                                   size_t capacity,
                                   size_t *bytes);
    // Compiles code to native code that `load` accepts, without loading it. `Unsupported` if such code is not compiled
    // or the driver does not give it out; `CompileFailed` carries the complete compiler log. Since minor version 2.
    rt_Status (*compile)(rt_Handle device, const struct rt_ModuleSource *source, rt_Handle *out);
    // Reports the compiled code, borrowed from `compiled`. Since minor version 2.
    rt_Status (*compiled_code)(rt_Handle compiled, struct rt_CompiledCode *out);
    // Releases compiled code. Since minor version 2.
    void (*release_compiled)(rt_Handle compiled);
    // Stores how native code fits the device: a `FITS_*` value. Since minor version 2.
    rt_Status (*fits)(rt_Handle device, const struct rt_ModuleSource *code, uint32_t *out);
} rt_ModuleTable;

// Options of a queue.
typedef struct rt_QueueOptions {
    // End of the last field.
    uint32_t struct_size;
    // Priority: higher runs first, 0 is normal.
    int32_t priority;
    // `QUEUE_*` bits.
    uint64_t flags;
} rt_QueueOptions;

// Position of a submission in its queue: its own ticket, and the latest earlier ticket that must end before
// it starts (0 if there is none).
typedef struct rt_SubmitInfo {
    // Ticket of this submission: the previous ticket plus one.
    uint64_t ticket;
    // Latest ticket that it depends on. A backend that executes a queue serially may ignore it.
    uint64_t after;
} rt_SubmitInfo;

// Progress of a queue. Frozen.
typedef struct rt_Progress {
    // All tickets up to and including this one have ended, successfully or not.
    uint64_t completed;
    // The first ticket that failed; 0 if none has. Failure is permanent.
    uint64_t first_failed;
} rt_Progress;

// A pitched 2-D copy between buffers, e.g. of a block of columns.
typedef struct rt_Copy2D {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Destination buffer.
    rt_Handle destination;
    // Offset of the first byte written.
    uint64_t destination_offset;
    // Bytes between the starts of consecutive destination rows; at least `row_bytes`.
    uint64_t destination_pitch;
    // Source buffer.
    rt_Handle source;
    // Offset of the first byte read.
    uint64_t source_offset;
    // Bytes between the starts of consecutive source rows; at least `row_bytes`.
    uint64_t source_pitch;
    // Bytes per row; at least 1.
    uint64_t row_bytes;
    // Number of rows; at least 1.
    uint64_t rows;
} rt_Copy2D;

// Queues. A submission returns without waiting; if it fails, its ticket has not been taken.
typedef struct rt_QueueTable {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Creates a queue.
    rt_Status (*open)(rt_Handle device, const struct rt_QueueOptions *options, rt_Handle *out);
    // Destroys a queue. All its work has ended, or the device is lost.
    void (*close)(rt_Handle queue);
    // Submits a kernel launch. Everything that `launch` points to is valid only during the call; buffers
    // live until the ticket ends.
    rt_Status (*launch)(rt_Handle queue,
                        struct rt_SubmitInfo submit,
                        rt_Handle kernel,
                        const struct rt_Launch *launch);
    // Tries to claim an idle queue for a synchronous launch. Returns 1 if the ticket was taken: core then
    // calls `run_inline`, without holding the queue's lock. Returns 0 if nothing was taken.
    uint32_t (*try_begin_inline)(rt_Handle queue, uint64_t ticket);
    // Runs a claimed launch on the calling thread and ends its ticket, successfully or not. If `kernel` and
    // `launch` are null, the launch is a no-op.
    rt_Status (*run_inline)(rt_Handle queue, uint64_t ticket, rt_Handle kernel, const struct rt_Launch *launch);
    // Submits a copy from host memory to a buffer. `source` stays valid until the ticket ends.
    rt_Status (*write)(rt_Handle queue,
                       struct rt_SubmitInfo submit,
                       rt_Handle destination,
                       uint64_t offset,
                       const uint8_t *source,
                       uint64_t bytes);
    // Submits a copy from a buffer to host memory. `destination` stays valid until the ticket ends.
    rt_Status (*read)(rt_Handle queue,
                      struct rt_SubmitInfo submit,
                      rt_Handle source,
                      uint64_t offset,
                      uint8_t *destination,
                      uint64_t bytes);
    // Submits a copy between buffers of devices of this backend. The ranges do not overlap.
    rt_Status (*copy)(rt_Handle queue,
                      struct rt_SubmitInfo submit,
                      rt_Handle destination,
                      uint64_t destination_offset,
                      rt_Handle source,
                      uint64_t source_offset,
                      uint64_t bytes);
    // Submits a fill with a pattern of 1, 2, 4, 8 or 16 bytes; `bytes` is a multiple of `pattern_bytes`.
    rt_Status (*fill)(rt_Handle queue,
                      struct rt_SubmitInfo submit,
                      rt_Handle destination,
                      uint64_t offset,
                      uint64_t bytes,
                      const uint8_t *pattern,
                      uint32_t pattern_bytes);
    // Submits a no-op kernel, to measure launch overhead.
    rt_Status (*noop)(rt_Handle queue, struct rt_SubmitInfo submit);
    // Submits a device timestamp.
    rt_Status (*timestamp)(rt_Handle queue, struct rt_SubmitInfo submit);
    // Reads the timestamp of an ended ticket, in nanoseconds of the device's clock. Each timestamp can be
    // read once.
    rt_Status (*read_timestamp)(rt_Handle queue, uint64_t ticket, uint64_t *out);
    // Makes the completion of `ticket`, the last one submitted, individually observable (records a driver
    // event).
    rt_Status (*signal)(rt_Handle queue, uint64_t ticket);
    // Submits batched work to the driver.
    rt_Status (*flush)(rt_Handle queue);
    // Reports the progress of the queue, including that of signaled tickets. Never blocks.
    rt_Status (*poll)(rt_Handle queue, struct rt_Progress *out);
    // Waits about `slice_ns` at most for a signaled ticket. May return early; success does not mean that the
    // ticket has ended: call `poll`.
    rt_Status (*wait)(rt_Handle queue, uint64_t ticket, uint64_t slice_ns);
    // Makes later submissions wait, on the device, until `ticket` of `other` has ended, whether it failed or
    // not. `other` is a queue of the same backend; the ticket has been signaled and flushed. Never blocks;
    // fails with `Unsupported` if the device cannot wait for it.
    rt_Status (*wait_for)(rt_Handle queue, rt_Handle other, uint64_t ticket);
    // Returns the error of `first_failed`: an owned error, or null if no ticket failed.
    rt_Status (*failure)(rt_Handle queue);
    // Submits a pitched 2-D copy between buffers of devices of this backend; source and destination do not
    // overlap. Fails with `Unsupported` for buffers or pitches that the device cannot handle; core then
    // falls back to other copies.
    rt_Status (*copy_2d)(rt_Handle queue, struct rt_SubmitInfo submit, const struct rt_Copy2D *rows);
    // Blocks in the driver until `ticket` has ended, successfully or not. The ticket need not be signaled or
    // flushed. Must not wait for later tickets or hold up other calls. May return early; success does not
    // mean that the ticket has ended: call `poll`. On `Unsupported`, core signals, flushes and waits in
    // slices.
    rt_Status (*wait_blocking)(rt_Handle queue, uint64_t ticket);
    // Holds a queue: launches, no-ops and timestamps submitted from now on do not start until `resume`, so that they
    // then follow each other without gaps. Earlier work is not affected. A backend ends the hold itself before a
    // submission that it cannot hold, or that would block because the driver's queue is full. Since minor version 2.
    rt_Status (*hold)(rt_Handle queue);
    // Ends a hold, if there is one, and submits the held work to the driver. Stores 1 if the queue was held until now, 0
    // otherwise. Core calls it before it waits for held work, makes another queue wait for it, or closes the queue; it
    // may be called during any other call on the queue. Since minor version 2.
    rt_Status (*resume)(rt_Handle queue, uint32_t *lasted);
} rt_QueueTable;

// A node of a graph.
typedef struct rt_GraphNode {
    // End of the last field.
    uint32_t struct_size;
    // `NODE_*`.
    uint32_t kind;
    // `NODE_LAUNCH`: the kernel.
    rt_Handle kernel;
    // `NODE_LAUNCH`: geometry and arguments, valid during the call.
    const struct rt_Launch *launch;
    // `NODE_COPY`, `NODE_FILL`: destination buffer.
    rt_Handle destination;
    // `NODE_COPY`, `NODE_FILL`: offset of the first byte written.
    uint64_t destination_offset;
    // `NODE_COPY`: source buffer.
    rt_Handle source;
    // `NODE_COPY`: offset of the first byte read.
    uint64_t source_offset;
    // `NODE_COPY`, `NODE_FILL`: number of bytes.
    uint64_t bytes;
    // `NODE_FILL`: the pattern to repeat.
    uint8_t pattern[16];
    // `NODE_FILL`: size of the pattern in bytes: 1, 2, 4, 8 or 16.
    uint32_t pattern_bytes;
    // Number of `dependencies`.
    uint32_t dependency_count;
    // Indices of the earlier nodes that must end first.
    const uint32_t *dependencies;
} rt_GraphNode;

// Native graphs, built from explicit nodes.
typedef struct rt_GraphTable {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Creates an executable graph.
    rt_Status (*instantiate)(rt_Handle device,
                             const struct rt_GraphNode *const *nodes,
                             size_t count,
                             rt_Handle *out);
    // Replaces the arguments of a launch node.
    rt_Status (*update)(rt_Handle graph, uint32_t node, const struct rt_Launch *launch);
    // Submits the entire graph under one ticket.
    rt_Status (*replay)(rt_Handle queue, struct rt_SubmitInfo submit, rt_Handle graph);
    // Destroys a graph. No work uses it.
    void (*close)(rt_Handle graph);
} rt_GraphTable;

// Description of a tensor that an embedded program uses.
typedef struct rt_TensorDescription {
    // End of the last field.
    uint32_t struct_size;
    // Number of dimensions.
    uint32_t ndim;
    // Element type.
    struct rt_DType dtype;
    // `ACCESS_*` bits.
    uint32_t access;
    // `ndim` extents.
    const int64_t *shape;
    // Initial contents; null to fill the tensor from `seed`.
    const uint8_t *data;
    // Size of `data` in bytes.
    size_t data_bytes;
    // Seed of the deterministic generator that fills the tensor on the device.
    uint64_t seed;
} rt_TensorDescription;

// Result of running an embedded program.
typedef struct rt_RunReport {
    // End of the last field.
    uint32_t struct_size;
    // Exit code of the program.
    int32_t exit_code;
    // Cycles counted on the device; 0 if it has no counter.
    uint64_t cycles;
    // Wall-clock time of the run in nanoseconds, as the backend measured it.
    uint64_t elapsed_ns;
    // Count between two readings of the counter, which is part of `cycles`.
    uint64_t overhead;
    // Peak stack use of the run in bytes; 0 if unknown.
    uint64_t stack_bytes;
    // Bytes of code in the image; 0 if the sizes of the image are unknown.
    uint64_t code_bytes;
    // Bytes of constants in the image.
    uint64_t constant_bytes;
    // Bytes of initialised data in the image.
    uint64_t data_bytes;
    // Bytes of zero-initialised data (.bss).
    uint64_t zeroed_bytes;
} rt_RunReport;

// Embedded devices: external processors.
typedef struct rt_EmbeddedTable {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Flashes an image, together with the tensors to create on the device and the arguments of the program.
    // A tensor argument is a `TensorArg` whose `address` is an index into `tensors`.
    rt_Status (*flash)(rt_Handle device,
                       const struct rt_ModuleSource *image,
                       const struct rt_TensorDescription *const *tensors,
                       size_t count,
                       const struct rt_Arg *args,
                       size_t arg_count);
    // Runs the flashed program and waits for it. Fails with `Timeout` after `deadline_ns`.
    rt_Status (*run)(rt_Handle device, uint64_t deadline_ns, struct rt_RunReport *out);
    // Reads bytes of tensor `tensor`.
    rt_Status (*read)(rt_Handle device, uint32_t tensor, uint64_t offset, uint8_t *destination, uint64_t bytes);
    // Reads the memory at `address`, or the registers, of a target that has stopped, also after a run that failed. `what` is an
    // `INSPECT_*` constant. Stores up to `capacity` bytes, and reports the total number of bytes. Since minor version 3.
    rt_Status (*inspect)(rt_Handle device,
                         uint32_t what,
                         uint64_t address,
                         uint8_t *buffer,
                         size_t capacity,
                         size_t *bytes);
} rt_EmbeddedTable;

// Description of a counter. Frozen; borrowed from the device that listed it.
typedef struct rt_Counter {
    // The name that opens it, e.g. `cache-misses`, `dram__bytes_read.sum`.
    struct rt_Str name;
    // What it counts, in one line.
    struct rt_Str description;
    // Unit of its values, e.g. `bytes`; empty for plain counts.
    struct rt_Str unit;
    // Why it cannot be read on this machine, with the remedy; empty if it can.
    struct rt_Str unavailable_reason;
} rt_Counter;

// How an open set of counters is read.
typedef struct rt_CounterSetInfo {
    // End of the last field.
    uint32_t struct_size;
    // How often the same work must run until every counter has been read; at least 1.
    uint32_t passes;
    // Per counter, why it cannot be read; an empty string if it can. Borrowed from the set. Null if all can.
    const struct rt_Str *unavailable_reasons;
    // Number of `unavailable_reasons`: 0, or the number of counters.
    size_t reason_count;
} rt_CounterSetInfo;

// The value of a counter over all passes. Frozen.
typedef struct rt_CounterReading {
    // The value in the unit of the counter, extrapolated to the whole time if `counted` is below 1.
    double value;
    // Share of the time between `begin` and `end` during which it counted, above 0 and at most 1. Below 1 if more
    // counters share the hardware than it has registers.
    double counted;
    // `READING_*` bits; 0 if there is no value.
    uint32_t flags;
    // Zero.
    uint32_t reserved;
} rt_CounterReading;

// Counters of the hardware and the system. Core serialises calls on one *set*.
typedef struct rt_CounterTable {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Lists the counters of a device, including those that cannot be read on this machine. Further names may be
    // valid, e.g. raw codes. The list is valid, and the same in each call, until the device is closed.
    rt_Status (*list)(rt_Handle device, const struct rt_Counter **out, size_t *count);
    // Opens a set of `count` counters; no name occurs twice. Fails with `NotFound` for an unknown name. A counter
    // that exists but cannot be read is part of the set, with its reason.
    rt_Status (*open)(rt_Handle device, const struct rt_Str *names, size_t count, rt_Handle *out);
    // Reports the passes of a set, and which of its counters cannot be read.
    rt_Status (*info)(rt_Handle set, struct rt_CounterSetInfo *out);
    // Begins pass `pass`, counted from 0. No work of the device is in flight. Pass 0 discards earlier values.
    rt_Status (*begin)(rt_Handle set, uint32_t pass);
    // Ends the pass. All work submitted since `begin` has ended.
    rt_Status (*end)(rt_Handle set);
    // Reads the values after the last pass, in the order of the names; `count` is their number.
    rt_Status (*read)(rt_Handle set, struct rt_CounterReading *out, size_t count);
    // Closes a set. A pass that has begun is abandoned.
    void (*close)(rt_Handle set);
} rt_CounterTable;

// An object of a driver. Frozen. Since minor version 4.
typedef struct rt_NativeHandle {
    // Its type in the driver's API, e.g. `CUstream`, `cl_command_queue`, `VkQueue`. Static.
    struct rt_Str name;
    // The handle, an address, or a number.
    uint64_t value;
} rt_NativeHandle;

// Foreign work: submits to the driver through `handles`, which are valid during the call. Never unwinds. Since minor version 4.
typedef void (*rt_NativeWork)(void *context, const struct rt_NativeHandle *handles, size_t count);

// Objects of the driver, for work that the runtime does not submit. A list is stored up to `capacity`, with the number of its
// elements in `count`. Since minor version 4.
typedef struct rt_NativeTable {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Lists the objects of a device.
    rt_Status (*device)(rt_Handle device, struct rt_NativeHandle *out, size_t capacity, size_t *count);
    // Lists the objects that hold a buffer, and stores the offset of its first byte in them.
    rt_Status (*buffer)(rt_Handle device,
                        rt_Handle buffer,
                        struct rt_NativeHandle *out,
                        size_t capacity,
                        size_t *count,
                        uint64_t *offset);
    // Submits foreign work: calls `work` once, on this thread, with the objects of the queue. What it hands to the driver
    // runs behind earlier submissions, and the ticket ends with it. Fails only before `work` is called; afterwards, work
    // whose end cannot be observed is waited for.
    rt_Status (*submit)(rt_Handle queue, struct rt_SubmitInfo submit, rt_NativeWork work, void *context);
    // Creates a queue of one that the program owns: `native` is its handle, which outlives the queue's work and is never
    // destroyed.
    rt_Status (*open_queue)(rt_Handle device, uint64_t native, rt_Handle *out);
} rt_NativeTable;

// The table that `EntryPoint` returns; it lives as long as the library.
typedef struct rt_BackendTable {
    // ABI version of the backend.
    struct rt_Header header;
    // Target name, the first part of a device string, e.g. `cuda`.
    struct rt_Str name;
    // Version of the backend itself.
    struct rt_Str version;
    // Instances.
    const struct rt_InstanceTable *instance;
    // Devices.
    const struct rt_DeviceTable *device;
    // Memory.
    const struct rt_MemoryTable *memory;
    // Modules and kernels.
    const struct rt_ModuleTable *module;
    // Queues; null if the backend has only embedded devices.
    const struct rt_QueueTable *queue;
    // Native graphs; null if unsupported.
    const struct rt_GraphTable *graph;
    // Embedded devices; null if unsupported.
    const struct rt_EmbeddedTable *embedded;
    // Counters; null if unsupported. Since minor version 1.
    const struct rt_CounterTable *counters;
    // Objects of the driver; null if unsupported. Since minor version 4.
    const struct rt_NativeTable *native;
} rt_BackendTable;

// The exported entry point of a backend library: stores the address of a static table in `out`. Makes no
// driver call.
typedef rt_Status (*rt_EntryPoint)(const struct rt_BackendTable **out);

#ifdef __cplusplus
extern "C"
#endif
// The one function that a backend library exports.
__attribute__((visibility("default"))) rt_Status runtime_backend_v1(const rt_BackendTable **out);

// Writes the manifest of a backend, e.g. RT_DEFINE_MANIFEST("mine", "x86_64-unknown-linux-gnu");
#define RT_DEFINE_MANIFEST(backend_name, target_triple)                                            \
    __attribute__((section(RT_MANIFEST_SECTION), used)) static const rt_Manifest rt_manifest = {   \
        RT_MAGIC, sizeof(rt_Manifest), RT_MAJOR, RT_MINOR, backend_name, target_triple}

// The end of `field`: what belongs into `struct_size` when it is the last one.
#define RT_END_OF(type, field) ((uint32_t)(offsetof(type, field) + sizeof(((type *)0)->field)))

#endif
