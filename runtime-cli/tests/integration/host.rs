//! Tests that need the host device only.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fixture::{self, Finished, Folder, SCALE, command_with, runtime};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn devices_lists_the_host() {
    let run = runtime(&["devices"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(
        run.stdout.lines().any(|line| line.starts_with("host:0") && line.contains("available")),
        "{run:?}"
    );
    let document = json(&runtime(&["devices", "--json"]).stdout);
    assert_eq!((&document["schema"], &document["version"]), (&"runtime.devices".into(), &1.into()));
    let host = &document["targets"][0];
    assert_eq!((&host["target"], &host["reason"]), (&"host".into(), &Value::Null));
    assert_eq!(host["devices"][0]["id"], "host:0");
    assert!(host["devices"][0]["formats"].as_array().unwrap().contains(&"c".into()));
}

#[test]
fn devices_adds_telemetry_on_request() {
    let arguments = ["devices", "--json", "--telemetry"];
    let run: Finished = command_with(&["null", "host"], &arguments).output().unwrap().into();
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    let document = json(&run.stdout);
    let device = |id: &str| {
        let targets = document["targets"].as_array().unwrap().iter();
        let mut devices = targets.flat_map(|target| target["devices"].as_array().unwrap());
        devices.find(|device| device["id"] == id).unwrap().clone()
    };
    let values = &device("null:0")["telemetry"];
    assert_eq!(
        (&values["temperature_millicelsius"], &values["power_milliwatts"]),
        (&42_000.into(), &Value::Null)
    );
    assert_eq!(device("null:0")["telemetry_reason"], Value::Null);
    let host = device("host:0");
    assert_ne!(
        host["telemetry"].is_object(),
        host["telemetry_reason"].is_string(),
        "either, not both: {host}"
    );
    for id in ["null:2", "null:3"] {
        let device = device(id);
        assert!(device["telemetry"].is_null() && device["telemetry_reason"].is_string(), "{device}");
    }
    let without = json(&runtime(&["devices", "--json"]).stdout);
    assert!(without["targets"][0]["devices"][0].get("telemetry").is_none(), "no device is opened for a list");
    assert_eq!(runtime(&["devices", "--telemetry"]).code, 2, "the table has no column for it");
}

#[test]
fn doctor_reports_what_it_finds() {
    let run = runtime(&["doctor"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("loaded  ") && run.stdout.contains("RUNTIME_BACKENDS"), "{run:?}");
    let nothing =
        fixture::command(&["doctor"]).env("RUNTIME_BACKENDS", "/missing/libruntime_host.so").output();
    let nothing = Finished::from(nothing.unwrap());
    assert_eq!(nothing.code, 0, "{nothing:?}");
    assert!(nothing.stdout.contains("failed  /missing/libruntime_host.so"), "{nothing:?}");
    assert!(nothing.stdout.contains("backend host: build it"), "{nothing:?}");
}

/// Every backend has a report: the command knows none by name.
#[test]
fn a_backend_without_a_diagnosis_of_its_own_has_a_report() {
    let run = runtime(&["doctor", "host", "-"]);
    assert_eq!(run.code, 0, "{run:?}");
    for part in [
        "program\n  runtime ",
        "backend\n  loaded ",
        "diagnosis\n  this backend has no diagnosis",
        "end of the report",
    ] {
        assert!(run.stdout.contains(part), "{part}: {run:?}");
    }
    assert!(run.stdout.contains("\"id\": \"host:0\""), "its devices are listed: {run:?}");
    let wrong = runtime(&["doctor", "../host"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("only a-z, 0-9, _ and -"), "{wrong:?}");
}

#[test]
fn doctor_does_not_wait_for_a_compiler_that_hangs() {
    let scripts = ["exec sleep 1000", "sleep 1000 &\necho $! > $0.child\nwait", "exec >&- 2>&-\nsleep 1000"];
    std::thread::scope(|scope| {
        for script in scripts {
            scope.spawn(move || doctor_does_not_wait_for(script));
        }
    });
}

fn doctor_does_not_wait_for(script: &str) {
    let folder = Folder::new();
    folder.write("cc", &format!("#!/bin/sh\n{script}\n"));
    let compiler = folder.path().join("cc");
    std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = Finished::from(fixture::command(&["doctor"]).env("CC", &compiler).output().unwrap());
    assert_eq!(run.code, 0, "{run:?}");
    let line = run.stdout.lines().find(|line| line.contains(&format!("{}: ", compiler.display())));
    let is_reported = line.is_some_and(|line| line.contains("did not answer") && line.contains("CC"));
    assert!(is_reported, "{script}: {run:?}");
    assert!(run.stdout.contains("  cc: "), "the others are listed: {run:?}");
    if script.contains(".child") {
        wait_for_end_of(folder.read("cc.child").trim());
    }
}

/// A process that was killed is there for a moment more.
fn wait_for_end_of(process: &str) {
    let begin = Instant::now();
    let stat = || std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    while !stat().is_empty() && !stat().contains(") Z ") {
        assert!(begin.elapsed() < Duration::from_secs(60), "{process} is still running");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_right_kernel_gives_a_row_with_times() {
    let folder = Folder::new();
    let run = folder.runtime(&["eval", "scale.toml", "--repeat", "6", "--min-repeat-ms", "0.1"]);
    assert_eq!(run.code, 0, "{run:?}");
    let row = run.stdout.lines().nth(1).unwrap();
    for part in ["scale", "host:0", "right (exact)", "±", "host_wall"] {
        assert!(row.contains(part), "{part}: {run:?}");
    }
    assert_eq!(run.stderr, "", "no progress bar in a pipe");
}

#[test]
fn json_has_every_sample_and_nothing_else_is_printed() {
    let folder = Folder::new();
    let run = folder.runtime(&[
        "eval",
        "scale.toml",
        "--json",
        "-",
        "--csv",
        "rows.csv",
        "--repeat",
        "3",
        "--number",
        "7",
    ]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    let document = json(&run.stdout);
    assert_eq!((&document["schema"], &document["version"]), (&"runtime.evaluation".into(), &1.into()));
    let row = &document["rows"][0];
    assert_eq!((&row["status"], &row["kernel"]["name"]), (&"right".into(), &"scale".into()));
    assert_eq!(row["device_info"]["id"], "host:0");
    assert_eq!((&row["settings"]["repeat"], &row["settings"]["validate"]), (&3.into(), &true.into()));
    let measurement = &row["measurement"];
    assert_eq!(measurement["samples_ns"].as_array().unwrap().len(), 3);
    assert_eq!((&measurement["number"], &measurement["clock"]), (&7.into(), &"host_wall".into()));
    assert!(measurement["gflops_per_s"].as_f64().unwrap() > 0.0);
    let csv = folder.read("rows.csv");
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((lines.len(), lines[0].len()), (2, lines[1].len()));
    let status = lines[0].iter().position(|column| *column == "status").unwrap();
    assert_eq!(lines[1][status], "right");
}

#[test]
fn a_wrong_kernel_is_reported_with_its_worst_element() {
    let folder = Folder::new();
    folder.write("wrong.toml", &SCALE.replacen("entry = \"scale\"", "entry = \"forgetful\"", 1));
    let run = folder.runtime(&["eval", "wrong.toml", "scale.toml", "--repeat", "1", "--number", "1"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.contains("wrong (1 of 100)"), "{run:?}");
    assert!(run.stdout.contains("\"y\"") && run.stdout.contains("[99]"), "{run:?}");
    assert!(run.stdout.contains("right (exact)"), "the other row is unaffected: {run:?}");
    let run = folder.runtime(&["eval", "wrong.toml", "--no-validate", "--repeat", "1", "--number", "1"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("unchecked"), "{run:?}");
}

#[test]
fn a_failure_gives_a_row_with_the_whole_message() {
    let folder = Folder::new();
    folder.write("scale.c", "void scale(void) { undeclared = 1; }\n");
    let run = folder.runtime(&["eval", "scale.toml"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.contains("failed") && run.stdout.contains("undeclared"), "{run:?}");
    folder.write("scale.c", fixture::CODE);
    folder.write("missing.toml", &SCALE.replacen("entry = \"scale\"", "entry = \"scael\"", 1));
    let run = folder.runtime(&["eval", "missing.toml", "--json", "-"]);
    let row = &json(&run.stdout)["rows"][0];
    assert_eq!((run.code, &row["status"], &row["error_kind"]), (1, &"failed".into(), &"NotFound".into()));
    assert!(row["reason"].as_str().unwrap().contains("scale"), "{row}");
}

#[test]
fn unsupported_code_gives_a_row_with_the_reason() {
    let folder = Folder::new();
    folder.write("code.ptx", "");
    let ptx = SCALE.replacen("path = \"scale.c\"", "path = \"code.ptx\"", 1);
    folder.write("ptx.toml", &ptx);
    let run = folder.runtime(&["eval", "ptx.toml"]);
    assert_eq!(run.code, 1, "nothing ran: {run:?}");
    assert!(
        run.stdout.contains("not run") && run.stdout.contains("\"ptx\" is not accepted by host:0"),
        "{run:?}"
    );
    let both = folder.runtime(&["eval", "ptx.toml", "scale.toml", "--repeat", "1", "--number", "1"]);
    assert_eq!(both.code, 0, "all that ran is right: {both:?}");
}

#[test]
fn wrong_usage_is_reported_before_anything_runs() {
    let folder = Folder::new();
    folder.write("typo.toml", &SCALE.replace("shape", "shpe"));
    for (arguments, message) in [
        (
            &["eval", "typo.toml"][..],
            "typo.toml:12: unknown key \"shpe\" in [[arg]]; did you mean \"shape\"?",
        ),
        (&["eval", "scale.toml", "--device", "hsot:0"], "did you mean \"host\"?"),
        (&["eval", "scale.toml", "--device", "host:7"], "host:7"),
        (&["eval", "scale.toml", "--json", "missing/report.json"], "missing/report.json"),
        (&["eval", "scale.toml", "--json", "-", "--csv", "-"], "only one output"),
        (&["eval", "scale.toml", "--option", "plattform=hw"], "unknown option \"plattform\""),
        (&["eval", "none.toml"], "none.toml"),
        (&["eval", "scale.c"], "scale.c:2: "),
        (&["eval", "scale.c"], "expected a spec, a TOML file that names the kernel"),
        (&["eval"], "SPEC"),
        (&["evaluate"], "eval"),
        (&["run", "scale.toml", "--save", "z=z.npy"], "the kernel writes no argument of that name; "),
    ] {
        let run = folder.runtime(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(message), "{arguments:?}: {run:?}");
    }
    let backends = fixture::command(&["eval", "scale.toml"])
        .current_dir(folder.path())
        .env("RUNTIME_BACKENDS", "/none.so")
        .output();
    let run = Finished::from(backends.unwrap());
    assert!(run.code == 2 && run.stderr.contains("runtime doctor"), "{run:?}");
    assert!(run.stderr.contains("--device") && run.stderr.contains("`runtime devices`"), "{run:?}");
}

#[test]
fn run_checks_once_and_saves() {
    let folder = Folder::new();
    let run = folder.runtime(&["run", "scale.toml", "--save", "y=y.npy"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    assert!(run.stdout.starts_with("scale on host:0: right (100 elements"), "{run:?}");
    let bytes = std::fs::read(folder.path().join("y.npy")).unwrap();
    assert!(bytes.starts_with(b"\x93NUMPY"));
    let last = f32::from_le_bytes(bytes[bytes.len() - 4..].try_into().unwrap());
    assert!((last - 247.5).abs() < 1e-6, "99 × 2.5 is {last}");
    // The saved output serves as a reference.
    let saved =
        SCALE.split("[reference]").next().unwrap().to_owned() + "[reference]\noutputs = [\"file:y.npy\"]\n";
    folder.write("saved.toml", &saved);
    assert_eq!(folder.runtime(&["run", "saved.toml"]).code, 0);
    folder.write("wrong.toml", &saved.replace("value = 2.5", "value = 2.0"));
    let wrong = folder.runtime(&["run", "wrong.toml"]);
    assert!(wrong.code == 1 && wrong.stdout.contains("wrong, \"y\""), "{wrong:?}");
}

#[test]
fn updates_in_place_are_checked_from_their_initial_data() {
    let folder = Folder::new();
    folder.write("bump.toml", fixture::BUMP);
    let run = folder.runtime(&["eval", "bump.toml", "--repeat", "3", "--number", "5"]);
    assert_eq!(run.code, 0, "{run:?}");
    let run = folder.runtime(&["run", "bump.toml", "--save", "arg0=once.npy"]);
    assert_eq!(run.code, 0, "{run:?}");
    let bytes = std::fs::read(folder.path().join("once.npy")).unwrap();
    assert_eq!(bytes[bytes.len() - 4..], 10_i32.to_le_bytes(), "9 + 1: called once");
}

#[test]
fn every_kind_of_argument_reaches_the_kernel() {
    let folder = Folder::new();
    folder.write("kinds.toml", fixture::KINDS);
    let run = folder.runtime(&["run", "kinds.toml", "--save", "out=out.npy"]);
    assert_eq!(run.code, 0, "{run:?}");
    let bytes = std::fs::read(folder.path().join("out.npy")).unwrap();
    let out: Vec<f64> =
        bytes[bytes.len() - 40..].as_chunks().0.iter().map(|&chunk| f64::from_le_bytes(chunk)).collect();
    // Element [1][2] of the strided view, the two bytes, the scalar, the constant.
    assert_eq!(out, [5.0, 7.0, 255.0, -3.0, 4.0]);
}

#[test]
fn specialisation_of_other_formats_gives_a_row_with_the_reason() {
    let folder = Folder::new();
    folder.write("code.so", "");
    let spec =
        SCALE.replacen("path = \"scale.c\"", "path = \"code.so\"", 1) + "[specialise]\nelement = \"f32\"\n";
    folder.write("so.toml", &spec);
    let run = folder.runtime(&["eval", "so.toml", "--no-validate"]);
    assert!(
        run.code == 1
            && run.stdout.contains("[specialise] is not supported for code of format shared-object"),
        "{run:?}"
    );
}

#[test]
fn naming_a_device_starts_no_other_driver() {
    let folder = Folder::new();
    let starts_vulkan = |device: &[&str]| {
        let arguments = [&["eval", "scale.toml", "--repeat", "2"], device].concat();
        let mut command = command_with(&["host", "vulkan"], &arguments);
        let run: Finished =
            command.current_dir(folder.path()).env("LD_DEBUG", "files").output().unwrap().into();
        assert_eq!(run.code, 0, "{}", run.stdout);
        run.stderr.contains("file=libvulkan.so")
    };
    assert!(starts_vulkan(&[]), "all devices are listed");
    assert!(!starts_vulkan(&["--device", "host:0"]));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = fixture::command(&["devices", "--json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let run = Finished::from(child.wait_with_output().unwrap());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
}

#[test]
fn conformance_runs_the_suite_against_the_named_backends() {
    let run = runtime(&["conformance", "host", "--", "the_device_string_names_the_device"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("host:0") && run.stdout.contains("1 passed"), "{run:?}");
    let none = runtime(&["conformance", "/missing/libruntime_none.so"]);
    assert_ne!(none.code, 0, "{none:?}");
    assert!(format!("{}{}", none.stdout, none.stderr).contains("libruntime_none.so"), "{none:?}");
    let wrong = runtime(&["conformance", "host", "--", "--colour"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
}

#[test]
fn a_range_is_spread_over_the_cores() {
    let folder = Folder::new();
    let part = SCALE.replacen("entry = \"scale\"", "entry = \"part\"", 1);
    folder.write("part.toml", &(part.clone() + "[launch]\nrange = [0, 100]\ngrain = 7\n"));
    let run = folder.runtime(&["eval", "part.toml", "--repeat", "2", "--number", "3"]);
    assert!(run.code == 0 && run.stdout.contains("right (exact)"), "{run:?}");
    folder.write("short.toml", &(part + "[launch]\nrange = [0, 99]\n"));
    let run = folder.runtime(&["run", "short.toml"]);
    assert!(run.code == 1 && run.stdout.contains("1 of 100 elements"), "{run:?}");
}
