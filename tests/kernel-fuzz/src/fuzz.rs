//! The fuzzing loop: runs random kernels on all devices, then shrinks failures and writes them to files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::case::Case;
use crate::device::Verdict;
use crate::device_process::{DEADLINE, DeviceProcess, HUNG};
use crate::generate::{Kernel, Without, kernel};
use crate::interpret::{Invalid, Parsed, interpret};
use crate::shrink::smaller;
use crate::worker::encode;

/// Verdicts that are not findings: the device (empty for all), the text of the verdict, and the reason.
const KNOWN: [(&str, &str, &str); 7] = [
    // Not provably uniform by WGSL's rules; the generator's rules are simpler than a compiler's.
    ("", "rejected a barrier must be reached", "a barrier in possibly divergent control flow"),
    // naga rejects a constant index out of range. Values of `let`s, and unrolling, make some constant; the lowering does
    // not validate that.
    ("transforms", "rejected Accessing index", "a constant index out of range"),
    ("transforms", "rejected via a negative index", "a constant index out of range"),
    ("transforms", "rejected Accessing with index", "a constant index of 64 bits"),
    ("host", "rejected unsupported masking for", "GCC emits code that its own assembler rejects"),
    ("oclgrind", "failed CL_INVALID_KERNEL_NAME", "Oclgrind lists the kernel, but does not find it"),
    // Defects of LLVM in intel-opencl-rt 2026.2, one of them in `LiveVariables`; no kernel has run at that point.
    ("intel", "crashed while loading", "Intel's compiler crashes or hangs"),
];

/// Why a verdict is not a finding, if it is known.
fn known_reason(device: &str, verdict: &Verdict) -> Option<&'static str> {
    known_driver_defect("", verdict).or_else(|| known_driver_defect(device, verdict))
}

/// The known driver defect that a verdict shows.
#[must_use]
pub fn known_driver_defect(device: &str, verdict: &Verdict) -> Option<&'static str> {
    let words = encode(verdict);
    // A load error starts with the name of the module.
    let says = |text: &str| {
        let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
        words.starts_with(kind) && words.contains(rest)
    };
    let found = KNOWN.iter().find(|(of, text, _)| *of == device && says(text));
    found.map(|(_, _, reason)| *reason)
}

/// Drivers with a reference: a kernel that is wrong on the first and right on the second shows a defect of the first
/// driver. The reference is another driver with the same code, or the same driver with other code for the same
/// kernel.
const REFERENCE_DRIVERS: [(&str, &str); 3] =
    [("opencl:0", "intel"), ("intel", "opencl:0"), ("vulkan:0", "vulkan:0/constants=opaque")];

/// Whether a wrong kernel of a module is right on the reference of its device, with the same load options, and wrong
/// again on the device.
fn is_driver_defect(plan: &Plan, process: &mut DeviceProcess, module: &[&Case], at: usize) -> bool {
    let name = process.name.clone();
    let (device, options) = name.split_at(name.find('/').unwrap_or(name.len()));
    let Some((_, reference)) = REFERENCE_DRIVERS.iter().find(|(of, _)| *of == device) else { return false };
    let reference = format!("{reference}{options}");
    let mut reference = DeviceProcess::new(&reference, plan.program.clone(), case_file(&reference));
    let is_right = reference.run(module).is_ok_and(|verdicts| verdicts[at] == Verdict::Same);
    is_right && process.run(module).is_ok_and(|verdicts| verdicts[at].is_wrong())
}

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The first seed.
    pub seed: u64,
    /// The maximum number of seeds.
    pub count: u64,
    /// The time limit.
    pub time: Duration,
    /// Kernels per module.
    pub module: u64,
    /// Devices.
    pub devices: Vec<String>,
    /// The folder for findings.
    pub findings: PathBuf,
    /// The time limit for shrinking a finding.
    pub shrink_time: Duration,
    /// The number of findings after which the run stops.
    pub max_findings: usize,
    /// The program of the child processes.
    pub program: PathBuf,
    /// Features that kernels must not use.
    pub without: Without,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Kernels with the expected result, by device.
    pub same: BTreeMap<String, u64>,
    /// Kernels that a device does not support.
    pub unsupported: BTreeMap<String, u64>,
    /// Kernels that were not run or not counted, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// The findings.
    pub findings: Vec<Finding>,
    /// Unavailable devices, with the reason.
    pub absent: BTreeMap<String, String>,
    /// The seed after the last one.
    pub next: u64,
}

