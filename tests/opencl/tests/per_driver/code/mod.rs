//! Code in every format that OpenCL accepts, on each driver: kernels in the idioms of benchmarks, views at any offset, SPIR-V from
//! clang, binaries, and optional features.

#![allow(clippy::unwrap_used, unsafe_code, reason = "a test, which loads code")]

mod binaries;
mod compiled;
mod errors;
mod features;
mod fixture;
mod idioms;
mod spirv;
mod views;

use std::sync::Arc;

use fixture::Fixture;
use libtest_mimic::{Completion, Failed, Trial};
use opencl::Driver;
use runtime_core::ErrorKind;

/// A case. It returns `Unsupported` if the driver lacks a feature, which must be listed in [`MISSING_FEATURES`].
type Case = (&'static str, fn(&Fixture) -> runtime_core::Result<()>);

/// Cases that a driver does not support, by the prefix of their names. All others must pass.
const MISSING_FEATURES: &[(Driver, &str)] = &[
    (Driver::Pocl, "features::half_precision"),
    (Driver::Pocl, "features::sub_groups"),
    (Driver::Pocl, "spirv::"),
];

pub(crate) fn trials(driver: Driver) -> Vec<Trial> {
    match Fixture::open(driver) {
        Ok(fixture) => of_fixture(&Arc::new(fixture)),
        Err(error) => vec![Trial::test(format!("{}::open", driver.name()), move || Err(error.into()))],
    }
}

fn of_fixture(fixture: &Arc<Fixture>) -> Vec<Trial> {
    let name = fixture.driver.name();
    let topics: [(&str, &[Case]); 6] = [
        ("idioms", idioms::CASES),
        ("views", views::CASES),
        ("features", features::CASES),
        ("binaries", binaries::CASES),
        ("compiled", compiled::CASES),
        ("errors", errors::CASES),
    ];
    // Under Oclgrind, only what the kernels do matters, and that calls are serialised.
    let on_oclgrind = [topics[0], topics[1], ("features", features::THREADED)];
    let topics = if fixture.driver == Driver::Oclgrind { &on_oclgrind[..] } else { &topics[..] };
    let cases = topics.iter().flat_map(|(topic, cases)| cases.iter().map(move |case| (topic, *case)));
    let mut trials: Vec<_> =
        cases.map(|(topic, (case, run))| trial(fixture, format!("{topic}::{case}"), run)).collect();
    if fixture.driver == Driver::Oclgrind {
        return trials;
    }
    match spirv::compiler() {
        Ok(compiler) => trials.extend(spirv::CASES.iter().map(|(case, run)| {
            let (fixture, compiler) = (fixture.clone(), compiler.clone());
            let case = format!("spirv::{case}");
            Trial::ignorable_test(format!("{name}::{case}"), move || {
                conclude(&fixture, &case, run(&fixture, &compiler))
            })
        })),
        Err((tool, remedy)) => trials.push(opencl::missing_trial(tool, remedy)),
    }
    trials
}

fn trial(fixture: &Arc<Fixture>, case: String, run: fn(&Fixture) -> runtime_core::Result<()>) -> Trial {
    let fixture = fixture.clone();
    Trial::ignorable_test(format!("{}::{case}", fixture.driver.name()), move || {
        conclude(&fixture, &case, run(&fixture))
    })
}

/// Only listed cases may be unsupported; on a newer driver they may pass.
fn conclude(fixture: &Fixture, case: &str, outcome: runtime_core::Result<()>) -> Result<Completion, Failed> {
    let is_listed =
        MISSING_FEATURES.iter().any(|(driver, start)| *driver == fixture.driver && case.starts_with(start));
    match outcome {
        Ok(()) => Ok(Completion::Completed),
        Err(error) if error.kind() == ErrorKind::Unsupported && is_listed => {
            Ok(Completion::ignored_with(error.to_string()))
        }
        Err(error) => Err(Failed::from(format!("{error:?}"))),
    }
}
