//! `runtime eval` on the fake chip: counters beside the times, and where the arguments were.

use libtest_mimic::{Failed, Trial};
use mppa::{FakeSdk, check_seen, eval_row, start_eval};
use serde_json::{Value, json};

/// Counts its calls: each adds 1000 × the event's number + 100 × the cluster + the element to every counter.
const SPEC: &str = r#"version = 1
[kernel]
path = "program.elf"
entry = "counted"
[[arg]]
name = "calls"
dtype = "i32"
shape = [1]
use = "readwrite"
on = "host"
[eval]
repeat = 4
number = 3
warmup = 2
"#;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test(
            "timing::counters_have_a_sample_for_each_repeat_and_cycles_are_times",
            samples_of_counters,
        ),
        Trial::test("timing::times_come_without_the_functions_that_count", without_counters),
        Trial::test("timing::chips_are_opened_side_by_side", side_by_side),
        Trial::test("timing::what_the_compiler_of_the_shim_prints_is_logged_on_request", build_verbose),
        Trial::test("timing::clusters_of_different_clocks_have_no_common_time", different_clocks),
    ]
}

/// The row of a spec on the fake chip.
pub(crate) fn row(sdk: &FakeSdk, spec: &str, arguments: &[&str]) -> Result<Value, Failed> {
    super::program_file(sdk)?;
    sdk.write("spec.toml", spec);
    eval_row(sdk.path(), &sdk.variables(), arguments)
}

/// The ancestor returned the first repeat only.
fn samples_of_counters() -> Result<(), Failed> {
    let sdk = FakeSdk::new(1);
    let names = "mppa.PCC.cluster.2.pe.3,mppa.ICC.cluster.max.pe.max,mppa.EBE.cluster.0.pe.0";
    let row = row(&sdk, SPEC, &["--device", "mppa:offload", "--counters", names])?;
    check_seen(row["measurement"]["samples_ns"].as_array().is_some_and(|samples| samples.len() == 4), &row)?;
    for (counter, (value, time)) in row["counters"].as_array().unwrap().iter().zip([
        (203.0, json!(203.0)),
        (1415.0, json!(1415.0)),
        (2000.0, json!(null)),
    ]) {
        check_seen(counter["samples"] == json!([value, value, value, value]), &row)?;
        check_seen(counter["value"] == value && counter["time_ns"] == time, &row)?;
    }
    let arguments = json!([{ "name": "calls", "on": "host", "transfer": "timed" }]);
    check_seen(row["arguments"] == arguments && row["measurement"]["transfer"]["bytes_in"] == 4, &row)
}

fn without_counters() -> Result<(), Failed> {
    let sdk = FakeSdk::new(1);
    sdk.write("spec.toml", SPEC);
    let mut code = sdk.program();
    let stop = b"runtime_counters_stop";
    let at = code.windows(stop.len()).position(|name| name == stop).unwrap();
    code[at + stop.len() - 1] = b'q';
    std::fs::write(sdk.path().join("program.elf"), code)?;
    let line = ["--device", "mppa:offload", "--counters", "mppa.PCC.cluster.0.pe.0"];
    let row = eval_row(sdk.path(), &sdk.variables(), &line)?;
    check_seen(row["measurement"]["samples_ns"].as_array().is_some_and(|samples| samples.len() == 4), &row)?;
    let counter = &row["counters"][0];
    let reason = counter["reason"].as_str().unwrap_or_default();
    check_seen(counter["value"].is_null() && reason.contains("no function runtime_counters_stop"), &row)
}

fn different_clocks() -> Result<(), Failed> {
    let sdk = FakeSdk::new(1);
    let clocks: String = (1..=5).map(|ghz| format!("cluster : {ghz}000000000\n")).collect();
    sdk.write("mppa/board0/mppa0/freq", &clocks);
    let counters = ["--counters", "mppa.PCC.cluster.1.pe.3"];
    let chip = row(&sdk, SPEC, &[&["--device", "mppa:offload"], &counters[..]].concat())?;
    check_seen(chip["counters"][0]["value"] == 103.0 && chip["counters"][0]["time_ns"].is_null(), &chip)?;
    let index = chip["device"].as_str().unwrap().to_owned();
    let cluster = row(&sdk, SPEC, &[&["--device", &format!("{index}.1")], &counters[..]].concat())?;
    let time = cluster["counters"][0]["time_ns"].as_f64();
    check_seen(cluster["counters"][0]["value"] == 103.0 && time == Some(51.5), &cluster)
}

/// Neither chip opens before the other one is being opened.
fn side_by_side() -> Result<(), Failed> {
    let sdk = FakeSdk::new(2);
    super::program_file(&sdk)?;
    sdk.write("spec.toml", SPEC);
    let variables: Vec<_> = sdk.variables().into_iter().chain([("FAKE_TOGETHER", "2".into())]).collect();
    // Index 0 and 1 are the chips by way of OpenCL.
    let finished = start_eval(sdk.path(), &variables, &["--device", "mppa:2", "--device", "mppa:3"])?;
    let document: Value = serde_json::from_str(&std::fs::read_to_string(sdk.path().join("rows.json"))?)?;
    let rows = document["rows"].as_array().unwrap();
    check_seen(rows.len() == 2, &document)?;
    for row in rows {
        check_seen(row["measurement"].is_object() && row["device_info"]["name"] == "Offload", row)?;
    }
    if finished.status.success() { Ok(()) } else { Err(format!("{finished:?}").into()) }
}

fn build_verbose() -> Result<(), Failed> {
    let sdk = FakeSdk::new(1);
    super::program_file(&sdk)?;
    let header = "include/mppa_offload_host.h";
    let text = std::fs::read_to_string(sdk.path().join(header))?;
    sdk.write(header, &format!("#warning planted\n{text}")).write("spec.toml", SPEC);
    for (option, expected) in [("build_verbose=true", true), ("build_verbose=false", false)] {
        let line = ["--device", "mppa:offload", "--option", option];
        let finished = start_eval(sdk.path(), &sdk.variables(), &line)?;
        check_seen(finished.status.success() && finished.stderr.contains("planted") == expected, &finished)?;
    }
    Ok(())
}
