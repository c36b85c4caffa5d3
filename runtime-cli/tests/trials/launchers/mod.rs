//! Workers that are started by real launchers: none, `ssh` to this machine, and a Slurm of this machine alone. Those that are
//! not installed are ignored, with the reason; `RUNTIME_REQUIRE=ssh,slurm` makes that a failure. Build the workspace first.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod daemon;
mod jobs;
mod slurm;
mod ssh;

use libtest_mimic::{Completion, Failed, Trial};
use test_process::required;

use jobs::Jobs;

pub(crate) fn trials() -> Vec<Trial> {
    let cases: [(&'static str, Case); 3] =
        [("local", local), ("ssh", ssh::evaluate), ("slurm", slurm::evaluate)];
    let trials = cases.map(|(name, case)| {
        Trial::ignorable_test(format!("launchers::{name}"), move || match case() {
            Ok(()) => Ok(Completion::Completed),
            Err(Missing(reason)) if required(name) => Err(Failed::from(reason)),
            Err(Missing(reason)) => Ok(Completion::ignored_with(reason)),
        })
    });
    trials.into()
}

type Case = fn() -> Result<(), Missing>;

/// What is not installed.
struct Missing(String);

fn local() -> Result<(), Missing> {
    let jobs = Jobs::new();
    jobs.check("env {worker}", &[]);
    jobs.check_interrupt();
    jobs.check_second_try("env {worker}", &[], |jobs| jobs.kill_workers());
    Ok(())
}
