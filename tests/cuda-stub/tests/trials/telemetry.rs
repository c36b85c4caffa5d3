//! Telemetry, reasons for throttling and processes of the CUDA backend on a stub of NVML: the values, and what remains of them
//! without it or when it fails.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use runtime_core::device::Telemetry;
use runtime_core::{Result, Runtime, abi};
use runtime_cuda_stub_tests::BROKEN_NVML;

/// Longer than any case takes.
const DEADLINE: Duration = Duration::from_secs(120);
/// Everything that the stub reports of its first device.
const ALL: Telemetry = Telemetry {
    clock_hz: Some(1_410_000_000),
    memory_clock_hz: Some(2_619_000_000),
    temperature_millicelsius: Some(32_000),
    power_milliwatts: Some(70_795),
    energy_microjoules: Some(2_184_220_000),
};
/// Codes that a function returns: known ones, and some that no list has.
const CODES: [i32; 6] = [1, 3, 15, 999, 123_456, -7];

/// An NVML, and what two calls of the device's `telemetry` print.
struct Case {
    name: String,
    /// Preprocessor definitions of the stubs.
    defines: &'static [&'static str],
    /// Options of the stubs.
    options: String,
    device: &'static str,
    /// Whether the device declares the capability.
    declared: bool,
    calls: [String; 2],
    /// The reasons and the processes that are printed; empty if they are not compared.
    disturbances: &'static str,
}

impl Case {
    fn new(name: &str, options: &str, calls: [String; 2]) -> Self {
        let (name, options) = (name.to_owned(), options.to_owned());
        Self { name, defines: &[], options, device: "cuda:0", declared: true, calls, disturbances: "" }
    }

    fn disturbed(
        name: &str,
        defines: &'static [&'static str],
        options: &str,
        disturbances: &'static str,
    ) -> Self {
        Self { defines, disturbances, ..Self::new(name, options, [values(ALL), values(ALL)]) }
    }

    fn lacking(name: &str, defines: &'static [&'static str], declared: bool, call: &str) -> Self {
        Self { defines, declared, ..Self::new(name, "", [call.to_owned(), call.to_owned()]) }
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let trial = |case: Case| {
        let folder = Arc::clone(&folder);
        Trial::test(format!("telemetry::{}", case.name), move || {
            run(&case, &folder.path().join(format!("stub-{}", case.defines.concat())))
        })
    };
    cases().into_iter().map(trial).collect()
}

/// What the worker prints of values.
fn values(telemetry: Telemetry) -> String {
    format!("{telemetry:?}")
}

fn cases() -> Vec<Case> {
    let second = Telemetry { temperature_millicelsius: Some(33_000), ..ALL };
    let mut cases = vec![
        Case::new("every_value_is_reported", "", [values(ALL), values(ALL)]),
        Case {
            device: "cuda:1",
            ..Case::new("a_device_is_found_by_its_uuid", "devices=2", [values(second), values(second)])
        },
        Case {
            declared: false,
            ..Case::new(
                "a_mig_instance_without_values_says_so",
                "mig=1",
                ["Unsupported", "Unsupported"].map(|kind| format!("{kind} Not Supported; `nvidia-smi -q`")),
            )
        },
        Case {
            device: "",
            ..Case::new("listing_and_opening_initialise_nothing", "nvml_init_aborts=1", Default::default())
        },
        Case::lacking("a_broken_nvml_costs_only_the_telemetry", &[BROKEN_NVML], false, "Unsupported "),
        Case::lacking(
            "an_nvml_without_nvmlInit_v2",
            &["nvmlInit_v2=gone"],
            false,
            "Unsupported lacks nvmlInit_v2; update the driver",
        ),
        Case::lacking(
            "an_nvml_without_nvmlDeviceGetHandleByUUID",
            &["nvmlDeviceGetHandleByUUID=gone"],
            false,
            "Unsupported lacks nvmlDeviceGetHandleByUUID; update the driver",
        ),
        Case::lacking(
            "an_nvml_without_any_value",
            &[
                "nvmlDeviceGetClockInfo=gone_clock",
                "nvmlDeviceGetTemperature=gone_temperature",
                "nvmlDeviceGetPowerUsage=gone_power",
                "nvmlDeviceGetTotalEnergyConsumption=gone_energy",
            ],
            true,
            "Unsupported lacks nvmlDeviceGetClockInfo; update the driver",
        ),
        Case::lacking("an_nvml_without_error_texts", &["nvmlErrorString=gone"], true, &values(ALL)),
    ];
    for (define, _, nth, rest) in value_functions() {
        if nth == 2 {
            continue;
        }
        let rest =
            if define[0].contains("Clock") { Telemetry { memory_clock_hz: None, ..rest } } else { rest };
        cases.push(Case::lacking(&format!("an_nvml_with_{}", define[0]), define, true, &values(rest)));
    }
    cases.extend(failing());
    cases.extend(disturbed());
    cases
}

