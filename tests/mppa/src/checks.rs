//! What a test has seen, as its failure.

use std::fmt::Debug;

use libtest_mimic::Failed;

/// Fails with a text unless something is right.
///
/// # Errors
/// The text.
pub fn check(is_right: bool, what: impl FnOnce() -> String) -> Result<(), Failed> {
    if is_right { Ok(()) } else { Err(what().into()) }
}

/// As [`check`], with what was seen.
///
/// # Errors
/// What was seen.
pub fn check_seen(is_right: bool, seen: &impl Debug) -> Result<(), Failed> {
    check(is_right, || format!("{seen:?}"))
}
