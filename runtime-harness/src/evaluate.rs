//! Checks and times a job on a device, in this process.

use runtime_core::evaluate::{Measurement, Observer, Turn, Validation};
use runtime_core::{CommonRuntime, DeviceKind, ErrorKind, Result};

use crate::board;
use crate::counters::CountersAndEnergy;
use crate::crash_context::CrashContext;
use crate::device::{DeviceUnderTest, RunnerSetup};
use crate::executor::block_on;
use crate::heartbeat::{beat, max_window};
use crate::job::{BoundKernel, Due, Job, Outputs, PackageChoice, has_fresh_inputs};
use crate::noise::{Evidence, Recorder, advice};
use crate::physics::compared_with_peaks;
use crate::platform;
use crate::release::{self, release};
use crate::row::{CacheState, Finding, Inputs, Judged, Noise, Outcome, Phase, ResourceUsage, Row};
use crate::runner::{self, Judge, Place};
use crate::settings::Settings;
use crate::spec::Spec;
use crate::watch::{Watch, Watched};

/// The result of an evaluation.
#[derive(Debug)]
pub struct Evaluated {
    /// The row.
    pub row: Row,
    /// An error if the driver did not release the kernel. The device is then no longer used.
    pub released: Result<()>,
}

/// Checks and times a job on a device.
///
/// Outputs are compared if [`Job::find_expected`] found what is expected. The kernel runs in this process, which it may
/// take down. While other processes time kernels on the device, this one waits, unless [`DeviceUnderTest::share`] is set.
/// A counter with an unknown name gets a reason instead of a value; [`counters::check_names`](crate::counters::check_names) finds it
/// before anything is measured.
pub fn evaluate(job: &Job, device: &mut DeviceUnderTest, settings: &Settings) -> Evaluated {
    evaluate_with(job, device, settings, &mut |_, _| {})
}

/// As [`evaluate`], and calls `progress` at the beginning of each phase, with what is about to run.
pub fn evaluate_with(
    job: &Job,
    device: &mut DeviceUnderTest,
    settings: &Settings,
    progress: &mut dyn FnMut(Phase, &str),
) -> Evaluated {
    let before = device.traces.files();
    let code_sha256 = device.code_sha256(&job.spec);
    let mut evaluated = evaluate_on(job, device, settings, progress);
    match device.traces.new_since(&before) {
        Ok(new) => evaluated.row.traces = new,
        Err(reason) => evaluated.row.advice.push(reason.to_string()),
    }
    let row = with_seed(compared_with_peaks(evaluated.row, device, progress), job);
    Evaluated { row: Row { code_sha256, ..row }, ..evaluated }
}

/// A row that is rejected with the seed of its fresh inputs, if it had such.
fn with_seed(mut row: Row, job: &Job) -> Row {
    let is_bad = row.status.is_bad();
    if let Some(judged) = row.judged.as_mut().filter(|judged| is_bad && judged.inputs == Inputs::Fresh) {
        judged.input_seed = Some(job.fresh.tell_seed());
    }
    row
}

fn evaluate_on(
    job: &Job,
    device: &mut DeviceUnderTest,
    settings: &Settings,
    progress: &mut dyn FnMut(Phase, &str),
) -> Evaluated {
    let mut phase = Phase::Prepare;
    let mut enter = |next: Phase, operation: &str| {
        phase = next;
        progress(next, operation);
    };
    let needs_fresh_inputs = device.runner.as_ref().is_some_and(|setup| setup.needs_fresh_inputs);
    if let Ok(opened) = &device.opened
        && let Some(embedded) = opened.as_embedded()
        && !needs_fresh_inputs
    {
        let row = board::evaluate(job, (device, &**opened), embedded, settings, progress);
        return Evaluated { row, released: Ok(()) };
    }
    let place = match &device.opened {
        Ok(opened) => Place::of(job, &**opened, device.runner.as_ref(), settings),
        Err(error) => Place::Nowhere(error.clone()),
    };
    let (measured, verdict, bound) = match (&device.opened, &place) {
        (Ok(opened), Place::Runner(setup)) => {
            let (judged, package) = judge((device, &**opened, setup), job, settings, &mut enter);
            let (measured, verdict) = judged.map_or_else(
                |error| (Err(error), Verdict::default()),
                |(timed, verdict)| (Ok((timed, CountersAndEnergy::default())), verdict),
            );
            let row = Row { package, ..row(job, settings, device, (measured, phase)) };
            let row = judged_row(row, job, verdict, Some(runner::is_sandboxed()));
            return Evaluated { row, released: Ok(()) };
        }
        (Err(error), _) | (_, Place::Nowhere(error)) => (Err(error.clone()), None, None),
        (Ok(opened), Place::Watched(setup)) => {
            measure((device, &**opened, Some(setup)), job, settings, &mut enter)
        }
        (Ok(opened), _) => measure((device, &**opened, None), job, settings, &mut enter),
    };
    let believed = if let Place::Believed(why) = place { Some(why) } else { None };
    let mut evaluated = finish((job, settings), device, bound, (measured, phase));
    if let Some(verdict) = verdict {
        evaluated.row = judged_row(evaluated.row, job, verdict, None);
    }
    if let Some(why) = believed
        && evaluated.row.is_measured()
    {
        let advice = format!("its code ran in the process that makes this row, which believes it: {why}");
        evaluated.row.advice.push(advice);
        evaluated.row.believed = Some(why.to_string());
    }
    evaluated
}

