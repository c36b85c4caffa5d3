//! `eval --interleave`: kernels take turns.

use serde_json::Value;

use super::fixture::{Folder, SCALE};

/// Kernels that note each of their calls in a file.
const NOTING: &str = r#"
#include <stdio.h>
static void note(char name) {
    FILE *log = fopen("calls", "a");
    fputc(name, log);
    fclose(log);
}
void a(const float *x, float *y, float factor, long n) { note('a'); }
void b(const float *x, float *y, float factor, long n) { note('b'); }
"#;

/// A folder with the specs `a.toml`, `b.toml` and `broken.toml`, which have no reference.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("noting.c", NOTING);
    let spec = SCALE.split("[reference]").next().unwrap().replacen("scale.c", "noting.c", 1);
    for (name, entry) in [("a", "a"), ("b", "b"), ("broken", "absent")] {
        let spec = spec.replacen("name = \"scale\"", &format!("name = \"{name}\""), 1);
        folder.write(
            &format!("{name}.toml"),
            &spec.replacen("entry = \"scale\"", &format!("entry = \"{entry}\""), 1),
        );
    }
    folder
}

const SAMPLES: [&str; 4] = ["--repeat", "3", "--number", "1"];

#[test]
fn kernels_take_one_sample_each_in_turn() {
    let folder = folder();
    for (options, calls) in [(&["--interleave"][..], "ababab"), (&[], "aaabbb")] {
        let cold = [&["eval", "a.toml", "b.toml", "--warmup", "0"], &SAMPLES[..], options].concat();
        let run = folder.runtime(&cold);
        assert_eq!(run.code, 0, "{run:?}");
        assert_eq!(folder.read("calls"), calls, "{options:?}");
        std::fs::remove_file(folder.path().join("calls")).unwrap();
    }
}

#[test]
fn a_warm_kernel_is_called_once_before_each_sample() {
    let folder = folder();
    let warm = [&["eval", "a.toml", "b.toml", "--warmup", "2", "--interleave"], &SAMPLES[..]].concat();
    let run = folder.runtime(&warm);
    assert_eq!(run.code, 0, "{run:?}");
    // Two calls to warm up, then an untimed one and a sample in each turn.
    assert_eq!(folder.read("calls"), "aabb".to_owned() + &"aabb".repeat(3));
}

#[test]
fn readings_of_a_group_say_that_they_are() {
    let folder = folder();
    for (options, of_group) in [(&["--interleave"][..], true), (&[], false)] {
        let line = [&["eval", "a.toml", "b.toml", "--json", "report.json"], &SAMPLES[..], options].concat();
        assert_eq!(folder.runtime(&line).code, 0);
        let report: Value = serde_json::from_str(&folder.read("report.json")).unwrap();
        let rows = report["rows"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["noise"]["of_group"] == of_group), "{rows:?}");
    }
}

#[test]
fn a_kernel_that_fails_leaves_the_others_their_turns() {
    let folder = folder();
    let options = ["--device", "host:0", "--device", "null:0", "--interleave", "--json", "rows.json"];
    let specs = ["eval", "broken.toml", "a.toml", "scale.toml"];
    let run = folder.runtime_with_null(&[&specs[..], &options, &SAMPLES].concat());
    assert_eq!(run.code, 1, "{run:?}");
    let report: Value = serde_json::from_str(&folder.read("rows.json")).unwrap();
    let rows = report["rows"].as_array().unwrap().iter();
    let rows: Vec<(&str, &str, &str)> = rows
        .map(|row| (&row["kernel"]["name"], &row["device"], &row["status"]))
        .map(|(name, device, status)| {
            (name.as_str().unwrap(), device.as_str().unwrap(), status.as_str().unwrap())
        })
        .collect();
    let expected = [
        ("broken", "host:0", "failed"),
        ("broken", "null:0", "not_run"),
        ("a", "host:0", "unchecked"),
        ("a", "null:0", "not_run"),
        ("scale", "host:0", "right"),
        ("scale", "null:0", "not_run"),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn workers_cannot_take_turns() {
    let run = folder().runtime(&["eval", "a.toml", "--interleave", "--isolate"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("--interleave") && run.stderr.contains("--isolate"), "{run:?}");
}
