//! Several reports, each compared with the first: a column per report.

use std::fmt::Write;

use runtime_harness::compare::{Comparison, RowKey};

use super::Compared;
use super::text::{differences, median, notes, paragraphs, unmatched, verdict};
use crate::report::significant;
use crate::table::Table;

/// The numbered files, what differs, the table and notes.
pub(super) fn text(old: &str, all: &[Compared]) -> String {
    let (mut files, mut different, mut details) = (format!("#1 {old}\n"), String::new(), String::new());
    for (number, one) in (2..).zip(all) {
        let _ = writeln!(files, "#{number} {}", one.file);
        let prefix = format!("#{number} ");
        different.push_str(&differences(&one.comparison, &prefix));
        details.push_str(&notes(&one.comparison, &prefix));
        details.push_str(&unmatched("#1", &format!("#{number}"), &one.comparison));
    }
    paragraphs(&[files, different, table(all).to_string(), details])
}

fn table(all: &[Compared]) -> Table {
    let mut header = vec!["kernel".to_owned(), "device".to_owned(), "#1".to_owned()];
    header.extend((2..).zip(all).map(|(number, _)| format!("#{number}")));
    let mut table = Table::new(&header.iter().map(String::as_str).collect::<Vec<_>>());
    for line in lines(all) {
        let Some(first) = line.iter().flatten().next() else { continue };
        let before = median(&first.old);
        let mut cells = vec![first.key.kernel.clone(), first.key.device.clone(), before];
        cells.extend(line.iter().map(|row| row.map_or_else(|| "—".to_owned(), cell)));
        table.row(cells);
    }
    table
}

/// The rows of the table: the comparisons of one row of the first report with every other report.
fn lines(all: &[Compared]) -> Vec<Vec<Option<&Comparison>>> {
    let mut keys: Vec<(&RowKey, usize)> = Vec::new();
    for one in all {
        for entry in numbered(one) {
            if !keys.contains(&(entry.0, entry.1)) {
                keys.push((entry.0, entry.1));
            }
        }
    }
    let find =
        |one, key| numbered(one).into_iter().find(|entry| (entry.0, entry.1) == key).map(|entry| entry.2);
    keys.into_iter().map(|key| all.iter().map(|one| find(one, key)).collect()).collect()
}

/// The rows of a comparison, each with its key and its number among the rows with that key.
fn numbered(one: &Compared) -> Vec<(&RowKey, usize, &Comparison)> {
    let rows = &one.comparison.rows;
    let number = |at: usize| rows[..at].iter().filter(|row| row.key == rows[at].key).count();
    rows.iter().enumerate().map(|(at, row)| (&row.key, number(at), row)).collect()
}

fn cell(row: &Comparison) -> String {
    let ratio = row.ratio.map(|ratio| format!("{} ", significant(ratio))).unwrap_or_default();
    match verdict(row) {
        "cannot tell" => format!("{ratio}?"),
        verdict => ratio + verdict,
    }
}
