//! The `runtime` command.
//!
//! Exit codes: 0, success; 1, the command ran, and a result is wrong, slower than before, or something failed; 2, the command could not run:
//! wrong usage, an invalid spec or device name, a file that cannot be written.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod arguments;
mod cache;
mod command;
mod compare;
mod compile;
mod completions;
mod conformance;
mod counters;
mod devices;
mod doctor;
mod eval;
mod examples;
mod fuse;
mod interrupt;
mod log;
mod lower;
mod output;
mod output_paths;
mod package;
mod peak;
mod probe;
mod progress;
mod registry;
mod report;
mod report_command;
mod run;
mod serve;
mod simulator_process;
mod table;
mod tune;
mod worker;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use command::{Action, Command};
use interrupt::SignalGuard;
use runtime_core::Result;
use runtime_harness::{crash_context, release};

fn main() -> ExitCode {
    let command = Command::parse();
    log::install();
    let code = run_command(&command.action).unwrap_or_else(|error| {
        output::print_stderr(&format!("error: {error}"));
        ExitCode::from(2)
    });
    match release::is_driver_stuck() {
        // A normal exit would wait for the driver.
        true => exit_now(code),
        false => code,
    }
}

fn run_command(action: &Action) -> Result<ExitCode> {
    // The suite makes backends crash and reports that itself; its test runner may exit over an argument. A worker is
    // watched by its supervisor, which handles signals on its own.
    let is_apart = matches!(action, Action::Conformance(_) | Action::Worker(_));
    if !is_apart {
        crash_context::install_handlers();
        if let Some((devices, options)) = action.own_devices() {
            simulator_process::restart(devices, &options)?;
        }
    }
    let _signals = (!is_apart).then(SignalGuard::install);
    match action {
        Action::Devices(arguments) => devices::list(arguments).map(|()| ExitCode::SUCCESS),
        Action::Counters(arguments) => counters::list(arguments).map(|()| ExitCode::SUCCESS),
        Action::Doctor(arguments) => doctor::run(arguments).map(|()| ExitCode::SUCCESS),
        Action::Eval(arguments) => eval::evaluate(arguments),
        Action::Tune(arguments) => tune::tune(arguments),
        Action::Run(arguments) => run::run(arguments),
        Action::Fuse(arguments) => fuse::fuse(arguments),
        Action::Peak(arguments) => peak::measure(arguments),
        Action::Report(arguments) => report_command::write(arguments).map(|()| ExitCode::SUCCESS),
        Action::Compare(arguments) => compare::compare(arguments),
        Action::Lower(arguments) => lower::lower(arguments).map(|()| ExitCode::SUCCESS),
        Action::Compile(arguments) => compile::compile(arguments),
        Action::Package(arguments) => package::run(arguments),
        Action::Conformance(arguments) => conformance::run(arguments),
        Action::Serve(arguments) => serve::serve(arguments).map(|()| ExitCode::SUCCESS),
        Action::Cache(arguments) => cache::run(arguments),
        Action::Completions(arguments) => {
            completions::print(arguments, Command::command()).map(|()| ExitCode::SUCCESS)
        }
        Action::Worker(arguments) => worker::run(arguments).map(|()| ExitCode::SUCCESS),
    }
}

/// Exits the process without waiting for the stuck thread.
fn exit_now(code: ExitCode) -> ExitCode {
    let known = [0, 1, 2].into_iter().find(|known| ExitCode::from(*known) == code);
    signal_hook::low_level::exit(known.map_or(2, i32::from))
}
