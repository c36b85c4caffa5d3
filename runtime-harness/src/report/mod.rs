//! Reports: all rows of a run, as JSON or CSV. `docs/output.md` documents both.
//!
//! A report is written row by row ([`mod@json`], [`csv`]), so that no measured row is lost when the program is ended, and read
//! as a whole.

pub mod csv;
pub mod json;

use std::io;
use std::path::Path;

use runtime_core::backend::open_regular_file;
use runtime_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::commit::Commit;
use crate::describe::Program;
use crate::origin::{Origin, SandboxState};
use crate::row::Row;

/// The schema of JSON reports.
pub const SCHEMA: &str = "runtime.evaluation";
/// The version of the schema that this program writes, and the newest one that it reads.
pub const VERSION: u64 = 1;

/// All rows of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`VERSION`].
    pub version: u64,
    /// The program that wrote it.
    pub runtime: Program,
    /// When, where and how it was made; `None` in older reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The options that devices were opened with.
    pub device_options: Map<String, Value>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Whether no row is missing.
    pub complete: bool,
}

impl Report {
    /// A report of what this process does from now on, without rows.
    #[must_use]
    pub fn begin(device_options: Map<String, Value>, sandbox: Option<SandboxState>) -> Self {
        Self { origin: Some(Origin::of_process(sandbox)), device_options, ..Self::new() }
    }

    /// The commits of its rows, each once.
    #[must_use]
    pub fn commits(&self) -> Vec<String> {
        let mut commits: Vec<String> =
            self.rows.iter().flat_map(|row| &row.commit).map(Commit::to_string).collect();
        commits.sort_unstable();
        commits.dedup();
        commits
    }

    /// A report of this program, without rows.
    #[must_use]
    pub fn new() -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            version: VERSION,
            runtime: Program::current(),
            origin: None,
            device_options: Map::new(),
            rows: Vec::new(),
            complete: true,
        }
    }

    /// Reads a JSON report.
    ///
    /// # Errors
    /// `Io` if the file cannot be read. `InvalidArgument` if it is not JSON, has another schema or a newer version, or a
    /// field is wrong.
    pub fn read(path: &Path) -> Result<Self> {
        let text = open_regular_file(path).and_then(io::read_to_string).map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot read {}: {error}", path.display())).with_source(error)
        })?;
        Self::parse(&text).map_err(|message| Error::invalid(format!("{}: {message}", path.display())))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut document: Value =
            serde_json::from_str(text).map_err(|error| format!("not a JSON document: {error}"))?;
        match (document["schema"].as_str(), document["version"].as_u64()) {
            (Some(SCHEMA), Some(VERSION)) => {}
            (Some(SCHEMA), Some(version)) => {
                return Err(format!("version {version} of the schema; this program reads version {VERSION}"));
            }
            (Some(SCHEMA), None) => return Err("the version is missing".to_owned()),
            (Some(other), _) => return Err(format!("the schema is \"{other}\", expected \"{SCHEMA}\"")),
            (None, _) => return Err(format!("not a report: the schema \"{SCHEMA}\" is missing")),
        }
        add_outcomes(&mut document);
        serde_json::from_value(document).map_err(|error| format!("not a valid report: {error}"))
    }
}

/// Adds outcomes to the rows of a report that is older than this field.
fn add_outcomes(document: &mut Value) {
    let rows = document.get_mut("rows").and_then(Value::as_array_mut);
    for row in rows.into_iter().flatten() {
        if row.get("outcome").is_none() && row.is_object() {
            row["outcome"] = match row["status"].as_str() {
                Some("not_run") => json!({ "kind": "skipped", "reason": row["reason"] }),
                Some("failed") => json!({ "kind": "launch_failed", "message": row["reason"] }),
                _ => json!({ "kind": "ok" }),
            };
        }
    }
}

impl Default for Report {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_report_is_rejected_with_the_reason() {
        for (text, word) in [
            ("{", "not a JSON document"),
            ("{}", "the schema \"runtime.evaluation\" is missing"),
            (r#"{"schema": "runtime.devices", "version": 1}"#, "the schema is \"runtime.devices\""),
            (r#"{"schema": "runtime.evaluation"}"#, "the version is missing"),
            (r#"{"schema": "runtime.evaluation", "version": 2}"#, "this program reads version 1"),
            (r#"{"schema": "runtime.evaluation", "version": 1}"#, "missing field `runtime`"),
        ] {
            let message = Report::parse(text).unwrap_err();
            assert!(message.contains(word), "{text}: {message}");
        }
        assert!(Report::read("/missing/report.json".as_ref()).unwrap_err().message().contains("cannot read"));
    }

    #[test]
    fn reports_from_before_outcomes_are_read() {
        let outcome = |status: &str| {
            let mut document = json!({ "rows": [{ "status": status, "reason": "why" }] });
            add_outcomes(&mut document);
            document["rows"][0]["outcome"].clone()
        };
        assert_eq!(outcome("right"), json!({ "kind": "ok" }));
        assert_eq!(outcome("not_run"), json!({ "kind": "skipped", "reason": "why" }));
        assert_eq!(outcome("failed"), json!({ "kind": "launch_failed", "message": "why" }));
        let mut document =
            json!({ "rows": [{ "status": "failed", "outcome": { "kind": "device_lost" } }, 7] });
        let before = document.clone();
        add_outcomes(&mut document);
        assert_eq!(document, before);
    }

    #[test]
    fn a_report_of_an_older_version_is_read() {
        let report = Report::parse(include_str!("../../tests/golden/older_report.json")).unwrap();
        let [row] = &report.rows[..] else { panic!("{report:?}") };
        assert_eq!((&report.origin, &row.time, &row.commit, &row.code_sha256), (&None, &None, &None, &None));
        assert_eq!(report.runtime.text(), "0.1.0");
    }

    #[test]
    fn a_report_written_row_by_row_is_read_as_a_whole() {
        let report = Report::begin(Map::new(), Some(SandboxState::Off));
        for report in [Report::new(), report] {
            let text = json::head(&report).unwrap() + &json::tail(true);
            assert_eq!(Report::parse(&text).unwrap(), report);
        }
    }
}
