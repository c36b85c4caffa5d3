//! The conformance suite on lavapipe, with the validation layer: of the layer there is no word.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use runtime_conformance::Selection;
use vulkan_tests::{Messages, VALIDATION, again, beside, is_again, lavapipe, layer, missing, on};

/// What the layer of Debian says of itself: at times it loses count of a timeline semaphore that two threads look at
/// (KhronosGroup/Vulkan-ValidationLayers, issue 4968), waits ten seconds for itself, and says that this is its own mistake.
const OF_ITSELF: &str = "UNASSIGNED-VkSemaphore-state-timeout";

fn main() -> ExitCode {
    if let Some(code) = runtime_conformance::child() {
        return code;
    }
    if is_again() {
        return suite();
    }
    let arguments = Arguments::from_args();
    let not_here = match (lavapipe(), layer()) {
        (Err(reason), _) => vec![missing("vulkan::suite", "vulkan", not_run(&reason))],
        (_, Err(reason)) => vec![missing("vulkan::suite", "vulkan-validation", not_run(&reason))],
        (Ok(driver), Ok(())) => match again() {
            Ok(mut command) => {
                let status = on(&mut command, &driver.manifest).env(VALIDATION, "1").status();
                let well = status.is_ok_and(|status| status.success());
                return if well { ExitCode::SUCCESS } else { ExitCode::FAILURE };
            }
            Err(error) => vec![failed(error.to_string())],
        },
    };
    libtest_mimic::run(&arguments, not_here).exit_code()
}

/// One trial stands for all of them.
fn not_run(reason: &str) -> String {
    format!("{reason}; {} cases are not run", runtime_conformance::case_count())
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
    let backend = match beside("libruntime_vulkan.so") {
        Ok(path) => path.display().to_string(),
        Err(reason) => return libtest_mimic::run(&Arguments::from_args(), vec![failed(reason)]).exit_code(),
    };
    // What is required of the machine is required of other tests: here is this backend, and nothing else.
    let selection = Selection { required: vec!["vulkan".to_owned()], ..Selection::new(vec![backend]) };
    let code = runtime_conformance::run(&selection, &Arguments::from_args());
    let (of_itself, said): (Vec<_>, Vec<_>) =
        messages.list().into_iter().partition(|message| message.contains(OF_ITSELF));
    println!("validation: {} messages, and {} of the layer's own state", said.len(), of_itself.len());
    said.iter().for_each(|message| println!("  {message}"));
    if said.is_empty() { code } else { ExitCode::FAILURE }
}
