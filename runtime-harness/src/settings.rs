//! Settings of the timing loop, from the spec and the command line.

use std::time::Duration;

use runtime_core::evaluate::{ClockChoice, FlushCache, Timing, Warmup};
use serde::{Deserialize, Serialize};

use crate::text_json;

/// The most time that is spent on measuring the energy of a call.
pub const ENERGY_LIMIT: Duration = Duration::from_secs(10);

/// What the numbers among the settings may be, by their names in specs and requests: larger ones would occupy a device for good.
const BOUNDS: [(&str, f64, f64); 7] = [
    ("repeat", 1.0, 1e9),
    ("until_percent", 0.0, 1e3),
    ("number", 1.0, 1e9),
    ("min_repeat_ms", 0.0, 3.6e6),
    ("warmup", 0.0, 1e9),
    ("cooldown_ms", 0.0, 3.6e6),
    ("budget_s", 0.0, 86_400.0),
];

/// Checks a number among the settings.
///
/// # Errors
/// What it must be.
pub fn check_number(key: &str, value: f64) -> Result<(), String> {
    match BOUNDS.iter().find(|(name, ..)| *name == key) {
        Some((_, least, most)) if !(*least..=*most).contains(&value) => {
            Err(format!("must be a number from {least} to {most}, got {value:?}"))
        }
        _ => Ok(()),
    }
}

/// The settings given; `None` stands for the default of the timing loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Number of samples.
    pub repeat: Option<u64>,
    /// Goes on until the median's interval is this narrow, in percent of the median; 0: does not.
    pub until_percent: Option<f64>,
    /// Calls per sample.
    pub number: Option<u64>,
    /// Minimum duration of a sample.
    pub min_repeat_ms: Option<f64>,
    /// Calls before the first sample.
    pub warmup: Option<u64>,
    /// Whether to compare outputs.
    pub validate: Option<bool>,
    /// The clock.
    #[serde(with = "text_json")]
    pub clock: Option<ClockChoice>,
    /// When to flush caches.
    #[serde(with = "text_json")]
    pub flush_cache: Option<FlushCache>,
    /// Pause between samples.
    pub cooldown_ms: Option<f64>,
    /// Time limit.
    pub budget_s: Option<f64>,
    /// Counters to read in a run of their own, after the timing.
    pub counters: Option<Vec<String>>,
    /// Whether to measure the energy of a call, in a run of its own.
    pub energy: Option<bool>,
}

impl Settings {
    /// These settings, completed by those of `other`.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        macro_rules! completed {
            ($($field:ident)*) => { Self { $($field: self.$field.as_ref().or(other.$field.as_ref()).cloned(),)* } };
        }
        completed! {
            repeat until_percent number min_repeat_ms warmup validate clock flush_cache cooldown_ms budget_s counters energy
        }
    }

    /// Checks the numbers of settings that come from another program.
    ///
    /// # Errors
    /// What one of them must be.
    #[expect(clippy::cast_precision_loss, reason = "precise enough for a bound")]
    pub fn check(&self) -> Result<(), String> {
        let whole = |number: u64| number as f64;
        let numbers = [
            ("repeat", self.repeat.map(whole)),
            ("until_percent", self.until_percent),
            ("number", self.number.map(whole)),
            ("min_repeat_ms", self.min_repeat_ms),
            ("warmup", self.warmup.map(whole)),
            ("cooldown_ms", self.cooldown_ms),
            ("budget_s", self.budget_s),
        ];
        numbers.into_iter().filter_map(|(key, value)| Some((key, value?))).try_for_each(|(key, value)| {
            check_number(key, value).map_err(|message| format!("settings.{key} {message}"))
        })
    }

    /// Whether to compare outputs if there is a reference.
    #[must_use]
    pub fn validates(&self) -> bool {
        self.validate.unwrap_or(true)
    }

    fn precision_percent(&self) -> Option<f64> {
        self.until_percent.filter(|percent| *percent != 0.0)
    }

    /// Whether to measure the energy of a call.
    #[must_use]
    pub fn measures_energy(&self) -> bool {
        self.energy.unwrap_or(false)
    }

    /// The most time that an evaluation takes if every call is quick: the budget of the timing loop, and what comes after.
    #[must_use]
    pub fn time_limit(&self) -> Duration {
        let energy = if self.measures_energy() { ENERGY_LIMIT } else { Duration::ZERO };
        self.timing().budget.saturating_add(energy)
    }

    /// The settings as the timing loop takes them.
    #[must_use]
    pub fn timing(&self) -> Timing {
        let mut timing = Timing::default();
        timing.repeat =
            self.repeat.map_or(timing.repeat, |repeat| usize::try_from(repeat).unwrap_or(usize::MAX));
        timing.until = self.precision_percent().map(|percent| percent / 100.0);
        timing.number = self.number.or(timing.number);
        timing.min_repeat = self.min_repeat_ms.map_or(timing.min_repeat, |ms| seconds(ms / 1e3));
        timing.warmup = self.warmup.map_or(timing.warmup, Warmup::Calls);
        timing.clock = self.clock.unwrap_or(timing.clock);
        timing.flush_cache = self.flush_cache.unwrap_or(timing.flush_cache);
        timing.cooldown = self.cooldown_ms.map_or(timing.cooldown, |ms| seconds(ms / 1e3));
        timing.budget = self.budget_s.map_or(timing.budget, seconds);
        timing
    }

    /// The settings in effect, defaults included.
    #[must_use]
    pub fn effective(&self) -> EffectiveSettings {
        let timing = self.timing();
        let (warmup, warmup_ms) = match timing.warmup {
            Warmup::Calls(calls) => (Some(calls), None),
            Warmup::Time(time) => (None, Some(milliseconds(time))),
        };
        EffectiveSettings {
            repeat: timing.repeat,
            until_percent: self.precision_percent(),
            number: timing.number,
            min_repeat_ms: milliseconds(timing.min_repeat),
            warmup,
            warmup_ms,
            validate: self.validates(),
            clock: timing.clock.to_string(),
            flush_cache: timing.flush_cache.to_string(),
            cooldown_ms: milliseconds(timing.cooldown),
            budget_s: timing.budget.as_secs_f64(),
            counters: self.counters.clone().unwrap_or_default(),
            energy: self.measures_energy(),
        }
    }
}

