//! `runtime worker`, which `runtime eval --isolate` and `runtime serve` start, and `runtime serve`.

use std::process::Command;

use runtime_core::{Error, ErrorKind, Result};
use runtime_harness::server;
use runtime_harness::worker::{self, WorkerOptions};

use crate::arguments::{ServeArguments, WorkerArguments};
use crate::registry;

/// Runs a worker, or supervises one.
pub(crate) fn run(arguments: &WorkerArguments) -> Result<()> {
    if arguments.inner {
        let options = WorkerOptions { memory_limit_bytes: arguments.memory_limit };
        return worker::serve(registry::runtime, options);
    }
    let program = std::env::current_exe()
        .map_err(|error| Error::new(ErrorKind::Io, format!("cannot find this program: {error}")))?;
    let mut inner = Command::new(program);
    inner.args(std::env::args_os().skip(1)).arg("--inner");
    worker::supervise(inner)
}

/// Serves a pool of workers on standard input and output.
pub(crate) fn serve(arguments: &ServeArguments) -> Result<()> {
    server::serve_stdio(arguments.pool.options()?)
}
