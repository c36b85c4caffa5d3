//! `runtime eval` of whole programs on fake tools: their times, and the traces that they leave.

use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use mppa::{FakeSdk, KV3_2, check_seen, elf_header, eval_row, start_eval, write_tool};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::evaluation::row;

/// Called as `PROGRAM X Y`: copies X, which is not zeros, to Y, and leaves a trace if it is asked for one.
const TOOL: &str = r#"[ "$(wc -c < "$2")" = 100 ] && [ "$(tr -d '\000' < "$2" | wc -c)" -gt 50 ] || exit 3
cat "$2" > "$3"
[ "$MPPA_TRACE_ENABLE" = 1 ] && echo "$MPPA_ENVP" > mppa.trace
exit 0
"#;
const SPEC: &str = r#"version = 1
[kernel]
path = "program.elf"
entry = "main"
[[arg]]
name = "x"
dtype = "u8"
shape = [100]
[[arg]]
name = "y"
dtype = "u8"
shape = [100]
use = "write"
[cost]
bytes = 200
[eval]
repeat = 2
number = 2
warmup = 1
"#;
/// The check of the program, the warm-up, and two samples of two runs.
const RUNS: usize = 1 + 1 + 2 * 2;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("timing::a_whole_program_is_timed_run_by_run", times),
        Trial::test("timing::the_time_of_a_simulator_is_called_so", simulated),
        Trial::test("timing::traces_are_collected_and_named_in_the_report", traces),
        Trial::test("timing::traces_that_would_be_lost_or_cannot_be_recorded_are_refused", refused),
        Trial::test("timing::traces_of_the_offload_library_are_named_in_the_report", offload),
    ]
}

/// A machine with a board, a simulator, and a program for both.
fn machine() -> Result<TempDir, Failed> {
    let root = tempfile::tempdir()?;
    let write = |name: &str, bytes: &[u8]| {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(root.path()))?;
        std::fs::write(path, bytes)
    };
    write("mppa/version", b"5.0.0")?;
    write("mppa/board0/archver", b"kv3-2")?;
    write("mppa/board0/mppa0/freq", b"cluster0 : 1000000000\n")?;
    for tool in ["tool", "bin/kvx-jtag-runner", "bin/kvx-mppa"] {
        write_tool(&root.path().join(tool), TOOL);
    }
    write("program.elf", &elf_header(KV3_2))?;
    write("spec.toml", SPEC.as_bytes())?;
    Ok(root)
}

/// The row of the program on a device of the machine.
fn evaluate(root: &Path, device: &str, more: &[&str], variables: &[(&str, &str)]) -> Result<Value, Failed> {
    eval_row(root, &environment(root, variables)?, &line(&command(root), device, more))
}

fn environment<'a>(root: &Path, more: &[(&'a str, &str)]) -> Result<Vec<(&'a str, PathBuf)>, Failed> {
    let path = format!("{}:{}", root.join("bin").display(), std::env::var("PATH")?);
    let own = [("RUNTIME_MPPA_ROOT", root.to_owned()), ("PATH", path.into())];
    Ok(own.into_iter().chain(more.iter().map(|(name, value)| (*name, value.into()))).collect())
}

fn command(root: &Path) -> String {
    format!("command={} {{program}} {{args}}", root.join("tool").display())
}

fn line<'a>(command: &'a str, device: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["--device", device, "--option", command], more].concat()
}

fn traces_of(row: &Value) -> Vec<String> {
    let paths = row["traces"].as_array().cloned().unwrap_or_default();
    paths.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn times() -> Result<(), Failed> {
    let root = machine()?;
    let row = evaluate(root.path(), "mppa:jtag", &[], &[])?;
    let measured = &row["measurement"];
    check_seen(measured["samples_ns"].as_array().is_some_and(|samples| samples.len() == 2), &row)?;
    check_seen(
        measured["clock"] == "host_wall" && measured["calls"] == RUNS && measured["number"] == 2,
        &row,
    )?;
    check_seen(measured["gbytes_per_s"].is_number() && row["advice"] == json!([]), &row)?;
    check_seen(row["arguments"][0]["transfer"] == "untimed" && traces_of(&row).is_empty(), &row)
}

fn simulated() -> Result<(), Failed> {
    let root = machine()?;
    let row = evaluate(root.path(), "mppa:iss", &["--counters", "functions"], &[])?;
    let advice = row["advice"][0].as_str().unwrap_or_default();
    check_seen(row["measurement"].is_object() && advice.contains("simulated time"), &row)?;
    let reason = row["counters"][0]["reason"].as_str().unwrap_or_default();
    check_seen(reason.contains("no counters"), &row)
}

fn traces() -> Result<(), Failed> {
    let root = machine()?;
    let work = root.path().join("work");
    let folder = format!("work_dir={}", work.display());
    let options = ["--option", "trace=true", "--option", &folder];
    let by_options = evaluate(root.path(), "mppa:jtag", &options, &[])?;
    let quiet = [&options[..], &["--option", "trace_use_syscall=false"]].concat();
    let without_calls = evaluate(root.path(), "mppa:jtag", &quiet, &[])?;
    let variables = [("BENCHMARK", "1"), ("RUNTIME_MPPA_WORK_DIR", work.to_str().unwrap_or_default())];
    let by_environment = evaluate(root.path(), "mppa:jtag", &[], &variables)?;
    let meta = "MPPA_TRACE_ENABLE_META=1";
    let with_calls = format!("{meta} MPPA_TRACE_USE_SYSCALL=1");
    for (row, text) in
        [(&by_options, with_calls.as_str()), (&without_calls, meta), (&by_environment, &with_calls)]
    {
        let named = traces_of(row);
        check_seen(named.len() == RUNS, row)?;
        for path in &named {
            check_seen(Path::new(path).starts_with(work.join("traces")), row)?;
            check_seen(std::fs::read_to_string(path)?.trim() == text, row)?;
        }
    }
    Ok(())
}

fn refused() -> Result<(), Failed> {
    let root = machine()?;
    for (device, words) in [("mppa:jtag", "set option \"work_dir\""), ("mppa:iss", "needs a board")] {
        let (command, trace) = (command(root.path()), ["--option", "trace=true"]);
        let finished =
            start_eval(root.path(), &environment(root.path(), &[])?, &line(&command, device, &trace))?;
        if finished.status.success() || !finished.stderr.contains(words) {
            return Err(format!("{finished:?}").into());
        }
    }
    Ok(())
}

fn offload() -> Result<(), Failed> {
    let sdk = FakeSdk::new(1);
    let spec = "version = 1\n[kernel]\npath = \"program.elf\"\nentry = \"traced\"\n[eval]\nrepeat = 2\n";
    let device = ["--device", "mppa:offload"];
    let quiet = row(&sdk, spec, &device)?;
    check_seen(quiet["measurement"].is_object() && quiet.get("traces").is_none(), &quiet)?;
    let variables: Vec<_> = sdk.variables().into_iter().chain([("MPPA_TRACE_ENABLE", "1".into())]).collect();
    let traced = eval_row(sdk.path(), &variables, &device)?;
    check_seen(traces_of(&traced).iter().any(|path| path.ends_with("/chip.trace")), &traced)
}
