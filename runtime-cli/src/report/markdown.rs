//! The table of `runtime eval` as Markdown, with its notes as a list below it.

use std::collections::BTreeSet;
use std::fmt::Write;

use runtime_harness::printable::is_obeyed;
use runtime_harness::{Report, Row};

use super::headline;
use super::table::{HEADER, cells, note};

/// The paragraph above the table and the list below it.
#[derive(Debug)]
pub(crate) struct Notes {
    /// How the report was made.
    pub(super) made: String,
    /// The notes of the rows so far.
    text: String,
    /// The code and the devices of the rows so far.
    subjects: BTreeSet<String>,
}

/// The header line and the line below it. Times and rates are aligned to the right.
pub(super) fn header() -> String {
    let alignment = |name: &&str| match *name {
        "median" | "min" | "GFLOP/s" | "GB/s" | "calls" => "---:",
        _ => "---",
    };
    let alignments: Vec<&str> = HEADER.iter().map(alignment).collect();
    format!("| {} |\n| {} |\n", HEADER.join(" | "), alignments.join(" | "))
}

/// A paragraph that says how a report was made; empty if it does not tell.
pub(crate) fn made(report: &Report) -> String {
    let Some(origin) = &report.origin else { return String::new() };
    let sandbox = origin.sandbox.map(|sandbox| format!(", sandbox {}", sandbox.name().replace('_', " ")));
    let command = origin.command.as_ref().map(|command| format!(", by: {command}"));
    let text = format!(
        "Made at {} with runtime {}{}{}",
        origin.time_and_host(),
        report.runtime.text(),
        sandbox.unwrap_or_default(),
        command.unwrap_or_default()
    );
    format!("{}\n\n", escaped(&text))
}

/// The code of a row, and its device with its driver.
fn subjects(row: &Row) -> impl Iterator<Item = String> {
    let code = [
        row.code_sha256.as_ref().map(|hash| format!("SHA-256 {hash}")),
        row.commit.as_ref().map(|commit| format!("commit {commit}")),
        row.judged.as_ref().map(|judged| format!("{} inputs", judged.inputs.name())),
    ];
    let code: Vec<String> = code.into_iter().flatten().collect();
    let code = (!code.is_empty()).then(|| format!("{}: {}", row.kernel.path, code.join(", ")));
    let info = row.device_info.as_ref();
    let driver = info.and_then(|info| info["driver_version"].as_str());
    let compiler = info.and_then(|info| info["properties"]["compiler"].as_str());
    let compiler = compiler.map_or_else(String::new, |compiler| format!(", compiler {compiler}"));
    let device = driver.map(|driver| format!("{}: driver {driver}{compiler}", row.device));
    [code, device].into_iter().flatten()
}

impl Notes {
    pub(super) fn new(report: &Report) -> Self {
        Self { made: made(report), text: String::new(), subjects: BTreeSet::new() }
    }

    /// The line of a row. Details that do not fit go to the notes.
    pub(super) fn row(&mut self, row: &Row) -> String {
        // The headline of an unmeasured row is in its cell.
        let note = note(row).filter(|_| row.is_measured()).map(|note| headline(&note));
        let repeated = row.command.as_ref().map(|command| format!("to repeat it: {command}"));
        for line in note.iter().chain(&repeated).chain(&row.advice) {
            let heading = format!("{} on {}", row.kernel.name, row.device);
            let _ = writeln!(self.text, "- {}: {}", escaped(&heading), escaped(line));
        }
        self.subjects.extend(subjects(row));
        let mut cells: Vec<String> = cells(row).iter().map(|cell| escaped(cell)).collect();
        cells.resize(HEADER.len(), String::new());
        format!("| {} |\n", cells.join(" | "))
    }

    /// The list below the table.
    pub(super) fn text(&self) -> String {
        let subjects: String =
            self.subjects.iter().map(|subject| format!("- {}\n", escaped(subject))).collect();
        let list = self.text.clone() + &subjects;
        if list.is_empty() { list } else { format!("\n{list}") }
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
