//! An indented text, built line by line.

use std::fmt::{self, Write as _};

/// A line of a text, whole, as its parts, or as arguments of `format_args!`: the latter two spare the `String` that
/// `format!` would make.
pub(crate) trait Line {
    /// Appends it to a text.
    fn append_to(&self, text: &mut String);
}

impl Line for str {
    fn append_to(&self, text: &mut String) {
        text.push_str(self);
    }
}

impl Line for String {
    fn append_to(&self, text: &mut String) {
        text.push_str(self);
    }
}

impl<const PARTS: usize> Line for [&str; PARTS] {
    fn append_to(&self, text: &mut String) {
        self.iter().for_each(|part| text.push_str(part));
    }
}

impl Line for fmt::Arguments<'_> {
    fn append_to(&self, text: &mut String) {
        let _ = text.write_fmt(*self);
    }
}

/// The indentation of most lines.
const BLANKS: &str = "                                                                ";

/// A text that is built line by line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    text: String,
    depth: usize,
    /// The line of the program's text that the next lines come from, if they say so.
    source: Option<u32>,
}

impl Lines {
    /// Starts at an indentation of `depth` levels.
    pub(crate) const fn at(depth: usize) -> Self {
        Self { text: String::new(), depth, source: None }
    }

    /// Marks all further lines as coming from a line of the program's text.
    pub(crate) const fn mark(&mut self, source: u32) {
        self.source = Some(source);
    }

    /// The directive that marks a line which is added outside of this text.
    pub(crate) fn directive(&self) -> String {
        self.source.map(|source| format!("#line {source}\n")).unwrap_or_default()
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, line: &(impl Line + ?Sized)) {
        self.text.push_str(&self.directive());
        let mut blanks = self.depth * 4;
        while blanks > 0 {
            let some = blanks.min(BLANKS.len());
            self.text.push_str(&BLANKS[..some]);
            blanks -= some;
        }
        line.append_to(&mut self.text);
        self.text.push('\n');
    }

    /// Adds a line and indents those after it.
    pub(crate) fn open(&mut self, line: &(impl Line + ?Sized)) {
        self.line(line);
        self.depth += 1;
    }

    /// Outdents and adds a line.
    pub(crate) fn close(&mut self, line: &(impl Line + ?Sized)) {
        self.depth = self.depth.saturating_sub(1);
        self.line(line);
    }

    /// Ends one block and begins another: `} else {`.
    pub(crate) fn reopen(&mut self, line: &(impl Line + ?Sized)) {
        self.close(line);
        self.depth += 1;
    }

    /// The text.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}
