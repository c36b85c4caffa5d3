//! Rules of WGSL that naga does not check. Those about the grammar look at the text as its author wrote it.

mod atomics;
mod attribute_places;
mod attributes;
mod behaviors;
mod constant_arguments;
mod diagnostic_attributes;
mod large_literals;
mod parentheses;
mod pointer_types;
mod subgroups;

use naga::{Module, Span};
use runtime_core::Result;

use super::diagnostics::{failed, location};
use super::tokens::Token;

/// Errors of one text in a message.
const MAX_ERRORS: usize = 8;

/// What is wrong at a place.
#[derive(Debug, PartialEq)]
struct Violation {
    place: Span,
    text: String,
}

impl Violation {
    fn message(&self, code: &str, path: &str) -> String {
        format!("{}: {}", location(code, path, self.place), self.text)
    }
}

/// Checks the grammar of a text that naga accepts.
///
/// # Errors
/// `CompileFailed`, with each violation and its line.
pub(crate) fn check_text(tokens: &[Token<'_>], code: &str, path: &str) -> Result<()> {
    let mut found = parentheses::missing(tokens);
    found.extend(diagnostic_attributes::misplaced(tokens));
    found.extend(attribute_places::misplaced(tokens));
    found.extend(large_literals::beyond_i32(tokens));
    found.extend(subgroups::not_enabled(tokens));
    found.extend(pointer_types::invalid(tokens));
    // Elsewhere, naga refuses it.
    found.extend(code.match_indices('\0').take(1).map(|(at, _)| null(at)));
    if found.is_empty() {
        return Ok(());
    }
    let messages = found.iter().take(MAX_ERRORS).map(|violation| violation.message(code, path));
    Err(failed(messages.collect::<Vec<_>>().join("\n")))
}

/// A null character in a comment (§blankspace-and-line-breaks).
fn null(at: usize) -> Violation {
    let at = u32::try_from(at).unwrap_or(u32::MAX);
    Violation { place: Span::new(at, at), text: "the text has a null character".to_owned() }
}

/// The messages for a module that naga has made of a text.
pub(crate) fn of_module(module: &Module, code: &str, path: &str) -> Vec<String> {
    let mut found = atomics::misused(module, code);
    found.extend(behaviors::endless(module));
    found.extend(constant_arguments::invalid(module, code));
    found.iter().take(MAX_ERRORS).map(|violation| violation.message(code, path)).collect()
}