/// Reasons for throttling and other processes: as reported, by the name of older drivers, without the functions, and with
/// failing calls.
fn disturbed() -> Vec<Case> {
    const EVENT: &str = "nvmlDeviceGetCurrentClocksEventReasons=gone_event";
    const THROTTLE: &str = "nvmlDeviceGetCurrentClocksThrottleReasons=gone_throttle";
    let others = "processes [4000001, 4000002]";
    let failing = |function: &str| format!("fail={function}:3:1");
    vec![
        Case::disturbed("nothing_disturbs", &[], "", "reasons []; processes [4000001, 4000002]"),
        Case::disturbed(
            "all_reasons_are_reported_but_idleness",
            &[],
            "event_reasons=511",
            "reasons [power cap, software thermal, hardware thermal, power brake, hardware slowdown, clock limit]",
        ),
        Case::disturbed("an_idle_device_does_not_throttle", &[], "event_reasons=1", "reasons []"),
        Case::disturbed("heat", &[], "event_reasons=64", "reasons [hardware thermal]"),
        Case::disturbed("a_power_brake", &[], "event_reasons=128", "reasons [power brake]"),
        Case::disturbed("reasons_by_their_older_name", &[EVENT], "event_reasons=4", "reasons [power cap]"),
        Case::disturbed("an_nvml_without_reasons", &[EVENT, THROTTLE], "", "reasons Unsupported"),
        Case::disturbed(
            "reasons_fail",
            &[],
            &failing("nvmlDeviceGetCurrentClocksEventReasons"),
            "reasons Unsupported",
        ),
        Case::disturbed("processes_of_another_namespace", &[], "other_namespace=1", "processes [0, 0]"),
        Case::disturbed(
            "a_failing_list_leaves_the_other",
            &[],
            &failing("nvmlDeviceGetGraphicsRunningProcesses_v3"),
            others,
        ),
        Case::disturbed(
            "an_nvml_without_processes",
            &[
                "nvmlDeviceGetComputeRunningProcesses_v3=gone_compute",
                "nvmlDeviceGetGraphicsRunningProcesses_v3=gone_graphics",
            ],
            "",
            "processes Unsupported",
        ),
    ]
}

/// Each value: the definition that removes its function, the function, which call of it, and what remains without it.
fn value_functions() -> [(&'static [&'static str], &'static str, u32, Telemetry); 5] {
    let clock = "nvmlDeviceGetClockInfo";
    [
        (&["nvmlDeviceGetClockInfo=gone"], clock, 1, Telemetry { clock_hz: None, ..ALL }),
        (&["nvmlDeviceGetClockInfo=gone"], clock, 2, Telemetry { memory_clock_hz: None, ..ALL }),
        (
            &["nvmlDeviceGetTemperature=gone"],
            "nvmlDeviceGetTemperature",
            1,
            Telemetry { temperature_millicelsius: None, ..ALL },
        ),
        (
            &["nvmlDeviceGetPowerUsage=gone"],
            "nvmlDeviceGetPowerUsage",
            1,
            Telemetry { power_milliwatts: None, ..ALL },
        ),
        (
            &["nvmlDeviceGetTotalEnergyConsumption=gone"],
            "nvmlDeviceGetTotalEnergyConsumption",
            1,
            Telemetry { energy_microjoules: None, ..ALL },
        ),
    ]
}

