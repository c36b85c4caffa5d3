//! Checks a job on an embedded device and counts its calls: one image, which is run for each sample.
//!
//! The counter is the device's. The host's clock only limits how long samples are taken, and is no figure, except on devices
//! that run whole programs and have no counter.

mod bound;
mod check;
mod functions;
mod program;
mod wall_time;

use std::time::{Duration, Instant};

use runtime_core::code::RunReport;
use runtime_core::evaluate::{
    Clock, ClockChoice, FlushCache, Measurement, Timing, Validation, Warmup, percentile,
};
use runtime_core::{CommonRuntime, DeviceInfo, EmbeddedDevice, Error, ErrorKind, Result};

use crate::crash_context::CrashContext;
use crate::device::DeviceUnderTest;
use crate::job::Job;
use crate::row::{CounterValue, Counts, ImageUsage, Outcome, Phase, Row, StackUsage, error_text};
use crate::settings::Settings;
use check::Check;
use program::{Count, Program};

/// What the counter of an emulator counts.
const INSTRUCTIONS: &str = "target-instructions";
/// Samples of a counter of instructions, which do not vary.
const INSTRUCTION_SAMPLES: usize = 3;
/// The least time for a run.
const MIN_DEADLINE: Duration = Duration::from_secs(10);
/// The property of a device that names what its counter counts.
const COUNTER: &str = "counter";

/// The property of a device without a counter that names the clock of its runs.
const RUN_CLOCK: &str = "run_clock";
/// Advice for times of a simulator.
const SIMULATED: &str = "simulated time; compare it only with other simulations";

/// Called at the beginning of each phase, with the operation that begins.
type Enter<'e> = &'e mut dyn FnMut(Phase, &str);

/// Checks a job on a device that is flashed, and counts its calls.
pub(crate) fn evaluate(
    job: &Job,
    (device, opened): (&DeviceUnderTest, &dyn CommonRuntime),
    embedded: &EmbeddedDevice,
    settings: &Settings,
    enter: Enter<'_>,
) -> Row {
    let mut phase = Phase::Compile;
    let mut note = |next: Phase, operation: &str| {
        phase = next;
        enter(next, operation);
    };
    let board = Board {
        name: &device.name,
        info: opened.info(),
        embedded,
        timing: settings.timing(),
        repeat: settings.repeat.map(|repeat| usize::try_from(repeat).unwrap_or(usize::MAX)),
        is_timed: opened.info().properties.text(RUN_CLOCK).is_some(),
        is_trusted: device.runner.is_none(),
    };
    let counted = board.count(job, settings, &mut note);
    let name = &device.name;
    let row = match counted {
        Ok((validation, Figures::Counts(counts, counters))) => {
            Row { counters, ..Row::counted(&job.spec, settings, name, &validation, *counts) }
        }
        Ok((validation, Figures::Times(times, counters))) => {
            let is_simulated = opened.info().properties.flag("simulator");
            let advice = is_simulated.then(|| SIMULATED.to_owned()).into_iter().collect();
            Row { advice, counters, ..Row::timed(&job.spec, settings, name, &validation, *times) }
        }
        // A kernel that does not fit on the board has not failed.
        Err(error) if matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::OutOfResources) => {
            let outcome = Outcome::Skipped { reason: error_text(&error) };
            let error_kind = Some(error.kind().to_string());
            Row { error_kind, ..Row::unmeasured(&job.spec, settings, name, outcome) }
        }
        Err(error) => Row::failed(&job.spec, settings, name, &error, phase),
    };
    row.with_arguments(&job.spec, Some(opened.info())).on(device.describe())
}

/// A device, and how it is sampled.
struct Board<'b> {
    name: &'b str,
    info: &'b DeviceInfo,
    embedded: &'b EmbeddedDevice,
    timing: Timing,
    /// The number of samples that was asked for.
    repeat: Option<usize>,
    /// Whether it has no counter, and its runs are timed.
    is_timed: bool,
    /// Whether the code is believed.
    is_trusted: bool,
}

/// What was measured of a job, with the counters that were asked for.
enum Figures {
    Counts(Box<Counts>, Vec<CounterValue>),
    Times(Box<Measurement>, Vec<CounterValue>),
}

