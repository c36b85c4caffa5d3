//! The report is read back as it was written.

use runtime_harness::{Outcome, Report, Status};
use serde_json::Value;

use super::fixture::{Folder, SCALE};

#[test]
fn a_report_of_every_status_is_read_back_unchanged() {
    let folder = Folder::new();
    let edit = |name: &str, from: &str, to: &str| folder.write(name, &SCALE.replacen(from, to, 1));
    edit("wrong.toml", "entry = \"scale\"", "entry = \"forgetful\"");
    edit("failed.toml", "entry = \"scale\"", "entry = \"absent\"");
    edit("not_run.toml", "path = \"scale.c\"", "path = \"scale.c\"\nformat = \"cuda-c\"");
    folder.write("unchecked.toml", SCALE.split("[reference]").next().unwrap());
    let specs = ["scale.toml", "wrong.toml", "unchecked.toml", "not_run.toml", "failed.toml"];
    let options = ["--repeat", "7", "--number", "1", "--json", "rows.json"];
    let run = folder.runtime(&[&["eval"], &specs[..], &options[..]].concat());
    assert_eq!(run.code, 1, "{}", run.stderr);
    let report = Report::read(&folder.path().join("rows.json")).unwrap();
    let statuses: Vec<Status> = report.rows.iter().map(|row| row.status).collect();
    assert_eq!(statuses, [Status::Right, Status::Wrong, Status::Unchecked, Status::NotRun, Status::Failed]);
    assert!(matches!(report.rows[1].outcome, Outcome::WrongResult(_)), "{:?}", report.rows[1].outcome);
    assert!(matches!(report.rows[3].outcome, Outcome::Skipped { .. }), "{:?}", report.rows[3].outcome);
    assert!(report.complete && report.rows[0].measurement.as_ref().unwrap().is_complete());
    let written: Value = serde_json::from_str(&folder.read("rows.json")).unwrap();
    assert_eq!(serde_json::to_value(&report).unwrap(), written);
}
