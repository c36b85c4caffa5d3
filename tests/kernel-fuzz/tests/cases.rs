//! Replays the stored cases, and runs new random kernels, on every device of this machine.
//!
//! `RUNTIME_FUZZ_SEED` is the first seed of the new kernels. `RUNTIME_FUZZ_SECONDS` runs them for a time on each device, instead of
//! a number of them.
#![allow(clippy::print_stdout, reason = "prints the seed")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kernel_fuzz::case::Case;
use kernel_fuzz::device::Verdict;
use kernel_fuzz::device_process::DeviceProcess;
use kernel_fuzz::fuzz::{Plan, check, fuzz, known_driver_defect};
use kernel_fuzz::generate::Without;
use kernel_fuzz::worker::encode;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use test_process::is_complete;

/// Devices, and how many new kernels they run: fewer where a compiler takes long.
///
/// Wrong proofs, and variants that users do not get, show in code that is not optimised, too: gcc then takes a third of the time.
/// Without optimisation, PoCL 3.1 runs what follows a loop with a barrier twice.
///
/// Oclgrind only replays the cases: it is slow, and loses kernels of large modules. So does the reference of
/// `vulkan:0`, whose SPIR-V must be valid.
const DEVICES: [(&str, u64); 16] = [
    ("transforms", 256),
    ("host", 48),
    ("host/variants=2/quick=true", 32),
    ("host/assert_proofs=true/quick=true", 32),
    ("host/serial_items=true", 48),
    ("host/debug=true", 48),
    ("clang", 24),
    ("opencl:0", 24),
    ("opencl:0/assert_proofs=true", 16),
    ("opencl:0/items_per_thread=4", 24),
    ("intel", 48),
    ("vulkan:0/validated", 32),
    ("vulkan:0/assert_proofs=true/validated", 24),
    ("vulkan:0/items_per_thread=4/validated", 48),
    ("vulkan:0/constants=opaque/validated", 0),
    ("oclgrind", 0),
];

/// How many times as many `cargo xtask test --all` runs.
const COMPLETE: u64 = 8;
/// No number of kernels takes this long.
const LONGEST: Duration = Duration::from_secs(1200);

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_kernel-fuzz"))
}

fn kept_cases(device: &str) -> Result<Completion, Failed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut files: Vec<_> = std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "wgsl"));
    files.sort();
    if files.is_empty() {
        return Err("no stored cases found".into());
    }
    let file = std::env::temp_dir().join(format!(
        "kept-{}-{}.wgsl",
        std::process::id(),
        device.replace(['/', ':'], "-")
    ));
    let mut process = DeviceProcess::new(device, program(), file);
    let mut wrong = Vec::new();
    for path in files {
        let case = Case::parse(&std::fs::read_to_string(&path)?)?;
        check(&case).map_err(|reason| format!("{}: {reason}", path.display()))?;
        match process.run(&[&case]) {
            Err(reason) => return absent(device, reason),
            Ok(verdicts) if verdicts[0].is_wrong() && known_driver_defect(device, &verdicts[0]).is_none() => {
                wrong.push(format!("{}: {}", path.display(), encode(&verdicts[0])));
            }
            Ok(_) => {}
        }
    }
    if wrong.is_empty() { Ok(Completion::Completed) } else { Err(wrong.join("\n").into()) }
}

fn absent(device: &str, reason: String) -> Result<Completion, Failed> {
    let target = match device.split([':', '/']).next().unwrap_or(device) {
        "intel" => "intel-opencl",
        target => target,
    };
    if ["host", "transforms"].contains(&target) || portable::required(target) {
        Err(reason.into())
    } else {
        Ok(Completion::ignored_with(reason))
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn plan(device: &str, seed: u64, count: u64, time: Duration) -> Plan {
    Plan {
        seed,
        count,
        time,
        module: 8,
        devices: vec![device.to_owned()],
        findings: std::env::temp_dir().join("kernel-fuzz"),
        shrink_time: Duration::from_secs(120),
        max_findings: 1,
        program: program(),
        without: Without::default(),
    }
}

fn fresh_kernels(device: &str, count: u64) -> Result<Completion, Failed> {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let seed = number("RUNTIME_FUZZ_SEED").unwrap_or_else(now) / 32 * 32;
    let plan = match number("RUNTIME_FUZZ_SECONDS") {
        Some(seconds) => plan(device, seed, u64::MAX / 2, Duration::from_secs(seconds)),
        None => plan(device, seed, if is_complete() { COMPLETE * count } else { count }, LONGEST),
    };
    println!("new kernels on {device}: RUNTIME_FUZZ_SEED={seed}");
    let report = fuzz(&plan, |line| println!("{line}"))?;
    if let Some((_, reason)) = report.absent.first_key_value() {
        return absent(device, reason.clone());
    }
    println!(
        "{device}: seeds {seed}..{}, {:?} as expected, skipped {:?}",
        report.next, report.same, report.skipped
    );
    match report.findings.first() {
        None => Ok(Completion::Completed),
        Some(finding) => {
            let words = encode(&finding.verdict).replace("\\n", "\n");
            Err(format!("seed {}: {words}\n{}", finding.seed, finding.case).into())
        }
    }
}

/// Without bounds checks, kernels that index out of range must fail; otherwise the fuzzer detects nothing.
fn finds_missing_checks() -> Result<Completion, Failed> {
    let plan =
        Plan { max_findings: 2, shrink_time: Duration::ZERO, ..plan("host/unchecked=true", 0, 32, LONGEST) };
    let report = fuzz(&plan, |line| println!("{line}"))?;
    let is_wrong = |verdict: &Verdict| matches!(verdict, Verdict::Different(_) | Verdict::Crashed(_));
    if report.findings.iter().any(|finding| is_wrong(&finding.verdict)) {
        Ok(Completion::Completed)
    } else {
        Err("32 kernels without checks passed".into())
    }
}

fn main() -> ExitCode {
    let mut trials = vec![Trial::ignorable_test("missing_checks_are_found", finds_missing_checks)];
    for (device, count) in DEVICES {
        trials.push(Trial::ignorable_test(format!("{device}::cases"), move || kept_cases(device)));
        if count > 0 {
            trials.push(Trial::ignorable_test(format!("{device}::fresh"), move || {
                fresh_kernels(device, count)
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
