//! What a worker keeps between candidates: its device, and the data of the last job.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use runtime_core::backend::missing_sandbox_parts;
use runtime_core::{DeviceKind, Error, ErrorKind, Options, Result, Runtime};

use super::carry_over::carry_over;
use super::options::{Trust, WorkerOptions};
use super::protocol::Reply;
use crate::candidate::{Candidate, Requirement};
use crate::chain::ChainRequest;
use crate::counters;
use crate::device::{DeviceUnderTest, RunnerSetup};
use crate::evaluate::{Evaluated, evaluate_with};
use crate::evaluate_chain::{ChainUnderTest, evaluate_chain};
use crate::heartbeat::Heartbeat;
use crate::job::{Job, ReferenceRunner};
use crate::platform;
use crate::row::{Phase, Row};
use crate::runner::is_sandboxed;
use crate::spec::{Overrides, Spec, SpecSource};

/// How long to wait for processes that were killed. Their supervisor kills them again.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// Where replies go.
pub(super) type Report = Arc<dyn Fn(Reply) + Send + Sync>;

/// The device and the job that were used last.
pub(super) struct Session<'r> {
    runtime: &'r Runtime,
    options: WorkerOptions,
    /// For runners; `None` if candidates are trusted.
    runner: Option<RunnerSetup>,
    device: Option<OpenDevice>,
    job: Option<PreparedJob>,
}

struct OpenDevice {
    name: String,
    options: Options,
    device: DeviceUnderTest,
}

struct PreparedJob {
    source: SpecSource,
    overrides: Overrides,
    stamps: Vec<Stamp>,
    job: Job,
    has_expected: bool,
}

/// A file with its size and its time of modification.
type Stamp = (PathBuf, Option<(u64, SystemTime)>);

impl<'r> Session<'r> {
    pub(super) fn new(runtime: &'r Runtime, options: WorkerOptions) -> Self {
        let runner = match options.trust {
            Trust::Full => None,
            Trust::None { needs_fresh_inputs, .. } => RunnerSetup::of(runtime, needs_fresh_inputs),
        };
        Self { runtime, options, runner, device: None, job: None }
    }

    /// Evaluates a candidate. The second result says whether the process should not be used again.
    ///
    /// # Errors
    /// An invalid spec; the name or an option of a device that is wrong.
    pub(super) fn evaluate(
        &mut self,
        id: u64,
        candidate: &Candidate,
        report: &Report,
    ) -> Result<(Row, bool)> {
        let before: BTreeSet<i32> = platform::children().into_iter().collect();
        let evaluated = match &candidate.chain {
            Some(chain) => self.evaluate_chain(id, candidate, chain, report),
            None => self.evaluate_kernel(id, candidate, report),
        };
        let Evaluated { row, released } = evaluated?;
        let info = self.device.as_ref().and_then(|open| open.device.info.as_ref());
        // On an embedded device, no code of the candidate runs here, and its emulator is used again.
        if info.is_none_or(|info| info.kind != DeviceKind::Embedded) {
            kill_leftovers(&before);
        }
        let last = released.is_err() || is_device_error(&row);
        Ok((row, last))
    }

