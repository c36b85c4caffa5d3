//! The `runtime` command.
//!
//! Exit codes: 0, success; 1, the command ran, and a result is wrong or something failed; 2, the command could not run:
//! wrong usage, an invalid spec or device name, a file that cannot be written.

mod arguments;
mod bound_kernel;
mod conformance;
mod crash_context;
mod devices;
mod doctor;
mod eval;
mod interrupt;
mod log;
mod lower;
mod module_source;
mod output;
mod output_paths;
mod probe;
mod progress;
mod registry;
mod release;
mod report;
mod run;
mod settings;
mod spec;
mod table;
mod text_file;
mod workload;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Action, Command};
use interrupt::SignalGuard;
use runtime_core::Result;

fn main() -> ExitCode {
    let command = Command::parse();
    log::install();
    let code = run_command(&command.action).unwrap_or_else(|error| {
        output::print_stderr(&format!("error: {error}"));
        ExitCode::from(2)
    });
    match release::is_driver_stuck() {
        // A normal exit would wait for the driver.
        true => release::exit_now(code),
        false => code,
    }
}

fn run_command(action: &Action) -> Result<ExitCode> {
    // The suite makes backends crash and reports that itself; its test runner may exit over an argument.
    let is_suite = matches!(action, Action::Conformance(_));
    let _signals = (!is_suite).then(|| {
        crash_context::install_handlers();
        SignalGuard::install()
    });
    match action {
        Action::Devices(arguments) => devices::list(arguments).map(|()| ExitCode::SUCCESS),
        Action::Doctor => doctor::report().map(|()| ExitCode::SUCCESS),
        Action::Eval(arguments) => eval::evaluate(arguments),
        Action::Run(arguments) => run::run(arguments),
        Action::Lower(arguments) => lower::lower(arguments).map(|()| ExitCode::SUCCESS),
        Action::Conformance(arguments) => conformance::run(arguments),
    }
}
