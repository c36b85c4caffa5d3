//! How long a call to the offload library may take: an option of the devices behind it.

use std::time::Duration;

use runtime_core::{OptionSpec, Options, Result};

const OPTION: &str = "call_timeout_ms";
/// Opening a board takes about 3 s, and other calls less.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_millis(TIMEOUT_MS.unsigned_abs());
const TIMEOUT_MS: i64 = 60_000;
const MAX_TIMEOUT_MS: i64 = 3_600_000;

/// The time for a call.
///
/// # Errors
/// `InvalidArgument` for a time out of range.
pub(crate) fn call_timeout(options: &Options) -> Result<Duration> {
    let timeout = options.integer_within(OPTION, TIMEOUT_MS, 1..=MAX_TIMEOUT_MS)?;
    Ok(Duration::from_millis(timeout.unsigned_abs()))
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
