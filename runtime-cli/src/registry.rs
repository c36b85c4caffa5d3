//! The registry that every subcommand uses.

use runtime_core::Runtime;

/// The backends of this machine, and portable kernels for all of them.
pub(crate) fn runtime() -> Runtime {
    Runtime::builder().lower_with(runtime_kernel::wgsl()).build()
}
