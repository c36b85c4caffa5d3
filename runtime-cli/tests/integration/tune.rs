//! `runtime tune`, and sweeps of `runtime eval`.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::fixture::{Finished, Folder, command, interruptible_command};

/// How long a call of the kernel with MODE 0 sleeps. Load only adds to that.
const SLOW: Duration = Duration::from_millis(10);

/// The kernel behaves as MODE says; every mode computes the same if it is right.
const CODE: &str = r"
#include <stdlib.h>
#include <unistd.h>
void scale(const float *x, float *y, long n) {
    if (MODE == 0) usleep(10000);
    if (MODE == 2) return;
    if (MODE == 3) abort();
    while (MODE == 4) pause();
    if (MODE == 5) exit(7);
    while (MODE == 6) {}
    for (long i = 0; i < n; i++) y[i] = 2.5f * x[i];
}
";

const REFERENCE: &str =
    "void scale(const float *x, float *y, long n) { for (long i = 0; i < n; i++) y[i] = 2.5f * x[i]; }\n";

const SPEC: &str = r#"version = 1
[kernel]
path = "mode.c"
entry = "scale"
[[arg]]
name = "x"
dtype = "f32"
shape = ["n"]
[[arg]]
name = "y"
dtype = "f32"
shape = ["n"]
use = "write"
[[arg]]
name = "n"
scalar = "i64"
value = 500
[specialise]
constants = { MODE = 0, STEP = 0 }
[reference]
path = "reference.c"
entry = "scale"
[eval]
repeat = 7
min_repeat_ms = 0.5
warmup = 1
budget_s = 1
"#;

fn folder(tables: &str) -> Folder {
    let folder = Folder::new();
    folder.write("mode.c", CODE);
    folder.write("reference.c", REFERENCE);
    folder.write("mode.toml", &format!("{SPEC}{tables}\n"));
    folder
}

fn tune(folder: &Folder, arguments: &[&str]) -> Finished {
    let line = ["tune", "mode.toml", "--device", "host:0", "--json", "out.json"];
    folder.runtime(&[&line[..], arguments].concat())
}

fn json(folder: &Folder, name: &str) -> Value {
    serde_json::from_str(&folder.read(name)).unwrap()
}

/// Parameter, rank and outcome of each candidate of the first table, in order.
fn candidates(document: &Value, parameter: &str) -> Vec<(i64, Option<u64>, String)> {
    let rows = &document["rows"];
    let candidates = document["tunings"][0]["candidates"].as_array().unwrap().iter();
    let candidate = |candidate: &Value| {
        let row = &rows[usize::try_from(candidate["row"].as_u64().unwrap()).unwrap()];
        let value = row["parameters"][parameter].as_i64().unwrap_or(-1);
        (value, candidate["rank"].as_u64(), row["outcome"]["kind"].as_str().unwrap().to_owned())
    };
    candidates.map(candidate).collect()
}

/// The medians of the candidates of the first table that ran, in order.
fn ranked_medians(document: &Value) -> Vec<f64> {
    let candidates = document["tunings"][0]["candidates"].as_array().unwrap().iter();
    let row = |candidate: &Value| usize::try_from(candidate["row"].as_u64().unwrap()).unwrap();
    candidates
        .filter_map(|candidate| {
            document["rows"][row(candidate)]["measurement"]["statistics"]["median_ns"].as_f64()
        })
        .collect()
}

/// The rows of a log: device and parameters of each.
fn logged(folder: &Folder) -> Vec<String> {
    let log = folder.read("log.jsonl");
    let row = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        format!("{} {}", line["row"]["device"], line["row"]["parameters"])
    };
    log.lines().skip(1).map(row).collect()
}

