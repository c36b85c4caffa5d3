//! Fake machines, seen by programs that load the backend's library: what is listed, and whole programs on fake simulators.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use mppa::{KV3_1, KV3_2, elf_header, write_tool};
use opencl::{DEADLINE, IcdFolder, built, current_program};
use runtime_core::{Arg, CodeFormat, ErrorKind, HostArray, ModuleSource, Options, Runtime};
use serde_json::Value;

/// Set in a child that runs whole programs, to its case.
const CHILD: &str = "RUNTIME_TEST_MPPA_MACHINE";
/// A case: its name, and what its child does.
type Case = (&'static str, &'static str, fn(&Runtime) -> Result<(), Failed>);

const CASES: [Case; 4] = [
    ("a_program_doubles_a_tensor_on_a_simulator", DOUBLES, doubles),
    ("a_program_that_fails_says_how", "echo no more memory; exit 12", fails),
    ("a_tool_that_ignores_sigterm_ends_at_the_deadline_with_what_it_forked", STUBBORN, stubborn),
    (
        "two_configurations_run_in_one_process",
        "[ \"$1\" = --march=kv3-1 ] || [ \"$1\" = --march=kv3-2 ]",
        two_configurations,
    ),
];

/// Called as `--march=kv3-2 -- PROGRAM TENSOR`: writes each byte of the tensor twice as large.
const DOUBLES: &str = r#"od -An -v -tu1 "$4" | tr -s ' \n' '\n\n' | while read -r b; do [ -n "$b" ] && printf "\\$(printf %o $((b * 2)))"; done > "$4.new"; mv "$4.new" "$4""#;

/// Writes the numbers of its processes into the folder of the tool.
const STUBBORN: &str =
    r#"trap '' TERM; sleep 1000 & echo "$$ $!" > "${0%/*}/ids"; echo still here; while :; do wait; done"#;

/// What this process does instead of the tests, if one of them started it.
pub(crate) fn child() -> Option<ExitCode> {
    let wanted = std::env::var(CHILD).ok()?;
    let (name, _, run) = CASES.into_iter().find(|(name, ..)| *name == wanted).unwrap();
    let run = move || run(&Runtime::builder().build());
    Some(libtest_mimic::run(&Arguments::default(), vec![Trial::test(name, run)]).exit_code())
}

pub(crate) fn trials() -> Vec<Trial> {
    let children =
        CASES.map(|(name, tool, _)| Trial::test(format!("machines::{name}"), move || in_child(name, tool)));
    let mut trials = vec![
        Trial::test("machines::a_machine_without_an_mppa_says_what_to_install", nothing_is_there),
        Trial::test("machines::a_board_without_the_sdk_is_listed_with_the_reason", a_board_without_the_sdk),
        Trial::test("machines::the_compiler_of_the_sdk_is_a_target_of_the_command", offline_compiler),
    ];
    trials.push(match mppa::pocl() {
        Ok(_) => Trial::test("machines::without_a_request_no_stand_in_is_listed", no_stand_in),
        Err(missing) => *missing,
    });
    trials.extend(children);
    trials
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

/// The code that the fake compiler makes is the source that it gets, after the architecture.
fn offline_compiler() -> Result<(), Failed> {
    let root = tempfile::tempdir()?;
    write_tool(
        &root.path().join("bin/kvx-poclcc"),
        "{ echo $POCL_MPPA_EXTRA_BUILD_ARCH; cat \"$3\"; } > \"$2\"",
    );
    let path = format!("{}:{}", root.path().join("bin").display(), std::env::var("PATH")?);
    let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/saxpy.wgsl");
    let runtime = |arguments: &[&str]| {
        let mut command = mppa::command(&IcdFolder::empty(), built("runtime")?)?;
        command.current_dir(root.path()).env("PATH", &path).env("RUNTIME_MPPA_ROOT", root.path());
        opencl::finish(command.args(arguments), DEADLINE)?.success()
    };
    let kernel = kernel.to_string_lossy();
    runtime(&["compile", &kernel, "--target", "mppa:kv3-1", "-o", "saxpy.rtpkg"])?;
    runtime(&["package", "extract", "saxpy.rtpkg", "-C", "out"])?;
    let code = extracted(&root.path().join("out"))?;
    let is_right = code.starts_with(b"kv3-1\n") && String::from_utf8_lossy(&code).contains("__kernel");
    if is_right { Ok(()) } else { Err(String::from_utf8_lossy(&code).into_owned().into()) }
}

/// The largest file below a folder.
fn extracted(folder: &Path) -> Result<Vec<u8>, Failed> {
    let mut largest = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let bytes = if path.is_dir() { extracted(&path)? } else { std::fs::read(&path)? };
        if bytes.len() > largest.len() {
            largest = bytes;
        }
    }
    Ok(largest)
}

/// Runs a case on a machine whose simulator is a script.
fn in_child(name: &str, tool: &str) -> Result<(), Failed> {
    let root = tempfile::tempdir()?;
    write_tool(&root.path().join("bin/kvx-mppa"), tool);
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

fn stubborn(runtime: &Runtime) -> Result<(), Failed> {
    let device = runtime.open("mppa:iss")?;
    let simulator = device.as_embedded().unwrap();
    simulator.flash(&program(KV3_2), &[])?;
    let error = simulator.run(Duration::from_secs(10)).unwrap_err();
    if error.kind() != ErrorKind::Timeout || !error.message().contains("still here") {
        return Err(error.to_string().into());
    }
    let root = std::env::var("RUNTIME_MPPA_ROOT")?;
    let ids = std::fs::read_to_string(Path::new(&root).join("bin/ids"))?;
    let has_ended = ids.split_whitespace().count() == 2 && ids.split_whitespace().all(mppa::ends);
    if has_ended { Ok(()) } else { Err(format!("one of {ids} still runs").into()) }
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