/// Each function fails once with each code: a value is missing, or the whole call fails and works the next time.
fn failing() -> Vec<Case> {
    let mut cases = Vec::new();
    for code in CODES {
        for (_, function, nth, rest) in value_functions() {
            let name = format!("call_{nth}_of_{function}_fails_with_{code}");
            let options = format!("fail={function}:{code}:{nth}");
            cases.push(Case::new(&name, &options, [values(rest), values(ALL)]));
        }
        for function in ["nvmlInit_v2", "nvmlDeviceGetHandleByUUID"] {
            let kind = if code == 3 { "Unsupported" } else { "Driver" };
            let options = format!("fail={function}:{code}:1");
            let name = format!("{function}_fails_with_{code}");
            cases.push(Case::new(
                &name,
                &options,
                [format!("{kind} {function}: driver error {code}"), values(ALL)],
            ));
        }
    }
    cases
}

fn run(case: &Case, folder: &Path) -> std::result::Result<(), Failed> {
    static BUILDING: Mutex<()> = Mutex::new(());
    let building = BUILDING.lock();
    if !folder.join("libnvrtc.so.12").is_file() {
        std::fs::create_dir_all(folder)?;
        runtime_cuda_stub_tests::build(folder, case.defines)?;
    }
    drop(building);
    let mut command = runtime_cuda_stub_tests::rerun_with_stub("telemetry", folder, &case.options)?;
    let text = test_process::finish(command.env("STUB_DEVICE", case.device), DEADLINE)?.success()?;
    let (declared, calls) = text.split_once('\n').ok_or("no output")?;
    let (calls, disturbances) = calls.split_once("reasons ").unwrap_or((calls, ""));
    let disturbances = format!("reasons {disturbances}");
    if !disturbances.contains(case.disturbances) {
        return Err(format!("expected {}, got {disturbances}", case.disturbances).into());
    }
    let calls: Vec<_> = calls.lines().collect();
    let expected = case.calls.iter().filter(|_| !case.device.is_empty());
    let differs = calls.len() != expected.clone().count()
        || expected.zip(&calls).any(|(expected, call)| !is_as_expected(expected, call));
    if declared != format!("declared {}", case.declared) || differs {
        return Err(format!("expected {} and {:?}, got:\n{text}", case.declared, case.calls).into());
    }
    Ok(())
}

/// Values are the same; an error has the kind, and contains the words after it.
fn is_as_expected(expected: &str, call: &str) -> bool {
    match (expected.split_once(' '), call.split_once(' ')) {
        (Some((kind, words)), Some((got, text))) if !expected.starts_with("Telemetry ") => {
            kind == got && text.contains(words)
        }
        _ => expected == call,
    }
}

/// The process that loads the stub: lists and opens the device, and prints two calls of its `telemetry`, and what disturbs it.
#[allow(clippy::print_stdout, reason = "the parent reads it")]
pub(crate) fn child() -> ExitCode {
    let name = std::env::var("STUB_DEVICE").unwrap();
    let library = runtime_cuda_stub_tests::plugin_path().unwrap();
    // SAFETY: the backend of this workspace.
    #[allow(unsafe_code, reason = "loads the backend")]
    let runtime = unsafe { Runtime::builder().discover(false).library(library) }.build();
    let device = runtime.open(if name.is_empty() { "cuda" } else { &name }).unwrap();
    println!("declared {}", device.info().capabilities.has(abi::CAP_TELEMETRY));
    for _ in 0..if name.is_empty() { 0 } else { 2 } {
        match device.telemetry() {
            Ok(telemetry) => println!("{}", values(telemetry)),
            Err(error) => println!("{:?} {error}", error.kind()),
        }
    }
    if !name.is_empty() {
        let shown = |shown: Result<String>| shown.unwrap_or_else(|error| format!("{:?}", error.kind()));
        let reasons = shown(device.throttle_reasons().map(|reasons| format!("[{reasons}]")));
        let processes = shown(device.processes().map(|ids| format!("{ids:?}")));
        println!("reasons {reasons}; processes {processes}");
    }
    ExitCode::SUCCESS
}
