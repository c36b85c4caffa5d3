//! What users send back when something fails: the backend's part of `runtime doctor mppa`.
//!
//! Each section is bounded and has a deadline. Nothing of Kalray's is loaded into this process.

mod folder;
mod sections;
#[cfg(test)]
mod tests;

use runtime_core::Options;
use runtime_core::abi::MAX_TEXT_BYTES;

use crate::environment::Environment;
use sections::{Find, SECTIONS, Source};

/// The sections, by title: settings, the driver's tree, the SDK and what its tools print. A problem is a line like any other.
pub(crate) fn diagnose(environment: &Environment) -> Options {
    let source = Source::new(environment);
    let add = |sections: Options, (title, lines): &Find| {
        sections.with(title, bounded(lines(&source).join("\n"), MAX_TEXT_BYTES))
    };
    SECTIONS.iter().fold(Options::new(), add)
}

/// The beginning of a text, as long as the ABI takes it: names may be long.
fn bounded(mut text: String, max_bytes: usize) -> String {
    let end = max_bytes.min(text.len());
    let end = (0..=end).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.truncate(end);
    text
}
