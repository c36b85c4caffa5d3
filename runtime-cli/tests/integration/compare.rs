//! `runtime compare` on reports written by hand, and `runtime eval --baseline`.

use serde_json::{Value, json};

use super::fixture::{Finished, Folder};

/// A row with 30 samples around `ns`, with a noise of about 1% and without a trend.
fn row(kernel: &str, ns: f64) -> Value {
    let deviations = [0.1, -0.6, 0.9, -0.2, 0.4, -1.0, 0.7, -0.4, 0.0, 0.3, -0.8, 0.6, -0.1, 0.2, -0.5];
    let deviations = deviations.iter().cycle().take(30);
    let samples: Vec<f64> = deviations.map(|deviation| ns * (1.0 + deviation / 100.0)).collect();
    json!({
        "spec": "k.toml",
        "kernel": { "name": kernel, "path": "k.c", "entry": "k", "format": "c", "options": {} },
        "device": "host:0",
        "device_info": { "name": "CPU", "arch": "x86-64", "driver_version": "1" },
        "code": null,
        "settings": {
            "repeat": 30, "number": null, "min_repeat_ms": 1.0, "warmup": null, "warmup_ms": 10.0, "validate": true,
            "clock": "auto", "flush_cache": "never", "cooldown_ms": 0.0, "budget_s": 10.0,
        },
        "status": "right", "reason": null, "error_kind": null, "outcome": { "kind": "ok" }, "validation": null,
        "measurement": {
            "clock": "host_wall", "cold": false, "repeat": 30, "number": 1, "calls": 31, "samples_ns": samples,
            "statistics": {
                "min_ns": ns * 0.99, "median_ns": ns, "mean_ns": ns, "max_ns": ns * 1.009, "stddev_ns": null,
                "p5_ns": ns, "p95_ns": ns, "median_ci95_ns": null, "outliers": 0,
            },
            "overhead_ns": null, "transfer": null, "flops": null, "bytes": null, "gflops_per_s": null,
            "gbytes_per_s": null,
        },
    })
}

fn report(rows: &[Value]) -> Value {
    let program = json!({ "version": "0.1.0", "abi": "1.0", "os": "linux", "architecture": "x86_64" });
    json!({
        "schema": "runtime.evaluation", "version": 1, "runtime": program, "device_options": {}, "rows": rows,
        "complete": true,
    })
}

/// A folder with `old.json`, in which "k" and "l" take 10 µs.
fn folder() -> Folder {
    let folder = Folder::new();
    write(&folder, "old.json", &[row("k", 1e4), row("l", 1e4)]);
    folder
}

fn write(folder: &Folder, name: &str, rows: &[Value]) {
    folder.write(name, &report(rows).to_string());
}

/// Compares `old.json` with a report of these rows.
fn compared(rows: &[Value]) -> Finished {
    let folder = folder();
    write(&folder, "new.json", rows);
    folder.runtime(&["compare", "old.json", "new.json"])
}

/// Runs the comparison and returns its JSON and exit code.
fn document(folder: &Folder, files: &[&str]) -> (i32, Value) {
    let run = folder.runtime(&[&["compare", "--json", "-"], files].concat());
    (run.code, serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}")))
}

