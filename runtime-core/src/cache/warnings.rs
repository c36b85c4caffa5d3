//! Warnings of the cache: each cause is reported once.

use std::collections::HashSet;
use std::fmt;

use parking_lot::Mutex;

/// The causes that were reported.
#[derive(Debug, Default)]
pub(super) struct Warnings(Mutex<HashSet<String>>);

impl Warnings {
    /// Logs a warning, unless the same cause was reported before.
    pub(super) fn report(&self, cause: &str, message: fmt::Arguments<'_>) {
        if self.0.lock().insert(cause.to_owned()) {
            tracing::warn!(target: "runtime::cache", "{message}");
        }
    }
}
