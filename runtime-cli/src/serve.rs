//! `runtime serve`: evaluates candidates for another program.

use clap::Args;
use runtime_core::Result;
use runtime_core::backend::SandboxPolicy;
use runtime_harness::server;

use crate::arguments::PoolArguments;
use crate::interrupt;

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Read requests from standard input and write replies to standard output
    #[arg(long, required = true)]
    stdio: bool,
    #[command(flatten)]
    pool: PoolArguments,
}

/// Serves a pool of workers on standard input and output.
pub(crate) fn serve(arguments: &ServeArguments) -> Result<()> {
    server::serve_stdio(
        arguments.pool.options(arguments.pool.sandbox(SandboxPolicy::Required)?)?,
        interrupt::stop_workers,
    )
}