/// A failure.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The seed of the kernel.
    pub seed: u64,
    /// The device.
    pub device: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The smallest kernel that reproduces it.
    pub case: Case,
}

/// The kernels of a module that have a defined result.
fn valid_kernels(
    seeds: std::ops::Range<u64>,
    without: Without,
    report: &mut Report,
) -> Vec<(u64, Kernel, Case)> {
    let mut kernels = Vec::new();
    for seed in seeds {
        let kernel = kernel(seed, without);
        let case = kernel.case();
        match check(&case) {
            Ok(()) => kernels.push((seed, kernel, case)),
            Err(reason) => *report.skipped.entry(reason).or_default() += 1,
        }
    }
    kernels
}

/// Whether a case has a result that every device must produce.
///
/// # Errors
/// The reason that it has none.
pub fn check(case: &Case) -> Result<(), String> {
    let first = |text: &str| {
        let line = text.lines().next().unwrap_or_default();
        // Drop digits, so that kernels with the same reason are counted together.
        line.chars().filter(|c| !c.is_ascii_digit()).collect::<String>()
    };
    let parsed = Parsed::new(&case.text).map_err(|error| format!("naga: {}", first(&error)))?;
    case.launches.iter().try_for_each(|launch| match interpret(&parsed, launch) {
        Ok(_) => Ok(()),
        Err(Invalid::Unknown(what)) => Err(format!("interpreter: {what}")),
        Err(invalid) => Err(invalid.to_string()),
    })
}

/// Runs kernels until the time, the seeds, or the maximum number of findings is reached.
///
/// # Errors
/// Files cannot be written.
pub fn fuzz(plan: &Plan, mut log: impl FnMut(&str)) -> Result<Report, String> {
    std::fs::create_dir_all(&plan.findings).map_err(|error| error.to_string())?;
    let mut processes: Vec<_> = plan
        .devices
        .iter()
        .map(|name| DeviceProcess::new(name, plan.program.clone(), case_file(name)))
        .collect();
    let mut logged = Instant::now();
    let (start, mut report) = (Instant::now(), Report { next: plan.seed, ..Report::default() });
    while report.next < plan.seed + plan.count && start.elapsed() < plan.time {
        let end = (report.next + plan.module).min(plan.seed + plan.count);
        let kernels = valid_kernels(report.next..end, plan.without, &mut report);
        report.next = end;
        for process in &mut processes {
            // Oclgrind takes a hundred times as long as other devices.
            let is_due = process.name != "oclgrind"
                || plan.devices.len() == 1
                || (end / plan.module).is_multiple_of(8);
            if report.absent.contains_key(&process.name) || !is_due {
                continue;
            }
            run_module(plan, process, &kernels, &mut report, &mut log)?;
        }
        if logged.elapsed() > Duration::from_secs(60) {
            logged = Instant::now();
            log(&format!("up to seed {end}: {:?} as expected", report.same));
        }
        if report.findings.len() >= plan.max_findings {
            break;
        }
    }
    Ok(report)
}

/// The file that passes cases to the child process of a device.
fn case_file(device: &str) -> PathBuf {
    let device = device.replace([':', '/', '='], "-");
    std::env::temp_dir().join(format!("kernel-fuzz-{}-{device}.wgsl", std::process::id()))
}

