//! Processes of their own, with an end.

use std::time::Duration;

/// Longer than anything takes that is not stuck.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The path of this program, to be run again.
///
/// # Errors
/// It is not known.
pub fn current_program() -> Result<std::path::PathBuf, String> {
    std::env::current_exe().map_err(|error| error.to_string())
}
