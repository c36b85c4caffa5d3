//! The host CPU as a device.
//!
//! Its memory is host memory. Its code is native: a shared object; C, compiled when it is loaded; or an object or archive,
//! linked as a whole into a shared object. A queue runs its work in order on a thread of its own, which starts at the
//! first asynchronous submission. A synchronous call on an idle queue runs on the caller's thread.
//!
//! Without a device, code is compiled to a shared object for `host:native` (this processor), `host:x86-64`, `host:x86-64-v2`,
//! `-v3` and `-v4`, and `host:aarch64`; another machine than this one needs a cross compiler (option `compiler`). Compiled
//! code is marked with its architecture: a processor that has less refuses to load it.
//!
//! The load option `convention` determines how a function receives its arguments (`groups` is described below):
//!
//! | argument | `plain`, the default: `void f(…)` | `packed` | `tvm-ffi` |
//! | --- | --- | --- | --- |
//! | tensor | pointer to its first element | 13, `DLTensor *` | 7, `DLTensor *` |
//! | integer | the value, in its own type | 0, `int64_t` | 1, `int64_t` |
//! | boolean | `bool` | 0, `int64_t` | 2, `int64_t` |
//! | floating-point | the value, in its own type (fp8: its bit pattern in a `uint8_t`) | 2, `double` | 3, `double` |
//! | by-value bytes | pointer to a copy, aligned to 64 bytes, valid during the call | 3, the pointer | 4, the pointer |
//! | work-group memory | pointer to that many bytes of scratch memory, aligned to 64 bytes, contents undefined | 3, the pointer | 4, the pointer |
//!
//! - A plain function takes any number and mix of arguments. Its return value is ignored.
//! - `packed` is TVM's classic packed function, `int f(value *args, int *type_codes, int n, value *ret, int *ret_code)`:
//!   every value has 8 bytes and a separate type code.
//! - `tvm-ffi` is TVM's FFI, `int __tvm_ffi_f(void *handle, const Any *args, int32_t n, Any *result)`, with 16 bytes for
//!   code and value; a function that has only the prefixed symbol is always called this way.
//! - With both, a result other than 0 fails the ticket. The error has that code, and TVM's own message if its
//!   `libtvm_ffi.so` is loaded. A `DLTensor` points to the tensor's first element (its `byte_offset` is 0) and is valid
//!   during the call.
//! - A plain function may take a **parallel range**, as its last two parameters: `void f(…, int64_t begin, int64_t end)`.
//!   Launched with a range (`begin..end`, or a `ParallelRange` with a grain), it is called on several threads, each
//!   time for a different chunk of at most `grain` iterations; without a grain there are about eight chunks per thread.
//!   The chunks do not depend on timing, and every thread has work-group memory of its own. The code does not declare
//!   whether a function takes a range, so a launch with a range where the function takes none, or the other way round,
//!   is undefined behaviour.
//! - With the convention `groups` a function runs **work-groups**: `void f(const uint64_t *args, const uint32_t *groups,
//!   int64_t begin, int64_t end)`. `args` has one word per argument (an address, or a scalar's bytes) and `groups` the three
//!   dimensions of the grid. The function runs the groups `begin..end`, x fastest. It is called on several threads, each
//!   time for other groups. The code fixes the group size and allocates its work-group memory itself. Portable kernels
//!   are lowered to this form. A grid that took only a few microseconds last time runs on one thread.
//!
//! A machine with several NUMA nodes has a memory space `node0`, `node1`, … for each node, which prefers memory of that
//! node, and sub-devices `host:0.0`, `host:0.1`, … A sub-device's threads are pinned to the node's processors, its memory
//! is the node's, and nothing runs on the caller's thread.
//!
//! Telemetry (Linux only) reports the values that the process may read: the highest current clock of the processors,
//! the highest temperature of the processor's own sensors, and the energy of all packages together, which usually only
//! root may read. A sub-device reports only the clock. Virtual machines often report none of these; the capability is
//! then not declared. Throttling because of heat is counted by processors of Intel, and not in virtual machines.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod architecture;
mod arg_packing;
mod build_folder;
mod call;
mod compile;
mod compiler;
mod convention;
mod counters;
mod cpu_features;
mod debug;
mod describe;
mod device;
mod group_time;
mod identity;
mod library;
mod link;
mod memory;
mod module;
mod native_code;
mod options;
mod packed_func;
mod parallel_for;
mod platform;
mod pool;
mod progress;
mod queue;
mod range;
mod record_type;
mod register;
mod sandbox;
mod shared_object;
mod sysfs;
mod telemetry;
mod throttle_counters;
mod timer;
mod toolchain;
mod topology;
mod tvm;
mod work_groups;
mod worker;

pub use device::{HostBackend, HostDevice};
pub use memory::HostBuffer;
pub use module::{HostKernel, HostModule};
pub use queue::HostQueue;

use runtime_core::backend::LinkedBackend;

/// This backend, for programs that link it statically and register it.
#[must_use]
pub const fn backend() -> LinkedBackend {
    LinkedBackend::of::<HostBackend>()
}
