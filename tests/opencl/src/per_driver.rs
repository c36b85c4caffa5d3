//! Runs a test for one driver after the other.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};

use crate::{Driver, IcdFolder, current_program, missing_trial};

/// Set in a child that sees one driver, to its name.
const CHILD_DRIVER: &str = "RUNTIME_TEST_OPENCL_DRIVER";

/// Runs `trials` for each of `drivers`, in a child that sees only this driver, with this program's arguments. A missing driver is
/// an ignored trial, or a failed one if it is required.
#[must_use]
pub fn run_per_driver(drivers: &[Driver], trials: impl FnOnce(Driver, &Arguments) -> ExitCode) -> ExitCode {
    let arguments = Arguments::from_args();
    if let Ok(name) = std::env::var(CHILD_DRIVER) {
        let driver = Driver::ALL.into_iter().find(|driver| driver.name() == name);
        return driver.map_or(ExitCode::FAILURE, |driver| trials(driver, &arguments));
    }
    let mut not_run: Vec<Trial> = Vec::new();
    let mut failed = false;
    for driver in drivers {
        let icd_folder = match IcdFolder::with_drivers(&[*driver]) {
            Ok(icd_folder) => icd_folder,
            Err((driver, remedy)) => {
                not_run.push(missing_trial(driver.requirement(), remedy));
                continue;
            }
        };
        match succeeds_on(*driver, &icd_folder) {
            Ok(succeeds) => failed |= !succeeds,
            Err(error) => {
                not_run.push(Trial::test(format!("{}::start", driver.name()), || Err(error.into())));
            }
        }
    }
    if !not_run.is_empty() {
        failed |= libtest_mimic::run(&arguments, not_run).has_failed();
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// No test takes this long with one driver.
const DEADLINE: Duration = Duration::from_secs(1800);

/// Whether this program succeeds on one driver, without an Oclgrind report. The child inherits the output streams.
fn succeeds_on(driver: Driver, icd_folder: &IcdFolder) -> Result<bool, String> {
    let mut command = icd_folder.command(current_program()?)?;
    command.args(std::env::args_os().skip(1)).env(CHILD_DRIVER, driver.name());
    let succeeds = run(&mut command)?;
    let report = icd_folder.report();
    if report.is_empty() { Ok(succeeds) } else { Err(report) }
}

/// Runs a process and returns whether it succeeds.
fn run(command: &mut Command) -> Result<bool, String> {
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let begin = Instant::now();
    while begin.elapsed() < DEADLINE {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status.success());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
    Err(format!("killed after {DEADLINE:?}"))
}
