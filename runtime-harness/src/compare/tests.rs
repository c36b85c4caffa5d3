//! Verdicts, regressions, differences and the matching of rows.

use serde_json::{Value, json};

use super::*;
use crate::origin::SandboxState;
use crate::report::Report;
use crate::row::{Row, Status};

/// Times around `ns` with a noise of about 1%, without a trend.
fn times(ns: f64) -> Vec<f64> {
    let deviations = [0.1, -0.6, 0.9, -0.2, 0.4, -1.0, 0.7, -0.4, 0.0, 0.3, -0.8, 0.6, -0.1, 0.2, -0.5];
    deviations.iter().cycle().take(30).map(|deviation| ns * (1.0 + deviation / 100.0)).collect()
}

fn json_row(kernel: &str, samples: &[f64]) -> Value {
    json!({
        "spec": "k.toml",
        "kernel": { "name": kernel, "path": "k.c", "entry": "k", "format": "c", "options": {} },
        "device": "host:0",
        "device_info": { "name": "CPU", "arch": "x86-64", "driver_version": null },
        "code": null,
        "settings": {
            "repeat": 30, "number": null, "min_repeat_ms": 1.0, "warmup": null, "warmup_ms": 10.0, "validate": true,
            "clock": "auto", "flush_cache": "never", "cooldown_ms": 0.0, "budget_s": 10.0,
        },
        "status": "right", "reason": null, "error_kind": null, "outcome": { "kind": "ok" }, "validation": null,
        "measurement": {
            "clock": "host_wall", "cold": false, "repeat": 30, "number": 1, "calls": 31, "samples_ns": samples,
            "statistics": {
                "min_ns": 0.0, "median_ns": samples.first(), "mean_ns": 0.0, "max_ns": 0.0, "stddev_ns": null,
                "p5_ns": 0.0, "p95_ns": 0.0, "median_ci95_ns": null, "outliers": 0,
            },
            "overhead_ns": null, "transfer": null, "flops": 200.0, "bytes": null, "gflops_per_s": null,
            "gbytes_per_s": null,
        },
    })
}

/// A right row, changed by `edit`.
fn edited(ns: f64, edit: impl FnOnce(&mut Value)) -> Row {
    let mut value = json_row("k", &times(ns));
    edit(&mut value);
    serde_json::from_value(value).unwrap()
}

fn row(ns: f64) -> Row {
    edited(ns, |_| {})
}

fn compared(old: &Row, new: &Row) -> Comparison {
    Comparison::of(old, new, &CompareOptions::default())
}

#[test]
fn the_rule_has_a_dead_zone_and_is_symmetric() {
    for (ratio, interval, verdict) in [
        (1.00, [0.99, 1.01], Verdict::Same),
        (1.01, [1.005, 1.019], Verdict::Same),
        (1.03, [1.001, 1.06], Verdict::Slower),
        (1.03, [0.999, 1.06], Verdict::CannotTell),
        (1.015, [1.001, 1.03], Verdict::CannotTell),
        (1.00, [0.97, 1.03], Verdict::CannotTell),
        (1.02, [1.0, 1.02], Verdict::Same),
    ] {
        assert_eq!(Verdict::of(ratio, interval, 0.02), verdict, "{ratio} {interval:?}");
        let mirrored = match verdict {
            Verdict::Slower => Verdict::Faster,
            other => other,
        };
        let inverse = [1.0 / interval[1], 1.0 / interval[0]];
        assert_eq!(Verdict::of(1.0 / ratio, inverse, 0.02), mirrored, "1 / {ratio} {interval:?}");
    }
    assert_eq!(Verdict::of(1.001, [1.0005, 1.002], 0.0), Verdict::Slower);
    assert_eq!(Verdict::of(0.1, [0.09, 0.11], 2.0), Verdict::Faster, "a threshold above 1 has a faster side");
}

