//! Runs a search.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use runtime_core::{Error, ErrorKind, Options, Result};
use serde_json::Value;

use super::contest::{Contest, Entry};
use super::device_group::{difference, may_share_chip};
use super::fingerprint::Contents;
use super::log::Log;
use super::ranking::Ranking;
use super::strategy::Strategy;
use super::trial::Trial;
use crate::candidate::Candidate;
use crate::compare::CompareOptions;
use crate::pool::{Pool, PoolOptions, Stopper};
use crate::row::{Outcome, Phase, Row};
use crate::settings::Settings;
use crate::spec::{Overrides, Spec};
use crate::worker::protocol::Reply;

/// Longer than any run.
const NO_LIMIT: Duration = Duration::from_secs(1 << 30);

/// Finds the fastest values of what the `[tune]` table of a spec varies, on one or several devices.
///
/// Every candidate is checked against the reference and timed in a worker process, which it may take down: candidates that
/// are wrong, crash or hang are reported, and never win. The spec's own values are always measured, first.
///
/// Each device is tuned for itself. Devices that may be one chip, or the host, work one after the other; others at the same
/// time.
///
/// ```no_run
/// use std::ops::ControlFlow;
///
/// use runtime_harness::{PoolOptions, Tuner};
/// use runtime_harness::tune::{Event, Strategy};
///
/// # fn main() -> runtime_core::Result<()> {
/// let devices = vec!["cuda:0".to_owned()];
/// let tuner = Tuner::new("kernels/matmul.toml", devices, PoolOptions::new("/usr/bin/runtime"))
///     .strategy(Strategy::Halving { samples: Some(64), seed: 0 })
///     .log("matmul.jsonl");
/// let tunings = tuner.run(|event| {
///     if let Event::Trial { trial, .. } = event {
///         println!("{}: {:?} ns", trial.row.kernel.name, trial.median_ns());
///     }
///     ControlFlow::Continue(())
/// })?;
/// if let Some(best) = tunings[0].ranking(&Default::default()).best() {
///     println!("{:?}, {:?} times as fast", best.trial.overrides, best.speedup);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Tuner {
    spec: PathBuf,
    devices: Vec<String>,
    pool: PoolOptions,
    strategy: Strategy,
    overrides: Overrides,
    settings: Settings,
    options: Options,
    spread: bool,
    budget: Option<Duration>,
    log: Option<PathBuf>,
}

/// What a tuner reports while it runs.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The search begins.
    Begin {
        /// The devices of each result.
        devices: &'a [Vec<String>],
        /// How many evaluations it takes at most, in total.
        evaluations: usize,
        /// Ends the workers, from another thread.
        stopper: &'a Stopper,
    },
    /// A candidate is evaluated on a device.
    Start {
        /// The name of its row.
        name: &'a str,
        /// The device string.
        device: &'a str,
    },
    /// A candidate was evaluated.
    Trial {
        /// The position of the result that it belongs to.
        tuning: usize,
        /// The candidate and its result.
        trial: &'a Trial,
    },
    /// Something that the user wants to know: which process a worker waits for, or why one is not used any more.
    Note(&'a str),
    /// A candidate has the spec's own values, which were measured already.
    Repeated,
    /// The search has ended; there was a log.
    Logged {
        /// Number of rows that the log had.
        read: usize,
        /// Number of them that belong to candidates of this run.
        used: usize,
    },
}

/// The result for a device, or for several of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// The device strings.
    pub devices: Vec<String>,
    /// What was evaluated, in the order of the results.
    pub trials: Vec<Trial>,
    /// Whether the search was completed.
    pub complete: bool,
}

impl Tuning {
    /// The trials in order.
    #[must_use]
    pub fn ranking(&self, options: &CompareOptions) -> Ranking {
        Ranking::of(&self.trials, options)
    }
}

impl Tuner {
    /// A tuner that measures every candidate on each device.
    #[must_use]
    pub fn new(spec: impl Into<PathBuf>, devices: Vec<String>, pool: PoolOptions) -> Self {
        Self {
            spec: spec.into(),
            devices,
            pool,
            strategy: Strategy::All,
            overrides: Overrides::default(),
            settings: Settings::default(),
            options: Options::new(),
            spread: false,
            budget: None,
            log: None,
        }
    }

