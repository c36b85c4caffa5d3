//! Checks and times kernels that spec files describe, on any device of a [`Runtime`](runtime_core::Runtime).
//!
//! A [`Spec`] names a kernel, its arguments and the expected outputs (`docs/spec.md` documents the file). A [`Job`] is a
//! spec with its data. [`evaluate`] runs a job on a device and returns a [`Row`]: plain data, which is written to and read
//! from a [`Report`] (`docs/output.md` documents both).
//!
//! ```no_run
//! use runtime_core::{Options, Runtime};
//! use runtime_harness::{DeviceUnderTest, Job, Overrides, Settings, Spec, evaluate};
//!
//! # fn main() -> runtime_core::Result<()> {
//! let runtime = Runtime::builder().with_lowering(runtime_kernel::wgsl()).build();
//! let mut device = DeviceUnderTest::open(&runtime, "host:0", &Options::new());
//! let spec = Spec::load("kernels/saxpy.toml".as_ref(), &Overrides::default())?;
//! // SAFETY: the kernel and its reference are what the spec says.
//! let mut job = unsafe { Job::new(spec) };
//! job.find_expected(&runtime);
//! let settings = Settings { repeat: Some(30), ..job.spec().settings.clone() };
//! let row = evaluate(&job, &mut device, &settings).row;
//! match &row.measurement {
//!     Some(measurement) => println!("{}: {} ns", row.kernel.name, measurement.statistics.median_ns),
//!     None => println!("{}: {}", row.kernel.name, row.reason.unwrap_or_default()),
//! }
//! # Ok(())
//! # }
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod board;
mod candidate;
pub mod chain;
pub mod commit;
pub mod compare;
pub mod counters;
pub mod crash_context;
pub mod describe;
mod device;
pub mod device_lock;
mod evaluate;
mod evaluate_chain;
mod executor;
mod heartbeat;
mod interleave;
pub mod job;
pub mod noise;
pub mod number_format;
pub mod origin;
pub mod page;
pub mod peak;
mod physics;
mod platform;
pub mod plot;
pub mod pool;
pub mod printable;
mod random;
pub mod release;
pub mod report;
pub mod row;
#[cfg(test)]
mod row_fixture;
pub mod runner;
pub mod server;
pub mod settings;
mod single_calls;
pub mod spec;
pub mod text_file;
mod text_json;
mod traces;
pub mod tune;
mod watch;
pub mod worker;

pub use candidate::{Candidate, Requirement};
pub use compare::Comparison;
pub use device::DeviceUnderTest;
pub use device_lock::DeviceLock;
pub use evaluate::{Evaluated, evaluate, evaluate_with};
pub use interleave::{Contender, evaluate_interleaved};
pub use job::Job;
pub use peak::Peak;
pub use pool::{Pool, PoolOptions};
pub use report::Report;
pub use row::{Outcome, Phase, Row, Status};
pub use settings::Settings;
pub use spec::{Overrides, Spec, SpecSource};
pub use tune::Tuner;