#[test]
fn candidates_that_crash_hang_or_are_wrong_never_win() {
    let folder = folder("[tune]\nMODE = { from = 1, to = 5, step = 1 }");
    // Long enough for compiling and timing a candidate on a loaded machine.
    let run = tune(&folder, &["--timeout", "10", "--log", "log.jsonl", "--best", "best.toml"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    let document = json(&folder, "out.json");
    let found = candidates(&document, "MODE");
    let expected =
        [(1, Some(1), "ok"), (-1, Some(2), "ok")].map(|(mode, rank, kind)| (mode, rank, kind.to_owned()));
    assert_eq!(found[..2], expected, "{run:?}");
    assert!(found[2..].iter().all(|(_, rank, _)| rank.is_none()), "{run:?}");
    // A sample of the fast candidate has many calls, so that no load makes them as slow as the other's sleep.
    let [fast, own, ..] = ranked_medians(&document)[..] else { panic!("{run:?}") };
    assert!(fast < SLOW.as_nanos() as f64 && own >= SLOW.as_nanos() as f64, "{fast}, {own}: {run:?}");
    let speedup = document["tunings"][0]["candidates"][0]["speedup"].as_f64().unwrap();
    assert!((speedup * fast / own - 1.0).abs() < 1e-9, "{run:?}");
    let bad: BTreeSet<(i64, &str)> =
        found[2..].iter().map(|(mode, _, kind)| (*mode, kind.as_str())).collect();
    assert_eq!(bad, [(2, "wrong_result"), (3, "crashed"), (4, "timeout"), (5, "exited")].into());
    assert!(run.stdout.contains("6 candidates: 2 ran, 0 skipped, 1 wrong, 3 failed"), "{run:?}");
    assert!(run.stdout.contains("failed: MODE=3: SIGABRT"), "{run:?}");
    assert_eq!(logged(&folder).len(), 6);
    let best = folder.read("best.toml");
    assert!(
        best.starts_with("# Found by `runtime tune`")
            && best.contains("MODE = 1")
            && !best.contains("[tune]")
    );
}

#[test]
fn the_best_spec_gives_the_same_kernel_from_its_new_place() {
    let folder =
        folder("[tune]\nMODE = [1]\nn = [64]\noptions = { flags = [[\"-O2\", \"-funroll-loops\"]] }");
    std::fs::create_dir_all(folder.path().join("found/here")).unwrap();
    let run = tune(&folder, &["--best", "found/here/best.toml"]);
    assert_eq!(run.code, 0, "{run:?}");
    let run = folder.runtime(&["eval", "found/here/best.toml", "--device", "host", "--json", "eval.json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let row = &json(&folder, "eval.json")["rows"][0];
    assert_eq!(row["kernel"]["name"], "mode");
    let winner = &json(&folder, "out.json")["rows"][0];
    assert_eq!(winner["kernel"]["options"], row["kernel"]["options"]);
    assert_eq!(row["validation"]["elements"], 64);
    assert!(folder.read("found/here/best.toml").contains("path = \"../../mode.c\""));
}

#[test]
fn impossible_geometries_are_skipped_with_their_reason() {
    let folder = folder("[tune]\nMODE = [1]\ngroups = [1, \"n / 3\", \"n / 7\"]");
    let run = tune(&folder, &[]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("2 skipped") && run.stdout.contains("not a whole number"), "{run:?}");
}

#[test]
fn a_killed_run_goes_on_where_it_ended_and_measures_nothing_twice() {
    let folder = folder("[tune]\nMODE = [1]\nSTEP = { from = 1, to = 16, step = 1 }");
    let line = ["tune", "mode.toml", "--device", "host:0", "--log", "log.jsonl"];
    let mut child = command(&line).current_dir(folder.path()).stdout(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    let lines =
        || std::fs::read_to_string(folder.path().join("log.jsonl")).map_or(0, |text| text.lines().count());
    while lines() < 5 {
        assert!(begin.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // As if it had been killed while it wrote.
    let torn = folder.read("log.jsonl") + "{\"fingerprint\":\"12";
    folder.write("log.jsonl", &torn);
    let run = tune(&folder, &["--log", "log.jsonl"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    let rows = logged(&folder);
    assert_eq!(rows.len(), 17);
    assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), 17, "{rows:?}");
    let document = json(&folder, "out.json");
    let candidates = document["tunings"][0]["candidates"].as_array().unwrap();
    let known = candidates.iter().filter(|candidate| candidate["is_logged"] == true).count();
    assert!(candidates.len() == 17 && (4..17).contains(&known), "{known} of {}", candidates.len());
    let again = tune(&folder, &["--log", "log.jsonl"]);
    assert_eq!((again.code, logged(&folder).len()), (0, 17));
}

#[test]
fn results_of_a_changed_kernel_or_setting_are_measured_again() {
    let folder = folder("[tune]\nMODE = [1]");
    assert_eq!(tune(&folder, &["--log", "log.jsonl"]).code, 0);
    let text = folder.read("mode.toml");
    folder.write("mode.toml", &format!("# A comment.\n{text}STEP = [0, 1]\n"));
    let run = tune(&folder, &["--log", "log.jsonl"]);
    assert_eq!(
        (run.code, logged(&folder).len(), run.stderr.as_str()),
        (0, 3, ""),
        "only STEP=1 is new: {run:?}"
    );
    let run = tune(&folder, &["--log", "log.jsonl", "--repeat", "8"]);
    assert!(run.stderr.contains("3 of 3 results in the log are of other candidates"), "{run:?}");
    assert_eq!(logged(&folder).len(), 6);
    folder.write("mode.c", &format!("{CODE}\n"));
    let run = tune(&folder, &["--log", "log.jsonl"]);
    assert!(run.stderr.contains("6 of 6 results in the log are"), "{run:?}");
    assert_eq!(logged(&folder).len(), 9);
    folder.write("log.jsonl", &folder.read("log.jsonl").replace("\"name\":\"", "\"name\":\"old "));
    folder.write("mode.c", CODE);
    let run = tune(&folder, &["--log", "log.jsonl", "--repeat", "9"]);
    assert!(run.code == 2 && run.stderr.contains("host:0 was another device: the name differs"), "{run:?}");
}

#[test]
fn an_interrupt_shows_the_table_so_far() {
    let folder = folder("[tune]\nMODE = [1]\nSTEP = { from = 1, to = 1000, step = 1 }");
    let line = ["tune", "mode.toml", "--device", "host:0", "--log", "log.jsonl", "--best", "best.toml"];
    let mut command = interruptible_command(&line);
    let child =
        command.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while std::fs::read_to_string(folder.path().join("log.jsonl")).map_or(0, |text| text.lines().count()) < 4
    {
        assert!(begin.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.code().is_none(), "it dies of the signal");
    assert!(stdout.contains("the spec's own") && stdout.contains("not complete"), "{stdout}");
    assert!(stderr.contains("interrupted by SIGINT after"), "{stderr}");
    assert!(folder.path().join("best.toml").exists());
}

#[test]
fn halving_measures_the_better_half_again() {
    let folder = folder("[tune]\nMODE = [0, 1]\nSTEP = { from = 1, to = 8, step = 1 }");
    let run = tune(&folder, &["--strategy", "halving", "--log", "log.jsonl"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(logged(&folder).len(), 1 + 16 + 8 + 4, "the spec's own values and three rounds");
    let document = json(&folder, "out.json");
    let first = document["tunings"][0]["candidates"].as_array().unwrap().iter().take(4);
    assert!(first.clone().all(|candidate| candidate["round"] == 2), "{run:?}");
    assert!(candidates(&document, "MODE")[..4].iter().all(|(mode, ..)| *mode == 1), "{run:?}");
    let again = tune(&folder, &["--strategy", "halving", "--log", "log.jsonl"]);
    assert_eq!((again.code, logged(&folder).len()), (0, 29), "nothing is measured twice");
}

#[test]
fn a_sample_is_reproducible_and_a_large_space_needs_one() {
    let folder = folder("[tune]\nMODE = [1]\nSTEP = { from = 1, to = 1000000000, step = 1 }");
    let steps = |arguments: &[&str]| {
        let run = tune(&folder, arguments);
        assert_eq!(run.code, 0, "{run:?}");
        candidates(&json(&folder, "out.json"), "STEP").iter().map(|(step, ..)| *step).collect::<BTreeSet<_>>()
    };
    let first = steps(&["--samples", "3", "--seed", "5"]);
    assert_eq!((first.len(), &first), (4, &steps(&["--samples", "3", "--seed", "5"])));
    assert_ne!(first, steps(&["--samples", "3"]));
    let all = tune(&folder, &[]);
    assert!(all.code == 2 && all.stderr.contains("too many to try one by one"), "{all:?}");
}

#[test]
fn the_time_is_limited_even_while_a_candidate_hangs() {
    for table in ["STEP = { from = 1, to = 1000000000, step = 1 }", "MODE = [6]"] {
        let folder = folder(&format!("[tune]\n{table}"));
        let begin = Instant::now();
        let run = tune(&folder, &["--samples", "100000", "--time-limit", "3", "--timeout", "600"]);
        assert!(run.stdout.contains("not complete"), "{run:?}");
        assert!(begin.elapsed() < Duration::from_secs(60));
        assert_eq!(json(&folder, "out.json")["complete"], false);
    }
}

#[test]
fn wrong_use_is_refused_with_the_remedy() {
    let folder = folder("[tune]\nMODE = [1]\n[sweep]\nn = [10, 20]");
    for (arguments, word) in [
        (&["tune", "scale.toml"][..], "nothing to tune"),
        (&["tune", "mode.toml"], "--set n="),
        (&["tune", "mode.toml", "--set", "n=10", "--spread"], "--spread needs several devices"),
        (&["tune", "mode.toml", "--set", "n=10", "--device", "host:0"], "is given twice"),
        (&["tune", "mode.toml", "--set", "n=10", "--best", "mode.toml"], "would overwrite"),
        (&["tune", "mode.toml", "--set", "n=10", "--best", "-"], "expected a file"),
        (&["tune", "mode.toml", "--set", "n=10", "--log", "mode.c"], "would overwrite"),
        (&["tune", "mode.toml", "--set", "n=10", "--log", "scale.c"], "not a log"),
    ] {
        let run = folder.runtime(&[arguments, &["--device", "host:0"]].concat());
        assert!(run.code == 2 && run.stderr.contains(word), "{arguments:?}: {run:?}");
    }
}

/// A kernel of the null backend that takes `us` microseconds.
fn spin() -> Folder {
    let folder = Folder::new();
    folder.write("spin.null", "spin = spin\n");
    let spec = "version = 1\n[kernel]\npath = \"spin.null\"\nentry = \"spin\"\n[[arg]]\nname = \"us\"\nscalar = \"i64\"\n\
                value = 3000\n[eval]\nrepeat = 6\nnumber = 1\nwarmup = 1\n\
                [tune]\nus = { from = 1000, to = 8000, step = 1000 }\n";
    folder.write("spin.toml", spec);
    folder
}

#[test]
fn candidates_are_spread_over_devices_of_one_model() {
    let folder = spin();
    let devices = ["--device", "null:0", "--device", "null:1"];
    let line = ["tune", "spin.toml", "--spread", "--json", "out.json", "--best", "best.toml"];
    let run = folder.runtime_with_null(&[&line[..], &devices].concat());
    assert_eq!(run.code, 0, "{run:?}");
    let document = json(&folder, "out.json");
    // Other programs may delay any of them, so that the shortest need not be the fastest.
    let medians = ranked_medians(&document);
    // -1 stands for the spec's own values.
    let spins = candidates(&document, "us").into_iter().map(|(us, ..)| if us < 0 { 3000 } else { us });
    assert!(medians.is_sorted(), "{document}");
    let are_long_enough = medians.iter().zip(spins).all(|(median, us)| *median >= us as f64 * 999.0);
    assert!(are_long_enough, "no spin is shorter than asked for: {document}");
    let used: BTreeSet<&str> =
        document["rows"].as_array().unwrap().iter().map(|row| row["device"].as_str().unwrap()).collect();
    assert_eq!(used, ["null:0", "null:1"].into());
    assert_eq!(document["rows"].as_array().unwrap().len(), 8, "us=3000 are the spec's own values");
    for (other, why) in [
        ("host:0", "the target differs"),
        ("null:0.1", "the number of compute units differs"),
        ("null:9", "null:9"),
    ] {
        let run = folder.runtime_with_null(&[&line[..], &["--device", "null:0", "--device", other]].concat());
        assert!(run.code == 2 && run.stderr.contains(why), "{run:?}");
    }
}

#[test]
fn each_device_is_tuned_for_itself() {
    let folder = spin();
    let line = ["tune", "spin.toml", "--json", "out.json", "--device", "null:0", "--device", "null:1"];
    let run = folder.runtime_with_null(&line);
    assert_eq!(run.code, 0, "{run:?}");
    let document = json(&folder, "out.json");
    let tunings = document["tunings"].as_array().unwrap();
    let counts: Vec<usize> =
        tunings.iter().map(|tuning| tuning["candidates"].as_array().unwrap().len()).collect();
    assert_eq!(counts, [8, 8]);
    let run = folder.runtime_with_null(&[&line[..], &["--best", "best.toml"]].concat());
    assert!(run.code == 2 && run.stderr.contains("--best takes the best of one device"), "{run:?}");
}

#[test]
fn a_sweep_has_a_row_per_size() {
    for isolation in [&[][..], &["--isolate"]] {
        let folder = folder("[sweep]\nn = { from = 8, to = 32, factor = 2 }");
        let line = ["eval", "mode.toml", "--set", "MODE=1", "--device", "host:0", "--resume", "out.json"];
        let line = [&line[..], isolation].concat();
        let run = folder.runtime(&line);
        assert_eq!(run.code, 0, "{run:?}");
        let rows = |folder: &Folder| json(folder, "out.json")["rows"].as_array().unwrap().clone();
        let row = |row: &Value| {
            (row["parameters"]["n"].as_i64().unwrap(), row["validation"]["elements"].as_i64().unwrap())
        };
        assert_eq!(rows(&folder).iter().map(row).collect::<Vec<_>>(), [(8, 8), (16, 16), (32, 32)]);
        let before = rows(&folder);
        folder.write("old.json", &folder.read("out.json"));
        let run = folder.runtime(&[&line[..], &["--baseline", "old.json"]].concat());
        assert_eq!(run.code, 0, "{run:?}");
        assert_eq!(rows(&folder), before, "nothing is measured twice");
        let run =
            folder.runtime(&["eval", "mode.toml", "--set", "MODE=1", "--set", "n=9", "--device", "host:0"]);
        // Notes may follow the table, after an empty line.
        let rows = run.stdout.lines().take_while(|line| !line.is_empty()).count();
        assert!(run.code == 0 && rows == 2, "one size: {run:?}");
    }
}
