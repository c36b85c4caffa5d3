//! How long calls to the offload library may take: options of the devices behind it.

use std::time::Duration;

use runtime_core::backend::OptionSpec;
use runtime_core::{Options, Result};

const OPTION: &str = "call_timeout_ms";
/// Opening a board takes about 3 s, and other calls less.
const CALL_TIMEOUT: Duration = Duration::from_millis(TIMEOUT_MS.unsigned_abs());
const TIMEOUT_MS: i64 = 60_000;
const MAX_TIMEOUT_MS: i64 = 3_600_000;

/// How long opening a chip, and every other call may take that does not run code or transfer between a board and memory of the
/// caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) open: Duration,
    pub(crate) call: Duration,
}

impl Limits {
    /// Those of a board without options.
    pub(super) const USUAL: Self = Self { open: CALL_TIMEOUT, call: CALL_TIMEOUT };

    /// The limits for a board, or for a simulator that has to be ready in time.
    ///
    /// # Errors
    /// `InvalidArgument` for a time out of range.
    pub(crate) fn new(options: &Options, ready: Option<Duration>) -> Result<Self> {
        let call = options.integer_within(OPTION, TIMEOUT_MS, 1..=MAX_TIMEOUT_MS)?;
        let call = Duration::from_millis(call.unsigned_abs());
        Ok(Self { open: ready.unwrap_or(call), call })
    }
}

/// The option of devices behind the offload library.
pub(crate) fn option() -> OptionSpec {
    OptionSpec::device(
        OPTION,
        TIMEOUT_MS,
        "How long a call to the offload library may take that opens, closes, allocates, frees, loads or unloads. The device is lost if \
         it takes longer. Kernels, host-driven modules, and a board's transfers with memory of the program are not limited.",
    )
}
