//! The suite's event cases, including those that drop objects while a kernel runs, on a driver whose release functions wait for
//! every kernel, as NVIDIA's do: PoCL behind the stub. Work beside a long kernel must not block.

use std::process::ExitCode;

use libtest_mimic::Arguments;
use opencl::{Driver, IcdFolder, current_program, missing_trial, stub};
use runtime_conformance::Selection;

/// Filter for the cases to run: one topic.
const TOPIC: &str = "::events::";

fn main() -> ExitCode {
    if std::env::var_os("STUB_OPENCL").is_some() {
        return suite();
    }
    match on_stub() {
        Ok(code) => code,
        Err(error) => {
            let trials = vec![missing_trial(Driver::Pocl.requirement(), error)];
            libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
        }
    }
}

/// Runs this program again, on the stub.
fn on_stub() -> Result<ExitCode, String> {
    let icd_folder = IcdFolder::with_drivers(&[Driver::Pocl]).map_err(|(_, remedy)| remedy)?;
    let library = stub::build(icd_folder.path())?;
    let mut command = stub::command(&icd_folder, &current_program()?, &library, "nvidia,waits")?;
    let status = command.args(std::env::args_os().skip(1)).status().map_err(|error| error.to_string())?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn suite() -> ExitCode {
    let library = match opencl::backend() {
        Ok(library) => library,
        Err(reason) => return opencl::cannot_run(&reason),
    };
    let backends = vec![library.to_string_lossy().into_owned()];
    let selection = Selection { required: vec!["opencl".to_owned()], ..Selection::new(backends) };
    let mut arguments = Arguments::from_args();
    arguments.filter.get_or_insert_with(|| TOPIC.to_owned());
    runtime_conformance::run(&selection, &arguments)
}
