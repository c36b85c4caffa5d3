//! Checks and times a chain on a device, in this process: one by one and fused, in turns.

use runtime_core::evaluate::{Cost, Measurement, TimedWork, Turn, Turns};
use runtime_core::fusion::{FusionOptions, FusionReport};
use runtime_core::{CommonRuntime, Error, ErrorKind, Event, Queue, Result};

use crate::chain::{BoundChain, Chain, ChainLaunch, Expected};
use crate::compare::{CompareOptions, Estimate};
use crate::crash_context::CrashContext;
use crate::device::DeviceUnderTest;
use crate::evaluate::{Evaluated, advise};
use crate::executor::block_on;
use crate::interleave::join_all;
use crate::job::of_all;
use crate::noise::Recorder;
use crate::physics::compared_with_peaks;
use crate::release::{self, release};
use crate::row::{ChainRun, FusedKernel, Fusion, Noise, Phase, Row, TensorCheck};
use crate::settings::Settings;
use crate::spec::Spec;

/// A chain to evaluate.
pub(crate) struct ChainUnderTest<'c> {
    pub(crate) chain: &'c Chain,
    /// The spec that names the row.
    pub(crate) spec: &'c Spec,
    /// What the references leave, or why that is unknown; `None` if results are not compared.
    pub(crate) expected: Result<Option<Expected>>,
    /// Whether fused kernels write temporaries.
    pub(crate) keep: bool,
}

/// What is called at the beginning of each phase, with what is about to run.
type Enter<'e> = &'e mut dyn FnMut(Phase, &str);

/// What one evaluation of a chain gives.
struct Measured {
    fused: Measurement,
    fusion: Fusion,
    noise: Option<Noise>,
}

/// What the fuser made of a chain, and how both runs compare with the references.
struct Checked {
    report: FusionReport,
    promoted: Vec<String>,
    checks: Vec<TensorCheck>,
    same_bits: bool,
}

/// Checks and times a chain on a device: one by one and fused take turns, one sample each.
pub(crate) fn evaluate_chain(
    test: &ChainUnderTest<'_>,
    device: &mut DeviceUnderTest,
    settings: &Settings,
    progress: Enter<'_>,
) -> Evaluated {
    let code_sha256 = of_all(test.chain.specs().map(|spec| device.code_sha256(spec)));
    let mut phase = Phase::Prepare;
    let mut enter = |next: Phase, operation: &str| {
        phase = next;
        progress(next, operation);
    };
    let bound = match &device.opened {
        Ok(opened) => test.load((&**opened, &device.name), &mut enter),
        Err(error) => Err(error.clone()),
    };
    let (measured, bound) = match bound {
        Ok(bound) => (test.measure(device, &bound, settings, &mut enter), Some(bound)),
        Err(error) => (Err(error), None),
    };
    let _context = bound.as_ref().map(|_| CrashContext::enter(test.running("ran", &device.name)));
    let kernels = bound.map(|bound| bound.map(BoundChain::into_kernels));
    let released = release(kernels, &format!("\"{}\"", test.spec.name), &device.name, release::DEADLINE);
    if let Err(error) = &released {
        device.opened = Err(error.clone());
    }
    let row = test.row(device, settings, measured, phase);
    let row = compared_with_peaks(row, device, progress);
    Evaluated { row: Row { code_sha256, ..row }, released }
}

