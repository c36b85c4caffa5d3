// The seam: what a backend library and `runtime-core` say to each other, in C.
//
// A backend library exports **one** symbol, `ENTRY_SYMBOL`, of type `EntryPoint`. It answers with a
// pointer to a static `BackendTable` and touches no driver. Everything else is reached through that table.
//
// Rules that every structure here keeps, so that an older backend works with a newer core and the reverse:
//
// - Fields are appended, never moved, removed or retyped, within a major version.
// - Every table and every structure that may grow begins with `struct_size`, the offset of the end of its last
//   field. The receiver copies `min(theirs, ours)` bytes into a zeroed structure of its own.
// - A function pointer that is null or beyond `struct_size` means "unsupported".
// - Elements of arrays (`Arg`, `Property`, `MemorySpace`, `Str`) are frozen within a major version.
// - For an out-structure the *caller* sets `struct_size`; the callee writes at most that many bytes.
// - Core refuses lists and texts beyond the `MAX_*` limits: a count is a count of elements that are there.
// - Strings are UTF-8, with a length, not terminated. Whoever returns a borrowed string says how long it lives.
// - Nothing allocated on one side is freed by the other: `Error` carries its own release function.
// - No function of a table calls back into core, except `HostTable::log`, which is thread-safe.
// - No function of a table may unwind or end the process.
//
// The C form of this module is `include/runtime.h`, generated from it.
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


// First field of every `Header`: the bytes `RUNTIME\0` read as a little-endian integer.
#define RT_MAGIC 19506750735406418

// ABI major version: part of the entry point's name. A different major never loads.
#define RT_MAJOR 1

// ABI minor version: counts the appended fields.
#define RT_MINOR 3

// `Property::kind`: `value.integer` is 0 or 1.
#define RT_VALUE_FLAG 1

// `Property::kind`: `value.integer`.
#define RT_VALUE_INTEGER 2

// `Property::kind`: `value.number`.
#define RT_VALUE_NUMBER 3

// `Property::kind`: `value.text`. A key that may be given several times makes a list.
#define RT_VALUE_TEXT 4

// `OptionSpec::scope`: an option of `open_device`.
#define RT_SCOPE_DEVICE 1

// `OptionSpec::scope`: an option of `load`.
#define RT_SCOPE_MODULE 2

// `MemorySpace::flags`: the program can read and write it through `Allocation::host_pointer`.
#define RT_SPACE_HOST_VISIBLE 1

// `MemorySpace::flags`: kernels can use it.
#define RT_SPACE_KERNEL_VISIBLE 2

// `DeviceInfo::sub` of a whole device.
#define RT_WHOLE_DEVICE UINT32_MAX

// `DeviceInfo::kind`: memory is the program's own, code is native.
#define RT_KIND_HOST 1

// `DeviceInfo::kind`: own memory spaces, queues.
#define RT_KIND_ACCELERATOR 2

// `DeviceInfo::kind`: an external processor that is flashed and run.
#define RT_KIND_EMBEDDED 3

// Capability: `timestamp` and `read_timestamp` work.
#define RT_CAP_TIMESTAMPS 1

// Capability: native graphs.
#define RT_CAP_GRAPHS (1 << 1)

// Capability: `wait_for` between queues of one backend.
#define RT_CAP_WAIT_FOR (1 << 2)

// Capability: a synchronous launch on an idle queue can run on the caller's thread (`claim` and `run`).
#define RT_CAP_INLINE (1 << 3)

// Capability: memory is allocated and freed in order with a queue's work (`allocate` and `free` with a queue).
#define RT_CAP_STREAM_ORDERED (1 << 4)

// Capability: the device must be called by one thread at a time; core holds one lock for it.
#define RT_CAP_SERIAL (1 << 5)

// Capability: `import` of host memory.
#define RT_CAP_IMPORT (1 << 6)

// Capability: `empty` submits a kernel that does nothing.
#define RT_CAP_EMPTY_KERNEL (1 << 7)

// Capability: kernels take `Launch::range` and `Launch::grain`.
#define RT_CAP_RANGE (1 << 8)

// Capability: kernels take groups and group sizes other than 1.
#define RT_CAP_GROUPS (1 << 9)

// Capability: `telemetry` answers.
#define RT_CAP_TELEMETRY (1 << 10)

// Capability: cooperative launches (`LAUNCH_COOPERATIVE`).
#define RT_CAP_COOPERATIVE (1 << 11)