#[test]
fn times_decide_between_slower_faster_and_same() {
    let old = row(100.0);
    for (ns, verdict, regression) in [
        (100.0, Verdict::Same, false),
        (100.5, Verdict::Same, false),
        (105.0, Verdict::Slower, true),
        (95.0, Verdict::Faster, false),
    ] {
        let comparison = compared(&old, &row(ns));
        assert_eq!((comparison.verdict, comparison.regression), (verdict, regression), "{comparison:?}");
        assert!((comparison.ratio.unwrap() - ns / 100.0).abs() < 1e-9, "{comparison:?}");
        assert_eq!((comparison.reason, comparison.differences), (None, Vec::new()));
    }
}

#[test]
fn samples_that_do_not_suffice_give_the_reason() {
    let estimate = |old: &[f64], new: &[f64]| Estimate::of(old, new, &CompareOptions::default());
    let drift: Vec<f64> = (0..30).map(|index| 100.0 + f64::from(index)).collect();
    let noisy: Vec<f64> = times(100.0).iter().map(|time| 100.0 + 20.0 * (time - 100.0)).collect();
    for (old, new, reason) in [
        (&times(100.0)[..5], &times(200.0)[..], "5 samples before; at least 6 are needed"),
        (&times(100.0), &times(200.0)[..1], "1 samples now"),
        (&[], &times(1.0), "there are no samples before"),
        (&times(1.0), &[0.0; 9], "a sample now is 0 ns"),
        (&times(1.0), &[f64::INFINITY; 9], "a sample now is inf ns"),
        (&times(100.0), &drift, "30 samples now drift"),
        (&noisy, &times(100.0), "uncertain by"),
    ] {
        let estimate = estimate(old, new);
        assert_eq!(estimate.verdict, Verdict::CannotTell, "{reason}: {estimate:?}");
        assert!(estimate.reason.as_ref().unwrap().contains(reason), "{reason}: {estimate:?}");
    }
    assert_ne!(estimate(&times(100.0)[..6], &times(200.0)[..6]).verdict, Verdict::CannotTell);
    assert_eq!(estimate(&times(100.0)[..5], &times(200.0)).ratio, Some(200.0 / 100.1), "the ratio is shown");
}

fn broken(status: &str, reason: &str) -> Row {
    edited(50.0, |row| {
        (row["status"], row["reason"]) = (status.into(), reason.into());
        if status != "wrong" {
            row["measurement"] = Value::Null;
        }
    })
}

#[test]
fn a_row_that_is_wrong_or_failed_now_is_a_regression() {
    let (right, wrong, failed, absent) =
        (row(100.0), broken("wrong", "y[3]"), broken("failed", "no\nlog"), broken("not_run", "no device"));
    for (old, new, regression, reason) in [
        (&right, &wrong, true, "wrong now: y[3]"),
        (&right, &failed, true, "failed now: no"),
        (&right, &absent, false, "not run now: no device"),
        (&wrong, &failed, false, "failed now: no"),
        (&wrong, &right, false, "wrong before: y[3]"),
        (&failed, &wrong, false, "wrong now: y[3]"),
        (&absent, &failed, false, "failed now: no"),
    ] {
        let comparison = compared(old, new);
        assert_eq!(comparison.regression, regression, "{comparison:?}");
        assert_eq!((comparison.verdict, comparison.reason.as_deref()), (Verdict::CannotTell, Some(reason)));
    }
    let unchecked = edited(100.0, |row| row["status"] = "unchecked".into());
    assert!(compared(&unchecked, &failed).regression, "it ran before");
    assert_eq!(compared(&unchecked, &right).verdict, Verdict::Same);
    let untimed = edited(100.0, |row| row["measurement"] = Value::Null);
    assert_eq!(compared(&right, &untimed).reason.unwrap(), "no measurement now");
    assert_eq!(compared(&right, &broken("failed", "")).new.status, Status::Failed);
}

