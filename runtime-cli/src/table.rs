//! Plain-text tables.

use std::fmt;

use comfy_table::{ColumnConstraint, ContentArrangement, Row, presets};

/// A table that fits the terminal; in a pipe its columns are not wrapped.
#[derive(Debug)]
pub(crate) struct Table {
    table: comfy_table::Table,
    /// Rows have one line each.
    is_cut: bool,
}

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        Self::within(terminal_width(), header)
    }

    /// A table of this width; `None` does not wrap.
    pub(crate) fn within(width: Option<u16>, header: &[&str]) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_header(header);
        if let Some(width) = width {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        Self { table, is_cut: false }
    }

    /// As [`Table::within`], with every row on one line: only the columns `shrinkable` are cut to fit.
    pub(crate) fn one_line_rows(width: Option<u16>, header: &[&str], shrinkable: &[usize]) -> Self {
        let mut table = Self { is_cut: true, ..Self::within(width, header) };
        let mut header = Row::from(header);
        header.max_height(1);
        table.table.set_header(header).set_truncation_indicator("…");
        for (at, column) in table.table.column_iter_mut().enumerate() {
            if !shrinkable.contains(&at) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        table
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        let mut row = Row::from(cells);
        if self.is_cut {
            row.max_height(1);
        }
        self.table.add_row(row);
    }
}

/// Width of the terminal; `None` for a pipe.
pub(crate) fn terminal_width() -> Option<u16> {
    console::Term::stdout().size_checked().map(|(_, columns)| columns)
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.table.lines() {
            writeln!(f, "{}", line.strip_prefix(' ').unwrap_or(&line).trim_end())?;
        }
        Ok(())
    }
}
