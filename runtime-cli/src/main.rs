//! The `runtime` command.
//!
//! Exit codes: 0, all is right; 1, it was carried out and something is wrong or failed; 2, it could not be carried
//! out: wrong usage, a wrong spec or device name, a file that cannot be written.

mod arguments;
mod conformance;
mod devices;
mod doctor;
mod eval;
mod log;
mod lower;
mod output;
mod prepare;
mod progress;
mod registry;
mod report;
mod run;
mod settings;
mod source;
mod spec;
mod table;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Action, Command};

fn main() -> ExitCode {
    log::show();
    let done = match &Command::parse().action {
        Action::Devices(arguments) => devices::list(arguments).map(|()| ExitCode::SUCCESS),
        Action::Doctor => doctor::report().map(|()| ExitCode::SUCCESS),
        Action::Eval(arguments) => eval::evaluate(arguments),
        Action::Run(arguments) => run::run(arguments),
        Action::Lower(arguments) => lower::lower(arguments).map(|()| ExitCode::SUCCESS),
        Action::Conformance(arguments) => conformance::run(arguments),
    };
    done.unwrap_or_else(|error| {
        output::warn(&format!("error: {error}"));
        ExitCode::from(2)
    })
}