impl Board<'_> {
    fn count(&self, job: &Job, settings: &Settings, enter: Enter<'_>) -> Result<(Validation, Figures)> {
        self.check_timing()?;
        let check = Check::of(job, settings.validates())?;
        let program = Program::new(self.embedded, self.is_timed, job, &check)?;
        let operation = format!("while \"{}\" was flashed on {}", job.spec.name, self.name);
        enter(Phase::Compile, &operation);
        let context = CrashContext::enter(operation);
        program.flash(1, Count::Counter)?;
        drop(context);
        let operation = job.running_on(self.name);
        enter(Phase::Run, &operation);
        let _context = CrashContext::enter(operation);
        let first = self.run()?;
        let validation = check.compare(|argument| program.read(argument))?;
        let names = settings.counters.as_deref().unwrap_or_default();
        if self.is_timed {
            let times = wall_time::measure(&self.timing, job.spec.cost, || Ok(self.run()?.elapsed_ns))?;
            let counters = wall_time::counters(self.name, names);
            return Ok((validation, Figures::Times(Box::new(times), counters)));
        }
        let number = self.timing.number.unwrap_or(1);
        if number != 1 || program.updates_tensors() {
            program.flash(number, Count::Counter)?;
        }
        let mut counts = self.sample(&program, number, &first)?;
        let counters = functions::counters(self, &program, &counts, names);
        if !self.is_trusted && counts.clock == INSTRUCTIONS {
            counts.is_candidates = !bound::is_bounded(self, &program, (count(&first)?, &counts))?;
        }
        Ok((validation, Figures::Counts(Box::new(counts), counters)))
    }

    /// Takes the samples of a program that was flashed for `number` calls.
    fn sample(&self, program: &Program<'_>, number: u64, first: &RunReport) -> Result<Counts> {
        let clock = self.info.properties.text(COUNTER).unwrap_or("target-cycles").to_owned();
        let few = if clock == INSTRUCTIONS { INSTRUCTION_SAMPLES } else { self.timing.repeat };
        let repeat = self.repeat.unwrap_or(few);
        let begin = Instant::now();
        let warmup = match self.timing.warmup {
            Warmup::Calls(calls) => calls.div_ceil(number),
            Warmup::Time(_) => 0,
        };
        for _ in 0..warmup {
            self.run()?;
        }
        let (mut samples, mut runs_ns, mut last) = (Vec::new(), Vec::new(), *first);
        while samples.len() < repeat && (samples.is_empty() || begin.elapsed() < self.timing.budget) {
            last = self.run()?;
            samples.push(count(&last)? as f64 / number as f64);
            runs_ns.push(last.elapsed_ns as f64);
        }
        runs_ns.sort_unstable_by(f64::total_cmp);
        let mut sorted = samples.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let (median, elements) = (percentile(&sorted, 50.0), program.written_elements());
        Ok(Counts {
            clock,
            repeat,
            number,
            calls: 1 + (warmup + samples.len() as u64) * number,
            min: sorted[0],
            median,
            max: sorted[sorted.len() - 1],
            samples,
            overhead: last.overhead,
            elements,
            per_element: (elements > 0).then(|| median / elements as f64),
            image: ImageUsage::of(&last, self.info),
            stack: StackUsage::of(&last, self.info),
            run_ns: Some(percentile(&runs_ns, 50.0)),
            is_candidates: !self.is_trusted,
        })
    }

    fn run(&self) -> Result<RunReport> {
        self.embedded.run(self.timing.budget.max(MIN_DEADLINE))
    }

    /// Rejects clocks of other devices, and flushing caches, which the host does not know.
    fn check_timing(&self) -> Result<()> {
        if self.timing.repeat == 0 || self.timing.number == Some(0) {
            return Err(Error::invalid("repeat and number must be at least 1"));
        }
        if let ClockChoice::Use(clock) = self.timing.clock
            && !(self.is_timed && clock == Clock::HostWall)
        {
            let counter = self.info.properties.text(COUNTER).unwrap_or("its counter");
            let message = format!("clock \"{clock}\" is not supported on {}, which has {counter}", self.name);
            return Err(Error::unsupported(message));
        }
        if self.timing.flush_cache == FlushCache::Never {
            return Ok(());
        }
        Err(Error::unsupported(format!("flushing caches is not supported on {}", self.name)))
    }
}

/// The count of a run.
fn count(report: &RunReport) -> Result<u64> {
    report.cycles.ok_or_else(|| Error::unsupported("the device has no counter, so nothing can be measured"))
}