#[test]
fn a_report_is_the_same_as_itself() {
    let run = folder().runtime(&["compare", "old.json", "old.json"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    let line = run.stdout.lines().nth(1).unwrap();
    assert!(line.starts_with("k ") && line.contains("1.000 (0.99") && line.ends_with("same"), "{run:?}");
    assert!(!run.stdout.contains("differs"), "{run:?}");
}

#[test]
fn a_slower_kernel_is_a_regression_unless_the_threshold_is_larger() {
    let folder = folder();
    write(&folder, "new.json", &[row("k", 1.05e4), row("l", 0.9e4)]);
    let compare = |extra: &[&str]| folder.runtime(&[&["compare", "old.json", "new.json"], extra].concat());
    let run = compare(&[]);
    assert_eq!(run.code, 1, "{run:?}");
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(lines[1].contains("10.50 µs") && lines[1].ends_with("slower"), "{run:?}");
    assert!(lines[2].contains("0.9000") && lines[2].ends_with("faster"), "{run:?}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{run:?}");
    assert_eq!(compare(&["--threshold", "10%"]).code, 0);
    let run = compare(&["--threshold", "0.02"]);
    assert!(run.code == 2 && run.stderr.contains("expected a percentage"), "{run:?}");
}

#[test]
fn a_kernel_that_is_wrong_or_failed_now_is_a_regression() {
    for (status, reason, verdict) in [("wrong", "y[3] is 7", "wrong now"), ("failed", "no", "failed now")] {
        let mut broken = row("k", 1e4);
        (broken["status"], broken["reason"]) = (status.into(), reason.into());
        let run = compared(&[broken.clone(), row("l", 1e4)]);
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stdout.lines().nth(1).unwrap().ends_with(verdict), "{run:?}");
        assert!(run.stdout.contains(&format!("k on host:0: {verdict}: {reason}")), "{run:?}");
        let folder = folder();
        write(&folder, "broken.json", &[broken]);
        let run = folder.runtime(&["compare", "broken.json", "broken.json"]);
        assert!(run.code == 0 && run.stdout.contains(&format!("still {status}")), "{run:?}");
        let run = folder.runtime(&["compare", "broken.json", "old.json"]);
        assert!(run.code == 0 && run.stdout.contains(&format!("{status} before")), "{run:?}");
    }
}

#[test]
fn rows_without_measurement_or_counterpart_are_listed() {
    let mut absent = row("k", 1e4);
    (absent["status"], absent["reason"]) = ("not_run".into(), "no device".into());
    absent["measurement"] = Value::Null;
    let run = compared(&[absent, row("m", 1e4)]);
    assert_eq!(run.code, 0, "{run:?}");
    for text in ["not run now: no device", "only in old.json: l on host:0", "only in new.json: m on host:0"] {
        assert!(run.stdout.contains(text), "{text}: {run:?}");
    }
}

#[test]
fn differences_come_before_the_table() {
    let (mut first, second) = (row("k", 2e4), row("l", 1e4));
    first["measurement"]["clock"] = "device_kernel".into();
    let mut rows = [first, second];
    rows.iter_mut().for_each(|row| row["device_info"]["driver_version"] = "2".into());
    let run = compared(&rows);
    assert_eq!(run.code, 0, "times of other clocks are not compared: {run:?}");
    let lines: Vec<&str> = run.stdout.lines().collect();
    let clock = "the clock was host_wall, is device_kernel; the ratio is not meaningful";
    assert_eq!(lines[0], "differs: the driver was 1, is 2", "once for all rows: {run:?}");
    assert_eq!(lines[1], format!("differs: {clock} (k on host:0)"), "{run:?}");
    assert!(lines[3].starts_with("kernel") && lines[4].ends_with("cannot tell"), "{run:?}");
    assert_eq!(lines[7], format!("k on host:0: {clock}"), "{run:?}");
}

#[test]
fn several_files_are_a_history() {
    let folder = folder();
    write(&folder, "b.json", &[row("l", 1e4), row("k", 1.1e4)]);
    write(&folder, "c.json", &[row("m", 1e4), row("k", 1e4)]);
    let run = folder.runtime(&["compare", "old.json", "b.json", "c.json"]);
    assert_eq!(run.code, 1, "{run:?}");
    let lines: Vec<Vec<&str>> = run.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((&lines[0][..], &lines[2][..]), (&["#1", "old.json"][..], &["#3", "c.json"][..]), "{run:?}");
    assert_eq!(lines[4], ["kernel", "device", "#1", "#2", "#3"], "{run:?}");
    assert_eq!(lines[5], ["l", "host:0", "10.00", "µs", "1.000", "same", "—"], "{run:?}");
    assert_eq!(lines[6], ["k", "host:0", "10.00", "µs", "1.100", "slower", "1.000", "same"], "{run:?}");
    assert_eq!(lines[7], [""; 0], "{run:?}");
    assert!(run.stdout.contains("only in #1: l on host:0\nonly in #3: m on host:0\n"), "{run:?}");
    let (code, document) = document(&folder, &["old.json", "b.json", "c.json"]);
    assert_eq!((code, document["comparisons"].as_array().unwrap().len()), (1, 2));
    assert_eq!(document["comparisons"][1]["regression"], false);
}

#[test]
fn json_has_the_estimate_of_every_row() {
    let folder = folder();
    let mut few = row("l", 1e4);
    few["measurement"]["samples_ns"] = json!([1.0, 2.0]);
    write(&folder, "new.json", &[row("k", 1.05e4), few]);
    let (code, document) = document(&folder, &["old.json", "new.json"]);
    assert_eq!(
        (code, &document["schema"], &document["version"]),
        (1, &"runtime.comparison".into(), &1.into())
    );
    assert_eq!((&document["threshold"], &document["confidence"]), (&0.02.into(), &0.99.into()));
    assert_eq!((&document["old"]["file"], &document["regression"]), (&"old.json".into(), &true.into()));
    let rows = &document["comparisons"][0]["rows"];
    assert_eq!((&rows[0]["kernel"], &rows[0]["device"]), (&"k".into(), &"host:0".into()));
    assert_eq!((&rows[0]["verdict"], &rows[0]["regression"]), (&"slower".into(), &true.into()));
    let interval = [&rows[0]["interval"][0], &rows[0]["interval"][1]].map(|bound| bound.as_f64().unwrap());
    assert!(1.03 < interval[0] && interval[0] < 1.05 && 1.05 < interval[1] && interval[1] < 1.07, "{rows}");
    assert_eq!((&rows[1]["verdict"], &rows[1]["interval"]), (&"cannot_tell".into(), &Value::Null));
    assert_eq!((&rows[0]["old"]["samples"], &rows[1]["new"]["samples"]), (&30.into(), &2.into()));
    assert!(rows[1]["reason"].as_str().unwrap().starts_with("2 samples now"), "{rows}");
}

#[test]
fn what_cannot_be_compared_is_an_error() {
    let folder = folder();
    write(&folder, "disjoint.json", &[row("m", 1e4)]);
    folder.write("corrupt.json", &folder.read("old.json")[..200]);
    folder.write("devices.json", r#"{"schema": "runtime.devices", "version": 1}"#);
    folder.write("empty.json", &report(&[]).to_string());
    for (arguments, message) in [
        (&["corrupt.json"][..], "corrupt.json: not a JSON document"),
        (&["devices.json"], "devices.json: the schema is \"runtime.devices\""),
        (&["missing.json"], "cannot read missing.json"),
        (&["disjoint.json"], "no row in common: the first has k on host:0, the second has m on host:0"),
        (&["empty.json"], "the second is empty"),
        (&["old.json", "corrupt.json"], "corrupt.json"),
        (&["old.json", "--json", "old.json"], "would overwrite old.json"),
        (&[], "NEW.json"),
    ] {
        let run = folder.runtime(&[&["compare", "old.json"], arguments].concat());
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(message), "{arguments:?}: {run:?}");
    }
}

#[test]
fn a_comparison_that_noise_spoils_repeats_the_advice_below_the_table() {
    let mut noisy = row("k", 1e4);
    for (index, sample) in noisy["measurement"]["samples_ns"].as_array_mut().unwrap().iter_mut().enumerate() {
        *sample = (sample.as_f64().unwrap() * [0.8, 1.0, 1.3][index % 3]).into();
    }
    noisy["advice"] = json!(["the median's interval is ±20%: stop\u{1b} other work"]);
    let run = compared(&[noisy.clone(), row("l", 1e4)]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(lines[1].ends_with("cannot tell") && lines[2].ends_with("same"), "{run:?}");
    let below = "  now: the median's interval is ±20%: stop  other work";
    let at = lines.iter().position(|line| *line == below);
    assert!(at.is_some_and(|at| lines[at - 1].starts_with("k on host:0: the ratio is uncertain")), "{run:?}");
    let folder = folder();
    write(&folder, "new.json", &[noisy]);
    let run = folder.runtime(&["compare", "old.json", "old.json", "new.json"]);
    assert!(run.stdout.contains("  #3 now: the median's interval"), "{run:?}");
    let (_, document) = document(&folder, &["old.json", "new.json"]);
    let advice = &document["comparisons"][0]["rows"][0]["advice"];
    assert!(advice[0].as_str().unwrap().starts_with("now: the median's"), "{document}");
}

/// Multiplies the samples of a report, low and high ones alternately, so that they show no drift.
fn scale(folder: &Folder, from: &str, to: &str, factor: f64) {
    let mut document: Value = serde_json::from_str(&folder.read(from)).unwrap();
    let samples = document["rows"][0]["measurement"]["samples_ns"].as_array_mut().unwrap();
    let mut sorted: Vec<f64> = samples.iter().map(|sample| factor * sample.as_f64().unwrap()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let (low, high) = sorted.split_at(sorted.len() / 2);
    *samples = low.iter().zip(high).flat_map(|(low, high)| [json!(low), json!(high)]).collect();
    folder.write(to, &document.to_string());
}

#[test]
fn eval_compares_with_a_baseline() {
    let folder = Folder::new();
    let eval = |extra: &[&str]| {
        let options = ["eval", "scale.toml", "--repeat", "40", "--min-repeat-ms", "0.05"];
        folder.runtime(&[&options, extra].concat())
    };
    assert_eq!(eval(&["--json", "base.json"]).code, 0);
    // Noise does not change times that much, nor does the start of a runner's window, but it allows no verdict where the new samples drift.
    let decided = |extra: &[&str]| {
        let is_decided = |run: &Finished| !format!("{run:?}").contains("cannot tell");
        (0..10).map(|_| eval(extra)).find(is_decided).expect("ten runs without a verdict")
    };
    scale(&folder, "base.json", "fast.json", 0.01);
    scale(&folder, "base.json", "slow.json", 1e8);
    let slower = decided(&["--baseline", "fast.json", "--json", "new.json"]);
    assert_eq!(slower.code, 1, "{slower:?}");
    let (table, comparison) = (slower.stdout.find("right (exact)"), slower.stdout.find("slower"));
    assert!(table.is_some() && table < comparison, "{slower:?}");
    assert!(folder.read("new.json").contains("\"complete\": true"));
    let faster = decided(&["--baseline", "slow.json", "--isolate"]);
    assert!(faster.code == 0 && faster.stdout.contains("faster"), "{faster:?}");
    let json = decided(&["--baseline", "fast.json", "--json", "-"]);
    assert!(json.code == 1 && json.stderr.contains("slower"), "{json:?}");
    serde_json::from_str::<Value>(&json.stdout).unwrap();
    for (arguments, message) in [
        (&["--baseline", "missing.json"][..], "cannot read missing.json"),
        (&["--baseline", "base.json", "--json", "base.json"], "would overwrite base.json"),
        (&["--threshold", "5%"], "--threshold needs --baseline"),
    ] {
        let run = eval(arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(message), "{arguments:?}: {run:?}");
    }
    write(&folder, "other.json", &[row("k", 1e4)]);
    let run = eval(&["--baseline", "other.json"]);
    assert!(run.code == 2 && run.stderr.contains("no row in common"), "{run:?}");
}
