//! Plans the runs of a sweep, and evaluates their results.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use runtime_core::ErrorKind;

use super::FaultOptions;
use super::corruption::corruptions_of;
use super::job::{Job, RunResult, RunStatus};
use super::layer::FUNCTIONS;
use super::object_tracker::{Fault, Injection};
use super::worker_pool::{StartWorker, run_all};
use crate::plan::{self, Plan};
use crate::selection::Selection;
use crate::test_data::Random;
use crate::topics::TOPICS;

/// The time limit of a run with a fault: this, plus a multiple of the duration without a fault.
const DEADLINE: Duration = Duration::from_secs(30);
const DEADLINE_FACTOR: u32 = 10;
/// The time limit of a run without a fault.
const BASELINE_DEADLINE: Duration = Duration::from_secs(120);
/// The interval of progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(30);
/// The topic of cases that lend memory to a device.
const BORROWED_MEMORY: &str = "interchange::";
/// The number of findings listed per kind and function.
const MAX_LISTED: usize = 5;

pub(super) fn run(
    selection: &Selection,
    options: &FaultOptions,
    start: StartWorker<'_>,
) -> Result<(), String> {
    let plan = plan::plan(selection).map_err(|error| error.to_string())?;
    let cases = jobs(&plan, options);
    for absent in plan.absent.iter().filter(|absent| absent.excused) {
        print(&format!("missing: {absent}"));
    }
    let required = plan.absent.iter().filter(|absent| !absent.excused);
    let missed: Vec<_> = required.map(|absent| format!("missing but required: {absent}")).collect();
    // Close these devices before the workers open them.
    drop(plan);
    if cases.is_empty() {
        let nothing = "nothing to sweep; run `runtime doctor` to see which backends were found".to_owned();
        return Err(missed.into_iter().chain([nothing]).collect::<Vec<_>>().join("\n"));
    }
    let sweep = Sweep::default();
    sweep.run_all(start, options.workers, &cases, "counting");
    let mut baseline = sweep.baseline();
    let all = baseline.len();
    let longest = options.longest_ms.map_or(Duration::MAX, Duration::from_millis);
    baseline.retain(|(_, result)| result.elapsed <= longest);
    if baseline.len() < all {
        print(&format!("{} cases take longer than {longest:?} and are skipped", all - baseline.len()));
    }
    let runs = faults(&baseline, options);
    let functions: BTreeSet<_> = runs.iter().filter_map(|job| Some(&job.fault.as_ref()?.function)).collect();
    print(&format!(
        "{} cases, {} functions, {} runs with a fault",
        baseline.len(),
        functions.len(),
        runs.len()
    ));
    let runs = shuffled(runs);
    sweep.run_all(start, options.workers, &runs, "run");
    sweep.print_summary(options, &baseline);
    let wrong: Vec<_> = missed.into_iter().chain(sweep.findings()).collect();
    print(&format!("{} failures", sweep.state().findings.len()));
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Every case that a device qualifies for, without a fault.
fn jobs(plan: &Plan, options: &FaultOptions) -> Vec<Job> {
    let mut jobs = Vec::new();
    for context in &plan.devices {
        let Some(path) = &context.target().path else { continue };
        for (topic, cases) in TOPICS {
            for case in cases.iter().filter(|case| case.missing(context).is_empty()) {
                let name = format!("{topic}::{}", case.name);
                if options.filters.is_empty() || options.filters.iter().any(|filter| name.contains(filter)) {
                    jobs.push(Job {
                        library: path.display().to_string(),
                        device: context.name().to_owned(),
                        case: name,
                        fault: None,
                        deadline: BASELINE_DEADLINE,
                    });
                }
            }
        }
    }
    jobs
}

/// The runs with a fault. Calls before the start of a case are the same in all cases: only the first case of a device
/// gets faults there.
fn faults(baseline: &[(Job, RunResult)], options: &FaultOptions) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut devices = BTreeSet::new();
    let mut quickest = Quickest::default();
    for (job, result) in baseline {
        let first_case = devices.insert(job.device.clone());
        for (function, &count) in &result.counts {
            let before = if first_case { 0 } else { result.setup_counts.get(function).copied().unwrap_or(0) };
            let numbers = calls_to_fault(before, count, &within_budget(options, result.elapsed));
            let injections = injections(&job.case, function, options);
            let deadline = DEADLINE + result.elapsed * DEADLINE_FACTOR;
            let runs =
                numbers.into_iter().flat_map(|nth| injections.iter().map(move |&injection| (nth, injection)));
            let run = |(nth, injection)| {
                let fault = Some(Fault { function: function.clone(), nth, injection });
                Job { fault, deadline, ..job.clone() }
            };
            let runs: Vec<_> = runs.map(run).collect();
            match options.cases {
                None => jobs.extend(runs),
                Some(_) => quickest.add(&job.device, function, result.elapsed, runs),
            }
        }
    }
    jobs.extend(quickest.of_each(options.cases.unwrap_or(0)));
    jobs
}

