//! Counters and energy beside the times.

use serde_json::Value;

use crate::fixture::{Finished, Folder, command_with};

/// A spec of the null backend: one launch counts 1 launch, 1000 ticks, 64 bytes and 250 microjoules.
const SPEC: &str = r#"version = 1
name = "fill"
[kernel]
path = "code.null"
entry = "fill_f32"
format = "null"
[[arg]]
name = "x"
dtype = "f32"
shape = [16]
use = "write"
[[arg]]
scalar = "f32"
value = 2.0
[eval]
repeat = 3
number = 5
warmup = 1
"#;

fn folder(eval: &str) -> Folder {
    let folder = Folder::new();
    folder.write("code.null", "fill_f32");
    folder.write("fill.toml", &format!("{SPEC}{eval}"));
    folder
}

fn row(folder: &Folder, arguments: &[&str]) -> (Finished, Value) {
    let line = [&["eval", "fill.toml", "--device", "null:0", "--json", "rows.json"], arguments].concat();
    let run = folder.runtime_with_null(&line);
    let document: Value = serde_json::from_str(&folder.read("rows.json")).unwrap();
    (run, document["rows"][0].clone())
}

fn list(arguments: &[&str]) -> Finished {
    command_with(&["host", "null"], arguments).output().unwrap().into()
}

#[test]
fn counters_are_listed_with_reasons() {
    let run = list(&["counters", "--device", "null:0"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    assert!(run.stdout.lines().any(|line| line.starts_with("launches") && line.contains("available")));
    assert!(run.stdout.contains("the simulated processor has no cache"), "{run:?}");
    let run = list(&["counters", "--device", "host", "--json"]);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&document["schema"], &document["device"]), (&"runtime.counters".into(), &"host:0".into()));
    let counters = document["counters"].as_array().unwrap();
    for counter in counters {
        assert!(counter["name"].is_string() && counter["description"].is_string(), "{counter}");
    }
    assert!(counters.iter().any(|counter| counter["name"] == "page-faults"));
}

#[test]
fn devices_without_counters_and_wrong_names_are_errors() {
    for (device, word) in [("null:2", "counters"), ("nul", "null"), ("null:3", "only listed")] {
        let run = list(&["counters", "--device", device]);
        assert!(run.code == 2 && run.stderr.contains(word), "{run:?}");
    }
}

#[test]
fn counters_are_reported_per_call() {
    let folder = folder("");
    let names = "launches,ticks,bytes,stalls,utilisation,misses";
    let (run, row) = row(&folder, &["--counters", names]);
    assert_eq!(run.code, 0, "{run:?}");
    let counters = row["counters"].as_array().unwrap();
    let values: Vec<Option<f64>> = counters.iter().map(|counter| counter["value"].as_f64()).collect();
    assert_eq!(values, [Some(1.0), Some(1000.0), Some(64.0), Some(10.0), Some(40.0), None]);
    assert!(counters.iter().all(|counter| counter["passes"] == 2 && counter["calls"] == 5), "{row}");
    // The warm-up and the first launch of the queue are not in them.
    for counter in &counters[..5] {
        assert_eq!(
            counter["samples"],
            serde_json::json!([counter["value"], counter["value"], counter["value"]])
        );
    }
    assert_eq!((&counters[1]["time_ns"], &counters[2]["time_ns"]), (&1000.0.into(), &Value::Null), "1 GHz");
    assert_eq!((&counters[2]["unit"], &counters[3]["counted_share"]), (&"bytes".into(), &0.5.into()));
    assert_eq!((&counters[4]["is_ratio"], &counters[0]["is_ratio"]), (&true.into(), &false.into()));
    assert!(counters[5]["reason"].as_str().unwrap().contains("no cache"), "{row}");
    for text in [
        "per call, in 2 passes: launches 1.000",
        "bytes 64.00 bytes",
        "ticks 1000 cycles = 1.000 µs",
        "50%",
        "no misses: ",
    ] {
        assert!(run.stdout.contains(text), "{text}: {}", run.stdout);
    }
    assert_eq!(row["settings"]["counters"][1], "ticks");
    assert!(row["measurement"]["statistics"]["median_ns"].is_number());
}