// Capability: work-group clusters (`Launch::cluster`).
#define RT_CAP_CLUSTERS (1 << 12)

// Capability: `peer_access` may answer yes.
#define RT_CAP_PEERS (1 << 13)

// Capability: kernels compute in f16.
#define RT_CAP_F16 (1 << 14)

// Capability: kernels compute in f64.
#define RT_CAP_F64 (1 << 15)

// Capability: `adopt` of memory of the device that another library allocated.
#define RT_CAP_ADOPT (1 << 16)

// Capability: `copy_rows` between buffers of the device. Since minor 2.
#define RT_CAP_ROWS (1 << 17)

// `AllocateRequest::flags`: back it with huge pages; an error where there are none.
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

// `Arg::kind`: a tensor.
#define RT_ARG_TENSOR 1

// `Arg::kind`: a scalar of up to 8 bytes.
#define RT_ARG_SCALAR 2

// `Arg::kind`: bytes passed by value.
#define RT_ARG_BYTES 3

// `Arg::kind`: a size of dynamic work-group memory.
#define RT_ARG_LOCAL 4

// `Arg::access`: the kernel reads.
#define RT_ACCESS_READ 1

// `Arg::access`: the kernel writes.
#define RT_ACCESS_WRITE 2

// `Param::access`(super::Param::access): the code computes with the strides of the tensor, so that a view with gaps may be
// passed.
#define RT_ACCESS_STRIDED 4

// `Launch::flags`: all groups run at once and may synchronise.
#define RT_LAUNCH_COOPERATIVE 1

// `QueueOptions::flags`: the queue will be asked for timestamps.
#define RT_QUEUE_TIMESTAMPS 1

// `GraphNode::kind`: a kernel launch.
#define RT_NODE_LAUNCH 1

// `GraphNode::kind`: a copy between buffers.
#define RT_NODE_COPY 2

// `GraphNode::kind`: a fill.
#define RT_NODE_FILL 3

// A figure that a driver does not tell.
#define RT_UNKNOWN UINT32_MAX

// Most entries of a list of devices, sub-devices included.
#define RT_MAX_DEVICES 65536

// Most memory spaces of a device.
#define RT_MAX_SPACES 1024

// Most code formats of a device.
#define RT_MAX_FORMATS 1024

// Most properties of a device, and most options of a call.
#define RT_MAX_PROPERTIES 65536

// Most options that a backend documents.
#define RT_MAX_OPTIONS 65536

// Most entry points of a module.
#define RT_MAX_SYMBOLS 1048576

// Most parameters of a kernel.
#define RT_MAX_PARAMS 65536

// Most bytes of a name or another short text.
#define RT_MAX_TEXT_BYTES 1048576

// Most bytes of an error's message or of a log record, compiler logs included.
#define RT_MAX_LOG_BYTES 268435456

// What every versioned table begins with.
typedef struct rt_Header {
    // `MAGIC`.
    uint64_t magic;
    // Offset of the end of the last field of the structure that holds this header.
    uint32_t struct_size;
    // `MAJOR` of the side that filled the structure.
    uint16_t major;
    // `MINOR` of the side that filled the structure.
    uint16_t minor;
} rt_Header;

// Borrowed UTF-8 text; `ptr` may be null when `len` is 0.
typedef struct rt_Str {
    // First byte.
    const uint8_t *ptr;
    // Length in bytes.
    size_t len;
} rt_Str;

// An owned error object. The receiver reads it, then calls `release` with it, on any thread.
typedef struct rt_Error {
    // End of the last field.
    uint32_t struct_size;
    // An `ErrorKind` by number; an unknown number is read as `Driver`.
    uint32_t kind;
    // The driver's own code, 0 if there is none.
    int64_t code;
    // The operation that failed, e.g. `cuModuleLoadData`.
    struct rt_Str operation;
    // What happened and what to do about it.
    struct rt_Str message;
    // The driver's own name for `code`, e.g. `CUDA_ERROR_INVALID_PTX`; may be empty.
    struct rt_Str symbol;
    // Frees this object. Null: the object is static.
    void (*release)(struct rt_Error *error);
} rt_Error;

