//! How a pool starts its workers, and how long it waits for them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use runtime_core::Result;

use super::LaunchTemplate;
use crate::worker::DEFAULT_TIMEOUT;

/// Options of a [`Pool`](super::Pool).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// The program that calls [`supervise`](crate::worker::supervise): the command `runtime`.
    pub program: PathBuf,
    /// Its arguments, such as `worker`.
    pub arguments: Vec<OsString>,
    /// Variables that the workers of a device are started with, by device string. A launcher gets them, too; whether the worker does is up
    /// to it.
    pub device_variables: BTreeMap<String, Vec<(String, String)>>,
    /// The command that starts the program somewhere else; `None` to start it here.
    pub launch: Option<LaunchTemplate>,
    /// How many workers share the candidates of a device, at least 1. With more than 1, `launch` must give each a device of
    /// its own.
    pub workers: usize,
    /// How long may pass without calls of a candidate returning; another time than the default must be told to the program, too, with
    /// the argument `--timeout`. A chain, and a candidate of a board, may take so long beyond its timing
    /// budget.
    pub timeout: Duration,
    /// How long a candidate may take to be prepared and compiled.
    pub compile_timeout: Duration,
    /// How long a worker may take to start.
    pub start_timeout: Duration,
}

impl PoolOptions {
    /// One worker per device, of the command `runtime` at `program`: 60 s to run, 300 s to compile, 60 s to start. Without the argument
    /// `--sandbox`, it requires one.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: vec!["worker".into()],
            device_variables: BTreeMap::new(),
            launch: None,
            workers: 1,
            timeout: DEFAULT_TIMEOUT,
            compile_timeout: Duration::from_secs(300),
            start_timeout: Duration::from_secs(60),
        }
    }

    /// The command that starts a worker: at least one word.
    pub(super) fn command(&self) -> Result<Vec<OsString>> {
        match &self.launch {
            Some(launch) => launch.command(self.program.as_os_str(), &self.arguments),
            None => {
                let program = self.program.clone().into_os_string();
                Ok(std::iter::once(program).chain(self.arguments.iter().cloned()).collect())
            }
        }
    }
}
