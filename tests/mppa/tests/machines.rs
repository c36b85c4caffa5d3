//! Fake machines, seen by programs that load the backend's library: what is listed, and whole programs on fake simulators.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use mppa::{KV3_1, KV3_2, elf_header};
use opencl::{DEADLINE, IcdFolder, built, current_program};
use runtime_core::{Arg, CodeFormat, ErrorKind, HostArray, ModuleSource, Options, Runtime};
use serde_json::Value;

/// Set in a child that runs whole programs, to its case.
const CHILD: &str = "RUNTIME_TEST_MPPA_MACHINE";
/// A case: its name, and what its child does.
type Case = (&'static str, &'static str, fn(&Runtime) -> Result<(), Failed>);

const CASES: [Case; 3] = [
    ("a_program_doubles_a_tensor_on_a_simulator", DOUBLES, doubles),
    ("a_program_that_fails_says_how", "echo no more memory; exit 12", fails),
    (
        "two_configurations_run_in_one_process",
        "[ \"$1\" = --march=kv3-1 ] || [ \"$1\" = --march=kv3-2 ]",
        two_configurations,
    ),
];

/// Called as `--march=kv3-2 -- PROGRAM TENSOR`: writes each byte of the tensor twice as large.
const DOUBLES: &str = r#"od -An -v -tu1 "$4" | tr -s ' \n' '\n\n' | while read -r b; do [ -n "$b" ] && printf "\\$(printf %o $((b * 2)))"; done > "$4.new"; mv "$4.new" "$4""#;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if let Ok(wanted) = std::env::var(CHILD) {
        let (name, _, run) = CASES.into_iter().find(|(name, ..)| *name == wanted).unwrap();
        let run = move || run(&Runtime::builder().build());
        return libtest_mimic::run(&Arguments { filter: None, ..arguments }, vec![Trial::test(name, run)])
            .exit_code();
    }
    let children = CASES.map(|(name, tool, _)| Trial::test(name, move || in_child(name, tool)));
    let mut trials = vec![
        Trial::test("a_machine_without_an_mppa_says_what_to_install", nothing_is_there),
        Trial::test("a_board_without_the_sdk_is_listed_with_the_reason", a_board_without_the_sdk),
    ];
    trials.push(match mppa::pocl() {
        Ok(_) => Trial::test("without_a_request_no_stand_in_is_listed", no_stand_in),
        Err(missing) => *missing,
    });
    trials.extend(children);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// What `runtime devices --json` lists on a machine.
fn devices(root: &Path, drivers: &IcdFolder, variables: &[(&str, &str)]) -> Result<Value, Failed> {
    let mut command = mppa::command(drivers, built("runtime")?)?;
    command.args(["devices", "--json"]).env("RUNTIME_MPPA_ROOT", root).env("PATH", root.join("bin"));
    command.envs(variables.iter().copied());
    Ok(serde_json::from_str(&opencl::finish(&mut command, DEADLINE)?.stdout)?)
}

fn nothing_is_there() -> Result<(), Failed> {
    let root = tempfile::tempdir()?;
    let text = devices(root.path(), &IcdFolder::empty(), &[])?.to_string();
    let words = ["no board", "no SDK: KALRAY_TOOLCHAIN_DIR is not set", "no simulator"];
    if words.iter().all(|word| text.contains(word)) { Ok(()) } else { Err(text.into()) }
}

fn a_board_without_the_sdk() -> Result<(), Failed> {
    let root = tempfile::tempdir()?;
    let chip = root.path().join("mppa/board0/mppa0");
    std::fs::create_dir_all(&chip)?;
    std::fs::write(root.path().join("mppa/version"), "5.0.0")?;
    std::fs::write(chip.join("freq"), "cluster 0 1000000000\n")?;
    let text = devices(root.path(), &IcdFolder::empty(), &[])?.to_string();
    let words = ["MPPA Coolidge", "\"clock_hz\":1000000000", "no SDK"];
    if words.iter().all(|word| text.contains(word)) { Ok(()) } else { Err(text.into()) }
}

