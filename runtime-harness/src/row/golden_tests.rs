//! What a report holds, byte by byte: other programs read it.

use serde_json::json;

use super::Row;
use crate::report::{Report, csv};

const ROWS: &str = include_str!("../../tests/golden/rows.json");
const LINES: &str = include_str!("../../tests/golden/rows.csv");

#[test]
fn rows_are_written_as_they_were_read() {
    let rows: Vec<Row> = serde_json::from_str(ROWS).unwrap();
    assert_eq!(serde_json::to_string_pretty(&rows).unwrap() + "\n", ROWS);
    let report: Report = serde_json::from_value(json!({
        "schema": "runtime.evaluation", "version": 1, "device_options": {}, "rows": [], "complete": true,
        "runtime": {
            "version": "0.1.0", "abi": "1.4", "os": "linux", "architecture": "x86_64", "profile": "release", "commit": "a1b2c3",
        },
        "origin": { "time": "2026-11-29T10:53:05Z", "host": "lab", "command": "runtime eval k.toml", "sandbox": "partly_missing" },
    }))
    .unwrap();
    let lines: String = rows.iter().map(|row| csv::line(row, &report).unwrap()).collect();
    assert_eq!(csv::header().unwrap() + &lines, LINES);
}
