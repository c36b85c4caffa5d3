//! Runs the suite under `cargo test` against the backends built into the same folder.

use std::process::ExitCode;

use runtime_conformance::{Arguments, Selection};

fn main() -> ExitCode {
    runtime_conformance::run(&Selection::default(), &Arguments::from_args())
}
