//! Runs futures.

use std::future::Future;

use runtime_core::{Error, ErrorKind, Result};

/// Runs a future on this thread.
///
/// # Errors
/// `OutOfResources` if there is no executor.
pub(crate) fn block_on<F: Future>(future: F) -> Result<F::Output> {
    let executor = tokio::runtime::Builder::new_current_thread().build().map_err(|error| {
        Error::new(ErrorKind::OutOfResources, format!("cannot start an executor: {error}"))
    })?;
    Ok(executor.block_on(future))
}
