//! Accelerators, simulated by the null backend and checked against the host.

use serde_json::Value;

use crate::fixture::{Finished, Folder};

/// `out = a + b` on a null device; the reference runs on the host.
const ADD: &str = r#"version = 1
name = "add"
[kernel]
path = "add.null"
entry = "add"
[[arg]]
name = "a"
dtype = "f32"
shape = [64]
init = "random"
on = "host"
[[arg]]
name = "b"
dtype = "f32"
shape = [64]
init = "arange"
on = "pinned"
[[arg]]
name = "out"
dtype = "f32"
shape = [64]
use = "write"
on = "host"
[reference]
path = "add.c"
entry = "add"
"#;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("add.null", "add = add_f32\n");
    folder.write(
        "add.c",
        "void add(float *a, float *b, float *out) { for (int i = 0; i < 64; i++) out[i] = a[i] + b[i]; }\n",
    );
    folder.write("add.toml", ADD);
    folder
}

const QUICK: [&str; 4] = ["--repeat", "3", "--number", "2"];

/// The rows of an evaluation as JSON.
fn rows(folder: &Folder, arguments: &[&str]) -> (Finished, Vec<Value>) {
    let arguments = [&["eval", "--json", "-"], &QUICK[..], arguments].concat();
    let run = folder.runtime_with_null(&arguments);
    let document: Value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"));
    let rows = document["rows"].as_array().unwrap().clone();
    (run, rows)
}

#[test]
fn every_available_device_but_embedded_ones_has_a_row() {
    let folder = folder();
    let (run, rows) = rows(&folder, &["add.toml", "scale.toml"]);
    assert_eq!(run.code, 0, "{run:?}");
    let seen: Vec<_> = rows
        .iter()
        .map(|row| {
            [&row["kernel"]["name"], &row["device"], &row["status"]].map(|text| text.as_str().unwrap())
        })
        .collect();
    let expected = [
        ["add", "host:0", "not_run"],
        ["add", "null:0", "right"],
        ["add", "null:1", "right"],
        ["scale", "host:0", "right"],
        ["scale", "null:0", "not_run"],
        ["scale", "null:1", "not_run"],
    ];
    assert_eq!(seen, expected, "{run:?}");
}

#[test]
fn transfers_are_part_of_the_time_and_reported() {
    let (_, rows) = rows(&folder(), &["add.toml", "--device", "null"]);
    let measurement = &rows[0]["measurement"];
    assert_eq!(measurement["clock"], "device_batch");
    assert_eq!(
        (&measurement["transfer"]["bytes_in"], &measurement["transfer"]["bytes_out"]),
        (&256.into(), &256.into())
    );
    assert_eq!(measurement["transfer"]["samples_ns"].as_array().unwrap().len(), 3);
}

#[test]
fn an_unusable_device_gives_a_row_with_the_reason() {
    let (run, rows) = rows(&folder(), &["add.toml", "--device", "null:3", "--device", "null:0.1"]);
    assert_eq!(run.code, 0, "the other device ran: {run:?}");
    assert_eq!((&rows[0]["status"], &rows[0]["error_kind"]), (&"not_run".into(), &"Unavailable".into()));
    assert!(rows[0]["reason"].as_str().unwrap().contains("only listed"), "{run:?}");
    assert_eq!(rows[1]["status"], "right");
}

#[test]
fn a_device_failure_gives_a_failed_row() {
    let folder = folder();
    for (option, message) in [("fail_ticket=3", "3"), ("lose_after=4", "lost"), ("open_fails=true", "open")] {
        let (run, rows) = rows(&folder, &["add.toml", "--device", "null:0", "--option", option]);
        assert_eq!((run.code, &rows[0]["status"]), (1, &"failed".into()), "{option}: {run:?}");
        assert!(rows[0]["reason"].as_str().unwrap().contains(message), "{option}: {run:?}");
    }
}

#[test]
fn run_takes_the_first_device_that_accepts_the_code() {
    let folder = folder();
    let run = folder.runtime_with_null(&["run", "add.toml"]);
    assert!(run.code == 0 && run.stdout.starts_with("add on null:0: right"), "{run:?}");
    let lost = folder.runtime_with_null(&["run", "add.toml", "--option", "fail_ticket=1"]);
    assert!(lost.code == 1 && lost.stderr.contains("failed"), "{lost:?}");
}

#[test]
fn a_driver_that_hangs_in_a_release_is_named() {
    let folder = folder();
    let hangs = |arguments: &[&str]| {
        let arguments =
            [arguments, &["add.toml", "--device", "null:0", "--option", "hang_in=release_kernel"]];
        let run = folder.runtime_with_null(&arguments.concat());
        // An object that is dropped while in use is released with the device.
        let said = ["\"add\"", "the device"].map(|what| {
            let words = format!("the driver of null:0 did not release {what} within 20 s, which is a defect");
            format!("{run:?}").contains(&words.escape_debug().to_string())
        });
        assert!(run.stdout.contains("right") && said != [false; 2], "{run:?}");
        run.code
    };
    std::thread::scope(|scope| {
        let eval = scope.spawn(|| hangs(&["eval"]));
        assert_eq!(hangs(&["run"]), 0);
        eval.join().unwrap();
    });
}
