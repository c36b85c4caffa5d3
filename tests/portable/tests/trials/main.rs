//! WGSL's semantics on every device of this machine, and the lowered code with compilers, tools and a debugger. The trials are made
//! while the program runs: from tables, from files, and for the devices that there are.

mod arguments;
mod coarsening;
mod compile;
mod corpus;
mod corpus_runs;
mod cts;
mod debugger;
mod diamond;
mod fusion;
mod names;
mod properties;
mod rejected;
mod reports;
mod semantics;
mod tint;
mod views;

use std::process::ExitCode;

use libtest_mimic::Arguments;
use portable::device;

fn main() -> ExitCode {
    if let Some(code) = corpus_runs::child().or_else(debugger::child) {
        return code;
    }
    let (executors, absent) = device::all();
    let trials = [
        absent,
        semantics::trials(&executors),
        properties::trials(&executors),
        arguments::trials(),
        coarsening::trials(),
        compile::trials(),
        corpus::trials(),
        corpus_runs::trials(),
        cts::trials(),
        debugger::trials(),
        diamond::trials(),
        fusion::trials(),
        names::trials(),
        rejected::trials(),
        reports::trials(),
        tint::trials(),
        views::trials(),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials.into_iter().flatten().collect()).exit_code()
}
