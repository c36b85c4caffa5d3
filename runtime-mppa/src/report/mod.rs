//! What users send back when something fails: the backend's part of `runtime doctor --mppa`.
//!
//! Each section is bounded and has a deadline. Nothing of Kalray's is loaded into this process. [`Private`] removes names from
//! the text.

mod folder;
mod privacy;
mod sections;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::environment::Environment;
use crate::plain_text::plain;
use sections::{SECTIONS, Source};

pub use privacy::Private;

/// A part of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What it is about.
    pub title: &'static str,
    /// What was found; a problem is a line like any other.
    pub lines: Vec<String>,
}

impl fmt::Display for Section {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.title)?;
        if self.lines.is_empty() {
            writeln!(formatter, "  nothing")?;
        }
        let mut lines = self.lines.iter().flat_map(|line| line.lines());
        lines.try_for_each(|line| writeln!(formatter, "  {}", plain(line)))
    }
}

/// The sections, each collected when it is asked for: settings, the driver's tree, the SDK and what its tools print.
pub fn sections(environment: &Environment) -> impl Iterator<Item = Section> + use<> {
    let source = Source::new(environment);
    SECTIONS.into_iter().map(move |(title, lines)| Section { title, lines: lines(&source) })
}
