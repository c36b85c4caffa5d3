//! Tests of the command that need what may not be there: emulated boards, launchers of workers, a sandbox, Python.

mod attacks;
mod boards;
mod compilers;
mod device_attacks;
mod honest;
mod jobs;
mod launchers;
mod python;
mod sandboxed;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let trials = [
        boards::trials(),
        compilers::trials(),
        launchers::trials(),
        attacks::trials(),
        device_attacks::trials(),
        honest::trials(),
        jobs::trials(),
        python::trials(),
    ]
    .into_iter()
    .flatten();
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
