//! An indented text, built line by line.

/// A text that is built line by line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    text: String,
    depth: usize,
}

impl Lines {
    /// Starts at an indentation of `depth` levels.
    pub(crate) const fn at(depth: usize) -> Self {
        Self { text: String::new(), depth }
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, line: &str) {
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Adds a line and indents those after it.
    pub(crate) fn open(&mut self, line: &str) {
        self.line(line);
        self.depth += 1;
    }

    /// Outdents and adds a line.
    pub(crate) fn close(&mut self, line: &str) {
        self.depth = self.depth.saturating_sub(1);
        self.line(line);
    }

    /// Ends one block and begins another: `} else {`.
    pub(crate) fn reopen(&mut self, line: &str) {
        self.close(line);
        self.depth += 1;
    }

    /// The text.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}
