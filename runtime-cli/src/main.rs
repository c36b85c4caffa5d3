//! The `runtime` command.
//!
//! Exit codes: 0, all is right; 1, it was carried out and something is wrong or failed; 2, it could not be carried
//! out: wrong usage, a wrong spec or device name, a file that cannot be written.

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
    let code = perform(&command.action).unwrap_or_else(|error| {
        output::print_stderr(&format!("error: {error}"));
        ExitCode::from(2)
    });
    match release::is_driver_stuck() {
        // The process would wait for the driver at its end.
        true => release::exit_now(code),
        false => code,
    }
}

fn perform(action: &Action) -> Result<ExitCode> {
    // The suite makes backends crash, and says so itself; its test runner may end the process over an argument.
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