fn no_stand_in() -> Result<(), Failed> {
    let drivers = mppa::pocl().map_err(|_| "PoCL is missing")?;
    let root = tempfile::tempdir()?;
    for (value, listed) in [("", false), ("0", false), ("1", true)] {
        let text = devices(root.path(), &drivers, &[("RUNTIME_MPPA_STAND_IN", value)])?.to_string();
        if text.contains("stand-in (PoCL), not an MPPA") != listed {
            return Err(format!("RUNTIME_MPPA_STAND_IN={value}: {text}").into());
        }
    }
    Ok(())
}

/// Runs a case on a machine whose simulator is a script.
fn in_child(name: &str, tool: &str) -> Result<(), Failed> {
    let root = tempfile::tempdir()?;
    let script = root.path().join("bin/kvx-mppa");
    std::fs::create_dir_all(script.parent().unwrap())?;
    std::fs::write(&script, format!("#!/bin/sh\n{tool}\n"))?;
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))?;
    let drivers = IcdFolder::empty();
    let mut command = mppa::command(&drivers, current_program()?)?;
    let path = std::env::var("PATH")?;
    command.env(CHILD, name).env("RUNTIME_MPPA_ROOT", root.path());
    command.env("PATH", format!("{}:{path}", root.path().join("bin").display()));
    opencl::finish(&mut command, DEADLINE)?.success()?;
    Ok(())
}

/// A program with the ELF header of an architecture.
#[allow(unsafe_code, reason = "loads native code")]
fn program(core: u8) -> ModuleSource {
    // SAFETY: the simulator is a script, which does not execute it.
    unsafe { ModuleSource::native(CodeFormat::ELF, elf_header(core)) }
}

fn doubles(runtime: &Runtime) -> Result<(), Failed> {
    let device = runtime.open("mppa:iss")?;
    let simulator = device.as_embedded().unwrap();
    let tensor = simulator.tensor_from_array(HostArray::from_slice(&[3], &[1u8, 20, 100])?)?;
    simulator.flash(&program(KV3_2), &[Arg::read_write(&tensor)])?;
    for expected in [[2u8, 40, 200], [4, 80, 144]] {
        simulator.run(Duration::from_secs(60))?;
        let given = simulator.read(0)?;
        if given.bytes() != expected {
            return Err(format!("{:?}, not {expected:?}", given.bytes()).into());
        }
    }
    Ok(())
}

fn fails(runtime: &Runtime) -> Result<(), Failed> {
    let device = runtime.open("mppa:iss")?;
    let simulator = device.as_embedded().unwrap();
    simulator.flash(&program(KV3_2), &[])?;
    let error = simulator.run(Duration::from_secs(60)).unwrap_err();
    let has_all =
        ["no more memory", "exit status: 12", "kvx-mppa"].iter().all(|word| error.to_string().contains(word));
    if error.kind() == ErrorKind::Failed && has_all { Ok(()) } else { Err(error.to_string().into()) }
}

fn two_configurations(runtime: &Runtime) -> Result<(), Failed> {
    let open = |arch: &str| runtime.open_with("mppa:iss", &Options::new().with("arch", arch));
    let (first, second) = (open("kv3-1")?, open("kv3-2")?);
    let (first, second) = (first.as_embedded().unwrap(), second.as_embedded().unwrap());
    first.flash(&program(KV3_1), &[])?;
    second.flash(&program(KV3_2), &[])?;
    let refused = first.flash(&program(KV3_2), &[]).unwrap_err();
    if !refused.message().contains("for kv3-2, the device is kv3-1") {
        return Err(refused.to_string().into());
    }
    first.flash(&program(KV3_1), &[])?;
    second.run(Duration::from_secs(60))?;
    first.run(Duration::from_secs(60))?;
    Ok(())
}
