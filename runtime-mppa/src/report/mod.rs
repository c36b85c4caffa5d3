//! What users send back when something fails: the backend's part of `runtime doctor mppa`.
//!
//! Each section is bounded and has a deadline. Nothing of Kalray's is loaded into this process.

mod folder;
mod sections;
#[cfg(test)]
mod tests;

use runtime_core::Options;

use crate::environment::Environment;
use sections::{Find, SECTIONS, Source};

/// The sections, by title: settings, the driver's tree, the SDK and what its tools print. A problem is a line like any other.
pub(crate) fn diagnose(environment: &Environment) -> Options {
    let source = Source::new(environment);
    let add = |sections: Options, (title, lines): &Find| sections.with(title, lines(&source).join("\n"));
    SECTIONS.iter().fold(Options::new(), add)
}