/// The row of a candidate that was judged, in a sandbox if it has run in a process of its own.
fn judged_row(row: Row, job: &Job, verdict: Verdict, sandboxed: Option<bool>) -> Row {
    let Verdict { doubt, found, cache } = verdict;
    let row = row.doubted(doubt);
    let inputs = if has_fresh_inputs(&job.spec) { Inputs::Fresh } else { Inputs::Fixed };
    let found = found.filter(|_| row.status.is_bad());
    row.with_judged(Judged { sandboxed, inputs, cache, input_seed: None, found })
}

/// Releases the kernel and makes the row. A device that does not work any more is not used again.
pub(crate) fn finish(
    (job, settings): (&Job, &Settings),
    device: &mut DeviceUnderTest,
    bound: Option<BoundKernel>,
    (measured, phase): (Measured, Phase),
) -> Evaluated {
    let _context = bound.as_ref().map(|_| CrashContext::enter(job.running_on(&device.name)));
    let package = bound.as_ref().and_then(|bound| bound.package.clone());
    let released = bound.map_or(Ok(()), |bound| {
        release(bound, &format!("\"{}\"", job.spec.name), &device.name, release::DEADLINE)
    });
    let works = match &device.opened {
        Ok(opened) if measured.is_ok() => check_works(&**opened, settings),
        _ => Ok(()),
    };
    let released = released.and(works);
    if let Err(error) = &released {
        device.opened = Err(error.clone());
    }
    Evaluated { row: Row { package, ..row(job, settings, device, (measured, phase)) }, released }
}

/// The row of a job that was measured, or that failed in a phase.
fn row(
    job: &Job,
    settings: &Settings,
    device: &DeviceUnderTest,
    (measured, phase): (Measured, Phase),
) -> Row {
    let row = match measured {
        Ok(((usage, measurement, noise), CountersAndEnergy { counters, energy })) => {
            let row = Row::measured(&job.spec, settings, &device.name, (usage, measurement));
            Row { advice: advise(&row, noise.as_ref(), device), noise, counters, energy, ..row }
        }
        Err(error) => Row::failed(&job.spec, settings, &device.name, &error, phase),
    };
    let mut row = row.with_arguments(&job.spec, device.info.as_ref()).on(device.describe());
    row.advice.extend(needs_initial_contents(&row, &job.spec));
    row
}

/// What to do if a kernel is wrong because it finds what earlier calls have left.
fn needs_initial_contents(row: &Row, spec: &Spec) -> Option<String> {
    let is_later =
        matches!(&row.validation, Some(Validation::Failed(mismatch)) if mismatch.after_calls.is_some());
    let kept: Vec<&str> = spec.kept().map(|arg| arg.name.as_str()).collect();
    (is_later && !kept.is_empty()).then(|| {
        format!(
            "its calls continue from what earlier ones have left in {}; if they need initial contents, say each_call = \"initial\" in \
             the [[arg]]",
            kept.join(", ")
        )
    })
}

/// Advice about a measured row.
pub(crate) fn advise(row: &Row, noise: Option<&Noise>, device: &DeviceUnderTest) -> Vec<String> {
    let (Some(measurement), Some(noise)) = (&row.measurement, noise) else { return Vec::new() };
    let on_host = device.info.as_ref().is_some_and(|info| info.kind == DeviceKind::Host);
    advice(&Evidence { settings: &row.settings, measurement, noise, on_host })
}

/// What is timed.
pub(crate) type Timed = (ResourceUsage, Measurement, Option<Noise>);
/// What is timed, and what is measured beside it.
pub(crate) type Measured = Result<(Timed, CountersAndEnergy)>;

