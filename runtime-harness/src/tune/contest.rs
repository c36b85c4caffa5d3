//! The candidates of one device, or of several of one model, on their way through the rounds of a search.

use std::collections::VecDeque;

use super::strategy::Rung;
use super::trial::Trial;
use crate::settings::Settings;
use crate::spec::Overrides;

/// A candidate to measure.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// What it changes in the spec.
    pub(super) overrides: Overrides,
    pub(super) is_default: bool,
    pub(super) rung: usize,
    pub(super) settings: Settings,
    /// Fingerprint of its entry in the log; `None` until it is evaluated.
    pub(super) fingerprint: Option<String>,
    /// Index of the device that must measure it; `None`: any.
    pub(super) device: Option<usize>,
}

/// The state of a search.
#[derive(Debug)]
pub(super) struct Contest {
    pub(super) devices: Vec<String>,
    rungs: Vec<Rung>,
    /// The round that is measured; `None`: the spec's own values.
    round: Option<usize>,
    pending: VecDeque<Entry>,
    /// What each device measures, with the numbers of the requests: one candidate per worker.
    pub(super) running: Vec<Vec<(u64, Entry)>>,
    points: Vec<Overrides>,
    pub(super) trials: Vec<Trial>,
}

impl Contest {
    pub(super) fn new(
        devices: Vec<String>,
        points: Vec<Overrides>,
        rungs: Vec<Rung>,
        settings: &Settings,
    ) -> Self {
        let default = |device| Entry {
            overrides: Overrides::default(),
            is_default: true,
            rung: 0,
            settings: settings.clone(),
            fingerprint: None,
            device: Some(device),
        };
        Self {
            pending: (0..devices.len()).map(default).collect(),
            running: devices.iter().map(|_| Vec::new()).collect(),
            trials: Vec::new(),
            round: None,
            devices,
            rungs,
            points,
        }
    }

    /// How many evaluations it takes at most.
    pub(super) fn evaluations(&self) -> usize {
        self.devices.len() + self.rungs.iter().map(|rung| rung.candidates).sum::<usize>()
    }

    /// The next candidate for a device.
    pub(super) fn next(&mut self, device: usize) -> Option<Entry> {
        let may_run = |entry: &Entry| entry.device.is_none_or(|own| own == device);
        let at = self.pending.iter().position(may_run)?;
        self.pending.remove(at)
    }

    /// Takes the entry of a request; `None` if it is not running on the device.
    pub(super) fn take(&mut self, device: usize, request: u64) -> Option<Entry> {
        let running = &mut self.running[device];
        let at = running.iter().position(|(id, _)| *id == request)?;
        Some(running.swap_remove(at).1)
    }

    /// Begins the next round; returns `false` if there is none.
    pub(super) fn begin_round(&mut self) -> bool {
        let next = self.round.map_or(0, |round| round + 1);
        let Some(rung) = self.rungs.get(next) else { return false };
        let entrants = if next == 0 { self.points.clone() } else { self.best_of(next - 1, rung.candidates) };
        let settings = rung.settings.clone();
        let entry = |overrides| Entry {
            overrides,
            is_default: false,
            rung: next,
            settings: settings.clone(),
            fingerprint: None,
            device: None,
        };
        self.pending = entrants.into_iter().map(entry).collect();
        self.round = Some(next);
        true
    }

    /// The fastest candidates of a round.
    fn best_of(&self, rung: usize, count: usize) -> Vec<Overrides> {
        let of_rung = self.trials.iter().filter(|trial| trial.rung == rung && !trial.is_default);
        let mut ran: Vec<(f64, &Trial)> =
            of_rung.filter_map(|trial| Some((trial.median_ns()?, trial))).collect();
        ran.sort_by(|a, b| a.0.total_cmp(&b.0));
        ran.into_iter().take(count).map(|(_, trial)| trial.overrides.clone()).collect()
    }
}