    fn evaluate_kernel(&mut self, id: u64, candidate: &Candidate, report: &Report) -> Result<Evaluated> {
        let phase = phase_of(id);
        report(phase(Phase::Prepare, &format!("while {} was opened", candidate.device)));
        let spec = candidate.spec.load(&candidate.overrides)?;
        let device = open(&mut self.device, self.runtime, candidate)?;
        device.share = self.options.share;
        device.runner = self.runner.as_ref().map(|setup| setup.requiring(&candidate.require));
        device.heartbeat = Some(Arc::new(heartbeat(
            id,
            (report, self.options.timeout),
            format!("while \"{}\" ran on {}", spec.name, device.name),
        )));
        report(Reply::Device { id, device: device.name.clone(), device_info: device.describe() });
        report(phase(Phase::Prepare, &format!("while the data of \"{}\" was prepared", spec.name)));
        let settings = candidate.settings.or(&spec.settings);
        if let Ok(opened) = &device.opened {
            counters::check_names(&**opened, &settings)?;
        }
        if let Err(error) = check_requirements(&candidate.require, device.runner.is_some()) {
            let row = Row::failed(&spec, &settings, &device.name, &error, Phase::Prepare);
            return Ok(Evaluated { row: row.on(device.describe()), released: Ok(()) });
        }
        let prepared = prepare(&mut self.job, spec, candidate);
        if let Trust::None { input_seed: Some(seed), .. } = self.options.trust {
            prepared.job.fresh.set_seed(seed);
        }
        if settings.validates() && device.accepts(&prepared.job.spec) {
            prepared.find_expected(self.runtime, self.runner.as_ref());
        }
        let mut enter = |next, operation: &str| report(phase(next, operation));
        Ok(evaluate_with(&prepared.job, device, &settings, &mut enter))
    }

    #[allow(unsafe_code, reason = "workers run the code that their requests name")]
    fn evaluate_chain(
        &mut self,
        id: u64,
        candidate: &Candidate,
        request: &ChainRequest,
        report: &Report,
    ) -> Result<Evaluated> {
        let phase = phase_of(id);
        report(phase(Phase::Prepare, &format!("while {} was opened", candidate.device)));
        let spec = candidate.load()?;
        let first = candidate.spec.load(&candidate.overrides)?;
        // SAFETY: whoever serves requests has vouched for the code that they name.
        let mut chain = unsafe { request.load(first, &candidate.overrides) }?;
        let settings = candidate.settings.or(&spec.settings);
        if settings.validates() {
            chain.check_references()?;
        }
        let device = open(&mut self.device, self.runtime, candidate)?;
        device.share = self.options.share;
        report(Reply::Device { id, device: device.name.clone(), device_info: device.describe() });
        report(phase(Phase::Prepare, &format!("while the data of \"{}\" was prepared", spec.name)));
        let accepts = chain.specs().all(|spec| device.accepts(spec));
        if device.opened.is_ok() {
            chain.prepare();
        }
        let expected = (settings.validates() && accepts).then(|| chain.expected(self.runtime)).transpose();
        let test = ChainUnderTest { chain: &chain, spec: &spec, expected, keep: request.keep };
        let mut enter = |next, operation: &str| report(phase(next, operation));
        Ok(evaluate_chain(&test, device, &settings, &mut enter))
    }
}

/// Says that a candidate still runs.
fn heartbeat(id: u64, (report, timeout): (&Report, Duration), operation: String) -> Heartbeat {
    let report = Arc::clone(report);
    Heartbeat::new(timeout, move || {
        report(Reply::Phase { id, phase: Phase::Run, operation: operation.clone() });
    })
}

fn phase_of(id: u64) -> impl Fn(Phase, &str) -> Reply {
    move |phase, operation| Reply::Phase { id, phase, operation: operation.to_owned() }
}

/// The device of the candidate: the one that is open, or another one in its place.
#[allow(unsafe_code, reason = "the options of a candidate may name code")]
fn open<'d>(
    cached: &'d mut Option<OpenDevice>,
    runtime: &Runtime,
    candidate: &Candidate,
) -> Result<&'d mut DeviceUnderTest> {
    let is_same = |open: &OpenDevice| open.name == candidate.device && open.options == candidate.options;
    let open = match cached.take() {
        Some(open) if is_same(&open) => open,
        other => {
            drop(other);
            // SAFETY: whoever serves requests has vouched for what they name.
            let device =
                unsafe { DeviceUnderTest::open_with_code(runtime, &candidate.device, &candidate.options) };
            OpenDevice { name: candidate.device.clone(), options: candidate.options.clone(), device }
        }
    };
    match &open.device.opened {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument) => {
            Err(error.clone().in_operation(&format!("device {}", candidate.device)))
        }
        _ => Ok(&mut cached.insert(open).device),
    }
}

