//! `eval --resume`: what an interrupted run has measured is kept, and nothing is measured twice.

use serde_json::{Value, json};

use super::fixture::{Folder, SCALE};

/// A median that no kernel has.
const MARK_NS: f64 = 123_456_789.0;

/// A folder with two specs, and the report of a run that was interrupted after the first one.
fn interrupted() -> Folder {
    let folder = Folder::new();
    folder.write("other.toml", &SCALE.replacen("name = \"scale\"", "name = \"other\"", 1));
    let run = folder.runtime(&["eval", "scale.toml", "other.toml", "--repeat", "7", "--json", "rows.json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let mut report = rows(&folder);
    report["rows"].as_array_mut().unwrap().pop();
    report["rows"][0]["measurement"]["statistics"]["median_ns"] = json!(MARK_NS);
    report["complete"] = json!(false);
    folder.write("rows.json", &report.to_string());
    folder
}

fn rows(folder: &Folder) -> Value {
    serde_json::from_str(&folder.read("rows.json")).unwrap()
}

/// Which rows were kept, by kernel.
fn kept(folder: &Folder) -> Vec<(String, bool)> {
    let report = rows(folder);
    assert_eq!(report["complete"], true);
    let row = |row: &Value| {
        let median = row["measurement"]["statistics"]["median_ns"].as_f64().unwrap();
        (row["kernel"]["name"].as_str().unwrap().to_owned(), (median - MARK_NS).abs() < 1.0)
    };
    report["rows"].as_array().unwrap().iter().map(row).collect()
}

fn expected(rows: &[(&str, bool)]) -> Vec<(String, bool)> {
    rows.iter().map(|(kernel, kept)| ((*kernel).to_owned(), *kept)).collect()
}

#[test]
fn rows_of_an_interrupted_run_are_not_measured_again() {
    for isolation in [&[][..], &["--isolate", "--device", "host"]] {
        let folder = interrupted();
        let line = ["eval", "scale.toml", "other.toml", "--repeat", "7", "--resume", "rows.json"];
        let run = folder.runtime(&[&line[..], isolation].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(kept(&folder), expected(&[("scale", true), ("other", false)]), "{isolation:?}");
        assert!(run.stdout.contains("123.5 ms"), "the table has all rows: {}", run.stdout);
        let again = folder.runtime(&[&line[..], isolation].concat());
        assert_eq!(again.code, 0, "{}", again.stderr);
        assert_eq!(kept(&folder), expected(&[("scale", true), ("other", false)]));
    }
}

#[test]
fn rows_with_other_settings_or_of_another_kernel_are_measured() {
    let folder = interrupted();
    let run = folder.runtime(&["eval", "scale.toml", "--repeat", "8", "--resume", "rows.json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(kept(&folder), expected(&[("scale", false)]));
    let folder = interrupted();
    folder.write(
        "scale.toml",
        &SCALE.replacen("entry = \"scale\"", "entry = \"scale\"\noptions = { flags = \"-O1\" }", 1),
    );
    let run = folder.runtime(&["eval", "scale.toml", "--repeat", "7", "--resume", "rows.json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(kept(&folder), expected(&[("scale", false)]));
}

#[test]
fn a_first_run_begins_the_file_and_a_foreign_file_is_left_alone() {
    let folder = Folder::new();
    let run = folder.runtime(&["eval", "scale.toml", "--repeat", "7", "--resume", "rows.json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(kept(&folder), expected(&[("scale", false)]));
    folder.write("rows.json", "{\"schema\": \"x\"}");
    let run = folder.runtime(&["eval", "scale.toml", "--resume", "rows.json"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("the schema is \"x\""), "{run:?}");
    assert_eq!(folder.read("rows.json"), "{\"schema\": \"x\"}");
    let run = folder.runtime(&["eval", "scale.toml", "--resume", "scale.toml"]);
    assert!(run.code == 2 && run.stderr.contains("would overwrite"), "{run:?}");
}

#[test]
fn devices_opened_with_other_options_are_not_mixed() {
    let folder = interrupted();
    let mut report = rows(&folder);
    report["device_options"] = json!({ "threads": 1 });
    folder.write("rows.json", &report.to_string());
    let run = folder.runtime(&["eval", "scale.toml", "--resume", "rows.json"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("opened with other options"), "{run:?}");
}