/// Runs the kernels of a module on a device.
fn run_module(
    plan: &Plan,
    process: &mut DeviceProcess,
    kernels: &[(u64, Kernel, Case)],
    report: &mut Report,
    log: &mut impl FnMut(&str),
) -> Result<(), String> {
    let cases: Vec<_> = kernels.iter().map(|(_, _, case)| case).collect();
    let verdicts = match process.run(&cases) {
        Ok(verdicts) => verdicts,
        Err(reason) => {
            log(&format!("{} is unavailable: {reason}", process.name));
            report.absent.insert(process.name.clone(), reason);
            return Ok(());
        }
    };
    for (at, ((seed, kernel, case), verdict)) in kernels.iter().zip(verdicts).enumerate() {
        let device = process.name.clone();
        match &verdict {
            Verdict::Same => *report.same.entry(device).or_default() += 1,
            Verdict::Unsupported(_) => *report.unsupported.entry(device).or_default() += 1,
            wrong => {
                if let Some(reason) = known_reason(&device, wrong) {
                    *report.skipped.entry(format!("{device}: {reason}")).or_default() += 1;
                    continue;
                }
                log(&format!("seed {seed} on {device}: {}", first_line(&encode(wrong))));
                if is_only_slow(process, case, wrong) {
                    *report.skipped.entry(format!("{device}: too slow on a busy machine")).or_default() += 1;
                    continue;
                }
                let is_alone = reproduces_alone(process, case, &verdict);
                // If it fails only together with others, keep the whole module.
                let (module, at) = if is_alone { (&[case][..], 0) } else { (&cases[..], at) };
                if is_driver_defect(plan, process, module, at) {
                    log("  a driver defect: the reference is right");
                    let reason = format!("{device}: wrong, but right on the reference");
                    *report.skipped.entry(reason).or_default() += 1;
                    continue;
                }
                let (smallest, verdict) = match is_alone {
                    true => shrink(process, kernel, &verdict, plan.shrink_time),
                    false => (Case::join(module), verdict),
                };
                let name = format!("{seed}-{}.wgsl", device.replace([':', '/', '='], "-"));
                let path = plan.findings.join(name);
                write_finding(&path, *seed, &device, &verdict, &smallest)?;
                log(&format!("  {} lines in {}", smallest.text.lines().count(), path.display()));
                report.findings.push(Finding { seed: *seed, device, verdict, case: smallest });
            }
        }
    }
    Ok(())
}

fn first_line(text: &str) -> String {
    text.replace("\\n", " ").chars().take(200).collect()
}

/// Whether an apparent hang succeeds when run alone with more time.
fn is_only_slow(process: &mut DeviceProcess, case: &Case, verdict: &Verdict) -> bool {
    let Verdict::Crashed(how) = verdict else { return false };
    if !how.starts_with(HUNG) {
        return false;
    }
    process.set_deadline(5 * DEADLINE);
    let is_slow = reproduces_alone(process, case, &Verdict::Same);
    process.set_deadline(DEADLINE);
    is_slow
}

fn reproduces_alone(process: &mut DeviceProcess, case: &Case, verdict: &Verdict) -> bool {
    process.run(&[case]).is_ok_and(|verdicts| verdicts[0].is_like(verdict))
}

fn write_finding(path: &Path, seed: u64, device: &str, verdict: &Verdict, case: &Case) -> Result<(), String> {
    let words: Vec<_> =
        encode(verdict).replace("\\n", "\n").lines().map(|line| format!("// {line}\n")).collect();
    let text = format!("// Seed {seed} on {device}:\n{}{case}", words.concat());
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The smallest kernel found in the time that fails in the same way.
pub fn shrink(
    process: &mut DeviceProcess,
    kernel: &Kernel,
    verdict: &Verdict,
    time: Duration,
) -> (Case, Verdict) {
    let start = Instant::now();
    let (mut smallest, mut shown) = (kernel.clone(), verdict.clone());
    process.set_deadline(Duration::from_secs(20));
    // After a successful step, continue with the steps after it; the first ones are retried in the next round.
    let mut next = 0;
    let mut shrunk = false;
    while start.elapsed() < time {
        // The time limit includes the interpreter's work on candidates.
        let candidates = smaller(&smallest).enumerate().skip(next).take_while(|_| start.elapsed() < time);
        let valid = candidates.into_iter().find(|(_, candidate)| check(&candidate.case()).is_ok());
        let Some((at, candidate)) = valid else {
            if !std::mem::take(&mut shrunk) {
                break;
            }
            next = 0;
            continue;
        };
        let Ok(verdicts) = process.run(&[&candidate.case()]) else { break };
        next = at + 1;
        if verdicts[0].is_like(verdict) {
            (shown, smallest, shrunk, next) = (verdicts[0].clone(), candidate, true, at);
        }
    }
    process.set_deadline(DEADLINE);
    (smallest.case(), shown)
}
