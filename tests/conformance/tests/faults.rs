//! Two short fault sweeps of three null devices: errors in the first and the last call of each function in each fast case,
//! and every corruption in the fastest case that calls a function. `cargo xtask faults` runs larger ones.

use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use runtime_conformance::{FaultOptions, Selection, run_faults, serve_faults};
use runtime_core::Runtime;

const BACKEND: &str = "null";
/// An accelerator with all capabilities, an embedded device, and a device that runs calls on the caller's thread.
const DEVICES: [&str; 3] = ["null:1", "null:2", "null:0.0"];
const WORKER: &str = "--fault-worker";

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == WORKER) {
        return serve_faults();
    }
    let errors = FaultOptions { first: 1, spread: 0, longest_ms: Some(15), ..FaultOptions::default() };
    let corruptions = FaultOptions {
        first: 1,
        spread: 0,
        corrupt: true,
        cases: Some(1),
        longest_ms: Some(60),
        ..errors.clone()
    };
    let trials = vec![
        Trial::ignorable_test("null::faults::first_and_last_calls", move || sweep(&errors)),
        Trial::ignorable_test("null::faults::corrupted_results", move || sweep(&corruptions)),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn sweep(options: &FaultOptions) -> Result<Completion, Failed> {
    let selection = Selection::new(DEVICES.map(str::to_owned).to_vec());
    let required = selection.required.iter().any(|name| name == BACKEND);
    let built = Runtime::new().targets().iter().any(|target| target.name == BACKEND);
    if !built && !required {
        return Ok(Completion::ignored_with("the null backend is not built: `cargo build --workspace`"));
    }
    let selection = Selection { required: Vec::new(), ..selection };
    let swept = run_faults(&selection, options, &|| {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(WORKER);
        Ok(command)
    });
    swept.map(|()| Completion::Completed).map_err(Failed::from)
}
