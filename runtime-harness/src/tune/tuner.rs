//! Runs a search.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use runtime_core::{Error, Options, Result};

use super::contest::Contest;
use super::event::Event;
use super::fingerprint::Contents;
use super::log::Log;
use super::ranking::Ranking;
use super::search::Search;
use super::strategy::Strategy;
use super::trial::Trial;
use crate::compare::CompareOptions;
use crate::pool::{Pool, PoolOptions};
use crate::settings::Settings;
use crate::spec::{Overrides, Spec};

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
/// let mut tuner = Tuner::new("kernels/matmul.toml", devices, PoolOptions::new("/usr/bin/runtime"));
/// tuner.strategy = Strategy::Halving { samples: Some(64), seed: 0 };
/// tuner.log = Some("matmul.jsonl".into());
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
    /// Path of the spec.
    pub spec: PathBuf,
    /// The device strings.
    pub devices: Vec<String>,
    /// The worker processes.
    pub pool: PoolOptions,
    /// The strategy. Default: every candidate.
    pub strategy: Strategy,
    /// Values of the spec, which are then not tuned.
    pub overrides: Overrides,
    /// What takes precedence over the settings of the spec.
    pub settings: Settings,
    /// The options that devices are opened with.
    pub options: Options,
    /// Spreads the candidates over the devices, which must be of one model, instead of tuning each device for itself.
    pub spread: bool,
    /// Limits the time of the whole search. Candidates that run when it is over are ended.
    pub budget: Option<Duration>,
    /// Gets each result at once; those that it has already are not measured again.
    pub log: Option<PathBuf>,
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

    /// Searches until every candidate was evaluated, the budget is spent, or `on_event` breaks.
    ///
    /// # Errors
    /// `InvalidArgument` for an invalid spec, one without `[tune]`, or one that is swept; for a device that does not exist,
    /// devices that candidates cannot be spread over, and a log of another device. `Io` if the log cannot be used.
    pub fn run(&self, mut on_event: impl FnMut(Event<'_>) -> ControlFlow<()>) -> Result<Vec<Tuning>> {
        let spec = Spec::load(&self.spec, &self.overrides)?;
        let points = self.points(&spec)?;
        let settings = self.settings.or(&spec.settings);
        let rungs = self.strategy.rungs(points.len(), &settings);
        let groups: Vec<Vec<String>> = match self.spread {
            true => vec![self.devices.clone()],
            false => self.devices.iter().map(|device| vec![device.clone()]).collect(),
        };
        let contest = |devices| Contest::new(devices, points.clone(), rungs.clone(), &settings);
        let contests: Vec<Contest> = groups.iter().cloned().map(contest).collect();
        let contents = Contents::of(&spec, &self.options);
        let (sender, replies) = mpsc::channel();
        let mut search = Search {
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
        let evaluations = search.contests.iter().map(Contest::evaluations).sum();
        let stopper = &search.pool.stopper();
        let begun = (search.on_event)(Event::Begin { devices: &groups, evaluations, stopper });
        let complete = begun.is_continue() && search.run()?.is_continue();
        // Rows that were not reached are no others.
        if let Some(log) = search.log.as_ref().filter(|_| complete) {
            let (read, used) = log.usage();
            let _ = (search.on_event)(Event::Logged { read, used });
        }
        let Search { contests, .. } = search;
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