#[test]
fn differences_are_listed_and_some_forbid_a_verdict() {
    for (path, value, text, forbids) in [
        ("/device_info/name", json!("CPU 2"), "the device was CPU, is CPU 2", false),
        ("/device_info/driver_version", json!("550.1"), "the driver was none, is 550.1", false),
        ("/device_info/arch", json!("aarch64"), "the device architecture was x86-64, is aarch64", false),
        ("/kernel/options", json!({ "O": 3 }), "the set of kernel options was {}, is {\"O\":3}", false),
        ("/settings/repeat", json!(50), "the setting repeat was 30, is 50", false),
        ("/settings/number", json!(7), "the setting number was none, is 7", false),
        ("/settings/min_repeat_ms", json!(2.0), "the setting min_repeat_ms was 1.0, is 2.0", false),
        (
            "/settings/flush_cache",
            json!("call"),
            "the setting flush_cache was never, is call; the ratio",
            true,
        ),
        (
            "/measurement/clock",
            json!("device_kernel"),
            "the clock was host_wall, is device_kernel; the ratio",
            true,
        ),
        ("/measurement/cold", json!(true), "the setting cold was false, is true; the ratio", true),
        (
            "/measurement/flops",
            json!(400.0),
            "the number of flops per call was 200.0, is 400.0; the ratio",
            true,
        ),
        ("/measurement/bytes", json!(8.0), "the number of bytes per call was none, is 8.0", false),
    ] {
        let new = edited(150.0, |row| *row.pointer_mut(path).unwrap() = value);
        let comparison = compared(&row(100.0), &new);
        let [difference] = &comparison.differences[..] else { panic!("{path}: {comparison:?}") };
        assert!(difference.to_string().starts_with(text), "{difference}");
        let verdict = if forbids { Verdict::CannotTell } else { Verdict::Slower };
        assert_eq!((difference.forbids_verdict, comparison.verdict), (forbids, verdict), "{path}");
        assert_eq!(comparison.reason.is_some(), forbids, "{path}");
        assert!(comparison.ratio.is_some(), "{path}: the ratio is shown nevertheless");
    }
}

#[test]
fn where_two_rows_come_from_differs_in_words() {
    let made = |time: &str, (id, changed): (&str, bool), hash: &str, inputs: &str| {
        edited(100.0, |row| {
            row["time"] = json!(time);
            row["commit"] = json!({ "id": id, "changed": changed });
            row["code_sha256"] = json!(hash.repeat(64));
            row["judged"] = json!({ "sandboxed": true, "inputs": inputs });
        })
    };
    let texts = |old: &Row, new: &Row| -> Vec<String> {
        compared(old, new).differences.iter().map(ToString::to_string).collect()
    };
    let old = made("2026-11-29T10:00:00Z", ("a1b2c3d4e5f6071829", true), "0", "fixed");
    let new = made("2026-11-29T11:00:00Z", ("d4e5f6", false), "1", "fresh");
    let words = [
        "the commit was a1b2c3d4e5f6 (with changes), is d4e5f6",
        "the code changed",
        "the choice of inputs was fixed, is fresh",
    ];
    assert_eq!(texts(&old, &new), words);
    let again = made("2026-11-29T11:00:00Z", ("a1b2c3d4e5f6071829", true), "0", "fixed");
    assert_eq!(texts(&old, &again), [""; 0]);
    assert_eq!(texts(&row(100.0), &new), [""; 0], "an older report does not tell");
}

#[test]
fn where_two_reports_come_from_differs_in_words() {
    let made = |host: &str, sandbox, profile: &str, commit: Option<&str>| {
        let mut report = Report::begin(serde_json::Map::new(), Some(sandbox));
        report.origin.as_mut().unwrap().host = Some(host.to_owned());
        (report.runtime.profile, report.runtime.commit) =
            (Some(profile.to_owned()), commit.map(str::to_owned));
        report
    };
    let texts = |old: &Report, new: &Report| -> Vec<String> {
        let comparison = ReportComparison::of(old, new, &CompareOptions::default());
        comparison.differences.iter().map(ToString::to_string).collect()
    };
    let old = made("lab1", SandboxState::Off, "debug", None);
    let new = made("lab2", SandboxState::PartlyMissing, "release", Some("a1b2c3"));
    let words = [
        "the build of the program was debug, is release, a1b2c3",
        "the host was lab1, is lab2",
        "the sandbox was off, is partly_missing",
    ];
    assert_eq!(texts(&old, &new), words);
    let mut later = old.clone();
    let origin = later.origin.as_mut().unwrap();
    (origin.time, origin.command) =
        ("2030-01-01T00:00:00Z".to_owned(), Some("runtime eval --json b.json".to_owned()));
    assert_eq!(texts(&old, &later), [""; 0]);
    let older = Report { runtime: old.runtime.without_build(), ..Report::new() };
    assert_eq!(texts(&older, &new), [""; 0], "an older report does not tell");
}