#[test]
fn counters_come_from_the_spec_and_from_workers() {
    let folder = folder("counters = [\"ticks\"]\nenergy = true\n");
    for arguments in [&[][..], &["--isolate"]] {
        let (run, row) = row(&folder, arguments);
        assert_eq!(run.code, 0, "{run:?}");
        assert_eq!(row["counters"][0]["value"], 1000.0, "{row}");
        assert!(row["energy"]["microjoules_per_call"].is_number(), "{row}");
    }
    let (_, row) = row(&folder, &["--counters", "bytes"]);
    assert_eq!(row["counters"][0]["name"], "bytes", "the command line takes precedence");
}

#[test]
fn an_unknown_counter_is_an_error_before_anything_is_measured() {
    let folder = folder("");
    folder.write("rows.json", "untouched");
    let line = ["eval", "fill.toml", "--device", "null:0", "--json", "rows.json", "--counters"];
    for (names, word) in [("launch", "did you mean \"launches\""), ("ticks,ticks", "twice")] {
        let run = folder.runtime_with_null(&[&line[..], &[names]].concat());
        assert!(run.code == 2 && run.stderr.contains(word), "{run:?}");
        assert_eq!(folder.read("rows.json"), "untouched");
    }
    let run = folder.runtime_with_null(&[&line[..], &["launch", "--isolate"]].concat());
    assert!(run.code == 2 && run.stderr.contains("did you mean"), "{run:?}");
}

#[test]
fn times_are_reported_if_counters_fail_in_any_repeat() {
    let folder = folder("counters = [\"ticks\"]\n");
    for call in ["begin_counters:1", "end_counters:2", "read_counters:3", "open_counters:2"] {
        let fault = format!("fail_call={call}:driver");
        let (run, row) = row(&folder, &["--option", &fault]);
        assert_eq!(row["measurement"]["samples_ns"].as_array().unwrap().len(), 3, "{run:?}");
        let counter = &row["counters"][0];
        assert!(counter["value"].is_null() && counter["samples"].as_array().unwrap().is_empty(), "{counter}");
        let slot = call.split(':').next().unwrap();
        assert!(counter["reason"].as_str().unwrap().contains(slot), "{counter}");
    }
}

#[test]
fn a_device_that_is_lost_while_it_counts_does_not_fail_the_next_kernel() {
    let folder = folder("counters = [\"ticks\"]\n");
    folder.write("again.toml", &folder.read("fill.toml"));
    let line = ["eval", "fill.toml", "again.toml", "--device", "null:0", "--isolate", "--json", "rows.json"];
    let lost = ["--option", "fail_call=begin_counters:1:device_lost"];
    let run = folder.runtime_with_null(&[&line[..], &lost].concat());
    let document: Value = serde_json::from_str(&folder.read("rows.json")).unwrap();
    for row in document["rows"].as_array().unwrap() {
        assert!(row["measurement"].is_object(), "{row}, {run:?}");
        assert!(row["counters"][0]["reason"].as_str().unwrap().contains("begin_counters"), "{row}");
    }
    assert_eq!(document["rows"].as_array().unwrap().len(), 2);
}

#[test]
fn energy_is_reported_with_its_resolution() {
    let folder = folder("");
    let (run, row) = row(&folder, &["--energy"]);
    assert_eq!(run.code, 0, "{run:?}");
    let energy = &row["energy"];
    let per_call = energy["microjoules_per_call"].as_f64().unwrap();
    assert!((per_call / 250.0 - 1.0).abs() <= 0.05, "{energy}");
    let resolution = energy["resolution_microjoules"].as_u64().unwrap();
    assert!(
        resolution >= 1000 && energy["total_microjoules"].as_u64().unwrap() >= 20 * resolution,
        "{energy}"
    );
    assert!(run.stdout.contains("µJ per call"), "{}", run.stdout);
    let (_, without) = self::row(&folder, &[]);
    assert!(without["energy"].is_null() && without["counters"].as_array().unwrap().is_empty());
}

