//! A progress bar, on a terminal only.
//!
//! It is redrawn between measurements only: a drawing thread would disturb the timing.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Counts rows. Clones share the bar.
#[derive(Clone, Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar for `rows` rows, if standard error is a terminal.
    pub(crate) fn new(rows: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::with_draw_target(Some(rows as u64), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{pos}/{len} [{elapsed}] {wide_msg}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Shows the current operation.
    pub(crate) fn set_message(&self, what: String) {
        self.0.set_message(what);
    }

    /// Counts a row.
    pub(crate) fn advance(&self) {
        self.0.inc(1);
    }

    /// Hides the bar while `print` runs.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
