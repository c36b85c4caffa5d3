//! What a report holds, byte by byte: other programs read it.

use super::Row;
use crate::report::csv;

const ROWS: &str = include_str!("../../tests/golden/rows.json");
const LINES: &str = include_str!("../../tests/golden/rows.csv");

#[test]
fn rows_are_written_as_they_were_read() {
    let rows: Vec<Row> = serde_json::from_str(ROWS).unwrap();
    assert_eq!(serde_json::to_string_pretty(&rows).unwrap() + "\n", ROWS);
    let lines: String = rows.iter().map(|row| csv::line(row).unwrap()).collect();
    assert_eq!(csv::header().unwrap() + &lines, LINES);
}
