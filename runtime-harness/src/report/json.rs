//! The text of a JSON report, piece by piece.

use runtime_core::{Error, ErrorKind, Result};

use super::Report;
use crate::row::Row;

/// The document up to its first row.
///
/// # Errors
/// `Internal` if it cannot be written as JSON.
pub fn head(report: &Report) -> Result<String> {
    let empty = Report { rows: Vec::new(), ..report.clone() };
    let mut document = serde_json::to_value(&empty).map_err(|error| failed(&error))?;
    for key in ["rows", "complete"] {
        document.as_object_mut().and_then(|fields| fields.remove(key));
    }
    let text = format!("{document:#}");
    let open = text.strip_suffix("\n}").unwrap_or(&text);
    Ok(format!("{open},\n  \"rows\": ["))
}

/// A row with its separator from the row before.
///
/// # Errors
/// `Internal` if the row cannot be written as JSON.
pub fn row(row: &Row, is_first: bool) -> Result<String> {
    let text = serde_json::to_string_pretty(row).map_err(|error| failed(&error))?;
    // Strings in JSON contain no raw line breaks, so this changes the indentation only.
    let text = text.replace('\n', "\n    ");
    Ok(format!("{}\n    {text}", if is_first { "" } else { "," }))
}

fn failed(error: &serde_json::Error) -> Error {
    Error::new(ErrorKind::Internal, format!("JSON: {error}"))
}

/// The document after its last row; `complete` is false if rows are missing.
#[must_use]
pub fn tail(complete: bool) -> String {
    format!("\n  ],\n  \"complete\": {complete}\n}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe;
    use runtime_core::Options;
    use serde_json::{Value, json};

    #[test]
    fn a_report_of_any_length_is_a_valid_document() {
        let device_options = describe::options(&Options::new().with("a", "}"));
        let head = head(&Report { device_options, ..Report::new() }).unwrap();
        let row = |index: usize| format!("{}\n    {{}}", if index == 0 { "" } else { "," });
        for rows in 0..3 {
            let text = format!("{head}{}{}", (0..rows).map(row).collect::<String>(), tail(rows == 2));
            let document: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(document["rows"].as_array().unwrap().len(), rows);
            assert_eq!(document["complete"], json!(rows == 2));
            assert_eq!(document["device_options"]["a"], json!("}"));
        }
    }
}
