//! The conformance suite on the stand-in: PoCL with an MPPA's limits, groups of at most 16 items among them.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use opencl::current_program;
use runtime_conformance::Selection;

/// Set in the child that sees the stand-in.
const CHILD: &str = "RUNTIME_TEST_MPPA_SUITE";

fn main() -> ExitCode {
    if let Some(code) = runtime_conformance::child() {
        return code;
    }
    let arguments = Arguments::from_args();
    if std::env::var_os(CHILD).is_some() {
        return suite(&arguments);
    }
    match start() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(trial) => libtest_mimic::run(&arguments, vec![*trial]).exit_code(),
    }
}

/// Runs this program on the stand-in, and returns whether it succeeds.
fn start() -> Result<bool, Box<Trial>> {
    let folder = mppa::pocl()?;
    let run = || {
        let mut command = mppa::stand_in_command(&folder, current_program()?)?;
        command.args(std::env::args_os().skip(1)).env(CHILD, "1");
        command.status().map(|status| status.success()).map_err(|error| error.to_string())
    };
    run().map_err(|reason| Box::new(Trial::test("mppa::start", || Err(reason.into()))))
}

fn suite(arguments: &Arguments) -> ExitCode {
    let library = match mppa::backend() {
        Ok(library) => library.to_string_lossy().into_owned(),
        Err(reason) => return opencl::cannot_run(&reason),
    };
    let selection = Selection { required: vec!["mppa".to_owned()], ..Selection::new(vec![library]) };
    runtime_conformance::run(&selection, arguments)
}
