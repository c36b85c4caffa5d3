//! The run: random kernels on all devices, what differs made small and written down.

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

/// What a verdict says on a device (on any without a name), and why it is no finding.
const KNOWN: [(&str, &str, &str); 7] = [
    // Not certain to be uniform by WGSL's rules, of which the generator knows less than a compiler.
    ("", "rejected a barrier must be reached", "a barrier in control flow that may vary"),
    ("", "rejected nested too deep", "brackets beyond the documented depth"),
    ("", "rejected has workgroup memory of", "work-group memory beyond the device's"),
    // The `continuing` block names a variable of the body where the generator means one further out.
    ("", "rejected bypasses the declaration of", "a name that the body of a loop hides"),
    ("host", "rejected unsupported masking for", "GCC writes what its own assembler refuses"),
    ("oclgrind", "failed CL_INVALID_KERNEL_NAME", "Oclgrind lists the kernel, and does not find it"),
    // LLVM's `LiveVariables` in intel-opencl-rt 2026.2; no kernel runs then.
    ("intel", "crashed signal 11 while loading", "Intel's compiler ends the process"),
];

/// Why a verdict is no finding, if that is known.
fn known_reason(device: &str, verdict: &Verdict) -> Option<&'static str> {
    known_driver_defect("", verdict).or_else(|| known_driver_defect(device, verdict))
}

/// The defect of a device's driver that a verdict shows, if that is known.
#[must_use]
pub fn known_driver_defect(device: &str, verdict: &Verdict) -> Option<&'static str> {
    let words = encode(verdict);
    // What is refused names the module first.
    let says = |text: &str| {
        let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
        words.starts_with(kind) && words.contains(rest)
    };
    let found = KNOWN.iter().find(|(of, text, _)| *of == device && says(text));
    found.map(|(_, _, reason)| *reason)
}

/// What is wrong on the first and right on the second is the first driver's defect: another driver with the same text, or the
/// same driver with other code for the same kernel.
const REFERENCE_DRIVERS: [(&str, &str); 3] =
    [("opencl:0", "intel"), ("intel", "opencl:0"), ("vulkan:0", "vulkan:0/constants=opaque")];

/// Whether a kernel of a module that is wrong on a device is right on its reference, under the same load options, and wrong again
/// on the device.
fn is_driver_defect(plan: &Plan, process: &mut DeviceProcess, module: &[&Case], at: usize) -> bool {
    let name = process.name.clone();
    let (device, options) = name.split_at(name.find('/').unwrap_or(name.len()));
    let Some((_, reference)) = REFERENCE_DRIVERS.iter().find(|(of, _)| *of == device) else { return false };
    let reference = format!("{reference}{options}");
    let mut reference = DeviceProcess::new(&reference, plan.program.clone(), case_file(&reference));
    let is_right = reference.run(module).is_ok_and(|verdicts| verdicts[at] == Verdict::Same);
    is_right && process.run(module).is_ok_and(|verdicts| verdicts[at].is_wrong())
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The first seed.
    pub seed: u64,
    /// Seeds to take, if the time suffices.
    pub count: u64,
    /// When to stop.
    pub time: Duration,
    /// Kernels of a module.
    pub module: u64,
    /// Devices.
    pub devices: Vec<String>,
    /// Where findings are written.
    pub findings: PathBuf,
    /// How long a finding is made smaller.
    pub shrink_time: Duration,
    /// Findings after which the run stops.
    pub max_findings: usize,
    /// This program, for its child processes.
    pub program: PathBuf,
    /// What kernels do without.
    pub without: Without,
}

/// How it went.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Kernels without a difference, by device.
    pub same: BTreeMap<String, u64>,
    /// Kernels that a device lacks something for.
    pub unsupported: BTreeMap<String, u64>,
    /// Kernels that were not run, by why.
    pub skipped: BTreeMap<String, u64>,
    /// The findings.
    pub findings: Vec<Finding>,
    /// Devices that are not here, and why.
    pub absent: BTreeMap<String, String>,
    /// The seed behind the last one.
    pub next: u64,
}

/// Something wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The seed of the kernel.
    pub seed: u64,
    /// Where.
    pub device: String,
    /// What.
    pub verdict: Verdict,
    /// The smallest of the kernel that shows it.
    pub case: Case,
}

/// Kernels of a module that mean something.
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

/// Whether a case has a result that all devices must give.
///
/// # Errors
/// Why not.
pub fn check(case: &Case) -> Result<(), String> {
    let first = |text: &str| {
        let line = text.lines().next().unwrap_or_default();
        // Names and numbers tell one kernel from another, not one reason.
        line.chars().filter(|c| !c.is_ascii_digit()).collect::<String>()
    };
    let parsed = Parsed::new(&case.text).map_err(|error| format!("naga: {}", first(&error)))?;
    case.launches.iter().try_for_each(|launch| match interpret(&parsed, launch) {
        Ok(_) => Ok(()),
        Err(Invalid::Unknown(what)) => Err(format!("interpreter: {what}")),
        Err(invalid) => Err(invalid.to_string()),
    })
}

/// Runs kernels until the time, the seeds or the shrink_time with findings end.
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
            // Oclgrind takes a hundred times as long as others.
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
            log(&format!("up to seed {end}: {:?} the same", report.same));
        }
        if report.findings.len() >= plan.max_findings {
            break;
        }
    }
    Ok(report)
}

/// Where the cases of a device are handed over.
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
            log(&format!("{} is not here: {reason}", process.name));
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
                // Only among others: the module stays whole.
                let (module, at) = if is_alone { (&[case][..], 0) } else { (&cases[..], at) };
                if is_driver_defect(plan, process, module, at) {
                    log("  the driver's: its reference is right");
                    let reason = format!("{device}: wrong, and its reference is right");
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

/// Whether what seemed to hang ends well when it is alone and has more time.
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

/// The smallest kernel found within the time that is wrong in the same way.
pub fn shrink(
    process: &mut DeviceProcess,
    kernel: &Kernel,
    verdict: &Verdict,
    time: Duration,
) -> (Case, Verdict) {
    let start = Instant::now();
    let (mut smallest, mut shown) = (kernel.clone(), verdict.clone());
    process.set_deadline(Duration::from_secs(20));
    // A step that succeeds is followed by those behind it; the first ones come again in the next round.
    let mut next = 0;
    let mut shrunk = false;
    while start.elapsed() < time {
        // The interpreter's work on candidates counts as well.
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
