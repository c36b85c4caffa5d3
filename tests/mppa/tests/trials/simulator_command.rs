//! `runtime` on simulators behind the offload library, without their variables: it starts itself, or its workers, with them. On a fake SDK
//! with fake simulators: **stand-ins, not Kalray's.**

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;

use libtest_mimic::{Failed, Trial};
use mppa::{FakeSdk, becomes, check, ends, eval_rows, start_eval};
use opencl::{DEADLINE, IcdFolder, built};

const SPEC: &str = r#"version = 1
[kernel]
path = "program.elf"
entry = "counted"
[[arg]]
name = "calls"
dtype = "i32"
shape = [1]
use = "readwrite"
[eval]
repeat = 2
"#;
const ISS: &str = "mppa:offload-iss";
const QEMU: &str = "mppa:offload-qemu";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("simulator_command::a_simulator_needs_no_variables", one),
        Trial::test("simulator_command::isolated_simulators_and_a_board_run_in_one_command", several),
        Trial::test(
            "simulator_command::a_simulator_and_another_mppa_in_one_process_are_refused",
            two_in_one_process,
        ),
        Trial::test("simulator_command::a_kernel_is_run_on_a_simulator", run),
        Trial::test("simulator_command::variables_that_are_set_are_kept", kept),
    ]
}

/// A fake SDK with a board and both simulators.
struct Machine(FakeSdk);

impl Machine {
    fn new() -> Result<Self, Failed> {
        let sdk = FakeSdk::new(1);
        sdk.simulator("kvx-cluster");
        sdk.simulator("kvx-qemu-offload-bridge");
        std::fs::write(sdk.path().join("program.elf"), sdk.program())?;
        sdk.write("spec.toml", SPEC).write("ids", "");
        std::fs::create_dir(sdk.path().join("tmp"))?;
        Ok(Self(sdk))
    }

    /// Temporary files are below this machine's folder.
    fn variables(&self) -> Vec<(&'static str, PathBuf)> {
        let path = |name| self.0.path().join(name);
        let own =
            [("FAKE_SIMULATOR", "".into()), ("FAKE_SIMULATOR_IDS", path("ids")), ("TMPDIR", path("tmp"))];
        self.0.variables().into_iter().chain(own).collect()
    }

    /// Checks how many simulators were started, that all have ended, and that their folders were removed.
    fn check_ended(&self, count: usize) -> Result<(), Failed> {
        let ids = std::fs::read_to_string(self.0.path().join("ids"))?;
        check(ids.lines().count() == count && ids.lines().all(ends), || format!("{ids:?}"))?;
        let left = || self.left().is_ok_and(|left| left.is_empty());
        check(becomes(left), || format!("{:?}", self.left()))
    }

    /// The folders of simulators.
    fn left(&self) -> std::io::Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(self.0.path().join("tmp"))?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
        let is_simulator =
            |path: &PathBuf| ["-iss-", "-qemu-"].iter().any(|name| path.to_string_lossy().contains(name));
        Ok(paths.into_iter().filter(is_simulator).collect())
    }
}

/// Evaluates on devices, and returns their names in the rows.
fn names(machine: &Machine, arguments: &[&str]) -> Result<Vec<String>, Failed> {
    let rows = eval_rows(machine.0.path(), &machine.variables(), arguments)?;
    let name = |row: &serde_json::Value| {
        check(row["measurement"].is_object(), || row.to_string())?;
        Ok(row["device_info"]["name"].as_str().unwrap_or_default().to_owned())
    };
    rows.iter().map(name).collect()
}

fn one() -> Result<(), Failed> {
    let machine = Machine::new()?;
    let names = names(&machine, &["--device", ISS])?;
    check(names == ["Offload-ISS"], || format!("{names:?}"))?;
    machine.check_ended(1)
}

fn several() -> Result<(), Failed> {
    let machine = Machine::new()?;
    let devices = ["--isolate", "--device", ISS, "--device", "mppa:offload", "--device", QEMU];
    let names = names(&machine, &devices)?;
    check(names == ["Offload-ISS", "Offload", "Offload-QEMU"], || format!("{names:?}"))?;
    machine.check_ended(2)
}

fn two_in_one_process() -> Result<(), Failed> {
    let machine = Machine::new()?;
    for other in [QEMU, "mppa:offload"] {
        let devices = ["--device", ISS, "--device", other];
        let finished = start_eval(machine.0.path(), &machine.variables(), &devices)?;
        let is_refused = finished.status.code() == Some(2) && finished.stderr.contains("--isolate");
        check(is_refused, || format!("{other}: {finished:?}"))?;
    }
    machine.check_ended(0)
}

fn run() -> Result<(), Failed> {
    let machine = Machine::new()?;
    let mut command = mppa::command(&IcdFolder::empty(), built("runtime")?)?;
    command.current_dir(machine.0.path()).envs(machine.variables());
    command.args(["run", "spec.toml", "--no-validate", "--device", QEMU]);
    let finished = opencl::finish(&mut command, DEADLINE)?.success()?;
    check(finished.contains("on mppa:"), || finished.clone())?;
    machine.check_ended(1)
}

fn kept() -> Result<(), Failed> {
    let machine = Machine::new()?;
    let variables = [("MPPA_RPROC_PLATFORM_MODE", "board".into())];
    let variables: Vec<_> = machine.variables().into_iter().chain(variables).collect();
    let rows = eval_rows(machine.0.path(), &variables, &["--device", ISS])?;
    let reason = rows[0]["reason"].as_str().unwrap_or_default();
    let is_explained = ["MPPA_RPROC_PLATFORM_MODE=sim", "unset MPPA_RPROC_PLATFORM_MODE first"]
        .iter()
        .all(|words| reason.contains(words));
    check(is_explained, || format!("{rows:?}"))?;
    machine.check_ended(0)
}
