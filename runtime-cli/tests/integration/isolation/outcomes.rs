//! The outcome of each misbehaviour, in `runtime eval --isolate`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::sandbox::{Sandbox, spec};

#[test]
fn every_misbehaviour_has_its_own_outcome_and_the_next_kernel_is_right() {
    let sandbox = Sandbox::new();
    let crashed = |signal: i32| json!({"kind": "crashed", "signal": signal});
    let cases = [
        ("null_dereference", "failed", crashed(libc::SIGSEGV)),
        ("stack_overflow", "failed", json!({"kind": "crashed"})),
        (
            "aborts",
            "failed",
            json!({"kind": "crashed", "signal": libc::SIGABRT, "output": "to standard output\nlast words"}),
        ),
        ("frees_twice", "failed", crashed(libc::SIGABRT)),
        ("corrupts_the_heap", "failed", json!({"kind": "crashed"})),
        ("exits", "failed", json!({"kind": "exited", "code": 0})),
        ("exits_with_a_code", "failed", json!({"kind": "exited", "code": 42})),
        ("forks", "right", json!({"kind": "ok"})),
        ("forks_and_returns", "right", json!({"kind": "ok"})),
        ("forks_a_daemon", "right", json!({"kind": "ok"})),
        ("crashes_with_children", "failed", crashed(libc::SIGSEGV)),
        ("floods", "right", json!({"kind": "ok"})),
        ("floods_and_aborts", "failed", crashed(libc::SIGABRT)),
        (
            "wrong_element",
            "wrong",
            json!({"kind": "wrong_result", "wrong": 1, "worst_index": [2], "actual": "7.0"}),
        ),
        (
            "wrong_nan",
            "wrong",
            json!({"kind": "wrong_result", "wrong": 1, "worst_index": [1], "actual": "NaN"}),
        ),
        ("unwritten", "wrong", json!({"kind": "wrong_result", "unwritten": 1, "worst_index": [3]})),
        ("nothing", "wrong", json!({"kind": "wrong_result", "unwritten": 4})),
        ("reads_standard_input", "right", json!({"kind": "ok"})),
        ("prints_a_protocol_line", "right", json!({"kind": "ok"})),
        ("leaves_a_file", "failed", crashed(libc::SIGABRT)),
        ("missing", "failed", json!({"kind": "launch_failed"})),
    ];
    let entries: Vec<&str> = cases.iter().flat_map(|(entry, ..)| [*entry, "right"]).collect();
    let rows = sandbox.evaluate(&entries, &[]);
    for ((entry, status, outcome), rows) in cases.iter().zip(rows.chunks(2)) {
        assert_eq!(rows[0]["kernel"]["name"], *entry);
        assert_eq!(rows[0]["status"], *status, "{entry}: {:#}", rows[0]);
        for (key, value) in outcome.as_object().unwrap() {
            assert_eq!(rows[0]["outcome"][key], *value, "{entry}: {:#}", rows[0]["outcome"]);
        }
        assert_eq!(rows[0]["device_info"]["id"], "host:0", "{entry}");
        assert_eq!(
            (&rows[1]["status"], &rows[1]["outcome"]["kind"]),
            (&json!("right"), &json!("ok")),
            "after {entry}"
        );
        if outcome["kind"] == "crashed" {
            let operation = format!("while \"{entry}\" ran on host:0");
            assert_eq!(rows[0]["outcome"]["operation"], operation, "{entry}");
            assert!(rows[0]["reason"].as_str().unwrap().contains(&operation), "{entry}");
        }
        // A flood of output is bounded.
        assert!(rows[0]["outcome"].to_string().len() < 20_000, "{entry}");
    }
}

#[test]
fn what_never_ends_is_killed_at_its_deadline() {
    let sandbox = Sandbox::new();
    let entries = ["stops", "right", "stops_its_group", "right", "loops", "right", "runs_for_30_s", "right"];
    // The kernel that ends must do so in this time on a busy machine. The budget does not count, since none of their calls returns.
    let rows = sandbox.evaluate(&entries, &["--timeout", "6", "--budget-s", "20"]);
    for (entry, row) in entries.iter().zip(&rows) {
        match *entry {
            "right" => assert_eq!(row["status"], "right", "{row:#}"),
            _ => {
                assert_eq!(row["outcome"], json!({"kind": "timeout", "phase": "run"}), "{entry}");
                assert_eq!((&row["status"], &row["error_kind"]), (&json!("failed"), &json!("Timeout")));
                let reason = row["reason"].as_str().unwrap();
                assert_eq!(reason, format!("timed out after 6 s while \"{entry}\" ran on host:0"));
            }
        }
    }
}

