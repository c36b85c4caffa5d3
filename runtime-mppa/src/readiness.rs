//! When a tool counts as started: options of the devices that run one.

use std::time::Duration;

use runtime_core::backend::OptionSpec;
use runtime_core::{Options, Result};

/// How long a tool may take until it is ready.
const TIMEOUT_MS: i64 = 30_000;
const MAX_TIMEOUT_MS: i64 = 3_600_000;

/// How a tool shows that it is ready, and how long it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Readiness {
    /// What it prints then, if that is known.
    pub(crate) text: Option<String>,
    pub(crate) timeout: Duration,
}

impl Readiness {
    /// Reads the options.
    ///
    /// # Errors
    /// `InvalidArgument` for a timeout out of range.
    pub(crate) fn of(options: &Options) -> Result<Self> {
        let timeout = options.integer_within("ready_timeout_ms", TIMEOUT_MS, 1..=MAX_TIMEOUT_MS)?;
        let text = options.text("ready").filter(|text| !text.is_empty());
        Ok(Self { text: text.map(str::to_owned), timeout: Duration::from_millis(timeout.unsigned_abs()) })
    }
}

/// The options of devices that start a tool.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::device(
            "ready",
            "",
            "Text that a tool prints when it is ready. For a whole program, time counts from then on (default: from the start of its \
             command); a simulator behind the offload library is used from then on (default: once a socket is in its folder, or no \
             more files appear there).",
        ),
        OptionSpec::device(
            "ready_timeout_ms",
            TIMEOUT_MS,
            "How long the command or the simulator may take to become ready.",
        ),
    ]
}
