//! `runtime worker`: the process that `serve`, `tune` and `eval --isolate` start.

use std::process::Command;
use std::time::Duration;

use clap::Args;
use runtime_core::Result;
use runtime_core::backend::{SANDBOX_VARIABLE, SandboxPolicy};
use runtime_harness::runner;
use runtime_harness::worker::{self, DEFAULT_TIMEOUT, WorkerOptions};

use crate::arguments::{ShareArguments, TrustArguments, parse_seconds, this_program};
use crate::registry;

#[derive(Debug, Args)]
pub(crate) struct WorkerArguments {
    /// Evaluate; without it, supervise a process that does
    #[arg(long)]
    inner: bool,
    /// Run the native code of a candidate for a worker
    #[arg(long, hide = true)]
    runner: bool,
    /// Limit for the memory of the process
    #[arg(long, value_name = "BYTES")]
    memory_limit: Option<u64>,
    #[command(flatten)]
    trust: TrustArguments,
    /// Sandbox of kernels and their compilers
    #[arg(long, value_name = "POLICY", default_value_t = SandboxPolicy::Required)]
    sandbox: SandboxPolicy,
    /// How long whoever started it waits without calls of a kernel returning [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<Duration>,
    #[command(flatten)]
    share: ShareArguments,
}

/// Runs a worker, or supervises one.
pub(crate) fn run(arguments: &WorkerArguments) -> Result<()> {
    if arguments.runner {
        #[allow(unsafe_code, reason = "runs the code that a judge names")]
        // SAFETY: as below, the user of the command vouches for it.
        return unsafe { runner::run() };
    }
    if arguments.inner {
        let share = arguments.share.is_shared();
        let options = WorkerOptions {
            memory_limit_bytes: arguments.memory_limit,
            share,
            sandbox: arguments.sandbox,
            trust: arguments.trust.trust(),
            timeout: arguments.timeout.unwrap_or(DEFAULT_TIMEOUT),
        };
        #[allow(unsafe_code, reason = "runs the code that specs name")]
        // SAFETY: the user of the command vouches for the code that a spec names (docs/spec.md).
        return unsafe { worker::serve(registry::runtime, options) };
    }
    let mut inner = Command::new(this_program()?);
    inner.args(std::env::args_os().skip(1)).arg("--inner");
    // Backends start the compilers, and are libraries of their own.
    inner.env(SANDBOX_VARIABLE, arguments.sandbox.name());
    worker::supervise(inner)
}