/// Checks what a candidate requires of the worker, whatever its code is.
///
/// # Errors
/// `Unsupported`, with the remedy.
fn check_requirements(required: &[Requirement], has_runners: bool) -> Result<()> {
    if required.is_empty() {
        return Ok(());
    }
    if !has_runners {
        return Err(Error::unsupported(
            "candidate.require asks for more than this worker has: it runs native code by itself; start it without --trust",
        ));
    }
    if required.contains(&Requirement::Sandbox) && !is_sandboxed() {
        let missing: Vec<String> = missing_sandbox_parts().iter().map(ToString::to_string).collect();
        let why = if missing.is_empty() {
            "--sandbox required was not given".to_owned()
        } else {
            missing.join("; ")
        };
        return Err(Error::unsupported(format!(
            "candidate.require asks for the sandbox, which is not whole: {why}"
        )));
    }
    Ok(())
}

/// The job of the spec: the one that is prepared, if nothing has changed, or another one in its place.
fn prepare<'j>(
    cached: &'j mut Option<PreparedJob>,
    spec: Spec,
    candidate: &Candidate,
) -> &'j mut PreparedJob {
    let stamps = stamps(&spec);
    let Candidate { spec: source, overrides, .. } = candidate;
    let is_same = |prepared: &PreparedJob| {
        (&prepared.source, &prepared.overrides, &prepared.stamps) == (source, overrides, &stamps)
    };
    let prepared = match cached.take() {
        Some(prepared) if is_same(&prepared) => prepared,
        other => {
            let old = other.filter(|old| old.stamps == stamps && has_same_data(&old.source, source));
            let (job, has_expected) = carry_over(old.map(|old| (old.job, old.has_expected)), spec);
            PreparedJob { source: source.clone(), overrides: overrides.clone(), stamps, job, has_expected }
        }
    };
    cached.insert(prepared)
}

/// Whether data of the one spec may be that of the other, as far as files, arguments and constants do not differ.
fn has_same_data(old: &SpecSource, new: &SpecSource) -> bool {
    match (old, new) {
        (SpecSource::Inline(old), SpecSource::Inline(new)) => old.has_same(new, "reference"),
        _ => old == new,
    }
}

impl PreparedJob {
    fn find_expected(&mut self, runtime: &Runtime, runner: Option<&RunnerSetup>) {
        if !self.has_expected {
            self.job.find_all_expected(runtime, runner.map(|setup| -> &dyn ReferenceRunner { setup }));
            self.has_expected = true;
        }
    }
}

/// The files that the data of a job depends on: all but the kernel's code, which is loaded each time.
fn stamps(spec: &Spec) -> Vec<Stamp> {
    let mut files = spec.files();
    if let Some(at) = files.iter().position(|path| spec.kernel.text.is_none() && *path == spec.kernel.path) {
        files.remove(at);
    }
    let stamp = |path: PathBuf| {
        let metadata = path.metadata().and_then(|metadata| Ok((metadata.len(), metadata.modified()?)));
        (path, metadata.ok())
    };
    files.into_iter().map(stamp).collect()
}

/// Kills the processes that a candidate has started and left behind: they would disturb the next one.
fn kill_leftovers(before: &BTreeSet<i32>) {
    let begin = Instant::now();
    while begin.elapsed() < KILL_TIMEOUT {
        let left = platform::children().into_iter().filter(|child| !before.contains(child));
        let left: Vec<i32> = left.collect();
        if left.is_empty() {
            return;
        }
        for process in left {
            platform::kill(process, libc::SIGKILL);
            platform::reap_one(process);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether the device of a row may be in a state in which others would fail for this candidate's fault.
fn is_device_error(row: &Row) -> bool {
    let kinds = [
        ErrorKind::DeviceLost,
        ErrorKind::Timeout,
        ErrorKind::Driver,
        ErrorKind::Failed,
        ErrorKind::Internal,
        ErrorKind::Crashed,
    ];
    kinds.iter().any(|kind| row.error_kind.as_deref() == Some(&kind.to_string()))
}
