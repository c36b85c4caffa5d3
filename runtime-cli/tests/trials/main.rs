//! Tests of the command that need what may not be installed: emulated boards, and launchers of workers.

mod boards;
mod launchers;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let trials = [boards::trials(), launchers::trials()].into_iter().flatten();
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
