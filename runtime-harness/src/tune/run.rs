//! Runs a search.

use std::ops::ControlFlow;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use runtime_core::{Error, Result};

use super::contest::Contest;
use super::event::Event;
use super::fingerprint::Contents;
use super::log::Log;
use super::search::Search;
use super::tuner::{Tuner, Tuning};
use crate::pool::Pool;
use crate::spec::{Overrides, Spec};

/// Longer than any run.
const NO_LIMIT: Duration = Duration::from_secs(1 << 30);

impl Tuner {
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
        // After an interruption, unused rows of the log may still belong to this search.
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
