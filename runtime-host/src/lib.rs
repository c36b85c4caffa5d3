//! The host CPU as a device.
//!
//! Memory is the program's own, code is native: a shared object, C that is compiled when it is loaded, or an object or
//! archive that is linked, whole, into a shared object. Work of a queue runs in order on the queue's own thread, which
//! starts with the first asynchronous submission; a synchronous call on an idle queue runs on the caller's thread.
//!
//! How the arguments of a launch arrive depends on the load option `convention` (for `groups` see below):
//!
//! | argument | `plain`, the default: `void f(…)` | `packed` | `tvm-ffi` |
//! | --- | --- | --- | --- |
//! | tensor | pointer to its first element | 13, `DLTensor *` | 7, `DLTensor *` |
//! | integer | the value, in its own type | 0, `int64_t` | 1, `int64_t` |
//! | truth value | `bool` | 0, `int64_t` | 2, `int64_t` |
//! | floating-point | the value, in its own type (fp8: its bit pattern in a `uint8_t`) | 2, `double` | 3, `double` |
//! | by-value bytes | pointer to a copy, aligned to 64 bytes, that lives during the call | 3, the pointer | 4, the pointer |
//! | work-group memory | pointer to that many bytes of scratch memory, aligned to 64 bytes, contents undefined | 3, the pointer | 4, the pointer |
//!
//! - A plain function takes any number and mix of arguments; what it returns is ignored.
//! - `packed` is TVM's classic packed function, `int f(value *args, int *type_codes, int n, value *ret, int *ret_code)`:
//!   every value 8 bytes, its code beside it. `tvm-ffi` is TVM's FFI, `int __tvm_ffi_f(void *handle, const Any *args,
//!   int32_t n, Any *result)`, with 16 bytes for code and value; a function that has only the prefixed symbol is called
//!   in this way by itself. Anything but 0 fails the ticket, with the code, and with TVM's own message where its
//!   `libtvm_ffi.so` is loaded. A `DLTensor` points to the tensor's first element: its `byte_offset` is 0. It is valid
//!   during the call.
//! - A plain function may take a **parallel range**, as its last two parameters: `void f(…, int64_t begin, int64_t end)`.
//!   Launched with `Geometry::range`, it is called on several threads, each time for at most `Geometry::grain`
//!   iterations that nobody else gets; 0 leaves the grain open, about eight calls per thread. The cuts do not depend on
//!   which thread is faster, and every thread has work-group memory of its own. Code does not tell whether a function
//!   takes a range: launching one that does without a range, or one that does not with it, is undefined.
//! - With the convention `groups` a function runs **work-groups**: `void f(const uint64_t *args, const uint32_t *groups,
//!   int64_t begin, int64_t end)`. `args` has a word per argument (an address, or a scalar's bytes), `groups` the three
//!   counts of the grid, and the function runs the groups `begin..end` of it, x fastest; it is called on several threads,
//!   each time for groups that nobody else gets. The code knows its group size, and has its work-group memory itself.
//!   Portable kernels arrive in this form. A grid that took less than some microseconds last time runs on one thread.
//!
//! `Geometry::shared_bytes` is ignored: C has no name for it.
//!
//! A machine with several NUMA nodes has a memory space `node0`, `node1`, … for each, whose memory comes from that node
//! as long as there is some, and sub-devices `host:0.0`, `host:0.1`, …: their threads keep to the node's processors,
//! their memory is the node's, and nothing runs on the caller's thread.
//!
//! Telemetry, on Linux, as far as the system lets it be read: the clock is the highest of the processors' current clocks, the
//! temperature the highest of the processor's own sensors, and energy (usually for root only) the sum of all packages. A
//! sub-device has only the clock. Virtual machines often have none of these; then the capability is not declared.

mod cache;
mod call;
mod compile;
mod convention;
mod describe;
mod device;
mod groups;
mod link;
mod memory;
mod module;
mod pack;
mod platform;
mod pool;
mod progress;
mod queue;
mod range;
mod shared_object;
mod simd;
mod spread;
mod tagged;
mod telemetry;
mod timer;
mod toolchain;
mod topology;
mod tvm;
mod worker;

pub use device::{HostBackend, HostDevice};
pub use memory::HostBuffer;
pub use module::{HostKernel, HostModule};
pub use queue::HostQueue;

use runtime_core::backend::LinkedBackend;

/// This backend, to register it in a program that links it in.
#[must_use]
pub const fn backend() -> LinkedBackend {
    LinkedBackend::of::<HostBackend>()
}
