//! The table of `runtime eval` as Markdown, with its notes as a list below it.

use std::fmt::Write;

use runtime_harness::Row;
use runtime_harness::printable::is_obeyed;

use super::headline;
use super::table::{HEADER, cells, note};

/// The notes of the rows so far.
#[derive(Debug, Default)]
pub(crate) struct Notes(String);

/// The header line and the line below it. Times and rates are aligned to the right.
pub(super) fn header() -> String {
    let alignment = |name: &&str| match *name {
        "median" | "min" | "GFLOP/s" | "GB/s" | "calls" => "---:",
        _ => "---",
    };
    let alignments: Vec<&str> = HEADER.iter().map(alignment).collect();
    format!("| {} |\n| {} |\n", HEADER.join(" | "), alignments.join(" | "))
}

impl Notes {
    /// The line of a row. Details that do not fit go to the notes.
    pub(super) fn row(&mut self, row: &Row) -> String {
        // The headline of an unmeasured row is in its cell.
        let note = note(row).filter(|_| row.is_measured()).map(|note| headline(&note));
        let repeated = row.command.as_ref().map(|command| format!("to repeat it: {command}"));
        for line in note.iter().chain(&repeated).chain(&row.advice) {
            let heading = format!("{} on {}", row.kernel.name, row.device);
            let _ = writeln!(self.0, "- {}: {}", escaped(&heading), escaped(line));
        }
        let mut cells: Vec<String> = cells(row).iter().map(|cell| escaped(cell)).collect();
        cells.resize(HEADER.len(), String::new());
        format!("| {} |\n", cells.join(" | "))
    }

    /// The list below the table.
    pub(super) fn text(&self) -> String {
        if self.0.is_empty() { String::new() } else { format!("\n{}", self.0) }
    }
}

/// Text without the characters that mean something in Markdown.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if matches!(c, '|' | '*' | '_' | '`' | '<' | '[' | '\\') {
            escaped.push('\\');
        }
        escaped.push(if is_obeyed(c) { ' ' } else { c });
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_the_table() {
        assert_eq!(escaped("a|b_c\nd"), "a\\|b\\_c d");
        let lines: Vec<usize> = header().lines().map(|line| line.matches('|').count()).collect();
        assert_eq!(lines, [HEADER.len() + 1; 2]);
    }
}
