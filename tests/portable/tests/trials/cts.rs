//! A sample of the WebGPU conformance suite on the devices of this machine, and of its invalid texts. Without `RUNTIME_TEST_CTS`, the
//! folder that `cts/gather.sh` makes, and without Node 20, the tests are ignored.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::{Completion, Failed, Trial};
use test_process::{Finished, finish, required};

const DEVICES: [&str; 4] = ["host", "opencl", "vulkan", "text"];
/// Cases per device.
const SAMPLE: &str = "300";
/// The seed that `.ci/run` makes of the files: each change tests other cases.
const SEED: &str = "RUNTIME_FUZZ_SEED";
const TIMEOUT: Duration = Duration::from_secs(3600);

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |device: &'static str| Trial::ignorable_test(format!("cts::{device}"), move || check(device));
    DEVICES.into_iter().map(trial).collect()
}

fn check(device: &str) -> Result<Completion, Failed> {
    let Some(folder) = std::env::var_os("RUNTIME_TEST_CTS") else {
        return Ok(Completion::ignored_with("RUNTIME_TEST_CTS is not set; cts/gather.sh makes its folder"));
    };
    if !has_node() {
        return Ok(Completion::ignored_with("Node 20 is not installed"));
    }
    if ["opencl", "vulkan"].contains(&device) && !required(device) {
        return Ok(Completion::ignored_with("runs where the device is required"));
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("cts/run.mjs");
    let mut command = Command::new("node");
    command.arg(script).arg(folder).args([env!("CARGO_BIN_EXE_cts-server"), device, "--sample", SAMPLE]);
    let seed = std::env::var(SEED).unwrap_or_default();
    let output = finish(command.args(["--seed", &seed]), TIMEOUT)?.success()?;
    // A run that selects nothing passes nothing.
    if output.contains("% of 0") { Err("no case ran".into()) } else { Ok(Completion::Completed) }
}

/// Whether there is a Node that has what the scripts use.
fn has_node() -> bool {
    let version = finish(Command::new("node").arg("--version"), Duration::from_secs(60));
    let version = version.and_then(Finished::success).unwrap_or_default();
    let major =
        version.trim().strip_prefix('v').and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    major.is_some_and(|major| major >= 20)
}
