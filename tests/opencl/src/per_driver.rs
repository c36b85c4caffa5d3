//! The trials of a test for one driver after the other.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};

use crate::{Driver, IcdFolder, current_program, missing_trial};

/// Set in a process that sees one driver: its name.
const HERE: &str = "RUNTIME_TEST_OPENCL_DRIVER";

/// Runs `trials` for each of `drivers`, in a process that sees this driver alone, with this program's own arguments. A driver
/// that is missing is an ignored trial, or a failed one where it is required.
#[must_use]
pub fn run_per_driver(drivers: &[Driver], trials: impl FnOnce(Driver, &Arguments) -> ExitCode) -> ExitCode {
    let arguments = Arguments::from_args();
    if let Ok(name) = std::env::var(HERE) {
        let here = Driver::ALL.into_iter().find(|driver| driver.name() == name);
        return here.map_or(ExitCode::FAILURE, |driver| trials(driver, &arguments));
    }
    let mut absent: Vec<Trial> = Vec::new();
    let mut failed = false;
    for driver in drivers {
        let icd_folder = match IcdFolder::with_drivers(&[*driver]) {
            Ok(icd_folder) => icd_folder,
            Err((driver, remedy)) => {
                absent.push(missing_trial(driver.requirement(), remedy));
                continue;
            }
        };
        match one(*driver, &icd_folder) {
            Ok(succeeds) => failed |= !succeeds,
            Err(error) => absent.push(Trial::test(format!("{}::start", driver.name()), || Err(error.into()))),
        }
    }
    if !absent.is_empty() {
        failed |= libtest_mimic::run(&arguments, absent).has_failed();
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// No test takes so long with one driver.
const LONGEST: Duration = Duration::from_secs(300);

/// Whether this program succeeds with one driver, without a report of Oclgrind's. What it says goes where this one's words go.
fn one(driver: Driver, icd_folder: &IcdFolder) -> Result<bool, String> {
    let mut command = icd_folder.command(current_program()?)?;
    command.args(std::env::args_os().skip(1)).env(HERE, driver.name());
    let succeeds = run(&mut command)?;
    let report = icd_folder.report();
    if report.is_empty() { Ok(succeeds) } else { Err(report) }
}

/// Whether a process succeeds.
fn run(command: &mut Command) -> Result<bool, String> {
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let begin = Instant::now();
    while begin.elapsed() < LONGEST {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status.success());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
    Err(format!("it was ended after {LONGEST:?}"))
}
