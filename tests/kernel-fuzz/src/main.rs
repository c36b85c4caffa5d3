//! `kernel-fuzz`: runs random kernels on the devices of this machine.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program")]

use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};
use std::time::Duration;

use kernel_fuzz::case::Case;
use kernel_fuzz::device_process::DeviceProcess;
use kernel_fuzz::fuzz::{Plan, Report, check, fuzz};
use kernel_fuzz::generate::{Without, kernel};
use kernel_fuzz::worker;

const HELP: &str = "\
Runs random portable kernels on the devices of this machine, and compares them with an interpreter of WGSL.

  kernel-fuzz run [SECONDS] [--seed N] [--count N] [--devices A,B,…] [--module N] [--jobs N] [--findings DIR]
                  [--shrink-seconds SECONDS] [--max-findings N] [--without zeros,element-pointers]
  kernel-fuzz show SEED        print the kernel of a seed
  kernel-fuzz replay DEVICE FILE…
                               run stored cases
Devices are device strings; load options follow after slashes: host/variants=2. `transforms` is no device: it interprets
the modules that the lowering prints.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match &words[..] {
        ["worker", device] => return worker::serve(device),
        ["run", rest @ ..] => run(rest),
        ["show", seed] => seed.parse().map_err(|_| format!("`{seed}` is not a seed")).map(|seed| {
            let case = kernel(seed, Without::default()).case();
            println!("{case}// {:?}", check(&case));
            true
        }),
        ["replay", device, files @ ..] => replay(device, files),
        _ => Err(HELP.to_owned()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The default number of kernels per module.
const KERNELS_PER_MODULE: u64 = 32;

fn plan(words: &[&str]) -> Result<(Plan, u64), String> {
    let mut plan = Plan {
        seed: 0,
        count: u64::MAX / 2,
        time: Duration::from_secs(60),
        module: KERNELS_PER_MODULE,
        devices: vec!["host".to_owned()],
        findings: PathBuf::from("target/kernel-fuzz"),
        shrink_time: Duration::from_secs(60),
        max_findings: 20,
        program: std::env::current_exe().map_err(|error| error.to_string())?,
        without: Without::default(),
    };
    let mut jobs = 1;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("`{text}` is not a number"));
        if !word.starts_with("--") {
            plan.time = Duration::from_secs(number(word)?);
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        match *word {
            "--seed" => plan.seed = number(value)?,
            "--count" => plan.count = number(value)?,
            "--module" => plan.module = number(value)?.max(1),
            "--jobs" => jobs = number(value)?.max(1),
            "--max-findings" => plan.max_findings = usize::try_from(number(value)?).unwrap_or(usize::MAX),
            "--shrink-seconds" => plan.shrink_time = Duration::from_secs(number(value)?),
            "--without" => plan.without = Without::parse(value)?,
            "--findings" => plan.findings = PathBuf::from(value),
            "--devices" => plan.devices = value.split(',').map(str::to_owned).collect(),
            _ => return Err(format!("unknown option {word}\n\n{HELP}")),
        }
    }
    // Align to modules, so that the seed alone determines the features of its kernel.
    plan.seed = plan.seed / plan.module * plan.module;
    Ok((plan, jobs))
}

/// The number of seeds reserved for each process.
const SEEDS_PER_JOB: u64 = 1 << 32;

fn run(words: &[&str]) -> Result<bool, String> {
    let (plan, jobs) = plan(words)?;
    if jobs > 1 {
        return run_parallel(words, &plan, jobs);
    }
    println!("seed {}, devices {}", plan.seed, plan.devices.join(", "));
    let report = fuzz(&plan, |line| println!("{line}"))?;
    print_report(&plan, &report);
    Ok(report.findings.is_empty() && report.absent.len() < plan.devices.len())
}

fn print_report(plan: &Plan, report: &Report) {
    println!("seeds {}..{}", plan.seed, report.next);
    for device in &plan.devices {
        let of = |counts: &std::collections::BTreeMap<String, u64>| counts.get(device).copied().unwrap_or(0);
        let wrong = report.findings.iter().filter(|finding| finding.device == *device).count();
        println!(
            "{device}: {} as expected, {wrong} wrong, {} unsupported",
            of(&report.same),
            of(&report.unsupported)
        );
    }
    for (reason, count) in &report.skipped {
        println!("skipped {count}: {reason}");
    }
}

/// Runs several processes, each with its own seeds.
fn run_parallel(words: &[&str], plan: &Plan, jobs: u64) -> Result<bool, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let start = |job: u64| -> Result<Child, String> {
        let mut command = Command::new(&program);
        command.arg("run").args(words).args(["--jobs", "1"]);
        let seed = if plan.count < SEEDS_PER_JOB {
            let count = plan.count.div_ceil(jobs).next_multiple_of(plan.module);
            command.args(["--count", &count.to_string()]);
            plan.seed + job * count
        } else {
            plan.seed + job * SEEDS_PER_JOB
        };
        command.args(["--seed", &seed.to_string()]).spawn().map_err(|error| error.to_string())
    };
    let children: Vec<_> = (0..jobs).map(start).collect::<Result<_, _>>()?;
    let mut passed = true;
    for mut child in children {
        passed &= child.wait().map_err(|error| error.to_string())?.success();
    }
    Ok(passed)
}

fn replay(device: &str, files: &[&str]) -> Result<bool, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let file = std::env::temp_dir().join(format!("kernel-fuzz-{}-replay.wgsl", std::process::id()));
    let mut process = DeviceProcess::new(device, program, file);
    let mut passed = true;
    for path in files {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        let case = Case::parse(&text).map_err(|error| format!("{path}: {error}"))?;
        check(&case).map_err(|error| format!("{path}: {error}"))?;
        let verdict = process.run(&[&case])?.remove(0);
        println!("{path}: {}", worker::encode(&verdict));
        passed &= !verdict.is_wrong();
    }
    Ok(passed)
}