/// Measures a kernel; with a setup, it is watched, and the second result is the verdict. The third one is the kernel, if it was loaded.
fn measure(
    (under_test, device, setup): (&DeviceUnderTest, &dyn CommonRuntime, Option<&RunnerSetup>),
    job: &Job,
    settings: &Settings,
    enter: &mut dyn FnMut(Phase, &str),
) -> (Measured, Option<Verdict>, Option<BoundKernel>) {
    let name = &under_test.name;
    let load_kernel = if setup.is_some() { BoundKernel::without_tensors } else { BoundKernel::new };
    let mut bound = match load_with(under_test, job, enter, load_kernel) {
        Ok(bound) => bound,
        Err(error) => return (Err(error), setup.map(|_| Verdict::default()), None),
    };
    let lock = under_test.lock(&mut |operation| enter(Phase::Wait, operation));
    let operation = job.running_on(name);
    enter(Phase::Run, &operation);
    let _context = CrashContext::enter(operation);
    let watched = (device, under_test.heartbeat.as_deref());
    beat(watched.1);
    let mut verdict = setup.map(|_| Verdict::default());
    let measured = match setup.zip(verdict.as_mut()) {
        Some((setup, verdict)) => watch(watched, (&mut bound, setup), job, settings, verdict)
            .map(|timed| counted(watched, &bound, job, settings, timed)),
        None => block_on(time(watched, &bound, job, settings, (None, None)))
            .flatten()
            .and_then(|timed| after_timing(watched, &bound, job, settings, timed)),
    };
    drop(lock);
    (measured, verdict, Some(bound))
}

/// Times a kernel that is watched, and judges it.
fn watch(
    watched: Watched<'_>,
    (bound, setup): (&mut BoundKernel, &RunnerSetup),
    job: &Job,
    settings: &Settings,
    verdict: &mut Verdict,
) -> Result<Timed> {
    let mut watch = Watch::new(watched.0, bound, job, settings)?;
    let timed = block_on(time(watched, bound, job, settings, (None, Some(&mut watch)))).flatten();
    let judged = timed.and_then(|mut timed| {
        watch.check_last()?;
        if !job.expected_later.is_empty() {
            check_again(watched.0, bound, job, &mut timed.1)?;
        }
        verdict.doubt = watch.finish(watched, (bound, setup), settings, &mut timed.1)?;
        Ok(timed)
    });
    (verdict.found, verdict.cache) = (watch.found(), watch.cache());
    judged
}

/// What a judge says of a candidate.
#[derive(Debug, Default)]
struct Verdict {
    /// Why its times are not believed.
    doubt: Option<Outcome>,
    /// What has found that it is wrong or inconsistent.
    found: Option<Finding>,
    /// What the caches held when windows began, if any did.
    cache: Option<CacheState>,
}

/// Measures a kernel in a runner. The second result is what was taken from the package, if its code is one.
fn judge(
    (under_test, device, setup): (&DeviceUnderTest, &dyn CommonRuntime, &RunnerSetup),
    job: &Job,
    settings: &Settings,
    enter: &mut dyn FnMut(Phase, &str),
) -> (Result<(Timed, Verdict)>, Option<PackageChoice>) {
    let name = &under_test.name;
    enter(Phase::Compile, &format!("while \"{}\" was loaded on {name}", job.spec.name));
    let mut judge = match Judge::new(job, (device, under_test.heartbeat.clone()), setup) {
        Ok(judge) => judge,
        Err(error) => return (Err(error), None),
    };
    let package = judge.package();
    let lock = under_test.lock(&mut |operation| enter(Phase::Wait, operation));
    let operation = job.running_on(name);
    enter(Phase::Run, &operation);
    let mut recorder = Recorder::new(device, false).with_runner(judge.process());
    let mut observer: Option<Observer<'_>> = Some(Box::new(|moment| recorder.observe(moment)));
    beat(under_test.heartbeat.as_deref());
    let measured = block_on(judge.measure(settings, &mut observer)).flatten();
    let (end, found, cache) = (judge.end(), judge.found(), judge.cache());
    drop((lock, observer, judge));
    if let Some(kind) = end {
        let _context = CrashContext::enter(operation);
        // The parent makes a row of how this process ends, as it does for a kernel that runs in it.
        platform::end_as(kind);
    }
    let timed = measured.map(|(measurement, doubt)| {
        let noise = recorder.noise(&measurement);
        ((ResourceUsage::unknown(), measurement, noise), Verdict { doubt, found, cache })
    });
    (timed, package)
}

/// Checks the kernel again, and measures what was asked for beside the times: after the timing, so that the times are those of a run
/// without counters.
///
/// # Errors
/// Those of [`check_again`].
pub(crate) fn after_timing(
    watched: Watched<'_>,
    bound: &BoundKernel,
    job: &Job,
    settings: &Settings,
    mut timed: Timed,
) -> Measured {
    check_again(watched.0, bound, job, &mut timed.1)?;
    Ok(counted(watched, bound, job, settings, timed))
}

