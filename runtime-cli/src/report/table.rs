//! The table of `runtime eval`, printed line by line, with notes below it.

use std::fmt::Write;

use console::measure_text_width;
use runtime_core::{Error, Measurement, Validation};

use super::number_format::{duration, significant, uncertainty};
use super::{Outcome, ResourceUsage, Row, error_text};

const HEADER: [&str; 9] =
    ["kernel", "device", "status", "median", "min", "GFLOP/s", "GB/s", "clock", "calls"];
/// Usual widths of the columns from `status` on. Rows are printed as they are measured, so the widest cell is unknown.
const WIDTHS: [usize; 7] = [21, 16, 9, 8, 8, 12, 1];

/// The column widths of a table whose rows are printed one by one, and the notes below it.
#[derive(Debug)]
pub(crate) struct Columns {
    widths: [usize; HEADER.len()],
    /// Width of the terminal; `None` for a pipe.
    terminal: Option<usize>,
    notes: String,
}

impl Columns {
    /// Columns wide enough for these names.
    pub(crate) fn new<'a>(
        kernels: impl Iterator<Item = &'a str>,
        devices: impl Iterator<Item = &'a str>,
    ) -> Self {
        let mut widths = HEADER.map(measure_text_width);
        widths[0] = kernels.map(measure_text_width).fold(widths[0], usize::max);
        widths[1] = devices.map(measure_text_width).fold(widths[1], usize::max);
        for (width, usual) in widths[2..].iter_mut().zip(WIDTHS) {
            *width = usual.max(*width);
        }
        let terminal = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
        Self { widths, terminal, notes: String::new() }
    }

    /// The header line.
    pub(super) fn header(&self) -> String {
        self.line(&HEADER.map(str::to_owned))
    }

    /// The line of a row. Details that do not fit are kept for the notes.
    pub(super) fn row(&mut self, row: &Row) -> String {
        let mut note = note(row);
        let mut cells = vec![row.kernel.name.clone(), row.device.clone()];
        match &row.outcome {
            Outcome::Measured(measurement) => {
                cells.push(status(measurement));
                cells.extend(figures(measurement));
            }
            Outcome::NotRun(error) => cells.push(format!("not run: {}", headline(error))),
            Outcome::Failed(error) => cells.push(format!("failed: {}", headline(error))),
        }
        if let (Outcome::NotRun(error) | Outcome::Failed(error), Some(cell)) =
            (&row.outcome, cells.last_mut())
            && self.shorten(cell)
        {
            note = Some(error_text(error));
        }
        if let Some(note) = note {
            let _ = writeln!(self.notes, "{} on {}: {note}", row.kernel.name, row.device);
        }
        self.line(&cells)
    }

    /// The notes below the table.
    pub(super) fn notes(&self) -> String {
        if self.notes.is_empty() { String::new() } else { format!("\n{}", self.notes) }
    }

    /// Truncates a last cell to the rest of the terminal's line; returns whether it was truncated.
    fn shorten(&self, cell: &mut String) -> bool {
        const MIN_WIDTH: usize = 20;
        let Some(terminal) = self.terminal else { return false };
        let room = terminal.saturating_sub(self.widths[0] + self.widths[1] + 4).max(MIN_WIDTH);
        let is_long = measure_text_width(cell) > room;
        if is_long {
            *cell = console::truncate_str(cell, room, "…").into_owned();
        }
        is_long
    }

    fn line(&self, cells: &[String]) -> String {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(self.widths) {
            let padding = width.saturating_sub(measure_text_width(cell)) + 2;
            let _ = write!(line, "{cell}{:padding$}", "");
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    }
}

/// The most informative line of an error: a compiler's first error, which notes and warnings may precede.
fn headline(error: &Error) -> String {
    let text = error_text(error);
    let is_error = |line: &&str| line.contains(": error:") || line.contains(": fatal error:");
    let found = text.lines().find(is_error).or_else(|| text.lines().find(|line| !line.trim().is_empty()));
    // Control characters in compiler output or a file name could reprogram the terminal.
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    found.unwrap_or_default().chars().map(clean).collect::<String>().trim().to_owned()
}

