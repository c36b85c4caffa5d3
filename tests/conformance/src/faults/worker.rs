//! The process in which cases run with a fault: one run per line of standard input, one answer per line of output.

use std::io::{BufRead, Write};
use std::panic::PanicHookInfo;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use runtime_core::backend::LinkedBackend;
use runtime_core::{Error, ErrorKind, Outcome};

use super::job::{Answer, Ended, Job};
use super::state::Wrong;
use super::{layer, state};
use crate::case::{Case, Failure, Verdict};
use crate::context::Context;
use crate::kernels::Suite;
use crate::perform::{Ending, perform};
use crate::table;
use crate::topics::TOPICS;

/// How long objects may stay open after the end of a case: core gives a device five seconds to finish its work.
const SETTLING: Duration = Duration::from_secs(15);
/// Where the panics of interest come from.
const CORE: &str = "runtime-core";

/// Panics outside the suite's own files.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Answers until standard input ends.
pub(super) fn serve() -> ExitCode {
    std::panic::set_hook(Box::new(note_panic));
    let mut backend: Option<(String, LinkedBackend)> = None;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Some(job) = Job::parse(&line) else { return ExitCode::FAILURE };
        let known = backend.as_ref().filter(|(library, _)| *library == job.library).map(|(_, table)| *table);
        let table = known.map_or_else(|| load(Path::new(&job.library)), Ok);
        let answer = match table {
            Ok(table) => {
                backend = Some((job.library.clone(), table));
                run(&job, table)
            }
            Err(error) => Answer::new(Ended::Unusable, error.to_string()),
        };
        let mut output = std::io::stdout().lock();
        // Whoever asked has gone.
        if writeln!(output, "{}", answer.line()).and_then(|()| output.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

fn note_panic(info: &PanicHookInfo<'_>) {
    let place = info.location().map_or("", |location| location.file());
    if place.contains(CORE) {
        let text = info.to_string().replace('\n', " ");
        PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }
}

/// Loads a library as core does, which also says what is wrong with it, and puts the layer over its table.
fn load(path: &Path) -> Result<LinkedBackend, Error> {
    // SAFETY: the suite is asked to run this library.
    let runtime = unsafe { crate::builder().discover(false).library(path) }.build();
    if let Some(line) = runtime.load_report().iter().find(|line| line.outcome != Outcome::Loaded) {
        return Err(Error::new(ErrorKind::Unavailable, line.to_string()));
    }
    let layer = layer::over(table::load(path)?.table());
    // SAFETY: a layer passes calls on, refuses them, or answers them with what core does not follow.
    Ok(unsafe { LinkedBackend::from_table(layer) })
}

/// Runs a case, with or without a fault, and waits until everything is closed.
fn run(job: &Job, backend: LinkedBackend) -> Answer {
    PANICS.lock().unwrap_or_else(PoisonError::into_inner).clear();
    state::begin(job.fault.clone());
    let began = Instant::now();
    let Some(case) = find(&job.case) else { return Answer::new(Ended::Unusable, "there is no such case") };
    let (ending, prelude) = perform_on(job, backend, case);
    let ending_after = began.elapsed();
    let hangs = matches!(ending, Ending::Hangs(_));
    // Whose answers are lies has objects that nobody knows.
    let lies = job.fault.as_ref().is_some_and(|fault| matches!(fault.wrong, Wrong::Lie(_)));
    while !hangs && !lies && !state::is_clean() && began.elapsed() < ending_after + SETTLING {
        // Not at once: the last drop may happen on the thread that wakes futures.
        std::thread::sleep(Duration::from_micros(200));
    }
    let seen = state::seen();
    let panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (ended, text) = describe(ending);
    Answer {
        ended,
        text,
        reached: seen.reached,
        elapsed: ending_after,
        left: seen.left,
        broken: seen.broken,
        panics,
        counts: seen.counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
        prelude: prelude.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
    }
}

fn perform_on(job: &Job, backend: LinkedBackend, case: &'static Case) -> (Ending, state::Counts) {
    let context = match open(job, backend) {
        Ok(context) => context,
        Err(error) => return (Ending::Verdict(Err(Failure::Error(error))), state::counts()),
    };
    let prelude = state::counts();
    (perform(Arc::new(context), case, &job.case, job.deadline), prelude)
}

fn open(job: &Job, backend: LinkedBackend) -> Result<Context, Error> {
    let runtime = crate::builder().discover(false).register(backend).build();
    let targets = runtime.targets();
    let target = targets.first().ok_or_else(|| {
        let line = runtime.load_report().first().map(ToString::to_string);
        Error::new(ErrorKind::Unavailable, line.unwrap_or_default())
    })?;
    Ok(Context::open(&runtime, target, job.device.clone(), Suite::of_environment())?.linked(backend))
}

fn find(name: &str) -> Option<&'static Case> {
    let (topic, name) = name.split_once("::")?;
    let (_, cases) = TOPICS.iter().find(|(known, _)| *known == topic)?;
    cases.iter().find(|case| case.name == name)
}

fn describe(ending: Ending) -> (Ended, String) {
    let verdict: Verdict = match ending {
        Ending::Hangs(deadline) => return (Ended::Hangs, format!("no end after {deadline:?}")),
        Ending::Panicked(message) => return (Ended::Asserts, message),
        Ending::Verdict(verdict) => verdict,
    };
    match verdict {
        Ok(()) => (Ended::Passed, String::new()),
        Err(failure) => {
            let ended = match &failure {
                Failure::Error(_) => Ended::Error,
                Failure::Differs(_) => Ended::Differs,
                Failure::Failed(_) => Ended::Asserts,
                Failure::Unsupported(_) => Ended::Unsupported,
            };
            (ended, failure.to_string())
        }
    }
}
