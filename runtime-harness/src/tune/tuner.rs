//! The parameters and the results of a tuning run.

use std::path::PathBuf;
use std::time::Duration;

use runtime_core::Options;

use super::ranking::Ranking;
use super::strategy::Strategy;
use super::trial::Trial;
use crate::compare::CompareOptions;
use crate::pool::PoolOptions;
use crate::settings::Settings;
use crate::spec::Overrides;

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
}
