//! The conformance suite on lavapipe under the validation layer, which must be silent.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use runtime_conformance::Selection;
use vulkan_tests::{
    Messages, VALIDATION_VARIABLE, built_file, child_part, lavapipe, missing, respawn, use_driver,
    validation_layer,
};

/// A bug of Debian's layer, which it reports as such: when two threads poll a timeline semaphore, it may lose track and stall
/// for ten seconds (KhronosGroup/Vulkan-ValidationLayers, issue 4968).
const LAYER_BUG: &str = "UNASSIGNED-VkSemaphore-state-timeout";

fn main() -> ExitCode {
    if let Some(code) = runtime_conformance::child() {
        return code;
    }
    if child_part().is_some() {
        return suite();
    }
    let arguments = Arguments::from_args();
    let trials = match (lavapipe(), validation_layer()) {
        (Err(reason), _) => vec![missing("vulkan::suite", "vulkan", not_run(&reason))],
        (_, Err(reason)) => vec![missing("vulkan::suite", "vulkan-validation", not_run(&reason))],
        (Ok(driver), Ok(())) => match respawn("suite") {
            Ok(mut command) => {
                let status =
                    use_driver(&mut command, &driver.manifest).env(VALIDATION_VARIABLE, "1").status();
                let succeeded = status.is_ok_and(|status| status.success());
                return if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE };
            }
            Err(error) => vec![failed(error.to_string())],
        },
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The reason of the single trial that stands for the whole suite.
fn not_run(reason: &str) -> String {
    format!("{reason}; {} cases did not run", runtime_conformance::case_count())
}

fn failed(reason: String) -> Trial {
    Trial::test("vulkan::suite", || Err(reason.into()))
}

#[allow(clippy::print_stdout, reason = "a test's report")]
fn suite() -> ExitCode {
    let messages = match Messages::collect() {
        Ok(messages) => messages,
        Err(reason) => return libtest_mimic::run(&Arguments::from_args(), vec![failed(reason)]).exit_code(),
    };
    let backend = match built_file("libruntime_vulkan.so") {
        Ok(path) => path.display().to_string(),
        Err(reason) => return libtest_mimic::run(&Arguments::from_args(), vec![failed(reason)]).exit_code(),
    };
    // `RUNTIME_REQUIRE` may name other backends, but only this one is loaded here.
    let selection = Selection { required: vec!["vulkan".to_owned()], ..Selection::new(vec![backend]) };
    let code = runtime_conformance::run(&selection, &Arguments::from_args());
    let (layer_bugs, reported): (Vec<_>, Vec<_>) =
        messages.list().into_iter().partition(|message| message.contains(LAYER_BUG));
    println!("validation: {} messages, and {} of the layer's own bug", reported.len(), layer_bugs.len());
    reported.iter().for_each(|message| println!("  {message}"));
    if reported.is_empty() { code } else { ExitCode::FAILURE }
}
