//! The conformance cases that need a failing kernel, on PoCL behind the stub, which makes kernels fail: no driver here does so by
//! itself.

#![allow(clippy::print_stdout, reason = "a test's report")]

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use opencl::{Driver, IcdFolder, current_program, missing_trial, stub};
use runtime_conformance::Selection;

/// Set in the child that sees the stub.
const CHILD: &str = "RUNTIME_TEST_OPENCL_KERNEL_FAILURES";
/// The directive for the stub: `CL_OUT_OF_RESOURCES`, as drivers report for invalid memory accesses of a kernel.
const DIRECTIVE: &str = "kernel=-5";
/// Part of the names of all these cases.
const FILTER: &str = "fail";

fn main() -> ExitCode {
    if let Some(code) = runtime_conformance::child() {
        return code;
    }
    if std::env::var_os(CHILD).is_some() {
        return suite();
    }
    let arguments = Arguments::from_args();
    let icd_folder = match IcdFolder::with_drivers(&[Driver::Pocl]) {
        Ok(icd_folder) => icd_folder,
        Err((driver, remedy)) => {
            return libtest_mimic::run(&arguments, vec![missing_trial(driver.requirement(), remedy)])
                .exit_code();
        }
    };
    match start(&icd_folder) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            let failed = Trial::test("kernel_failures::start", || Err(reason.into()));
            libtest_mimic::run(&arguments, vec![failed]).exit_code()
        }
    }
}

/// Runs this program on the stub and returns whether it succeeds.
fn start(icd_folder: &IcdFolder) -> Result<bool, String> {
    let library = stub::build(icd_folder.path())?;
    let mut command = stub::command(icd_folder, &current_program()?, &library, DIRECTIVE)?;
    command.args(std::env::args_os().skip(1)).env(CHILD, "1");
    command.status().map(|status| status.success()).map_err(|error| error.to_string())
}

fn suite() -> ExitCode {
    let library = match opencl::backend() {
        Ok(library) => library,
        Err(reason) => return opencl::cannot_run(&reason),
    };
    let mut arguments = Arguments::from_args();
    if arguments.filter.is_none() {
        arguments.filter = Some(FILTER.to_owned());
    }
    let backends = vec![library.to_string_lossy().into_owned()];
    let selection = Selection { required: vec!["opencl".to_owned()], ..Selection::new(backends) };
    if arguments.list {
        return runtime_conformance::run(&selection, &arguments);
    }
    let (report, code) = runtime_conformance::run_json(&selection, arguments);
    let not_run = not_run(&report);
    println!("{report:#}");
    println!("cases that found no failing kernel: {not_run:?}");
    if not_run.is_empty() { code } else { ExitCode::FAILURE }
}

/// The cases that did not run for lack of a failing kernel. The stub provides one, so there must be none.
fn not_run(report: &serde_json::Value) -> Vec<String> {
    let devices = report["devices"].as_array().into_iter().flatten();
    let cases = devices.flat_map(|device| device["not_tested"].as_array().into_iter().flatten());
    cases.map(ToString::to_string).filter(|case| case.contains("kernel fail")).collect()
}