/// Measures what was asked for beside the times.
fn counted(
    watched: Watched<'_>,
    bound: &BoundKernel,
    job: &Job,
    settings: &Settings,
    timed: Timed,
) -> (Timed, CountersAndEnergy) {
    beat(watched.1);
    let counted = CountersAndEnergy::measure(watched, bound, job, settings, &timed.1);
    (timed, counted)
}

/// Compares the outputs of one more call, on the initial data: a kernel that was right before it was timed may have been wrong ever
/// since, and fast for that reason. If calls depend on each other, compares those of a call on its results, too.
///
/// # Errors
/// Those of writing the data, launching, and reading the outputs.
fn check_again(
    device: &dyn CommonRuntime,
    bound: &BoundKernel,
    job: &Job,
    measurement: &mut Measurement,
) -> Result<()> {
    if !measurement.validation.is_passed() {
        return Ok(());
    }
    let mut check = |due, tolerance, expected: &Outputs| -> Result<bool> {
        bound.restore(job, due)?;
        let mut evaluation = bound.evaluation(job, Some(expected))?;
        evaluation.tolerance = tolerance;
        if let Validation::Failed(mut mismatch) = device.validate(&mut evaluation)? {
            mismatch.after_calls = Some(measurement.calls);
            measurement.validation = Validation::Failed(mismatch);
        }
        measurement.calls += 1;
        Ok(measurement.validation.is_passed())
    };
    let is_right = check(Due::First, job.tolerance(), job.expected.as_ref().map_err(Clone::clone)?)?;
    if is_right && !job.expected_later.is_empty() {
        check(Due::Later, job.later_tolerance(), &job.expected_later)?;
    }
    Ok(())
}

/// Checks that counting has not lost the device. The row is that of the timing; a device that was lost after it must not
/// fail the next kernel.
fn check_works(device: &dyn CommonRuntime, settings: &Settings) -> Result<()> {
    let may_be_lost = settings.counters.is_some() || settings.measures_energy();
    match may_be_lost.then(|| device.queue().err()).flatten() {
        Some(error) if error.kind() == ErrorKind::DeviceLost => Err(error),
        _ => Ok(()),
    }
}

/// Loads the kernel of a job and places its tensors.
///
/// # Errors
/// That of the device, if it is not open; those of [`BoundKernel::new`].
pub(crate) fn load(
    device: &DeviceUnderTest,
    job: &Job,
    enter: &mut dyn FnMut(Phase, &str),
) -> Result<BoundKernel> {
    load_with(device, job, enter, BoundKernel::new)
}

fn load_with(
    device: &DeviceUnderTest,
    job: &Job,
    enter: &mut dyn FnMut(Phase, &str),
    load: impl FnOnce(&dyn CommonRuntime, &Job) -> Result<BoundKernel>,
) -> Result<BoundKernel> {
    let opened = device.opened.as_ref().map_err(Clone::clone)?;
    let operation = format!("while \"{}\" was loaded on {}", job.spec.name, device.name);
    enter(Phase::Compile, &operation);
    let _context = CrashContext::enter(operation);
    load(&**opened, job)
}

/// Checks and times a loaded kernel; in turns with others if there is a `turn`.
pub(crate) async fn time(
    (device, heartbeat): Watched<'_>,
    bound: &BoundKernel,
    job: &Job,
    settings: &Settings,
    (turn, watch): (Option<Turn>, Option<&mut Watch<'_>>),
) -> Result<Timed> {
    let spec = &job.spec;
    let mut recorder = Recorder::new(device, turn.is_some());
    let expected = settings.validates().then(|| job.expected.as_ref().map_err(Clone::clone)).transpose()?;
    let mut evaluation = bound.evaluation(job, expected)?;
    evaluation.timing = settings.timing();
    evaluation.timing.max_window = max_window(heartbeat);
    evaluation.cost = spec.cost;
    evaluation.turn = turn;
    if let Some(watch) = watch {
        let (other_args, window_data) = watch.parts();
        evaluation.other_args = other_args;
        evaluation.window_data = Some(window_data);
    }
    let usage = ResourceUsage::of(&bound.kernel, &bound.config(spec)?, spec.local_bytes());
    evaluation.observer = Some(Box::new(|moment| {
        recorder.observe(moment);
        beat(heartbeat);
    }));
    let measured = device.evaluate(&mut evaluation).await;
    drop(evaluation);
    measured.map(|measurement| {
        let noise = recorder.noise(&measurement);
        (usage, measurement, noise)
    })
}