/// The faults to inject into a call of a function, one per run.
fn injections(case: &str, function: &str, options: &FaultOptions) -> Vec<Injection> {
    if options.corrupt {
        return corruptions_of(function).into_iter().map(Injection::Corrupt).collect();
    }
    let kinds = options.kinds.iter().copied().filter(|kind| is_realistic(case, *kind));
    kinds.map(Injection::Error).collect()
}

/// The runs of one case, and the duration of the case.
type Timed = (Duration, Vec<Job>);

/// The runs for each device and function.
#[derive(Default)]
struct Quickest(BTreeMap<(String, String), Vec<Timed>>);

impl Quickest {
    fn add(&mut self, device: &str, function: &str, elapsed: Duration, runs: Vec<Job>) {
        if !runs.is_empty() {
            self.0.entry((device.to_owned(), function.to_owned())).or_default().push((elapsed, runs));
        }
    }

    /// The runs of the `cases` fastest cases.
    fn of_each(self, cases: usize) -> impl Iterator<Item = Job> {
        self.0.into_values().flat_map(move |mut of_function| {
            of_function.sort_by_key(|(elapsed, _)| *elapsed);
            of_function.into_iter().take(cases).flat_map(|(_, runs)| runs)
        })
    }
}

/// Reduces the number of runs to the budget, for a case of this duration; a quarter of them is spread.
fn within_budget(options: &FaultOptions, elapsed: Duration) -> FaultOptions {
    let runs = options.budget.as_micros() / elapsed.as_micros().max(1);
    let runs = u64::try_from(runs).unwrap_or(u64::MAX);
    let spread = options.spread.min(runs / 4).max(options.spread.min(1));
    let first = options.first.min(runs.saturating_sub(spread)).max(options.first.min(2));
    FaultOptions { first, spread, ..options.clone() }
}

/// Whether a kind of error is realistic for a case. After an injected `DeviceLost` the device is still running its
/// work, so memory lent to it must not be returned at once, as it would be on a device that is really lost.
fn is_realistic(case: &str, kind: ErrorKind) -> bool {
    kind != ErrorKind::DeviceLost || !case.starts_with(BORROWED_MEMORY)
}

/// The numbers of the calls to fault, of those after `before` up to `count`.
fn calls_to_fault(before: u64, count: u64, options: &FaultOptions) -> BTreeSet<u64> {
    let dense = count.min(before + options.first);
    let rest = count - dense;
    let spread = (1..=options.spread).map(|part| dense + rest * part / (options.spread + 1));
    (before + 1..=dense)
        .chain(spread.filter(|&nth| nth > dense))
        .chain((count > before).then_some(count))
        .collect()
}

/// Shuffles the jobs, so that progress reports cover slow and fast cases alike.
fn shuffled(mut jobs: Vec<Job>) -> Vec<Job> {
    let mut random = Random::new(1);
    for at in (1..jobs.len()).rev() {
        jobs.swap(at, random.below(at + 1));
    }
    jobs
}

/// A failure found in a run.
#[derive(Clone, Debug)]
struct Finding {
    what: &'static str,
    job: Job,
    text: String,
}

