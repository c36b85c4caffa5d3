//! `runtime peak`, shares of the peak, pictures and pages.

use std::process::Command;

use serde_json::Value;

use super::fixture::{Finished, Folder, SCALE, command};

/// The command in a folder, with a cache of its own.
fn run(folder: &Folder, arguments: &[&str]) -> Finished {
    let mut command: Command = command(arguments);
    command.current_dir(folder.path()).env("XDG_CACHE_HOME", folder.path().join("cache"));
    command.output().unwrap().into()
}

#[test]
fn peaks_are_measured_kept_and_shown_as_shares() {
    let folder = Folder::new();
    let eval = [
        "eval",
        "scale.toml",
        "--device",
        "host:0",
        "--repeat",
        "7",
        "--min-repeat-ms",
        "1",
        "--json",
        "rows.json",
    ];
    let share = |folder: &Folder| {
        let document: Value = serde_json::from_str(&folder.read("rows.json")).unwrap();
        document["rows"][0]["roofline"].clone()
    };
    assert_eq!(run(&folder, &eval).code, 0);
    assert_eq!(share(&folder), Value::Null, "nothing is kept yet");

    let peak = run(&folder, &["peak", "--device", "host:0", "--quick", "--json"]);
    assert_eq!((peak.code, peak.stderr.as_str()), (0, ""), "{peak:?}");
    let document: Value = serde_json::from_str(&peak.stdout).unwrap();
    let peak = &document["devices"][0]["peak"];
    let rate = |dtype: &str| {
        let compute = peak["compute"].as_array().unwrap().iter().find(|compute| compute["dtype"] == dtype);
        compute.map_or(0.0, |compute| compute["gflops_per_s"]["best"].as_f64().unwrap())
    };
    assert!(rate("f32") > 0.0 && rate("f64") > 0.0, "{document:#}");
    let bandwidth = |name: &str| {
        let level = peak["memory"].as_array().unwrap().iter().find(|level| level["name"] == name);
        level.and_then(|level| level["read_gbytes_per_s"]["best"].as_f64())
    };
    let dram = bandwidth("DRAM").unwrap();
    assert!(dram > 0.0 && bandwidth("L1").is_none_or(|l1| l1 > 0.5 * dram), "{document:#}");
    assert!(peak["launches"]["latency_ns"]["median"].as_f64().unwrap() > 0.0);
    assert_eq!(peak["transfers"].as_array().unwrap().len(), 0, "a host has none");

    let rows = run(&folder, &[&eval[..], &["--markdown", "t.md", "--csv", "t.csv"]].concat());
    assert!(rows.code == 0 && rows.stdout.contains("% of "), "{rows:?}");
    let roofline = share(&folder);
    assert!(roofline["share"].as_f64().unwrap() > 0.0, "{roofline}");
    let limit = roofline["memory"]["level"].as_str().unwrap();
    assert!(folder.read("t.csv").lines().nth(1).unwrap().contains("bandwidth"), "{limit}");
    assert!(folder.read("t.md").contains("% of "));

    let kept = folder.path().join("cache/runtime/peak");
    let file = std::fs::read_dir(&kept).unwrap().next().unwrap().unwrap().path();
    std::fs::write(file, "{").unwrap();
    assert_eq!(run(&folder, &eval).code, 0);
    assert_eq!(share(&folder), Value::Null, "a damaged file is not used");
}

#[test]
fn a_folder_that_cannot_be_written_costs_a_warning() {
    let folder = Folder::new();
    folder.write("cache", "a file where a folder should be");
    let peak = run(&folder, &["peak", "--device", "host:0", "--quick"]);
    assert_eq!(peak.code, 0, "{peak:?}");
    let warnings: Vec<_> = peak.stderr.lines().collect();
    assert!(
        peak.stdout.contains("f32 vector")
            && warnings[0].starts_with("warning: code is not cached: ")
            && warnings[1].starts_with("warning: there is no cache folder"),
        "{peak:?}"
    );
}

#[test]
fn a_wrong_device_is_an_error() {
    let folder = Folder::new();
    let peak = run(&folder, &["peak", "--device", "hots:0"]);
    assert!(peak.code == 2 && peak.stderr.contains("hots") && peak.stdout.is_empty(), "{peak:?}");
}

#[test]
fn a_simulated_device_has_no_peak() {
    let null = super::fixture::command_with(&["null"], &["peak", "--device", "null:0"]).output().unwrap();
    let null = Finished::from(null);
    assert!(
        null.code == 1 && null.stdout.contains("null:0: not measured: ") && null.stdout.contains("simulated"),
        "{null:?}"
    );
}

#[test]
fn plot_and_page_are_written_at_the_end_and_from_a_saved_report() {
    let folder = Folder::new();
    folder.write("failed.toml", &SCALE.replacen("entry = \"scale\"", "entry = \"absent\"", 1));
    let outputs = ["--json", "rows.json", "--plot", "a.svg", "--html", "a.html"];
    let eval = run(
        &folder,
        &[&["eval", "scale.toml", "failed.toml", "--device", "host:0", "--repeat", "7"][..], &outputs]
            .concat(),
    );
    assert_eq!((eval.code, eval.stderr.as_str()), (1, ""), "{eval:?}");
    assert_eq!(folder.read("a.svg").matches("<circle").count(), 7, "a dot for each sample");
    let page = folder.read("a.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("2 rows: 1 right, 1 failed"), "{page}");

    let again = run(
        &folder,
        &[
            "report",
            "rows.json",
            "--plot",
            "b.svg",
            "--html",
            "b.html",
            "--csv",
            "b.csv",
            "--markdown",
            "b.md",
        ],
    );
    assert_eq!((again.code, again.stdout.as_str(), again.stderr.as_str()), (0, "", ""), "{again:?}");
    assert_eq!((folder.read("b.svg"), folder.read("b.html")), (folder.read("a.svg"), page));
    assert_eq!(folder.read("b.csv").lines().count(), 3);
    // Advice may follow the table, and the code and the driver do.
    let is_note =
        |line: &str| line.is_empty() || line.starts_with("- scale") || line.starts_with("- host:0: driver");
    assert!(folder.read("b.md").lines().skip(6).all(is_note));
    let table = run(&folder, &["report", "rows.json"]);
    assert!(
        table.code == 0 && table.stdout.starts_with("kernel") && table.stdout.contains("failed: "),
        "{table:?}"
    );
}

#[test]
fn outputs_that_cannot_be_written_fail_before_anything_is_measured() {
    let folder = Folder::new();
    for arguments in [["--plot", "missing/a.svg"], ["--html", "missing/a.html"], ["--plot", "scale.c"]] {
        let eval = run(
            &folder,
            &[&["eval", "scale.toml", "--device", "host:0", "--json", "rows.json"][..], &arguments].concat(),
        );
        assert!(eval.code == 2 && eval.stdout.is_empty() && eval.stderr.contains(arguments[1]), "{eval:?}");
    }
    assert!(!folder.path().join("rows.json").exists());
    let same = run(&folder, &["eval", "scale.toml", "--plot", "one", "--html", "one"]);
    assert!(same.code == 2 && same.stderr.contains("only one output"), "{same:?}");
    let missing = run(&folder, &["report", "absent.json", "--html", "a.html"]);
    assert!(missing.code == 2 && missing.stderr.contains("absent.json"), "{missing:?}");
}
