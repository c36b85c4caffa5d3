//! What a tuning run has found so far.

use runtime_core::Result;
use runtime_harness::Spec;
use runtime_harness::compare::CompareOptions;
use runtime_harness::tune::{Event, Ranking, Trial, TrialClass, Tuning};

use super::Files;
use crate::output;
use crate::report::duration;

/// The trials so far, and where their ranking is written.
pub(super) struct Board {
    files: Files,
    options: CompareOptions,
    spec: Spec,
    tunings: Vec<Tuning>,
    /// Whether each device, or group of devices, has a candidate that runs.
    has_best: bool,
    fastest: Option<(f64, String)>,
    bad: usize,
}

impl Board {
    pub(super) fn new(files: Files, options: CompareOptions, spec: Spec) -> Self {
        Self { files, options, spec, tunings: Vec::new(), has_best: false, fastest: None, bad: 0 }
    }

    pub(super) fn note(&mut self, event: Event<'_>) {
        match event {
            Event::Begin { devices, .. } => {
                let tuning = |devices: &Vec<String>| Tuning {
                    devices: devices.clone(),
                    trials: Vec::new(),
                    complete: false,
                };
                self.tunings = devices.iter().map(tuning).collect();
            }
            Event::Trial { tuning, trial } => self.note_trial(tuning, trial),
            Event::Logged { read, used } if used < read => output::print_stderr(&format!(
                "{} of {read} results in the log are of other candidates, or of another kernel text, device or setting, and \
                 were not used",
                read - used
            )),
            Event::Start { .. } | Event::Repeated | Event::Note(_) | Event::Logged { .. } => {}
        }
    }

    fn note_trial(&mut self, tuning: usize, trial: &Trial) {
        self.bad += usize::from(matches!(trial.class(), TrialClass::Wrong | TrialClass::Failed));
        if let Some(median) = trial.median_ns()
            && self.fastest.as_ref().is_none_or(|(fastest, _)| median < *fastest)
        {
            self.fastest = Some((median, trial.overrides.describe()));
        }
        if let Some(tuning) = self.tunings.get_mut(tuning) {
            // A device after the first measures the spec's own values only to be known.
            let is_repeated = trial.is_default && tuning.trials.iter().any(|other| other.is_default);
            if !is_repeated {
                tuning.trials.push(trial.clone());
            }
        }
    }

    /// Number of candidates that were evaluated.
    pub(super) fn trials(&self) -> usize {
        self.tunings.iter().map(|tuning| tuning.trials.len()).sum()
    }

    /// The best so far, for the progress bar.
    pub(super) fn summary(&self) -> String {
        let best = self.fastest.as_ref().map_or_else(String::new, |(median, overrides)| {
            let values = if overrides.is_empty() { " own values" } else { overrides };
            format!("best {}:{values}; ", duration(*median))
        });
        let bad = if self.bad == 0 { String::new() } else { format!("{} failed; ", self.bad) };
        best + &bad
    }

    /// Writes everything.
    pub(super) fn finish(&mut self, complete: bool) -> Result<()> {
        for tuning in &mut self.tunings {
            tuning.complete = complete;
        }
        let rankings: Vec<Ranking> =
            self.tunings.iter().map(|tuning| tuning.ranking(&self.options)).collect();
        self.has_best = rankings.iter().all(|ranking| ranking.best().is_some());
        let results: Vec<(&Tuning, &Ranking)> = self.tunings.iter().zip(&rankings).collect();
        self.files.write(&self.spec, &results)
    }

    pub(super) const fn has_best(&self) -> bool {
        self.has_best
    }
}
