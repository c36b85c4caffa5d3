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

#[test]
fn the_table_is_also_written_as_markdown() {
    let folder = Folder::new();
    folder.write("wrong.toml", &SCALE.replacen("entry = \"scale\"", "entry = \"forgetful\"", 1));
    folder.write("failed.toml", &SCALE.replacen("entry = \"scale\"", "entry = \"absent_entry\"", 1));
    folder.write("broken.c", "void scale(void) {\n  undeclared = 1;\n}\n");
    folder.write("broken.toml", &SCALE.replacen("scale.c", "broken.c", 1));
    let specs = ["scale.toml", "wrong.toml", "failed.toml", "broken.toml"];
    let run = folder.runtime(&[&["eval"], &specs[..], &["--repeat", "7", "--markdown", "-"]].concat());
    assert_eq!((run.code, run.stderr.as_str()), (1, ""), "{run:?}");
    let (made, table) = run.stdout.split_once("\n\n").unwrap();
    assert!(made.starts_with("Made at 2") && made.contains("by: runtime eval scale.toml"), "{run:?}");
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("| kernel | device | status | median |"), "{run:?}");
    assert_eq!(lines[1], "| --- | --- | --- | ---: | ---: | ---: | ---: | --- | ---: |");
    let cells: Vec<usize> = lines[..6].iter().map(|line| line.split(" | ").count()).collect();
    assert_eq!(cells, [9; 6], "{run:?}");
    assert!(lines[2].starts_with("| scale | host:0 | right (exact) |"), "{run:?}");
    assert!(lines[2].contains("host\\_wall") && lines[4].contains("absent\\_entry"), "{run:?}");
    assert!(lines[5].contains("error: 'undeclared'"), "{run:?}");
    // Noise may add advice.
    let wrong = lines[7..].iter().filter(|line| line.starts_with("- scale on host:0: wrong, ")).count();
    assert!(lines[6].is_empty() && wrong == 1, "one note: {run:?}");
    let both = folder.runtime(&["eval", "scale.toml", "--repeat", "7", "--markdown", "t.md"]);
    assert!(both.code == 0 && both.stdout.starts_with("kernel"), "{both:?}");
    assert_eq!(folder.read("t.md").lines().filter(|line| line.starts_with('|')).count(), 3);
}
