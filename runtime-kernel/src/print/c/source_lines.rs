//! Which line of the WGSL text a part of the code comes from, for debuggers and for messages of compilers.
//!
//! Each printed line of a function follows a `#line` with the line of its statement. The rest of the text belongs to a file
//! of its own, so that a breakpoint in the WGSL file does not stop in the library functions.

use naga::{FastHashMap, Function, Handle, Span};

use crate::program::Program;

/// The file that types, constants and library functions are said to be in.
const LOWERED: &str = "<lowered>";

/// The lines of a program's text.
#[derive(Debug)]
pub(crate) struct SourceLines<'a> {
    program: &'a Program,
    /// Where each line ends, in bytes.
    ends: Vec<usize>,
    /// The line of `fn` of each entry point, of which naga keeps no position.
    entries: Vec<u32>,
}

impl<'a> SourceLines<'a> {
    /// The lines of a program that is written with them.
    pub(crate) fn of(program: &'a Program) -> Option<Self> {
        if !program.has_debug_info && !program.has_lines {
            return None;
        }
        let newlines = program.source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let mut lines = Self { program, ends: newlines.map(|(at, _)| at).collect(), entries: Vec::new() };
        let declared = declarations(&program.source);
        let line = |name: &str| declared.get(name).map_or(1, |&at| lines.line_at(at));
        lines.entries = program.module.entry_points.iter().map(|entry| line(&entry.name)).collect();
        Some(lines)
    }

    /// The line that a span begins on; `None` if it has no location.
    pub(crate) fn line(&self, span: Span) -> Option<u32> {
        let start = span.to_range()?.start;
        (start <= self.program.source.len()).then(|| self.line_at(start))
    }

    fn line_at(&self, at: usize) -> u32 {
        u32::try_from(self.ends.partition_point(|&end| end < at) + 1).unwrap_or(u32::MAX)
    }

    /// The line of a function's declaration.
    pub(crate) fn of_function(&self, function: Handle<Function>) -> u32 {
        self.line(self.program.module.functions.get_span(function)).unwrap_or(1)
    }

    /// The line of an entry point's declaration.
    pub(crate) fn of_entry(&self, index: usize) -> u32 {
        self.entries[index]
    }

    /// The directive in front of types, constants and library functions.
    pub(crate) fn before_library(&self) -> String {
        format!("#line 1 {}\n", quoted(LOWERED))
    }

    /// The directive in front of functions.
    pub(crate) fn before_functions(&self) -> String {
        format!("#line 1 {}\n", quoted(&self.program.debug_file()))
    }
}

/// A text as a C string literal.
pub(crate) fn quoted(text: &str) -> String {
    let escaped = text.bytes().map(|byte| match byte {
        b' '..=b'~' if !matches!(byte, b'"' | b'\\' | b'?') => char::from(byte).to_string(),
        other => format!("\\{other:03o}"),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// By name: where functions are declared. Comments may mislead it, which costs a debugger the line of one function.
fn declarations(source: &str) -> FastHashMap<&str, usize> {
    let mut found = FastHashMap::default();
    for (at, word) in source.match_indices("fn") {
        let after = &source[at + word.len()..];
        let rest = after.trim_start();
        if rest.len() < after.len()
            && let Some((name, _)) = rest.split_once(|letter: char| letter == '(' || letter.is_whitespace())
        {
            found.entry(name).or_insert(source.len() - rest.len());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Specialisation;

    #[test]
    fn lines_of_entry_points_are_found_in_the_text() {
        let text = "// main(\n@compute @workgroup_size(1)\nfn main_2() {}\n@compute @workgroup_size(1)\nfn\n  main () {\n}\n";
        let program = Program::parse(text, "", &Specialisation::default()).unwrap().with_debug_info();
        let lines = SourceLines::of(&program).unwrap();
        assert_eq!((lines.of_entry(0), lines.of_entry(1)), (3, 6));
        assert_eq!([0, 8, 9].map(|at| lines.line_at(at)), [1, 1, 2]);
    }
}