impl ChainUnderTest<'_> {
    /// The row of a chain that was measured, or that failed in a phase.
    fn row(
        &self,
        device: &DeviceUnderTest,
        settings: &Settings,
        measured: Result<Measured>,
        phase: Phase,
    ) -> Row {
        let row = match measured {
            Ok(Measured { fused, fusion, noise }) => {
                let row = Row::fused(self.spec, settings, &device.name, fused, fusion);
                Row { advice: advise(&row, noise.as_ref(), device), noise, ..row }
            }
            Err(error) => Row::failed(self.spec, settings, &device.name, &error, phase),
        };
        let working_set_bytes = Some(self.chain.working_set_bytes());
        Row { working_set_bytes, ..row }.on(device.describe())
    }

    fn running(&self, how: &str, device: &str) -> String {
        format!("while \"{}\" {how} on {device}", self.spec.name)
    }

    /// The chain twice: tensors that fusion does not write must not be those that are read one by one.
    fn load(
        &self,
        (device, name): (&dyn CommonRuntime, &str),
        enter: Enter<'_>,
    ) -> Result<[BoundChain<'_>; 2]> {
        self.expected.as_ref().map_err(Clone::clone)?;
        let operation = self.running("was loaded", name);
        enter(Phase::Compile, &operation);
        let _context = CrashContext::enter(operation);
        Ok([self.chain.bind(device)?, self.chain.bind(device)?])
    }

    /// Checks both runs, then times them.
    fn measure(
        &self,
        under_test: &DeviceUnderTest,
        bound: &[BoundChain<'_>; 2],
        settings: &Settings,
        enter: Enter<'_>,
    ) -> Result<Measured> {
        let device = under_test.opened.as_ref().map_err(Clone::clone)?;
        let name = &under_test.name;
        let options = bound[1].fusion_options(self.keep);
        let checked = self.check((&**device, name), bound, &options, enter)?;
        let lock = under_test.lock(&mut |operation| enter(Phase::Wait, operation));
        let operation = self.running("was timed", name);
        enter(Phase::Run, &operation);
        let _context = CrashContext::enter(operation);
        let timed = time(&**device, bound, &options, (settings, &checked));
        drop(lock);
        let [(one_by_one, _), (fused, noise)] = timed?;
        Ok(Measured { fusion: self.fusion(checked, one_by_one, &fused), fused, noise })
    }

    /// Runs the chain once one by one and once fused, and compares what both leave.
    fn check(
        &self,
        (device, name): (&dyn CommonRuntime, &str),
        [plain, fused]: &[BoundChain<'_>; 2],
        options: &FusionOptions,
        enter: Enter<'_>,
    ) -> Result<Checked> {
        let queue = device.queue()?;
        let mut run = |how: &str| {
            let operation = self.running(how, name);
            enter(Phase::Run, &operation);
            CrashContext::enter(operation)
        };
        let context = run("ran one by one");
        ChainLaunch::submit_all(&plain.launches()?, &queue)?.wait()?;
        drop(context);
        let _context = run("ran fused");
        let (event, report) = ChainLaunch::submit_fused(&fused.launches()?, &queue, options)?;
        event.wait()?;
        let promoted = fused.promoted();
        let mut checks = Vec::new();
        if let Ok(Some(expected)) = &self.expected {
            let compared = |run, rows: Vec<_>| rows.into_iter().map(move |row| TensorCheck::of(run, row));
            checks.extend(compared(ChainRun::OneByOne, plain.compare(expected, &[])?));
            checks.extend(compared(ChainRun::Fused, fused.compare(expected, &promoted)?));
        }
        let same_bits = fused.has_bits_of(plain, &promoted)?;
        Ok(Checked { report, promoted, checks, same_bits })
    }

    fn fusion(&self, checked: Checked, one_by_one: Measurement, fused: &Measurement) -> Fusion {
        let Checked { report, promoted, checks, same_bits } = checked;
        let (before, now) = (&one_by_one.samples_ns, &fused.samples_ns);
        let estimate = Estimate::of(before, now, &CompareOptions::default());
        Fusion {
            links: self.chain.links().collect(),
            launches: self.chain.names().to_vec(),
            kernels: FusedKernel::of(&report),
            report: report.to_string(),
            promoted,
            checks,
            same_bits,
            one_by_one,
            ratio: estimate.ratio,
            ratio_interval: estimate.interval,
        }
    }
}

/// Times a chain one by one and fused, in turns.
fn time(
    device: &dyn CommonRuntime,
    [plain, fused]: &[BoundChain<'_>; 2],
    options: &FusionOptions,
    (settings, checked): (&Settings, &Checked),
) -> Result<[(Measurement, Option<Noise>); 2]> {
    let (plain_launches, fused_launches) = (plain.launches()?, fused.launches()?);
    let one_by_one = |queue: &Queue| ChainLaunch::submit_all(&plain_launches, queue);
    let fused_run =
        |queue: &Queue| ChainLaunch::submit_fused(&fused_launches, queue, options).map(|(event, _)| event);
    let single: Vec<_> = (0..plain_launches.len()).map(|launch| launch..launch + 1).collect();
    let kernels: Vec<_> = checked.report.kernels.iter().map(|kernel| kernel.launches.clone()).collect();
    let bytes = [plain.bytes(&single, &[]), fused.bytes(&kernels, &checked.promoted)];
    let turns = Turns::new();
    let members: Vec<std::pin::Pin<Box<dyn Future<Output = _> + '_>>> = vec![
        Box::pin(time_one(device, one_by_one, (settings, bytes[0]), turns.join())),
        Box::pin(time_one(device, fused_run, (settings, bytes[1]), turns.join())),
    ];
    let mut timed = block_on(join_all(members))?.into_iter();
    let mut next =
        || timed.next().unwrap_or_else(|| Err(Error::new(ErrorKind::Internal, "a run has no result")));
    Ok([next()?, next()?])
}

async fn time_one(
    device: &dyn CommonRuntime,
    submit: impl FnMut(&Queue) -> Result<Event> + Send,
    (settings, bytes): (&Settings, f64),
    turn: Turn,
) -> Result<(Measurement, Option<Noise>)> {
    let mut recorder = Recorder::new(device, true);
    let mut work = TimedWork::new(submit);
    work.timing = settings.timing();
    work.cost = Cost { bytes: Some(bytes), ..Cost::default() };
    work.turn = Some(turn);
    work.observer = Some(Box::new(|moment| recorder.observe(moment)));
    let measured = device.time_work(&mut work).await;
    drop(work);
    measured.map(|measurement| {
        let noise = recorder.noise(&measurement);
        (measurement, noise)
    })
}