// What stands in the section `MANIFEST_SECTION`: read from the file, before anything is loaded.
typedef struct rt_Manifest {
    // `MAGIC`.
    uint64_t magic;
    // Size of this structure.
    uint32_t struct_size;
    // ABI major that the library was built for.
    uint16_t major;
    // ABI minor that the library was built for.
    uint16_t minor;
    // Name of the backend, NUL-padded.
    uint8_t name[32];
    // Target triple of the library, NUL-padded.
    uint8_t target[64];
} rt_Manifest;

// An opaque object of a backend. Null means "none".
typedef void *rt_Handle;

// Result of a table function: null is success, anything else an owned error that the receiver must release.
typedef struct rt_Error *rt_Status;

// Describes one option that a backend accepts. Frozen.
typedef struct rt_OptionSpec {
    // The key.
    struct rt_Str key;
    // `VALUE_*`.
    uint32_t kind;
    // Where it is accepted: one of the `SCOPE_*` constants.
    uint32_t scope;
    // Valid values separated by `|`, or empty when any value of the kind will do.
    struct rt_Str choices;
    // The default, in words.
    struct rt_Str default_;
    // One sentence.
    struct rt_Str doc;
} rt_OptionSpec;

// What core offers to a backend; valid for the life of the process.
typedef struct rt_HostTable {
    // Version of the offering core.
    struct rt_Header header;
    // Takes a log record: `level` is 1 error, 2 warning, 3 info, 4 debug, 5 trace. Thread-safe.
    void (*log)(uint32_t level, struct rt_Str target, struct rt_Str message);
} rt_HostTable;

