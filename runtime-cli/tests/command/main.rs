//! The command as a process, with the backends that lie beside it: build the workspace first.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod accelerators;
mod fixture;
mod host;
mod hostile;
mod interruption;
mod kernels;
mod lower;