#[derive(Debug, Default)]
struct Sweep {
    state: Mutex<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    baseline: Vec<(Job, RunResult)>,
    findings: Vec<Finding>,
    endings: BTreeMap<RunStatus, usize>,
    runs: usize,
    unreached: usize,
}

impl Sweep {
    fn run_all(&self, start: StartWorker<'_>, workers: usize, jobs: &[Job], what: &str) {
        let began = Instant::now();
        let progress = Mutex::new((0, began));
        run_all(start, workers, jobs, &|job, result| {
            self.note(job, result);
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.0 += 1;
            if progress.1.elapsed() > PROGRESS_INTERVAL {
                progress.1 = Instant::now();
                print(&format!("{what}: {} of {} after {:.0?}", progress.0, jobs.len(), began.elapsed()));
            }
        });
    }

    fn note(&self, job: &Job, result: RunResult) {
        let tally = &mut *self.state();
        tally.findings.extend(judge(job, &result));
        if job.fault.is_none() {
            return tally.baseline.push((job.clone(), result));
        }
        tally.runs += 1;
        if result.reached || result.status >= RunStatus::Hangs {
            *tally.endings.entry(result.status).or_default() += 1;
        } else {
            tally.unreached += 1;
        }
    }

    /// The cases that pass without a fault, sorted by name.
    fn baseline(&self) -> Vec<(Job, RunResult)> {
        let tally = self.state();
        let works = |result: &RunResult| matches!(result.status, RunStatus::Passed | RunStatus::Unsupported);
        let mut baseline: Vec<_> =
            tally.baseline.iter().filter(|(_, result)| works(result)).cloned().collect();
        baseline.sort_by(|(a, _), (b, _)| (&a.device, &a.case).cmp(&(&b.device, &b.case)));
        baseline
    }

    fn state(&self) -> MutexGuard<'_, Tally> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn print_summary(&self, options: &FaultOptions, baseline: &[(Job, RunResult)]) {
        let tally = self.state();
        let calls: u64 = baseline.iter().flat_map(|(_, result)| result.counts.values()).sum();
        let names: BTreeSet<_> = baseline.iter().flat_map(|(_, result)| result.counts.keys()).collect();
        let endings: Vec<_> =
            tally.endings.iter().map(|(ended, n)| format!("{n} {ended:?}").to_lowercase()).collect();
        print(&format!(
            "{} cases, {} functions, {calls} calls; {}: the first {} of a case, {} of the rest, the last; fewer where \
             that would take more than {:?}",
            baseline.len(),
            names.len(),
            if options.corrupt { "corrupted" } else { "failed" },
            options.first,
            options.spread,
            options.budget
        ));
        let missed: Vec<_> =
            FUNCTIONS.iter().filter(|function| !names.iter().any(|name| name == *function)).collect();
        if !missed.is_empty() {
            print(&format!("no case calls {missed:?}"));
        }
        print(&format!(
            "{} runs: {}; in {} the call was not reached",
            tally.runs,
            endings.join(", "),
            tally.unreached
        ));
    }

    /// One line per kind of finding and function, followed by the first findings.
    fn findings(&self) -> Vec<String> {
        let tally = self.state();
        let mut groups: BTreeMap<(&str, &str), Vec<&Finding>> = BTreeMap::new();
        for finding in &tally.findings {
            let function = finding.job.fault.as_ref().map_or("no fault", |fault| &fault.function);
            groups.entry((finding.what, function)).or_default().push(finding);
        }
        let mut lines = Vec::new();
        for ((what, function), findings) in &groups {
            lines.push(format!("{what}, {function}: {} runs", findings.len()));
            let listed = findings.iter().take(MAX_LISTED);
            lines.extend(listed.map(|finding| format!("  {}: {}", name(&finding.job), finding.text)));
        }
        lines
    }
}

fn name(job: &Job) -> String {
    let fault = job
        .fault
        .as_ref()
        .map(|fault| format!(" with fault {} in call {} of {}", fault.injection, fault.nth, fault.function));
    format!("{}::{}{}", job.device, job.case, fault.unwrap_or_default())
}

