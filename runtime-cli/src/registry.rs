//! The runtime that every subcommand uses.

use runtime_core::Runtime;

/// A runtime with the backends of this machine and the lowering of portable kernels.
pub(crate) fn runtime() -> Runtime {
    Runtime::builder().with_lowering(runtime_kernel::wgsl()).build()
}
