//! Noise of measurements: what is recorded, what is measured again, and the advice.

use serde_json::Value;

use super::fixture::Folder;

const NOOP: &str =
    "version = 1\n[kernel]\npath = \"k.null\"\nentry = \"k\"\n[eval]\nrepeat = 8\nnumber = 2\n";

/// The row of a kernel that does nothing on the null device, with these options.
fn null_row(options: &[&str]) -> Value {
    let folder = Folder::new();
    folder.write("k.null", "k = noop\n");
    folder.write("k.toml", NOOP);
    let options = options.iter().flat_map(|option| ["--option", option]);
    let arguments: Vec<&str> =
        ["eval", "k.toml", "--device", "null:0", "--json", "-"].into_iter().chain(options).collect();
    let run = folder.runtime_with_null(&arguments);
    let document: Value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"));
    document["rows"][0].clone()
}

fn advice(row: &Value) -> Vec<&str> {
    row["advice"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn throttled_samples_are_measured_again() {
    // The third reading is the first after a sample; it covers one sample or, if readings are slow, several.
    let row = null_row(&["throttle=hardware_thermal:3:3"]);
    let measurement = &row["measurement"];
    let throttled = &measurement["throttled"];
    assert!((1..=8).contains(&throttled["remeasured"].as_u64().unwrap()) && throttled["kept"] == 0, "{row}");
    assert_eq!(measurement["samples_ns"].as_array().unwrap().len(), 8);
    assert_eq!(row["noise"]["device"]["throttle_reasons"][0], "hardware thermal");
    assert!(advice(&row).iter().all(|text| !text.contains("throttled")), "{row}");
}

#[test]
fn throttling_that_stays_gives_advice_everywhere() {
    let row = null_row(&["throttle=power_brake"]);
    let throttled = &row["measurement"]["throttled"];
    assert!((1..=8).contains(&throttled["remeasured"].as_u64().unwrap()) && throttled["kept"] == 8, "{row}");
    let expected = "the device throttled during 8 of 8 samples (power brake)";
    assert!(advice(&row)[0].starts_with(expected), "{row}");
    let folder = Folder::new();
    folder.write("k.null", "k = noop\n");
    folder.write("k.toml", NOOP);
    let line = ["eval", "k.toml", "--device", "null:0", "--option", "throttle=power_brake"];
    let table = folder.runtime_with_null(&line);
    assert!(table.stdout.contains(&format!("k on null:0: {expected}")), "{table:?}");
    let markdown = folder.runtime_with_null(&[&line[..], &["--markdown", "-"]].concat());
    assert!(markdown.stdout.contains(&format!("- k on null:0: {expected}")), "{markdown:?}");
}

#[test]
fn a_power_cap_does_not_disturb() {
    let row = null_row(&["throttle=power_cap"]);
    assert_eq!(row["measurement"]["throttled"], serde_json::json!({"remeasured": 0, "kept": 0}), "{row}");
    assert_eq!(row["noise"]["device"]["throttle_reasons"], serde_json::json!(["power cap"]));
}

#[test]
fn other_processes_of_the_device_are_named() {
    let own = std::process::id();
    let row = null_row(&[&format!("process={own}"), "process=4000001"]);
    let processes = row["noise"]["device"]["processes"].as_array().unwrap();
    assert_eq!((&processes[0]["id"], &processes[1]["id"]), (&own.into(), &4_000_001.into()));
    assert!(processes[1]["name"].is_null());
    if cfg!(target_os = "linux") {
        let name = std::fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(processes[0]["name"], name.trim(), "{row}");
    }
}

#[test]
fn the_state_of_the_host_is_recorded() {
    let row = null_row(&[]);
    let host = &row["noise"]["host"];
    assert!(host["elapsed_s"].as_f64().unwrap() > 0.0, "{host}");
    assert!(host["minor_page_faults"].is_u64() && host["involuntary_switches"].is_u64(), "{host}");
    if cfg!(target_os = "linux") {
        assert!(!host["affinity"].as_array().unwrap().is_empty(), "{host}");
    }
}

/// Waits for as many microseconds as `us` says, by the clock.
const WAIT: &str = r"
#define _POSIX_C_SOURCE 199309L
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
void wait_us(long us) { double end = now() + us * 1e3; while (now() < end) {} }
";
const WAIT_SPEC: &str = "version = 1\n[kernel]\npath = \"wait.c\"\nentry = \"wait_us\"\n[[arg]]\nname = \"us\"\nscalar = \"i64\"\n\
                         value = 10\n";

/// The row of a busy-wait.
fn wait(us: u32, options: &[&str]) -> Value {
    let folder = Folder::new();
    folder.write("wait.c", WAIT);
    folder.write("wait.toml", WAIT_SPEC);
    let set = format!("us={us}");
    let line =
        [&["eval", "wait.toml", "--device", "host:0", "--json", "-", "--set", &set][..], options].concat();
    let run = folder.runtime(&line);
    let document: Value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"));
    document["rows"][0].clone()
}

/// Whether a wait is measured within 1%, or advice is given; otherwise the row.
fn is_accurate_or_advised(us: u32) -> Result<(), Value> {
    let row = wait(us, &[]);
    let median_ns = row["measurement"]["statistics"]["median_ns"].as_f64().unwrap();
    let error = median_ns / (f64::from(us) * 1e3) - 1.0;
    assert!(error >= -0.001, "{us} µs measured as {median_ns} ns: shorter than the wait");
    if error < 0.01 || !advice(&row).is_empty() { Ok(()) } else { Err(row) }
}

#[test]
fn a_calibrated_wait_is_accurate_or_advice_is_given() {
    for us in [10, 100, 1000, 10_000, 100_000] {
        // No reading shows some disturbances of a virtual machine; an error of ours would be there each time.
        let failures = (0..5).map_while(|_| is_accurate_or_advised(us).err());
        let failures: Vec<Value> = failures.collect();
        assert!(failures.len() < 5, "{us} µs: {failures:?}");
    }
}

#[test]
fn until_takes_samples_until_the_median_is_precise() {
    let row = wait(100, &["--until", "50%", "--number", "1"]);
    let measurement = &row["measurement"];
    assert_eq!(
        (&measurement["reached_until"], &row["settings"]["until_percent"]),
        (&true.into(), &50.0.into())
    );
    assert!(measurement["samples_ns"].as_array().unwrap().len() >= 26, "{row}");
    // No clock is that precise, so the budget ends it.
    let row = wait(100, &["--until", "0.001%", "--number", "7", "--budget", "0.3"]);
    if row["measurement"]["reached_until"] == false {
        assert!(advice(&row).iter().any(|text| text.contains("instead of ±0.001%")), "{row}");
    }
    assert_eq!(row["status"], "unchecked", "not reaching it is no failure: {row}");
}

#[test]
fn cold_flushes_before_each_call() {
    let row = wait(10, &["--cold", "--repeat", "3"]);
    assert_eq!((&row["settings"]["flush_cache"], &row["measurement"]["number"]), (&"call".into(), &1.into()));
    assert_eq!(row["measurement"]["cold"], false, "the code is warm");
}