#[test]
fn software_counters_of_the_host_are_counted_or_have_a_reason() {
    let folder = Folder::new();
    let line =
        ["eval", "scale.toml", "--device", "host:0", "--repeat", "3", "--json", "rows.json", "--counters"];
    let run = folder.runtime(&[&line[..], &["task-clock,page-faults,cycles,r01c2"]].concat());
    assert_eq!(run.code, 0, "{run:?}");
    let document: Value = serde_json::from_str(&folder.read("rows.json")).unwrap();
    let counters = document["rows"][0]["counters"].as_array().unwrap();
    assert_eq!(counters.len(), 4);
    for counter in counters {
        let value = counter["value"].as_f64();
        assert_ne!(value.is_some(), counter["reason"].is_string(), "one of them: {counter}");
        assert!(value.is_none_or(|value| value >= 0.0), "{counter}");
    }
}

/// Touches new pages in each call, without huge pages.
const PAGES: &str = r"
#include <sys/mman.h>
void pages(int *x, long n) {
    char *new = mmap(0, n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(new, n * 4096, MADV_NOHUGEPAGE);
    for (long i = 0; i < n; i++) new[i * 4096] = 1;
    munmap(new, n * 4096);
    x[0] = 1;
}
";
const PAGES_SPEC: &str = r#"version = 1
[kernel]
path = "pages.c"
entry = "pages"
[[arg]]
dtype = "i32"
shape = [1]
use = "write"
[[arg]]
scalar = "i64"
value = 1000
[eval]
repeat = 3
counters = ["page-faults", "cycles", "instructions"]
"#;

#[test]
#[cfg(target_os = "linux")]
fn page_faults_of_a_kernel_are_those_of_the_pages_that_it_touches() {
    let folder = Folder::new();
    folder.write("pages.c", PAGES);
    folder.write("pages.toml", PAGES_SPEC);
    let run = folder.runtime(&["eval", "pages.toml", "--device", "host:0", "--json", "rows.json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let document: Value = serde_json::from_str(&folder.read("rows.json")).unwrap();
    let [faults, cycles, instructions] = &document["rows"][0]["counters"].as_array().unwrap()[..] else {
        panic!("{document}")
    };
    match faults["value"].as_f64() {
        Some(faults) => assert!((1000.0..1100.0).contains(&faults), "{faults}"),
        None => assert!(faults["reason"].as_str().unwrap().contains("perf_event"), "{faults}"),
    }
    if let (Some(cycles), Some(instructions)) = (cycles["value"].as_f64(), instructions["value"].as_f64()) {
        assert!(cycles > 1000.0 && instructions > 4000.0, "{cycles} {instructions}");
    }
    if cycles["reason"].is_string() && cycles["reason"] == instructions["reason"] {
        assert!(run.stdout.contains("no cycles, instructions: "), "a reason is given once: {}", run.stdout);
    }
}

#[test]
fn calls_that_need_initial_contents_are_not_counted() {
    let folder = folder("");
    let spec = SPEC.replace("use = \"write\"", "use = \"readwrite\"\neach_call = \"initial\"");
    folder.write("fill.toml", &spec);
    let (run, row) = row(&folder, &["--counters", "launches", "--energy"]);
    assert_eq!((run.code, &row["status"]), (0, &"unchecked".into()), "{run:?}");
    for reason in [&row["counters"][0]["reason"], &row["energy"]["reason"]] {
        assert!(reason.as_str().unwrap().contains("needs initial contents"), "{row}");
    }
}