fn status(measurement: &Measurement) -> String {
    match &measurement.validation {
        Validation::Passed(agreement) if agreement.max_absolute_error == 0.0 => "right (exact)".to_owned(),
        Validation::Passed(agreement) => format!("right (error {:.1e})", agreement.max_absolute_error),
        Validation::Failed(mismatch) => format!("wrong ({} of {})", mismatch.wrong, mismatch.elements),
        Validation::Skipped { .. } => "unchecked".to_owned(),
    }
}

fn figures(measurement: &Measurement) -> [String; 6] {
    let statistics = &measurement.statistics;
    let interval =
        statistics.median_ci95_ns.map(|interval| format!(" {}", uncertainty(statistics.median_ns, interval)));
    let rate = |rate: Option<f64>| rate.map_or_else(|| "—".to_owned(), significant);
    [
        format!("{}{}", duration(statistics.median_ns), interval.unwrap_or_default()),
        duration(statistics.min_ns),
        rate(measurement.gflops_per_s()),
        rate(measurement.gbytes_per_s()),
        format!("{}{}", measurement.clock, if measurement.cold { " (cold)" } else { "" }),
        measurement.calls.to_string(),
    ]
}

/// Details that do not fit into the row.
fn note(row: &Row) -> Option<String> {
    let measurement = match &row.outcome {
        Outcome::NotRun(error) | Outcome::Failed(error) => {
            return error.message().contains('\n').then(|| error_text(error));
        }
        Outcome::Measured(measurement) => measurement,
    };
    let mut notes = Vec::new();
    match &measurement.validation {
        Validation::Failed(mismatch) => {
            let name = row.names.get(mismatch.arg).map_or("?", String::as_str);
            notes.push(format!("wrong, \"{name}\": {mismatch}"));
        }
        Validation::Skipped { reason } => notes.push(format!("unchecked: {reason}")),
        Validation::Passed(_) => {}
    }
    if !measurement.is_complete() {
        let taken = measurement.samples_ns.len();
        notes.push(format!("{taken} of {} samples: the budget was spent", measurement.repeat));
    }
    if let Some(transfer) = &measurement.transfer {
        notes.push(format!("{} of it is transfer", duration(transfer.statistics.median_ns)));
    }
    notes.extend(row.usage.as_ref().and_then(ResourceUsage::note));
    (!notes.is_empty()).then(|| notes.join("; "))
}

#[cfg(test)]
mod tests {
    use runtime_core::ErrorKind;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_the_names() {
        let columns = Columns::new(["scale", "μ"].into_iter(), ["host:0", "opencl:10"].into_iter());
        let cells = ["μ", "host:0", "right (exact)", "1 ns"].map(str::to_owned);
        assert_eq!(columns.line(&cells), "μ       host:0     right (exact)          1 ns\n");
        assert_eq!(columns.header().find("device"), Some(8));
    }

    #[test]
    fn the_headline_is_the_compilers_first_error() {
        let log =
            "k.c: In function 'f':\nk.c:1:2: warning: x\nk.c:1:20: error: 'u' undeclared\nexit status: 1: cc";
        let error = Error::new(ErrorKind::CompileFailed, log).in_operation("load");
        assert_eq!(headline(&error), "k.c:1:20: error: 'u' undeclared");
        let error = Error::new(ErrorKind::OutOfMemory, "8 bytes\x1b[2J").in_operation("x");
        assert_eq!(headline(&error), "out of memory: x: 8 bytes [2J");
    }

    #[test]
    fn long_errors_are_truncated_on_a_narrow_terminal() {
        let columns =
            Columns { terminal: Some(60), ..Columns::new(["k"].into_iter(), ["host:0"].into_iter()) };
        let mut cell = format!("failed: {}", "x".repeat(60));
        assert!(columns.shorten(&mut cell));
        assert_eq!(measure_text_width(&cell), 44);
        assert!(!columns.shorten(&mut cell));
    }
}