// A memory space of a device. Frozen.
typedef struct rt_MemorySpace {
    // `device`, `pinned`, `shared`, or a name of the backend's own.
    struct rt_Str name;
    // Capacity in bytes, 0 if unknown.
    uint64_t total_bytes;
    // Alignment of every allocation in bytes, a power of two.
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

// A key with a typed value: device options, load options and open-ended attributes of a device. Frozen.
typedef struct rt_Property {
    // Name, lower case with underscores.
    struct rt_Str key;
    // One of the `VALUE_*` constants.
    uint32_t kind;
    // Zero.
    uint32_t reserved;
    // The value, read according to `kind`.
    union rt_Value value;
} rt_Property;

// Everything that is known of a device without opening it.
// Borrowed from the instance: valid until the next `devices` call on it or until it is closed.
typedef struct rt_DeviceInfo {
    // End of the last field.
    uint32_t struct_size;
    // `KIND_*`.
    uint32_t kind;
    // Index within the backend.
    uint32_t index;
    // Index of the sub-device, or `WHOLE_DEVICE`.
    uint32_t sub;
    // Name for people, e.g. `NVIDIA H200`.
    struct rt_Str name;
    // Architecture, e.g. `sm_90`, `x86-64-v4`.
    struct rt_Str arch;
    // Vendor's name.
    struct rt_Str vendor;
    // Version of the driver, in its own words.
    struct rt_Str driver_version;
    // Empty: usable. Otherwise why it cannot be opened.
    struct rt_Str unusable;
    // Stable identity, all zero if the driver has none.
    uint8_t uuid[16];
    // PCI address `dddd:bb:dd.f`, empty if there is none.
    struct rt_Str pci_address;
    // `DLDeviceType` of the device's memory.
    int32_t dlpack_type;
    // Compute units (cores, SMs, clusters).
    uint32_t compute_units;
    // Highest clock of the compute units in Hz, 0 if unknown.
    uint64_t clock_hz;
    // `CAP_*` bits.
    uint64_t capabilities;
    // Most groups of one launch, per dimension.
    uint64_t max_groups[3];
    // Most work-items of one group, per dimension.
    uint32_t max_group_size[3];
    // Most work-items of one group, in all.
    uint32_t max_group_items;
    // Most bytes of work-group memory.
    uint64_t max_shared_bytes;
    // Most bytes of one allocation, 0 if unknown.
    uint64_t max_allocation_bytes;
    // Memory spaces; the first is the default.
    const struct rt_MemorySpace *spaces;
    // Number of `spaces`.
    size_t space_count;
    // Accepted code formats, preferred first.
    const struct rt_Str *formats;
    // Number of `formats`.
    size_t format_count;
    // Whatever else the backend knows (caches, SIMD level, bandwidth, ...).
    const struct rt_Property *properties;
    // Number of `properties`.
    size_t property_count;
} rt_DeviceInfo;

// A backend's state. Several may live side by side.
typedef struct rt_InstanceTable {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // The options that the backend understands; static.
    rt_Status (*options)(const struct rt_OptionSpec **out, size_t *count);
    // Makes an instance. Touches no driver.
    rt_Status (*open)(const struct rt_HostTable *host, rt_Handle *out);
    // Ends an instance; all its devices are closed before.
    void (*close)(rt_Handle instance);
    // Lists all devices, unusable ones included, whole devices before their sub-devices.
    // `Unavailable` when there is no driver. The list is valid until the next call or `close`.
    rt_Status (*devices)(rt_Handle instance, const struct rt_DeviceInfo *const **out, size_t *count);
    // Opens device `index`, or its sub-device `sub` unless that is `WHOLE_DEVICE`.
    rt_Status (*open_device)(rt_Handle instance,
                             uint32_t index,
                             uint32_t sub,
                             const struct rt_Property *options,
                             size_t count,
                             rt_Handle *out);
} rt_InstanceTable;

// Free and total memory of a space.
typedef struct rt_MemoryUsage {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Bytes that can still be allocated.
    uint64_t free_bytes;
    // Bytes in all.
    uint64_t total_bytes;
} rt_MemoryUsage;

// Clocks, temperature and energy, as far as the device tells: `valid` says which.
typedef struct rt_Telemetry {
    // End of the last field.
    uint32_t struct_size;
    // `TELEMETRY_*` bits of the fields that hold a reading.
    uint32_t valid;
    // Current clock of the compute units in Hz.
    uint64_t clock_hz;
    // Current clock of the memory in Hz.
    uint64_t memory_clock_hz;
    // Temperature in thousandths of a degree Celsius.
    int64_t temperature_millicelsius;
    // Power draw in milliwatts.
    uint64_t power_milliwatts;
    // Energy since an arbitrary point in microjoules.
    uint64_t energy_microjoules;
} rt_Telemetry;

// Opened devices.
typedef struct rt_DeviceTable {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Closes a device; everything made from it is gone before.
    void (*close)(rt_Handle device);
    // Free and total bytes of memory space `space`.
    rt_Status (*memory_usage)(rt_Handle device, uint32_t space, struct rt_MemoryUsage *out);
    // Writes 1 if kernels of `device` can use memory of `other` (of the same backend), else 0.
    rt_Status (*peer_access)(rt_Handle device, rt_Handle other, uint32_t *out);
    // Current clocks, temperature, energy.
    rt_Status (*telemetry)(rt_Handle device, struct rt_Telemetry *out);
} rt_DeviceTable;

// Request for an allocation.
typedef struct rt_AllocateRequest {
    // End of the last field.
    uint32_t struct_size;
    // Index into `DeviceInfo::spaces`.
    uint32_t space;
    // Size in bytes; 0 is valid and needs no memory.
    uint64_t bytes;
    // Wanted alignment in bytes, a power of two, at least the space's own; 0 = the space's own.
    uint64_t alignment_bytes;
    // `ALLOCATE_*` bits.
    uint64_t flags;
    // The queue in whose order it is allocated, under `CAP_STREAM_ORDERED`; else null.
    rt_Handle queue;
    // The next ticket of `queue`, which such an allocation takes; 0 without a queue.
    uint64_t ticket;
} rt_AllocateRequest;

// A made allocation. A buffer's handle, the address that kernels see and the one that transfers use may differ.
typedef struct rt_Allocation {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // The backend's buffer object.
    rt_Handle buffer;
    // Address that kernels see, 0 where kernels take the handle.
    uint64_t kernel_address;
    // Where the program can reach the memory, null where it cannot. The program may read it before anything was written: all
    // bytes are initialised, whatever they hold.
    uint8_t *host_pointer;
} rt_Allocation;

// Device memory.
typedef struct rt_MemoryTable {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Allocates; `OutOfMemory` when there is none.
    rt_Status (*allocate)(rt_Handle device,
                          const struct rt_AllocateRequest *request,
                          struct rt_Allocation *out);
    // Frees. With a queue: in order with its work. Without: no work uses the buffer any more.
    void (*free)(rt_Handle device, rt_Handle buffer, rt_Handle queue);
    // Wraps `bytes` of the program's memory at `pointer`, which outlives the buffer.
    rt_Status (*import)(rt_Handle device,
                        uint32_t space,
                        uint8_t *pointer,
                        uint64_t bytes,
                        struct rt_Allocation *out);
    // Wraps `bytes` of the device's own memory, which another library allocated and which outlives the buffer.
    // `memory` is what DLPack's `data` holds for such a device: a device pointer, a `cl_mem`, ... Since minor 1.
    rt_Status (*adopt)(rt_Handle device,
                       uint32_t space,
                       void *memory,
                       uint64_t bytes,
                       struct rt_Allocation *out);
} rt_MemoryTable;

// Code to load.
typedef struct rt_ModuleSource {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // A code format, e.g. `c`, `cubin`, `spirv-shader`.
    struct rt_Str format;
    // The file the code came from, for messages and relative includes; may be empty.
    struct rt_Str path;
    // The code. When null, the backend reads `path`.
    const uint8_t *code;
    // Bytes of `code`.
    size_t code_bytes;
    // Load options of the backend.
    const struct rt_Property *options;
    // Number of `options`.
    size_t option_count;
} rt_ModuleSource;

// An element type in DLPack's words: code, bits, lanes.
typedef struct rt_DType {
    // `DLDataTypeCode`: 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool, 7.. fp8.
    uint8_t code;
    // Bits of one lane.
    uint8_t bits;
    // Vector lanes, 1 for scalars.
    uint16_t lanes;
} rt_DType;

// One parameter of a kernel. Frozen.
typedef struct rt_Param {
    // `ARG_*`.
    uint8_t kind;
    // `ACCESS_*` of a tensor; older hosts ignore `ACCESS_STRIDED`.
    uint8_t access;
    // Zero.
    uint16_t reserved;
    // Element type; all zero if the code does not say.
    struct rt_DType dtype;
} rt_Param;

// What a driver says of a kernel. `UNKNOWN` where it does not say.
typedef struct rt_KernelInfo {
    // End of the last field.
    uint32_t struct_size;
    // Registers of one work-item.
    uint32_t registers;
    // Bytes of one work-item that were spilled to memory.
    uint32_t spilled_bytes;
    // Bytes of work-group memory fixed by the code.
    uint32_t shared_bytes;
    // Most work-items of a group with this kernel.
    uint32_t max_group_items;
    // Group size fixed by the code, all zero if the launch chooses.
    uint32_t group_size[3];
    // The parameters, null if the code does not say. Borrowed from the kernel.
    const struct rt_Param *params;
    // Number of `params`.
    size_t param_count;
    // Version of the instruction set that the code is for, as the driver counts (CUDA: 90 for `sm_90`); 0 as `UNKNOWN`.
    // Since minor 2, like what follows.
    uint32_t binary_version;
    // Version of the virtual instruction set that it was compiled from (CUDA: 90 for `compute_90`); 0 as `UNKNOWN`.
    uint32_t virtual_version;
    // What the size of a group should be a multiple of; 0 as `UNKNOWN`.
    uint32_t preferred_multiple;
    // Bytes of memory of its own that one work-item needs, spilled ones included.
    uint32_t private_bytes;
} rt_KernelInfo;

// A tensor argument.
typedef struct rt_TensorArg {
    // End of the last field.
    uint32_t struct_size;
    // Number of dimensions.
    uint32_t ndim;
    // The backend's buffer.
    rt_Handle buffer;
    // `Allocation::kernel_address` plus `byte_offset`: the first element for kernels.
    uint64_t address;
    // Offset of the first element in the buffer.
    uint64_t byte_offset;
    // Bytes from the first element to the end of the one that lies last, so that `byte_offset` and these end within the
    // buffer. Elements before the first one, which negative strides reach, do not count.
    uint64_t span_bytes;
    // Element type.
    struct rt_DType dtype;
    // Extents, `ndim` of them, in elements.
    const int64_t *shape;
    // Strides, `ndim` of them, in elements.
    const int64_t *strides;
} rt_TensorArg;

// The value of an `Arg`. Frozen.
typedef union rt_ArgValue {
    // `ARG_TENSOR`: valid during the call.
    const struct rt_TensorArg *tensor;
    // `ARG_SCALAR`: the value's bytes, the rest zero (little-endian).
    uint64_t scalar;
    // `ARG_BYTES`: valid during the call.
    const uint8_t *data;
    // `ARG_LOCAL`: bytes of dynamic work-group memory.
    uint64_t local_bytes;
} rt_ArgValue;

// One argument of a launch: 16 bytes. Frozen.
typedef struct rt_Arg {
    // `ARG_*`.
    uint8_t kind;
    // `ACCESS_*` of a tensor.
    uint8_t access;
    // `DType::code` of a scalar.
    uint8_t dtype_code;
    // `DType::bits` of a scalar.
    uint8_t dtype_bits;
    // Bytes of a scalar or of by-value data.
    uint32_t bytes;
    // The value, read according to `kind`.
    union rt_ArgValue value;
} rt_Arg;

// How and on what a kernel is launched.
typedef struct rt_Launch {
    // End of the last field.
    uint32_t struct_size;
    // `LAUNCH_*` bits.
    uint32_t flags;
    // Number of groups per dimension.
    uint32_t groups[3];
    // Work-items of a group per dimension.
    uint32_t group_size[3];
    // Groups of a cluster per dimension, all 1 for none.
    uint32_t cluster[3];
    // Extra dynamic work-group memory in bytes.
    uint32_t shared_bytes;
    // Half-open range `[begin, end)` for kernels that take one; both 0 for none.
    int64_t range[2];
    // Iterations of `range` given to one call, 0 = the backend chooses.
    int64_t grain;
    // The arguments in order.
    const struct rt_Arg *args;
    // Number of `args`.
    size_t arg_count;
} rt_Launch;

// How much of a compute unit the groups of a launch can fill at once. Since minor 2.
typedef struct rt_Occupancy {
    // End of the last field.
    uint32_t struct_size;
    // Groups that one compute unit runs at once.
    uint32_t groups;
    // Sub-groups of those groups.
    uint32_t sub_groups;
    // Most sub-groups that one compute unit runs at once, whatever the kernel.
    uint32_t max_sub_groups;
} rt_Occupancy;

// Loaded code.
typedef struct rt_ModuleTable {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Loads code; `CompileFailed` carries the whole log.
    rt_Status (*load)(rt_Handle device, const struct rt_ModuleSource *source, rt_Handle *out);
    // Unloads; no work uses it any more and its kernels are released.
    void (*unload)(rt_Handle module);
    // Names of the entry points, as far as the code tells; borrowed from the module.
    rt_Status (*symbols)(rt_Handle module, const struct rt_Str **out, size_t *count);
    // Finds an entry point; `NotFound` lists those that exist.
    rt_Status (*kernel)(rt_Handle module, struct rt_Str name, rt_Handle *out);
    // Releases a kernel.
    void (*release_kernel)(rt_Handle kernel);
    // What the driver says of a kernel.
    rt_Status (*kernel_info)(rt_Handle kernel, struct rt_KernelInfo *out);
    // How much of a compute unit the groups of `launch`, of which the arguments do not count, can fill. Since minor 2.
    rt_Status (*occupancy)(rt_Handle kernel, const struct rt_Launch *launch, struct rt_Occupancy *out);
} rt_ModuleTable;

// Options of a queue.
typedef struct rt_QueueOptions {
    // End of the last field.
    uint32_t struct_size;
    // Higher runs first; 0 is normal.
    int32_t priority;
    // `QUEUE_*` bits.
    uint64_t flags;
} rt_QueueOptions;

// A submission's place: its own ticket, and the latest of the same queue that must end before it starts (0: none).
typedef struct rt_Place {
    // Ticket of this submission, one more than the last.
    uint64_t ticket;
    // Ticket it depends on. A backend whose queue runs one thing at a time ignores it.
    uint64_t after;
} rt_Place;

// How far a queue is. Frozen.
typedef struct rt_Progress {
    // Every ticket up to this one has ended, well or badly.
    uint64_t completed;
    // The first ticket that failed, 0 if none did. Failure is permanent.
    uint64_t first_failed;
} rt_Progress;

// A copy of rows between buffers: of a block of columns, say. Since minor 2.
typedef struct rt_RowCopy {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Where to.
    rt_Handle destination;
    // First byte written.
    uint64_t destination_offset;
    // Bytes from one written row to the next, at least `row_bytes`.
    uint64_t destination_pitch;
    // Where from.
    rt_Handle source;
    // First byte read.
    uint64_t source_offset;
    // Bytes from one read row to the next, at least `row_bytes`.
    uint64_t source_pitch;
    // Bytes of a row, at least 1.
    uint64_t row_bytes;
    // Number of rows, at least 1.
    uint64_t rows;
} rt_RowCopy;

// Queues. Submissions return at once; an error means that the ticket was not taken.
typedef struct rt_QueueTable {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Makes a queue.
    rt_Status (*open)(rt_Handle device, const struct rt_QueueOptions *options, rt_Handle *out);
    // Ends a queue; all its work has ended, or the device is lost.
    void (*close)(rt_Handle queue);
    // Submits a kernel. Everything that `launch` points to is valid during the call only; buffers live until the ticket ends.
    rt_Status (*launch)(rt_Handle queue,
                        struct rt_Place place,
                        rt_Handle kernel,
                        const struct rt_Launch *launch);
    // Claims an idle queue for a synchronous launch: 1 takes the ticket, and `run` follows without the queue's lock. 0 takes nothing.
    uint32_t (*claim)(rt_Handle queue, uint64_t ticket);
    // Runs a claimed launch on this thread and ends its ticket, well or badly. Without `kernel` and `launch`: a call that does nothing.
    rt_Status (*run)(rt_Handle queue, uint64_t ticket, rt_Handle kernel, const struct rt_Launch *launch);
    // Copies host memory into a buffer. `source` lives until the ticket ends.
    rt_Status (*write)(rt_Handle queue,
                       struct rt_Place place,
                       rt_Handle destination,
                       uint64_t offset,
                       const uint8_t *source,
                       uint64_t bytes);
    // Copies a buffer into host memory. `destination` lives until the ticket ends.
    rt_Status (*read)(rt_Handle queue,
                      struct rt_Place place,
                      rt_Handle source,
                      uint64_t offset,
                      uint8_t *destination,
                      uint64_t bytes);
    // Copies between buffers of the backend's devices; ranges do not overlap.
    rt_Status (*copy)(rt_Handle queue,
                      struct rt_Place place,
                      rt_Handle destination,
                      uint64_t destination_offset,
                      rt_Handle source,
                      uint64_t source_offset,
                      uint64_t bytes);
    // Fills with a pattern of 1, 2, 4, 8 or 16 bytes; `bytes` is a multiple of it.
    rt_Status (*fill)(rt_Handle queue,
                      struct rt_Place place,
                      rt_Handle destination,
                      uint64_t offset,
                      uint64_t bytes,
                      const uint8_t *pattern,
                      uint32_t pattern_bytes);
    // Submits a kernel that does nothing, for measuring overhead.
    rt_Status (*empty)(rt_Handle queue, struct rt_Place place);
    // Submits the recording of a device timestamp.
    rt_Status (*timestamp)(rt_Handle queue, struct rt_Place place);
    // Reads the timestamp of an ended ticket, in nanoseconds of the device's clock; may be read once.
    rt_Status (*read_timestamp)(rt_Handle queue, uint64_t ticket, uint64_t *out);
    // Makes the end of `ticket`, the last submitted one, observable by itself (records a driver event).
    rt_Status (*mark)(rt_Handle queue, uint64_t ticket);
    // Hands batched submissions to the driver.
    rt_Status (*flush)(rt_Handle queue);
    // How far the queue is; observes marked tickets. Never blocks.
    rt_Status (*poll)(rt_Handle queue, struct rt_Progress *out);
    // Waits up to about `slice_ns` for a marked ticket; may return early. Success says nothing: ask `poll`.
    rt_Status (*wait)(rt_Handle queue, uint64_t ticket, uint64_t slice_ns);
    // Makes later submissions wait, on the device, for the end of marked and flushed `ticket` of `other`, a queue of the same
    // backend, whether it failed or not. Never blocks; `Unsupported` for what the device cannot wait for.
    rt_Status (*wait_for)(rt_Handle queue, rt_Handle other, uint64_t ticket);
    // The error of `first_failed`: an owned error, or null if nothing failed.
    rt_Status (*failure)(rt_Handle queue);
    // Copies rows between buffers of the backend's devices; no byte is of both. `Unsupported` for buffers or pitches that it
    // cannot: core then goes another way. Since minor 2.
    rt_Status (*copy_rows)(rt_Handle queue, struct rt_Place place, const struct rt_RowCopy *rows);
    // Blocks in the driver until `ticket`, which need be neither marked nor flushed, has ended, well or badly; waits for
    // nothing later, and keeps no other call waiting. May return early; success says nothing: ask `poll`. `Unsupported`: core
    // marks, flushes and waits in slices. Since minor 3.
    rt_Status (*finish)(rt_Handle queue, uint64_t ticket);
} rt_QueueTable;

// One node of a graph.
typedef struct rt_GraphNode {
    // End of the last field.
    uint32_t struct_size;
    // `NODE_*`.
    uint32_t kind;
    // `NODE_LAUNCH`: the kernel.
    rt_Handle kernel;
    // `NODE_LAUNCH`: geometry and arguments, valid during the call.
    const struct rt_Launch *launch;
    // `NODE_COPY`, `NODE_FILL`: where to.
    rt_Handle destination;
    // `NODE_COPY`, `NODE_FILL`: first byte written.
    uint64_t destination_offset;
    // `NODE_COPY`: where from.
    rt_Handle source;
    // `NODE_COPY`: first byte read.
    uint64_t source_offset;
    // `NODE_COPY`, `NODE_FILL`: bytes.
    uint64_t bytes;
    // `NODE_FILL`: the pattern, repeated.
    uint8_t pattern[16];
    // `NODE_FILL`: bytes of the pattern: 1, 2, 4, 8 or 16.
    uint32_t pattern_bytes;
    // Number of `dependencies`.
    uint32_t dependency_count;
    // Indices of earlier nodes that must end first.
    const uint32_t *dependencies;
} rt_GraphNode;

// Native graphs, built of explicit nodes.
typedef struct rt_GraphTable {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Makes an executable graph.
    rt_Status (*instantiate)(rt_Handle device,
                             const struct rt_GraphNode *const *nodes,
                             size_t count,
                             rt_Handle *out);
    // Replaces the arguments of a launch node.
    rt_Status (*update)(rt_Handle graph, uint32_t node, const struct rt_Launch *launch);
    // Submits the whole graph as one ticket.
    rt_Status (*replay)(rt_Handle queue, struct rt_Place place, rt_Handle graph);
    // Frees; no work uses it any more.
    void (*close)(rt_Handle graph);
} rt_GraphTable;

// A tensor of an embedded device: described, not held.
typedef struct rt_TensorDescription {
    // End of the last field.
    uint32_t struct_size;
    // Number of dimensions.
    uint32_t ndim;
    // Element type.
    struct rt_DType dtype;
    // `ACCESS_*`.
    uint32_t access;
    // Extents, `ndim` of them.
    const int64_t *shape;
    // Initial bytes, or null: filled from `seed`.
    const uint8_t *data;
    // Bytes of `data`.
    size_t data_bytes;
    // Seed of the deterministic generator that fills the tensor on the device.
    uint64_t seed;
} rt_TensorDescription;

// What an embedded run reports.
typedef struct rt_RunReport {
    // End of the last field.
    uint32_t struct_size;
    // Exit code of the program.
    int32_t exit_code;
    // Cycles counted on the device, 0 if it has no counter.
    uint64_t cycles;
    // Wall time of the run in nanoseconds, by the backend's clock.
    uint64_t elapsed_ns;
} rt_RunReport;

// External processors.
typedef struct rt_EmbeddedTable {
    // End of the last field.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Writes an image, with the tensors it creates on the device and the program's arguments. A tensor argument
    // is a `TensorArg` whose `address` is an index into `tensors`.
    rt_Status (*flash)(rt_Handle device,
                       const struct rt_ModuleSource *image,
                       const struct rt_TensorDescription *const *tensors,
                       size_t count,
                       const struct rt_Arg *args,
                       size_t arg_count);
    // Runs the flashed program and blocks; `Timeout` after `deadline_ns`.
    rt_Status (*run)(rt_Handle device, uint64_t deadline_ns, struct rt_RunReport *out);
    // Reads back bytes of tensor `tensor`.
    rt_Status (*read)(rt_Handle device, uint32_t tensor, uint64_t offset, uint8_t *destination, uint64_t bytes);
} rt_EmbeddedTable;

// What `EntryPoint` returns: a static table that lives as long as the library.
typedef struct rt_BackendTable {
    // Version of the backend's side.
    struct rt_Header header;
    // Name of the target, e.g. `cuda`: the first part of a device string.
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
    // Queues; null for a backend that has only embedded devices.
    const struct rt_QueueTable *queue;
    // Native graphs; null if there are none.
    const struct rt_GraphTable *graph;
    // Embedded devices; null if there are none.
    const struct rt_EmbeddedTable *embedded;
} rt_BackendTable;

// The exported entry point of a backend library: fills `out` with a static table. Pure: touches no driver.
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
