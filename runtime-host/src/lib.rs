//! The host CPU as a device.
//!
//! Memory is the program's own, code is native: a shared object, or C that is compiled when it is loaded. A kernel
//! is a plain C function of bare pointers and scalars, of any number and in any mix. Work of a queue runs in order
//! on the queue's own thread, which starts with the first asynchronous submission; a synchronous call on an idle
//! queue runs on the caller's thread.
//!
//! How the arguments of a launch arrive:
//!
//! | argument | C parameter |
//! | --- | --- |
//! | tensor | pointer to its first element |
//! | scalar | the value, in its own type (fp8: its bit pattern in a `uint8_t`) |
//! | by-value bytes | pointer to a copy, aligned to 64 bytes, that lives during the call |
//! | work-group memory | pointer to that many bytes of scratch memory, aligned to 64 bytes, contents undefined |
//!
//! What the function returns is ignored, and so is `Geometry::shared_bytes`: C has no name for it.

mod call;
mod compile;
mod convention;
mod describe;
mod device;
mod export;
mod link;
mod memory;
mod module;
mod pack;
mod platform;
mod pool;
mod progress;
mod queue;
mod range;
mod simd;
mod tagged;
mod timer;
mod toolchain;
mod topology;
mod tvm;
mod worker;

pub use device::{HostBackend, HostDevice};
pub use export::backend;
pub use memory::HostBuffer;
pub use module::{HostKernel, HostModule};
pub use queue::HostQueue;
