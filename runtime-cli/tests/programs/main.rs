//! The programs that the command starts: none in a set-uid process, and none that outlives the command. Build the workspace first.
//!
//! One case at a time: a program that a child of another thread still has open for writing cannot be run.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compilers;
mod lures;
mod privileges;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

fn main() -> ExitCode {
    let mut trials: Vec<_> = compilers::CASES
        .iter()
        .map(|&(name, case)| {
            Trial::test(name, move || {
                case();
                Ok(())
            })
        })
        .collect();
    let sandbox = Arc::new(privileges::Sandbox::new());
    trials.extend(privileges::CASES.iter().map(|case| {
        let sandbox = Arc::clone(&sandbox);
        Trial::ignorable_test(format!("set_uid::{}", case.name), move || match &*sandbox {
            Ok(sandbox) => sandbox.check(case).map(|()| Completion::Completed).map_err(Failed::from),
            Err(reason) if test_process::required("set-uid") => Err(Failed::from(reason)),
            Err(reason) => Ok(Completion::ignored_with(reason)),
        })
    }));
    drop(sandbox);
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials).exit_code()
}
