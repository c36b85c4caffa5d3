//! The devices of this machine, listed in processes of their own: a driver that crashes costs only its own devices.

use runtime_core::backend::LoadOutcome;
use runtime_core::{Error, ErrorKind, Result};

use crate::{output, probe, registry};

/// The message if no device is used unless it is named.
const NONE: &str = "no device is available without a name; name one with --device, such as --device host:0: `runtime devices` lists \
                    them, with simulators and boards, and `runtime doctor` says what is missing";

/// The devices named, or those that are used when none is. Backends that cannot list theirs are named on standard error.
///
/// # Errors
/// `Unavailable` if there are none.
pub(crate) fn named_or_available(names: &[String]) -> Result<Vec<String>> {
    if !names.is_empty() {
        return Ok(names.to_vec());
    }
    // Loading a library starts no driver.
    let runtime = registry::runtime();
    let loaded = runtime.load_report().iter().filter(|line| line.outcome == LoadOutcome::Loaded);
    let mut names = Vec::new();
    for line in loaded {
        match probe::probe_library(&line.path, line.target.as_deref()).available() {
            Ok(available) => names.extend(available),
            Err(reason) => output::print_stderr(&format!("warning: {reason}")),
        }
    }
    at_least_one(names)
}

/// The names.
///
/// # Errors
/// `Unavailable` if there are none.
pub(super) fn at_least_one(names: Vec<String>) -> Result<Vec<String>> {
    match names.is_empty() {
        true => Err(Error::new(ErrorKind::Unavailable, NONE)),
        false => Ok(names),
    }
}
