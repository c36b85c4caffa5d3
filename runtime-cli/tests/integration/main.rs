//! Runs the command as a process with the backends next to it: build the workspace first.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accelerators;
mod cache;
mod compare;
mod counters;
mod device_lock;
mod fixture;
mod fuse;
mod host;
mod hostile;
mod interleave;
mod interruption;
mod isolation;
mod kernels;
mod later_calls;
mod lower;
mod multi_launch;
mod noise;
mod package;
mod packaged_specs;
mod peak;
mod physics;
mod provenance;
mod report;
mod resume;
mod shell;
mod tune;
mod tune_workers;
