//! The firmware's parser, compiled for this machine and fuzzed with sanitizers. `RUNTIME_FIRMWARE_FUZZ_SECONDS` sets how long.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which prints its statistics")]

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

const COMPILER: &str = "clang-15";
const SANITIZERS: &str = "-fsanitize=fuzzer,address,undefined";
const SECONDS: u64 = 5;
const DEADLINE: Duration = Duration::from_secs(120);

/// Compiles a fuzzer of some sources; `Err` with the reason if there is no compiler, or it lacks the sanitizers.
fn compile(sources: &[String], fuzzer: &Path) -> Result<(), String> {
    let firmware = concat!(env!("CARGO_MANIFEST_DIR"), "/firmware");
    let mut command = Command::new(COMPILER);
    command.args(["-g", "-O1", "-Wall", "-DRUNTIME_UART", "-DRUNTIME_UART_PAYLOAD=300", "-I", firmware]);
    command.args([SANITIZERS, "-fno-sanitize-recover=all", "-o"]).arg(fuzzer).args(sources);
    test_process::finish(&mut command, DEADLINE)?.success().map(drop)
}

fn has_compiler() -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("empty.c");
    let empty = "int LLVMFuzzerTestOneInput(const char *data, long size) { return 0; }";
    std::fs::write(&source, empty).unwrap();
    compile(&[source.display().to_string()], &folder.path().join("empty"))
        .map_err(|error| format!("needs {COMPILER} with its sanitizers: {error}"))
}

fn any_bytes_are_safe() -> Result<(), Failed> {
    let seconds = std::env::var("RUNTIME_FIRMWARE_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let seconds: u64 = seconds.unwrap_or(SECONDS);
    let folder = tempfile::tempdir().unwrap();
    let root = env!("CARGO_MANIFEST_DIR");
    let mut sources: Vec<String> =
        ["frame.c", "serve.c", "data.c"].map(|name| format!("{root}/firmware/{name}")).to_vec();
    sources.push(format!("{root}/tests/firmware/fuzz.c"));
    let fuzzer = folder.path().join("fuzzer");
    compile(&sources, &fuzzer)?;
    let mut run = Command::new(&fuzzer);
    run.current_dir(folder.path()).args(["-seed=1", "-max_len=4096", "-timeout=20", "-print_final_stats=1"]);
    run.arg(format!("-max_total_time={seconds}"));
    let finished = test_process::finish(&mut run, DEADLINE + Duration::from_secs(seconds))?;
    println!(
        "{}",
        finished.text().lines().filter(|line| line.contains("stat::")).collect::<Vec<_>>().join("\n")
    );
    finished.success()?;
    Ok(())
}

fn main() -> ExitCode {
    let trial = Trial::ignorable_test("any_bytes_are_safe", || match has_compiler() {
        Err(reason) if test_process::required("clang") => Err(reason.into()),
        Err(reason) => Ok(Completion::ignored_with(reason)),
        Ok(()) => any_bytes_are_safe().map(|()| Completion::Completed),
    });
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}
