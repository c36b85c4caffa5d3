//! Plain-text tables.

use std::fmt;

use comfy_table::{ContentArrangement, presets};

/// A table that fits the terminal; in a pipe its columns are not wrapped.
#[derive(Debug)]
pub(crate) struct Table(comfy_table::Table);

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_header(header);
        if let Some((_, columns)) = console::Term::stdout().size_checked() {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
        }
        Self(table)
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.0.add_row(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.0.lines() {
            writeln!(f, "{}", line.strip_prefix(' ').unwrap_or(&line).trim_end())?;
        }
        Ok(())
    }
}