fn report(rows: Vec<Row>) -> Report {
    Report { rows, ..Report::new() }
}

#[test]
fn rows_are_matched_by_kernel_and_device() {
    let named = |kernel: &str, device: &str, ns: f64| {
        edited(ns, |row| (row["kernel"]["name"], row["device"]) = (kernel.into(), device.into()))
    };
    let old = report(vec![
        named("a", "host:0", 100.0),
        named("a", "host:0", 200.0),
        named("b", "host:0", 100.0),
        named("c", "host:0", 100.0),
    ]);
    let mut new = report(vec![
        named("c", "host:0", 100.0),
        named("a", "host:0", 100.0),
        named("b", "cuda:0", 50.0),
        named("a", "host:0", 100.0),
    ]);
    new.runtime.version = "9.9.9".to_owned();
    let comparison = ReportComparison::of(&old, &new, &CompareOptions::default());
    let verdicts: Vec<_> = comparison.rows.iter().map(|row| (row.key.to_string(), row.verdict)).collect();
    let expected = [("c", Verdict::Same), ("a", Verdict::Same), ("a", Verdict::Faster)];
    assert_eq!(verdicts, expected.map(|(kernel, verdict)| (format!("{kernel} on host:0"), verdict)));
    let key = |device: &str| vec![RowKey { kernel: "b".to_owned(), device: device.to_owned() }];
    assert_eq!((comparison.only_old.clone(), comparison.only_new.clone()), (key("host:0"), key("cuda:0")));
    assert_eq!(comparison.differences.len(), 1);
    assert!(comparison.differences[0].to_string().contains("version of the program"), "{comparison:?}");
    assert!(!comparison.has_regression());
    assert!(ReportComparison::of(&new, &old, &CompareOptions::default()).has_regression());
}

#[test]
fn advice_of_the_rows_is_repeated_only_if_the_samples_do_not_decide() {
    let advised = |ns: f64, advice: &str| edited(ns, |row| row["advice"] = json!([advice]));
    let noisy = |ns: f64, advice: &str| {
        edited(ns, |row| {
            let samples: Vec<f64> = times(ns).iter().map(|time| ns + 20.0 * (time - ns)).collect();
            row["measurement"]["samples_ns"] = json!(samples);
            row["advice"] = json!([advice]);
        })
    };
    let undecided = compared(&noisy(100.0, "stop it"), &noisy(100.0, "cool it"));
    assert_eq!((undecided.verdict, undecided.advice.len()), (Verdict::CannotTell, 2));
    assert_eq!(undecided.advice, ["before: stop it", "now: cool it"]);
    assert_eq!(compared(&noisy(100.0, "stop it"), &row(100.0)).advice, ["before: stop it"]);
    let decided = compared(&advised(100.0, "stop it"), &advised(120.0, "cool it"));
    assert_eq!((decided.verdict, decided.advice), (Verdict::Slower, Vec::new()));
    let mut other_clock = noisy(100.0, "stop it");
    other_clock.measurement.as_mut().unwrap().clock = runtime_core::evaluate::Clock::DeviceKernel;
    let incomparable = compared(&noisy(100.0, "stop it"), &other_clock);
    assert_eq!((incomparable.verdict, incomparable.advice), (Verdict::CannotTell, Vec::new()));
}
