//! The worker process, which runs cases with faults: one job per line of standard input, one result per line of
//! standard output.

use std::io::{BufRead, Write};
use std::panic::PanicHookInfo;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use runtime_core::backend::{LinkedBackend, LoadOutcome};
use runtime_core::cache::CodeCache;
use runtime_core::{Error, ErrorKind};

use super::job::{Job, RunResult, RunStatus};
use super::object_tracker::Injection;
use super::{layer, object_tracker};
use crate::backend_table;
use crate::case::{Case, Failure, Verdict};
use crate::context::Context;
use crate::kernels::KernelProvider;
use crate::runner::{Ending, run_case};
use crate::topics::TOPICS;

/// The time that objects may stay open after a case ends: core waits up to five seconds for a device to finish its
/// work.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(15);
/// Only panics in files of this crate are reported.
const CORE: &str = "runtime-core";

/// Panics in core during the current run.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Serves jobs until standard input ends.
pub(super) fn serve() -> ExitCode {
    std::panic::set_hook(Box::new(record_panic));
    let mut backend: Option<(String, LinkedBackend)> = None;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Some(job) = Job::parse(&line) else { return ExitCode::FAILURE };
        let known = backend.as_ref().filter(|(library, _)| *library == job.library).map(|(_, table)| *table);
        let table = known.map_or_else(|| load(Path::new(&job.library)), Ok);
        let result = match table {
            Ok(table) => {
                backend = Some((job.library.clone(), table));
                run(&job, table)
            }
            Err(error) => RunResult::new(RunStatus::Unusable, error.to_string()),
        };
        let mut output = std::io::stdout().lock();
        // The parent process has gone.
        if writeln!(output, "{}", result.line()).and_then(|()| output.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

fn record_panic(info: &PanicHookInfo<'_>) {
    let place = info.location().map_or("", |location| location.file());
    if place.contains(CORE) {
        let text = info.to_string().replace('\n', " ");
        PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }
}

/// Loads a library through core, to get its errors, then puts the layer over its table.
fn load(path: &Path) -> Result<LinkedBackend, Error> {
    // SAFETY: the user selected this library for the suite.
    let runtime =
        unsafe { crate::builder().discover(false).library(path) }.code_cache(CodeCache::off()).build();
    if let Some(line) = runtime.load_report().iter().find(|line| line.outcome != LoadOutcome::Loaded) {
        return Err(Error::new(ErrorKind::Unavailable, line.to_string()));
    }
    let layer = layer::wrap_backend(backend_table::load(path)?.table());
    // SAFETY: the layer forwards calls, fails them, or returns values that core must not dereference.
    Ok(unsafe { LinkedBackend::from_table(layer) })
}

/// Runs a case, with or without a fault, and waits until all objects are closed.
fn run(job: &Job, backend: LinkedBackend) -> RunResult {
    PANICS.lock().unwrap_or_else(PoisonError::into_inner).clear();
    object_tracker::begin(job.fault.clone());
    let began = Instant::now();
    let Some(case) = find(&job.case) else {
        return RunResult::new(RunStatus::Unusable, "no such case");
    };
    let (ending, setup_counts) = run_case_on(job, backend, case);
    let ending_after = began.elapsed();
    let hangs = matches!(ending, Ending::Hangs(_));
    // After a corruption, objects may be unknown to core and stay open.
    let corrupted = job.fault.as_ref().is_some_and(|fault| matches!(fault.injection, Injection::Corrupt(_)));
    while !hangs
        && !corrupted
        && !object_tracker::is_clean()
        && began.elapsed() < ending_after + CLOSE_TIMEOUT
    {
        // The last drop may happen later, on the wait thread.
        std::thread::sleep(Duration::from_micros(200));
    }
    let observed = object_tracker::observed();
    let panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (status, text) = describe(ending);
    RunResult {
        status,
        text,
        reached: observed.reached,
        elapsed: ending_after,
        leaked: observed.leaked,
        violations: observed.violations,
        panics,
        counts: observed.counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
        setup_counts: setup_counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
    }
}

fn run_case_on(job: &Job, backend: LinkedBackend, case: &'static Case) -> (Ending, object_tracker::Counts) {
    let context = match open(job, backend) {
        Ok(context) => context,
        Err(error) => return (Ending::Verdict(Err(Failure::Error(error))), object_tracker::counts()),
    };
    let setup_counts = object_tracker::counts();
    (run_case(Arc::new(context), case, &job.case, job.deadline), setup_counts)
}

fn open(job: &Job, backend: LinkedBackend) -> Result<Context, Error> {
    let runtime = crate::builder().discover(false).register(backend).code_cache(CodeCache::off()).build();
    let targets = runtime.targets();
    let target = targets.first().ok_or_else(|| {
        let line = runtime.load_report().first().map(ToString::to_string);
        Error::new(ErrorKind::Unavailable, line.unwrap_or_default())
    })?;
    Ok(Context::open(&runtime, target, job.device.clone(), KernelProvider::from_environment())?
        .linked(backend))
}

fn find(name: &str) -> Option<&'static Case> {
    let (topic, name) = name.split_once("::")?;
    let (_, cases) = TOPICS.iter().find(|(known, _)| *known == topic)?;
    cases.iter().find(|case| case.name == name)
}

fn describe(ending: Ending) -> (RunStatus, String) {
    let verdict: Verdict = match ending {
        Ending::Hangs(deadline) => return (RunStatus::Hangs, format!("no end after {deadline:?}")),
        Ending::Panicked(message) => return (RunStatus::Asserts, message),
        Ending::Verdict(verdict) => verdict,
    };
    match verdict {
        Ok(()) => (RunStatus::Passed, String::new()),
        Err(failure) => {
            let status = match &failure {
                Failure::Error(_) => RunStatus::Error,
                Failure::Differs(_) => RunStatus::Differs,
                Failure::Failed(_) => RunStatus::Asserts,
                Failure::Unsupported(_) => RunStatus::Unsupported,
            };
            (status, failure.to_string())
        }
    }
}
