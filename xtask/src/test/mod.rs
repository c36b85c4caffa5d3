//! `cargo xtask test`: builds everything, runs the examples and the command, then all tests.

mod programs;
mod smoke;

use std::time::Instant;

use crate::built;
use crate::lint;
use crate::process::{Failure, Outcome};
use crate::requirements;
use crate::workspace::Workspace;
use programs::Program;

/// Makes tests that sample a sweep run all of it.
const COMPLETE: &str = "--all";
/// The variable that tells the tests so.
const COMPLETE_VARIABLE: &str = "RUNTIME_TEST_ALL";

pub(crate) fn run_tests(arguments: &[String]) -> Outcome {
    let is_complete = match arguments {
        [] => false,
        [option] if option == COMPLETE => true,
        _ => return Err(Failure::new("`test` takes no argument but --all: cargo xtask test [--all]")),
    };
    requirements::install()?;
    if is_complete {
        lint::run_checks(&["fuzz targets".to_owned()])?;
    }
    let workspace = Workspace::read()?;
    let started = Instant::now();
    let executables = built::executables(&mut workspace.cargo(&built::WORKSPACE))?;
    let build_time = started.elapsed();
    let steps = smoke::run(&workspace);
    println!("\n{}", smoke::summary(&steps));
    let tests = executables.into_iter().filter(|executable| executable.is_test);
    let mut programs: Vec<Program> = tests.map(Program::from).collect();
    programs.push(programs::documentation(&workspace));
    if is_complete {
        programs.iter_mut().for_each(|program| program.set_variable(COMPLETE_VARIABLE, "1"));
    }
    let results = programs::run_all(programs, &workspace.scratch("test-output"))?;
    let failed_steps = steps.iter().filter(|step| step.outcome.is_err()).count();
    println!("\n{}", programs::report(&results));
    println!(
        "built in {} s, tested in {} s",
        build_time.as_secs(),
        (started.elapsed() - build_time).as_secs()
    );
    let (passed, failed, skipped) = programs::totals(&results);
    let (passed, failed) = (passed + steps.len() - failed_steps, failed + failed_steps);
    println!("\n{passed} passed, {failed} failed, {skipped} skipped");
    if failed == 0 { Ok(()) } else { Err(Failure::new(format!("{failed} failed"))) }
}
