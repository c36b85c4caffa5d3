//! Runs the command as a process with the backends next to it: build the workspace first.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accelerators;
mod compare;
mod fixture;
mod host;
mod hostile;
mod interruption;
mod isolation;
mod kernels;
mod lower;
mod noise;
mod report;
mod resume;
mod shell;
