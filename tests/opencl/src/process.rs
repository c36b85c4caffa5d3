//! Child processes with a deadline.

use std::time::Duration;

/// No child process that works takes this long.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The path of this program, to run it as a child.
///
/// # Errors
/// The system does not know it.
pub fn current_program() -> Result<std::path::PathBuf, String> {
    std::env::current_exe().map_err(|error| error.to_string())
}