#[test]
fn a_kernel_without_measurable_time_is_timed_and_ends() {
    let sandbox = Sandbox::new();
    let (before, _) =
        spec("nothing").split_once("[reference]").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    sandbox
        .folder
        .write("nothing.toml", &format!("{before}[eval]\nrepeat = 3\nmin_repeat_ms = 50\nbudget_s = 5\n"));
    sandbox.folder.write("right.toml", &spec("right"));
    let arguments = ["eval", "--isolate", "--device", "host:0", "--json", "-", "nothing.toml", "right.toml"];
    let output = sandbox.command(&arguments).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!((&rows[0]["status"], &rows[0]["outcome"]), (&json!("unchecked"), &json!({"kind": "ok"})));
    assert_eq!(rows[0]["measurement"]["samples_ns"].as_array().unwrap().len(), 3);
    assert!(rows[0]["measurement"]["number"].as_u64().unwrap() > 100, "{:#}", rows[0]["measurement"]);
    assert_eq!(rows[1]["status"], "right");
}

#[test]
fn compiling_has_its_own_deadline_and_its_log() {
    let sandbox = Sandbox::new();
    let slow = "#!/bin/sh\nsleep 1000\n";
    sandbox.folder.write("slow-cc", slow);
    let mut permissions = sandbox.folder.path().join("slow-cc").metadata().unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(sandbox.folder.path().join("slow-cc"), permissions).unwrap();
    sandbox.folder.write("broken.c", "void right(float *x) { return 1 +; }\n");
    let options = format!("options = {{ compiler = \"{}/slow-cc\" }}", sandbox.folder.path().display());
    let with = |name: &str, from: &str, to: &str| {
        sandbox.folder.write(name, &spec("right").replacen(from, to, 1));
    };
    with("slow.toml", "entry = \"right\"", &format!("entry = \"right\"\n{options}"));
    with("broken.toml", "bad.c", "broken.c");
    sandbox.folder.write("right.toml", &spec("right"));
    let arguments = ["eval", "--isolate", "--device", "host:0", "--json", "-", "--compile-timeout", "3"];
    let output =
        sandbox.command(&arguments).args(["slow.toml", "broken.toml", "right.toml"]).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows[0]["outcome"], json!({"kind": "timeout", "phase": "compile"}), "{:#}", rows[0]);
    assert_eq!(rows[1]["outcome"]["kind"], "compile_failed", "{:#}", rows[1]);
    assert!(rows[1]["outcome"]["log"].as_str().unwrap().contains("broken.c:1"), "{:#}", rows[1]);
    assert_eq!(rows[2]["status"], "right");
    sandbox.wait_for_processes(&BTreeSet::new(), "eval");
    assert_eq!(sandbox.temporary_files(), 0);
}

#[test]
fn a_lack_of_memory_is_told_apart_from_a_crash() {
    let sandbox = Sandbox::new();
    let large = spec("right").replacen("shape = [4]", "shape = [50000000]", 1);
    sandbox.folder.write("large.toml", &large);
    sandbox.folder.write("right.toml", &spec("right"));
    let arguments = ["eval", "--isolate", "--device", "host:0", "--json", "-", "--memory-limit", "150000000"];
    let output = sandbox.command(&arguments).args(["large.toml", "right.toml"]).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["rows"][0]["outcome"]["kind"], "out_of_memory", "{:#}", document["rows"][0]);
    assert_eq!(document["rows"][1]["status"], "right", "{:#}", document["rows"][1]);
}

#[test]
fn a_wrong_device_or_option_is_an_error_of_the_command() {
    let sandbox = Sandbox::new();
    sandbox.folder.write("right.toml", &spec("right"));
    for (arguments, words) in [
        (&["eval", "--isolate", "--device", "host:9", "right.toml"][..], "no device \"host:9\""),
        (&["eval", "--device", "host:0", "--timeout", "3", "right.toml"], "--timeout needs --isolate"),
        (
            &["eval", "--device", "host:0", "--launch", "srun {worker}", "right.toml"],
            "--launch needs --isolate",
        ),
        (&["eval", "--isolate", "--launch", "srun {worker}", "right.toml"], "--launch needs --device"),
        (&["eval", "--isolate", "--device", "host:0", "--launch", "srun", "right.toml"], "add {worker}"),
        (&["eval", "--isolate", "--device", "host:0", "--workers", "2", "right.toml"], "--launch <TEMPLATE>"),
    ] {
        let output = sandbox.command(arguments).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    }
}