/// The settings of a measurement, defaults included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EffectiveSettings {
    /// Number of samples.
    pub repeat: usize,
    /// Goes on until the median's interval is this narrow, in percent of the median.
    #[serde(default)]
    pub until_percent: Option<f64>,
    /// Calls per sample; `None`: calibrated with `min_repeat_ms`.
    pub number: Option<u64>,
    /// Minimum duration of a sample.
    pub min_repeat_ms: f64,
    /// Calls before the first sample; `None`: warm-up by time.
    pub warmup: Option<u64>,
    /// Time before the first sample; `None`: warm-up by calls.
    pub warmup_ms: Option<f64>,
    /// Whether outputs are compared if there is a reference.
    pub validate: bool,
    /// `auto` or the name of a clock.
    pub clock: String,
    /// `never`, `sample` or `call`.
    pub flush_cache: String,
    /// Pause between samples.
    pub cooldown_ms: f64,
    /// Time limit.
    pub budget_s: f64,
    /// Counters read after the timing.
    #[serde(default)]
    pub counters: Vec<String>,
    /// Whether the energy of a call is measured.
    #[serde(default)]
    pub energy: bool,
}

/// Saturates: more seconds than a `Duration` holds amount to no limit, fewer than 0 to none.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use runtime_core::evaluate::Clock;

    use super::*;

    #[test]
    fn the_command_line_takes_precedence_over_the_spec() {
        let line = Settings { repeat: Some(3), ..Settings::default() };
        let spec = Settings {
            repeat: Some(5),
            warmup: Some(0),
            clock: Some(Clock::HostWall.into()),
            ..line.clone()
        };
        let settings = line.or(&spec);
        assert_eq!((settings.repeat, settings.warmup), (Some(3), Some(0)));
        let effective = settings.effective();
        assert_eq!((effective.warmup, effective.warmup_ms), (Some(0), None));
        assert_eq!((&*effective.clock, &*effective.flush_cache), ("host_wall", "never"));
    }

    #[test]
    fn numbers_become_durations() {
        let fixed = Settings { until_percent: Some(0.0), ..Settings::default() };
        assert_eq!((fixed.timing().until, fixed.effective().until_percent), (None, None));
        let precise = Settings { until_percent: Some(1.0), ..Settings::default() };
        assert_eq!((precise.timing().until, precise.effective().until_percent), (Some(0.01), Some(1.0)));
        let settings = Settings { min_repeat_ms: Some(1.5), budget_s: Some(1e300), ..Settings::default() };
        assert_eq!(settings.timing().min_repeat, Duration::from_micros(1500));
        assert_eq!(settings.timing().budget, Duration::MAX);
        let negative = Settings { budget_s: Some(-1.0), ..Settings::default() };
        assert_eq!(negative.timing().budget, Duration::ZERO);
        assert_eq!(Settings::default().timing(), Timing::default());
    }

    #[test]
    fn every_number_has_bounds() {
        assert_eq!(Settings::default().check(), Ok(()));
        let check = |text: &str| serde_json::from_str::<Settings>(text).unwrap().check();
        for (key, least, most) in BOUNDS {
            for inside in [least, most] {
                assert_eq!(check(&format!("{{\"{key}\": {inside}}}")), Ok(()));
            }
            let outside =
                [most + 1.0, least - 1.0].into_iter().filter(|value| *value >= 0.0 || key.contains('_'));
            for outside in outside {
                let error = check(&format!("{{\"{key}\": {outside}}}")).unwrap_err();
                assert!(error.contains(key) && error.contains("must be a number from"), "{error}");
            }
        }
        // A number that is added must get bounds.
        let all = serde_json::to_value(Settings {
            repeat: Some(1),
            until_percent: Some(1.0),
            number: Some(1),
            min_repeat_ms: Some(1.0),
            warmup: Some(1),
            cooldown_ms: Some(1.0),
            budget_s: Some(1.0),
            ..Settings::default()
        });
        let all = all.unwrap();
        let others = ["validate", "clock", "flush_cache", "counters", "energy"];
        for (key, _) in all.as_object().unwrap() {
            assert!(BOUNDS.iter().any(|(name, ..)| name == key) || others.contains(&&**key), "{key}");
        }
    }
}