    /// Chooses the strategy.
    #[must_use]
    pub fn strategy(self, strategy: Strategy) -> Self {
        Self { strategy, ..self }
    }

    /// Sets values of the spec, which are then not tuned.
    #[must_use]
    pub fn overrides(self, overrides: Overrides) -> Self {
        Self { overrides, ..self }
    }

    /// Sets what takes precedence over the settings of the spec.
    #[must_use]
    pub fn settings(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    /// Sets the options that devices are opened with.
    #[must_use]
    pub fn options(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// Spreads the candidates over the devices, which must be of one model, instead of tuning each device for itself.
    #[must_use]
    pub fn spread(self, spread: bool) -> Self {
        Self { spread, ..self }
    }

    /// Limits the time of the whole search. Candidates that run when it is over are ended.
    #[must_use]
    pub fn budget(self, budget: Duration) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// Writes each result to this file at once, and takes those that it has already instead of measuring them again.
    #[must_use]
    pub fn log(self, path: impl Into<PathBuf>) -> Self {
        Self { log: Some(path.into()), ..self }
    }

    /// Searches until every candidate was evaluated, the budget is spent, or `on_event` breaks.
    ///
    /// # Errors
    /// `InvalidArgument` for an invalid spec, one without `[tune]`, or one that is swept; for a device that does not exist,
    /// devices that candidates cannot be spread over, and a log of another device. `Io` if the log cannot be used.
    pub fn run(&self, mut on_event: impl FnMut(Event<'_>) -> ControlFlow<()>) -> Result<Vec<Tuning>> {
        let spec = Spec::load(&self.spec, &self.overrides)?;
        let points = self.points(&spec)?;
        let settings = self.settings.or(spec.settings);
        let rungs = self.strategy.rungs(points.len(), &settings);
        let groups: Vec<Vec<String>> = match self.spread {
            true => vec![self.devices.clone()],
            false => self.devices.iter().map(|device| vec![device.clone()]).collect(),
        };
        let contest = |devices| Contest::new(devices, points.clone(), rungs.clone(), settings);
        let contests: Vec<Contest> = groups.iter().cloned().map(contest).collect();
        let contents = Contents::of(&spec, &self.options);
        let (sender, replies) = mpsc::channel();
        let mut run = Run {
            tuner: self,
            default_fingerprint: contents.fingerprint(&spec),
            spec,
            contents,
            contests,
            infos: groups.iter().map(|group| vec![None; group.len()]).collect(),
            pool: Pool::new(self.pool.clone(), sender),
            replies,
            log: self.log.as_deref().map(Log::open).transpose()?,
            deadline: Instant::now() + self.budget.unwrap_or(NO_LIMIT).min(NO_LIMIT),
            requests: 0,
            on_event: &mut on_event,
        };
        let evaluations = run.contests.iter().map(Contest::evaluations).sum();
        let stopper = &run.pool.stopper();
        let begun = (run.on_event)(Event::Begin { devices: &groups, evaluations, stopper });
        let complete = begun.is_continue() && run.search()?.is_continue();
        if let Some(log) = &run.log {
            let (read, used) = log.usage();
            let _ = (run.on_event)(Event::Logged { read, used });
        }
        let Run { contests, .. } = run;
        let tuning = |contest: Contest| Tuning { devices: contest.devices, trials: contest.trials, complete };
        Ok(contests.into_iter().map(tuning).collect())
    }

    fn points(&self, spec: &Spec) -> Result<Vec<Overrides>> {
        if let Some(sweep) = &spec.sweep {
            return Err(Error::invalid(format!(
                "{}: [sweep] gives several sizes, and each may have another best candidate: tune one at a time, with --set {}=…",
                self.spec.display(),
                sweep.names().join("=… --set ")
            )));
        }
        let Some(space) = &spec.tune else {
            return Err(Error::invalid(format!(
                "{}: there is nothing to tune: no table [tune], or all that it varies is set",
                self.spec.display()
            )));
        };
        Ok(self.strategy.points(space)?.into_iter().map(|point| point.overrides).collect())
    }
}

/// A search that runs.
struct Run<'a> {
    tuner: &'a Tuner,
    spec: Spec,
    contents: Contents,
    default_fingerprint: String,
    contests: Vec<Contest>,
    /// The description of each device of each contest, once it is known.
    infos: Vec<Vec<Option<Value>>>,
    pool: Pool,
    replies: Receiver<Reply>,
    log: Option<Log>,
    deadline: Instant,
    requests: u64,
    on_event: &'a mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
}

impl Run<'_> {
    /// Evaluates everything. Breaks if the time is over or the caller says so.
    fn search(&mut self) -> Result<ControlFlow<()>> {
        // The spec's own values first, one device at a time, because it is not known yet which devices share a chip.
        for contest in 0..self.contests.len() {
            for device in 0..self.contests[contest].devices.len() {
                if self.evaluate(&[(contest, device)])?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        if self.tuner.spread {
            self.check_spread()?;
        }
        for batch in self.batches() {
            while self.begin_rounds(&batch) {
                let places = batch.iter().flat_map(|&contest| {
                    (0..self.contests[contest].devices.len()).map(move |device| (contest, device))
                });
                let places: Vec<(usize, usize)> = places.collect();
                if self.evaluate(&places)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Begins the next round of each contest; returns `false` if all are over.
    fn begin_rounds(&mut self, batch: &[usize]) -> bool {
        let mut has_begun = false;
        for &contest in batch {
            has_begun |= self.contests[contest].begin_round();
        }
        has_begun
    }

    /// Contests whose devices share no chip, so that they can run at the same time.
    fn batches(&self) -> Vec<Vec<usize>> {
        let mut batches: Vec<Vec<usize>> = Vec::new();
        for contest in 0..self.contests.len() {
            let is_apart =
                |batch: &&mut Vec<usize>| batch.iter().all(|&other| !self.conflict(contest, other));
            match batches.iter_mut().find(is_apart) {
                Some(batch) => batch.push(contest),
                None => batches.push(vec![contest]),
            }
        }
        batches
    }

    fn conflict(&self, one: usize, other: usize) -> bool {
        let infos =
            |contest: usize| self.infos[contest].iter().map(|info| info.as_ref().unwrap_or(&Value::Null));
        infos(one).any(|one| infos(other).any(|other| may_share_chip(one, other)))
    }

    /// Refuses devices that candidates cannot be spread over.
    fn check_spread(&self) -> Result<()> {
        let names = &self.contests[0].devices;
        let infos: Vec<&Value> =
            self.infos[0].iter().map(|info| info.as_ref().unwrap_or(&Value::Null)).collect();
        for (at, info) in infos.iter().enumerate() {
            for (other, name) in infos[..at].iter().zip(names) {
                let refused = |why: &str| {
                    Err(Error::invalid(format!(
                        "candidates cannot be spread over {name} and {}: {why}",
                        names[at]
                    )))
                };
                if let Some(difference) = difference(other, info) {
                    return refused(&difference);
                }
                if may_share_chip(other, info) {
                    return refused("they may be one chip, and would disturb each other");
                }
            }
        }
        Ok(())
    }

    /// Evaluates what is pending on these devices, all at the same time.
    fn evaluate(&mut self, places: &[(usize, usize)]) -> Result<ControlFlow<()>> {
        loop {
            for &(contest, device) in places {
                while self.contests[contest].running[device].len() < self.tuner.pool.workers.max(1) {
                    let Some(entry) = self.contests[contest].next(device) else { break };
                    if self.start(contest, device, entry)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            if places.iter().all(|&(contest, device)| self.contests[contest].running[device].is_empty()) {
                return Ok(ControlFlow::Continue(()));
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            let reply = match self.replies.recv_timeout(left) {
                Ok(reply) => reply,
                Err(RecvTimeoutError::Timeout) => return Ok(ControlFlow::Break(())),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::new(ErrorKind::Internal, "the pool of workers has ended"));
                }
            };
            if self.receive(reply)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    /// Submits a candidate, unless its result is known.
    fn start(&mut self, contest: usize, device: usize, entry: Entry) -> Result<ControlFlow<()>> {
        if Instant::now() >= self.deadline {
            return Ok(ControlFlow::Break(()));
        }
        let name = self.contests[contest].devices[device].clone();
        let overrides = self.tuner.overrides.with(&entry.overrides);
        let spec = match Spec::load(&self.tuner.spec, &overrides) {
            Ok(spec) => spec,
            Err(error) => {
                let row = self.refused(&entry, &overrides, &name, error.to_string());
                return Ok(self.record(contest, device, entry, row, false));
            }
        };
        let fingerprint = self.contents.fingerprint(&spec);
        if !entry.is_default && fingerprint == self.default_fingerprint {
            return Ok((self.on_event)(Event::Repeated));
        }
        let settings = entry.settings.effective();
        if let Some(row) = self.log.as_mut().and_then(|log| log.take(&fingerprint, &settings, &name)) {
            let info = &mut self.infos[contest][device];
            *info = info.take().or_else(|| row.device_info.clone());
            return Ok(self.record(contest, device, entry, row, true));
        }
        let started = (self.on_event)(Event::Start { name: &spec.name, device: &name });
        self.requests += 1;
        let candidate = Candidate {
            spec: self.tuner.spec.clone(),
            device: name,
            overrides,
            settings: entry.settings,
            options: self.tuner.options.clone(),
        };
        self.pool.submit(self.requests, candidate)?;
        self.contests[contest].running[device].push((self.requests, entry));
        Ok(started)
    }

    /// The row of a candidate that is no valid spec, for example because its geometry is not whole.
    fn refused(&self, entry: &Entry, overrides: &Overrides, device: &str, reason: String) -> Row {
        let mut row = Row::unmeasured(&self.spec, &entry.settings, device, Outcome::Skipped { reason });
        row.kernel.name += &entry.overrides.describe();
        row.parameters = overrides.parameters();
        row
    }

    fn receive(&mut self, reply: Reply) -> Result<ControlFlow<()>> {
        if let Reply::Retired { device, retired } = &reply {
            let note = format!("warning: a worker of {device} is not used any more: {retired}");
            return Ok((self.on_event)(Event::Note(&note)));
        }
        let Some((contest, device)) = reply.id().and_then(|id| self.place(id)) else {
            return Ok(ControlFlow::Continue(()));
        };
        match reply {
            Reply::Row { id, row, .. } => {
                let Some(entry) = self.contests[contest].take(device, id) else {
                    return Ok(ControlFlow::Continue(()));
                };
                self.note_device(contest, device, row.device_info.as_ref())?;
                let overrides = self.tuner.overrides.with(&entry.overrides);
                if let Some(log) = &mut self.log {
                    let spec = Spec::load(&self.tuner.spec, &overrides)?;
                    log.add(&self.contents.fingerprint(&spec), &row)?;
                }
                Ok(self.record(contest, device, entry, *row, false))
            }
            Reply::Device { device_info, .. } => {
                self.note_device(contest, device, device_info.as_ref())?;
                Ok(ControlFlow::Continue(()))
            }
            Reply::Phase { phase: Phase::Wait, operation, .. } => {
                Ok((self.on_event)(Event::Note(&format!("waiting {operation}"))))
            }
            Reply::Error { error, .. } => Err(Error::invalid(error)),
            _ => Ok(ControlFlow::Continue(())),
        }
    }

    fn place(&self, request: u64) -> Option<(usize, usize)> {
        let is_it = |running: &Vec<(u64, Entry)>| running.iter().any(|(id, _)| *id == request);
        let find = |(at, contest): (usize, &Contest)| Some((at, contest.running.iter().position(is_it)?));
        self.contests.iter().enumerate().find_map(find)
    }

    /// Notes the description of a device, and refuses to mix its results with those of another one in the log.
    fn note_device(&mut self, contest: usize, device: usize, info: Option<&Value>) -> Result<()> {
        let Some(info) = info else { return Ok(()) };
        let name = &self.contests[contest].devices[device];
        if let Some(log) = &self.log
            && let Some(logged) = log.device_info(name)
            && let Some(difference) = difference(logged, info)
        {
            return Err(Error::invalid(format!(
                "{}: {name} was another device: {difference}; give another file",
                log.path().display()
            )));
        }
        self.infos[contest][device] = Some(info.clone());
        Ok(())
    }

    fn record(
        &mut self,
        contest: usize,
        device: usize,
        entry: Entry,
        row: Row,
        is_logged: bool,
    ) -> ControlFlow<()> {
        let trial = Trial {
            overrides: entry.overrides,
            is_default: entry.is_default,
            rung: entry.rung,
            is_logged,
            row,
        };
        let event = (self.on_event)(Event::Trial { tuning: contest, trial: &trial });
        // The spec's own values are measured on every device, but compared with on the first.
        if !trial.is_default || device == 0 {
            self.contests[contest].trials.push(trial);
        }
        event
    }
}
