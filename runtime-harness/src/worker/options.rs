//! Options of a worker.

use std::time::Duration;

use runtime_core::backend::SandboxPolicy;

/// How long may pass without calls of a candidate returning, unless another time is given.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Options of a worker.
#[derive(Clone, Copy, Debug)]
pub struct WorkerOptions {
    /// Limit of its private memory.
    pub memory_limit_bytes: Option<u64>,
    /// Whether kernels are timed while other processes time theirs.
    pub share: bool,
    /// The sandbox of the compilers of kernels. The process must have been started with
    /// [`SANDBOX_VARIABLE`](runtime_core::backend::SANDBOX_VARIABLE) set to it.
    pub sandbox: SandboxPolicy,
    /// Whether native code of the host is believed.
    pub trust: Trust,
    /// How long whoever started it waits without calls of a candidate returning: none of its windows takes longer than half of
    /// that, unless a single call does.
    pub timeout: Duration,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            memory_limit_bytes: None,
            share: false,
            sandbox: SandboxPolicy::default(),
            trust: Trust::default(),
            timeout: DEFAULT_TIMEOUT,
        }
    }
}

/// Whether native code of the host is believed, and what it is judged by. `docs/trust.md` explains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// It runs in the worker, which makes its row.
    Full,
    /// It runs in runners, processes of their own.
    None {
        /// What the inputs are made of that it has never seen; by default, nobody knows.
        input_seed: Option<u64>,
        /// Whether a kernel is refused that cannot have such inputs.
        needs_fresh_inputs: bool,
    },
}

impl Default for Trust {
    fn default() -> Self {
        Self::None { input_seed: None, needs_fresh_inputs: false }
    }
}
