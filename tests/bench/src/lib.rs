//! Shared by the benchmarks and the allocation test: a kernel with three tensors and a scalar on any device, the same
//! kernel by function pointer, and the raw table of the null backend.

mod direct_call;
mod fixture;
mod mode;
mod raw;
mod report;

pub use direct_call::DirectCall;
pub use fixture::{Fixture, builder, runtime, with_busy_queue};
pub use mode::{is_measuring, measure_by_default};
pub use raw::RawQueue;
pub use report::{Samples, compare, measure, median, time};

/// The rust code of the README is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
