//! A progress bar, on a terminal only.
//!
//! It is redrawn between measurements only: a drawing thread would disturb the timing.

use std::fmt::Write;
use std::io::IsTerminal;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use runtime_harness::printable::printable;

/// Counts rows. Clones share the bar.
#[derive(Clone, Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar for `rows` rows, if standard error is a terminal.
    pub(crate) fn new(rows: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        Self::on(ProgressDrawTarget::stderr(), rows)
    }

    fn on(target: ProgressDrawTarget, rows: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(rows as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{pos}/{len} [{elapsed}{left}] {wide_msg}") {
            bar.set_style(style.with_key("left", write_time_left));
        }
        Self(bar)
    }

    /// Shows the current operation.
    pub(crate) fn set_message(&self, what: &str) {
        self.0.set_message(printable(what));
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

/// Writes the time left, which is unknown before the first row.
fn write_time_left(state: &ProgressState, output: &mut dyn Write) {
    let is_known = state.pos() > 0 && state.len().is_some_and(|rows| state.pos() < rows);
    if is_known {
        // A failure would leave a gap in the bar, no more.
        let _ = write!(output, ", {:#} left", HumanDuration(state.eta()));
    }
}

#[cfg(test)]
mod tests {
    use indicatif::InMemoryTerm;

    use super::*;

    #[test]
    fn the_time_left_is_shown_once_it_is_known() {
        let terminal = InMemoryTerm::new(5, 80);
        let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
        let progress = Progress::on(target, 3);
        progress.set_message("first");
        assert!(terminal.contents().starts_with("0/3") && !terminal.contents().contains("left"));
        progress.advance();
        assert!(
            terminal.contents().starts_with("1/3") && terminal.contents().contains(" left]"),
            "{terminal:?}"
        );
    }
}