/// The findings of a run.
fn judge(job: &Job, result: &RunResult) -> Vec<Finding> {
    let finding = |what, text: String| Finding { what, job: job.clone(), text };
    let mut findings = Vec::new();
    let faulted = job.fault.is_some();
    let corrupted = job.fault.as_ref().is_some_and(|fault| matches!(fault.injection, Injection::Corrupt(_)));
    match result.status {
        RunStatus::Passed | RunStatus::Unsupported => {}
        RunStatus::Error | RunStatus::Asserts if faulted => {}
        // Wrong data is acceptable after a corruption; a crash is not.
        RunStatus::Differs if corrupted => {}
        RunStatus::Differs if faulted => {
            findings.push(finding("wrong data without an error", result.text.clone()));
        }
        RunStatus::Hangs => findings.push(finding("hang", result.text.clone())),
        RunStatus::Died => findings.push(finding("crash", result.text.clone())),
        RunStatus::Error | RunStatus::Asserts | RunStatus::Differs | RunStatus::Unusable => {
            findings.push(finding("fails without a fault", result.text.clone()));
        }
    }
    if !result.leaked.is_empty() && result.status != RunStatus::Hangs && !corrupted {
        findings.push(finding("leak", format!("{}; {}", result.leaked.join(", "), result.text)));
    }
    if let Some(first) = result.violations.first().filter(|_| !corrupted) {
        findings.push(finding(
            "wrong use or order of objects",
            format!("{first} ({} times)", result.violations.len()),
        ));
    }
    if let Some(first) = result.panics.first() {
        findings.push(finding("panic in core", first.clone()));
    }
    findings
}

/// Writes to standard output; ignores a closed pipe.
pub(super) fn print(text: &str) {
    let mut output = std::io::stdout().lock();
    let _ = writeln!(output, "{text}").and_then(|()| output.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_calls_then_spread_ones_and_the_last_are_faulted() {
        let options = FaultOptions { first: 4, spread: 3, ..FaultOptions::default() };
        let list = |before, count| calls_to_fault(before, count, &options).into_iter().collect::<Vec<_>>();
        assert_eq!(list(0, 3), [1, 2, 3]);
        assert_eq!(list(0, 104), [1, 2, 3, 4, 29, 54, 79, 104]);
        assert_eq!(list(2, 5), [3, 4, 5], "calls before the case are skipped");
        assert_eq!(list(2, 2), [0u64; 0]);
        assert_eq!(list(0, 6), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn slow_cases_are_run_less_often() {
        let options = FaultOptions::default();
        let runs = |milliseconds| {
            let within_budget = within_budget(&options, Duration::from_millis(milliseconds));
            (within_budget.first, within_budget.spread)
        };
        assert_eq!(runs(1), (options.first, options.spread));
        assert_eq!(runs(400), (8, 2));
        assert_eq!(runs(60_000), (2, 1));
        let short = FaultOptions { first: 1, spread: 0, ..options.clone() };
        assert_eq!(within_budget(&short, Duration::from_secs(60)).first, 1);
    }

    #[test]
    fn an_error_is_not_a_finding_but_a_leak_is() {
        let job = Job {
            library: String::new(),
            device: "x:0".into(),
            case: "a::b".into(),
            fault: Some(Fault {
                function: "queue.signal".into(),
                nth: 1,
                injection: Injection::Error(ErrorKind::Driver),
            }),
            deadline: DEADLINE,
        };
        let mut result = RunResult::new(RunStatus::Error, "injected");
        assert!(judge(&job, &result).is_empty());
        result.leaked.push("1 queue".into());
        assert_eq!(judge(&job, &result)[0].what, "leak");
        let died = RunResult::new(RunStatus::Died, "signal 11");
        assert_eq!(judge(&job, &died)[0].what, "crash");
        let unfaulted = Job { fault: None, ..job };
        assert_eq!(
            judge(&unfaulted, &RunResult::new(RunStatus::Error, "x"))[0].what,
            "fails without a fault"
        );
    }
}
