//! Reports written row by row, so that no measured row is lost when the command is ended.

use std::io;

use runtime_core::Result;
use runtime_harness::page::page;
use runtime_harness::peak::PeakStore;
use runtime_harness::printable::printable_lines;
use runtime_harness::report::{csv, json};
use runtime_harness::{Report, Row, Status, plot};

use super::chain;
use super::markdown::{self, Notes};
use super::table::Columns;
use crate::output::{self, Destination};

/// The format of a report.
#[derive(Debug)]
pub(crate) enum Format {
    Table(Columns),
    /// As the others, with the report without its rows.
    Json(Box<Report>),
    Csv(Box<Report>),
    Markdown(Notes),
    /// Chains, one by one beside fused.
    Chains,
    /// Made of all rows when the run ends, also by a signal.
    Plot(Box<Report>),
    /// As `Plot`.
    Page(Box<Report>),
}

/// A report being written to one destination.
#[derive(Debug)]
pub(crate) struct Sink {
    format: Format,
    destination: Destination,
    /// The content of a file so far, without its tail.
    text: Vec<u8>,
    rows: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// A write failed and was reported. A file is retried with the next row.
    Failed,
    /// The reader of the pipe has closed it.
    ReaderClosed,
}

impl Sink {
    pub(crate) fn new(format: Format, destination: Destination) -> Self {
        Self { format, destination, text: Vec::new(), rows: 0, state: State::Open }
    }

    /// Whether further rows can still be written.
    pub(crate) fn wants_rows(&self) -> bool {
        self.state == State::Open || (self.state == State::Failed && self.destination.is_file())
    }

    /// Whether standard output is its destination.
    pub(crate) fn is_standard(&self) -> bool {
        self.destination.is_standard()
    }

    /// Whether measured rows are missing, which was reported.
    pub(crate) fn has_failed(&self) -> bool {
        self.state == State::Failed
    }

    /// Adds a row, the last one if `complete`. A file is then a complete document with all rows so far; a stream still lacks
    /// its tail.
    pub(crate) fn add(&mut self, row: &Row, complete: bool) -> Result<()> {
        if let Format::Plot(report) | Format::Page(report) = &mut self.format {
            report.rows.push(row.clone());
            self.rows += 1;
            return Ok(());
        }
        let mut piece = if self.rows == 0 { self.format.head()? } else { String::new() };
        piece.push_str(&self.format.row(row, self.rows == 0)?);
        self.rows += 1;
        if self.destination.is_file() {
            self.text.extend_from_slice(piece.as_bytes());
            piece = self.format.tail(complete);
        }
        self.write(&piece);
        Ok(())
    }

    /// Finishes the report; `complete` is false if rows are missing.
    pub(crate) fn close(&mut self, complete: bool) -> Result<()> {
        // An empty report does not replace an older file.
        if self.rows > 0 || !self.destination.is_file() {
            let head = if self.rows == 0 { self.format.head()? } else { String::new() };
            self.write(&(head + &self.format.tail(complete)));
        }
        if self.state == State::Open && self.rows > 0 {
            let synced = self.destination.sync();
            self.note(synced);
        }
        Ok(())
    }

    fn write(&mut self, text: &str) {
        if self.wants_rows() {
            let written = self.destination.append(&self.text, text.as_bytes());
            self.note(written);
        }
    }

    fn note(&mut self, written: io::Result<()>) {
        match written {
            Ok(()) => self.state = State::Open,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.state = State::ReaderClosed,
            Err(error) => {
                if self.state == State::Open {
                    output::print_stderr(&format!("error: {}", self.destination.write_error(&error)));
                }
                self.state = State::Failed;
            }
        }
    }
}

impl Format {
    fn head(&self) -> Result<String> {
        match self {
            Self::Table(columns) => Ok(columns.header()),
            Self::Json(report) => json::head(report),
            Self::Csv(_) => csv::header(),
            Self::Markdown(notes) => Ok(notes.made.clone() + &markdown::header()),
            Self::Chains | Self::Plot(_) | Self::Page(_) => Ok(String::new()),
        }
    }

    fn row(&mut self, row: &Row, is_first: bool) -> Result<String> {
        match self {
            Self::Table(columns) => Ok(printable_lines(&columns.row(row))),
            Self::Json(_) => json::row(row, is_first),
            Self::Csv(report) => csv::line(row, report),
            Self::Markdown(notes) => Ok(notes.row(row)),
            Self::Chains => Ok(printable_lines(&chain::text(row, is_first))),
            Self::Plot(_) | Self::Page(_) => Ok(String::new()),
        }
    }

    fn tail(&self, complete: bool) -> String {
        match self {
            Self::Table(columns) => printable_lines(&columns.notes()),
            Self::Json(_) => json::tail(complete),
            Self::Csv(_) | Self::Chains => String::new(),
            Self::Markdown(notes) => notes.text(),
            Self::Plot(report) => plot::document(&report.rows, &PeakStore::of_user().of_rows(&report.rows)),
            Self::Page(report) => {
                let whole = Report { complete: complete && report.complete, ..(**report).clone() };
                page(&whole, &PeakStore::of_user().of_rows(&report.rows))
            }
        }
    }
}

/// All reports of one run of the command, and its overall result.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    sinks: Vec<Sink>,
    rows: usize,
    /// Number of rows of a complete report.
    expected_rows: usize,
    /// At least one row ran.
    any_ran: bool,
    /// At least one row is wrong, inconsistent, impossible or failed.
    any_wrong: bool,
}

impl Reports {
    pub(crate) fn new(sinks: Vec<Sink>, expected_rows: usize) -> Self {
        Self { sinks, expected_rows, ..Self::default() }
    }

    /// Adds a row to every report. Returns `false` once no report can be written any more.
    pub(crate) fn add(&mut self, row: &Row) -> Result<bool> {
        self.rows += 1;
        self.any_ran |= matches!(row.status, Status::Right | Status::Unchecked);
        self.any_wrong |= row.status.is_bad();
        for sink in &mut self.sinks {
            sink.add(row, self.rows == self.expected_rows)?;
        }
        Ok(self.sinks.iter().any(Sink::wants_rows))
    }

    /// Finishes every report.
    pub(crate) fn close(&mut self) -> Result<()> {
        let complete = self.rows == self.expected_rows;
        self.sinks.iter_mut().try_for_each(|sink| sink.close(complete))
    }

    /// Finishes every report early.
    pub(crate) fn interrupt(&mut self, signal: &str) {
        // An error cannot be handled any more: the process is about to end.
        let _ = self.close();
        output::print_stderr(&format!(
            "interrupted by {signal} after {} of {} rows",
            self.rows, self.expected_rows
        ));
    }

    /// Whether at least one row ran, and none is wrong, inconsistent, impossible or failed.
    pub(crate) fn is_right(&self) -> bool {
        self.any_ran && !self.any_wrong
    }

    /// Whether a report lacks rows, which was reported.
    pub(crate) fn has_failed(&self) -> bool {
        self.sinks.iter().any(Sink::has_failed)
    }
}
