//! Worker processes: they evaluate candidates, so that a crash ends no more than the worker.
//!
//! A worker is two processes. [`supervise`] runs in the outer one, which has a single thread and no driver: it starts the
//! inner one, and kills all that descends from it when it ends, when it is told to end, or when the process that started
//! the worker is gone. [`serve`] runs in the inner one, which evaluates. `docs/serve.md` documents their messages.

mod carry_over;
mod inner;
mod options;
pub mod protocol;
mod session;
mod supervisor;

pub use inner::serve;
pub use options::{DEFAULT_TIMEOUT, Trust, WorkerOptions};
pub use supervisor::supervise;
