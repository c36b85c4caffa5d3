//! What the verdict about native code of the host rests on.

use serde::{Deserialize, Serialize};

/// How a candidate was judged whose code ran in a runner, a process of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerUse {
    /// Whether the sandbox of the process was whole.
    pub sandboxed: bool,
    /// The inputs that it was called with.
    pub inputs: Inputs,
    /// Of a row that is rejected: the seed of the fresh inputs, for `--input-seed`. Others stay secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_seed: Option<u64>,
}

/// The inputs that a candidate was called with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inputs {
    /// Those of the spec, and others that it had never seen.
    Fresh,
    /// Always those of the spec: none is random, or what is expected comes from files.
    Fixed,
}
