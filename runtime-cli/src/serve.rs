//! `runtime serve`: evaluates candidates for another program.

use std::path::PathBuf;

use clap::Args;
use runtime_core::Result;
use runtime_core::backend::SandboxPolicy;
use runtime_harness::server::{self, SocketListener};

use crate::arguments::PoolArguments;
use crate::interrupt;

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Read requests from standard input and write replies to standard output
    #[arg(long, required_unless_present = "listen", conflicts_with = "listen")]
    stdio: bool,
    /// Serve all programs of this user that connect to a Unix socket, which is made here
    #[arg(long, value_name = "PATH")]
    listen: Option<PathBuf>,
    #[command(flatten)]
    pool: PoolArguments,
}

/// Serves a pool of workers on standard input and output, or on a socket.
pub(crate) fn serve(arguments: &ServeArguments) -> Result<()> {
    let options = arguments.pool.options(arguments.pool.sandbox(SandboxPolicy::Required)?)?;
    let Some(path) = &arguments.listen else {
        return server::serve_stdio(options, interrupt::stop_workers);
    };
    let listener = SocketListener::bind(path)?;
    let file = listener.file();
    interrupt::on_interrupt(move |_| file.remove());
    server::serve_socket(options, &listener, interrupt::stop_workers)
}
