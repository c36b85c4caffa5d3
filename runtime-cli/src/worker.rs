//! `runtime worker`: the process that `serve`, `tune` and `eval --isolate` start.

use std::process::Command;

use clap::Args;
use runtime_core::Result;
use runtime_harness::worker::{self, WorkerOptions};

use crate::arguments::{ShareArguments, this_program};
use crate::registry;

#[derive(Debug, Args)]
pub(crate) struct WorkerArguments {
    /// Evaluate; without it, supervise a process that does
    #[arg(long)]
    inner: bool,
    /// Limit for the memory of the process
    #[arg(long, value_name = "BYTES")]
    memory_limit: Option<u64>,
    #[command(flatten)]
    share: ShareArguments,
}

/// Runs a worker, or supervises one.
pub(crate) fn run(arguments: &WorkerArguments) -> Result<()> {
    if arguments.inner {
        let share = arguments.share.is_shared();
        let options = WorkerOptions { memory_limit_bytes: arguments.memory_limit, share };
        #[allow(unsafe_code, reason = "runs the code that specs name")]
        // SAFETY: the user of the command vouches for the code that a spec names (docs/spec.md).
        return unsafe { worker::serve(registry::runtime, options) };
    }
    let mut inner = Command::new(this_program()?);
    inner.args(std::env::args_os().skip(1)).arg("--inner");
    worker::supervise(inner)
}
