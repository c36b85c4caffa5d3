//! Reports that grow row by row: what was measured is there, whatever ends the command.

use std::io;

use super::table::Columns;
use super::{Row, csv, json};
use crate::output::{self, Destination};
use runtime_core::{Options, Result};

/// How rows are written.
#[derive(Debug)]
pub(crate) enum Format {
    Table(Columns),
    /// With what the devices were opened with.
    Json(Options),
    Csv,
}

/// A report on its way to one destination.
#[derive(Debug)]
pub(crate) struct Sink {
    format: Format,
    destination: Destination,
    /// What a file holds, without its end.
    text: Vec<u8>,
    rows: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// A write has failed, which was reported. A file is tried again with the next row.
    Failed,
    /// Its reader has gone away.
    ReaderClosed,
}

impl Sink {
    pub(crate) fn new(format: Format, destination: Destination) -> Self {
        Self { format, destination, text: Vec::new(), rows: 0, state: State::Open }
    }

    /// Whether another row would reach somebody.
    pub(crate) fn wants_rows(&self) -> bool {
        self.state == State::Open || (self.state == State::Failed && self.destination.is_file())
    }

    /// Whether it lacks rows that were measured, which was reported.
    pub(crate) fn has_failed(&self) -> bool {
        self.state == State::Failed
    }

    /// Adds a row. A file is then a whole report with all rows until now; a stream still lacks its end.
    pub(crate) fn add(&mut self, row: &Row) -> Result<()> {
        let mut piece = if self.rows == 0 { self.format.head()? } else { String::new() };
        piece.push_str(&self.format.row(row, self.rows == 0)?);
        self.rows += 1;
        if self.destination.is_file() {
            self.text.extend_from_slice(piece.as_bytes());
            piece = self.format.tail(false);
        }
        self.write(&piece);
        Ok(())
    }

    /// Ends the report; `complete` tells whether all rows are there.
    pub(crate) fn close(&mut self, complete: bool) -> Result<()> {
        // A report that nothing was measured for does not take the place of an older one.
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
            Self::Json(options) => Ok(json::head(options)),
            Self::Csv => csv::header(),
        }
    }

    fn row(&mut self, row: &Row, is_first: bool) -> Result<String> {
        match self {
            Self::Table(columns) => Ok(columns.row(row)),
            Self::Json(_) => Ok(json::row_text(row, is_first)),
            Self::Csv => csv::line(row),
        }
    }

    fn tail(&self, complete: bool) -> String {
        match self {
            Self::Table(columns) => columns.notes(),
            Self::Json(_) => json::tail(complete),
            Self::Csv => String::new(),
        }
    }
}

/// All reports of a run of the command, and what became of it.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    sinks: Vec<Sink>,
    rows: usize,
    /// Rows that were to be measured.
    expected_rows: usize,
    /// Something ran.
    any_ran: bool,
    /// Something that ran is wrong or has failed.
    any_wrong: bool,
}

impl Reports {
    pub(crate) fn new(sinks: Vec<Sink>, expected_rows: usize) -> Self {
        Self { sinks, expected_rows, ..Self::default() }
    }

    /// Adds a row to all of them; `false` if nobody reads any of them any more.
    pub(crate) fn add(&mut self, row: &Row) -> Result<bool> {
        self.rows += 1;
        let status = row.outcome.status();
        self.any_ran |= matches!(status, "right" | "unchecked");
        self.any_wrong |= matches!(status, "wrong" | "failed");
        for sink in &mut self.sinks {
            sink.add(row)?;
        }
        Ok(self.sinks.iter().any(Sink::wants_rows))
    }

    /// Ends all of them.
    pub(crate) fn close(&mut self) -> Result<()> {
        let complete = self.rows == self.expected_rows;
        self.sinks.iter_mut().try_for_each(|sink| sink.close(complete))
    }

    /// Ends all of them before their time.
    pub(crate) fn interrupt(&mut self, signal: &str) {
        // What cannot be written now is lost with the process.
        let _ = self.close();
        output::print_stderr(&format!(
            "interrupted by {signal} after {} of {} rows",
            self.rows, self.expected_rows
        ));
    }

    /// Whether something ran, and nothing that ran is wrong or failed.
    pub(crate) fn is_right(&self) -> bool {
        self.any_ran && !self.any_wrong
    }

    /// Whether one of them lacks rows, which was reported.
    pub(crate) fn has_failed(&self) -> bool {
        self.sinks.iter().any(Sink::has_failed)
    }
}
