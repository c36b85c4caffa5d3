//! Settings of the timing loop, from the spec and the command line.

use std::time::Duration;

use runtime_core::{ClockChoice, FlushCache, Timing, Warmup};
use serde_json::{Value, json};

/// The values of `--flush-cache`.
pub(crate) const FLUSH_CHOICES: [(&str, FlushCache); 3] =
    [("never", FlushCache::Never), ("sample", FlushCache::PerSample), ("call", FlushCache::PerCall)];

/// The settings given; `None` stands for the default of the timing loop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    pub(crate) repeat: Option<u64>,
    pub(crate) number: Option<u64>,
    pub(crate) min_repeat_ms: Option<f64>,
    pub(crate) warmup: Option<u64>,
    pub(crate) validate: Option<bool>,
    pub(crate) clock: Option<ClockChoice>,
    pub(crate) flush_cache: Option<FlushCache>,
    pub(crate) cooldown_ms: Option<f64>,
    pub(crate) budget_s: Option<f64>,
}

impl Settings {
    /// These settings, completed by those of `other`.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            repeat: self.repeat.or(other.repeat),
            number: self.number.or(other.number),
            min_repeat_ms: self.min_repeat_ms.or(other.min_repeat_ms),
            warmup: self.warmup.or(other.warmup),
            validate: self.validate.or(other.validate),
            clock: self.clock.or(other.clock),
            flush_cache: self.flush_cache.or(other.flush_cache),
            cooldown_ms: self.cooldown_ms.or(other.cooldown_ms),
            budget_s: self.budget_s.or(other.budget_s),
        }
    }

    /// Whether to compare outputs if there is a reference.
    pub(crate) fn validates(&self) -> bool {
        self.validate.unwrap_or(true)
    }

    /// The settings as the timing loop takes them.
    pub(crate) fn timing(&self) -> Timing {
        let mut timing = Timing::default();
        timing.repeat =
            self.repeat.map_or(timing.repeat, |repeat| usize::try_from(repeat).unwrap_or(usize::MAX));
        timing.number = self.number.or(timing.number);
        timing.min_repeat = self.min_repeat_ms.map_or(timing.min_repeat, |ms| seconds(ms / 1e3));
        timing.warmup = self.warmup.map_or(timing.warmup, Warmup::Calls);
        timing.clock = self.clock.unwrap_or(timing.clock);
        timing.flush_cache = self.flush_cache.unwrap_or(timing.flush_cache);
        timing.cooldown = self.cooldown_ms.map_or(timing.cooldown, |ms| seconds(ms / 1e3));
        timing.budget = self.budget_s.map_or(timing.budget, seconds);
        timing
    }

    /// The effective settings as JSON, defaults included.
    pub(crate) fn to_json(self) -> Value {
        let timing = self.timing();
        let (warmup, warmup_ms) = match timing.warmup {
            Warmup::Calls(calls) => (Some(calls), None),
            Warmup::Time(time) => (None, Some(milliseconds(time))),
        };
        let clock = match timing.clock {
            ClockChoice::Auto => "auto",
            ClockChoice::Use(clock) => clock.name(),
        };
        let flush =
            FLUSH_CHOICES.iter().find(|(_, flush)| *flush == timing.flush_cache).map(|(name, _)| *name);
        json!({
            "repeat": timing.repeat,
            "number": timing.number,
            "min_repeat_ms": milliseconds(timing.min_repeat),
            "warmup": warmup,
            "warmup_ms": warmup_ms,
            "validate": self.validates(),
            "clock": clock,
            "flush_cache": flush,
            "cooldown_ms": milliseconds(timing.cooldown),
            "budget_s": timing.budget.as_secs_f64(),
        })
    }
}

/// Saturates: more seconds than a `Duration` holds amount to no limit.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use runtime_core::Clock;

    use super::*;

    #[test]
    fn the_command_line_takes_precedence_over_the_spec() {
        let line = Settings { repeat: Some(3), ..Settings::default() };
        let spec = Settings { repeat: Some(5), warmup: Some(0), clock: Some(Clock::HostWall.into()), ..line };
        let settings = line.or(spec);
        assert_eq!((settings.repeat, settings.warmup), (Some(3), Some(0)));
        let described = settings.to_json();
        assert_eq!((&described["warmup"], &described["warmup_ms"]), (&json!(0), &Value::Null));
        assert_eq!((&described["clock"], &described["flush_cache"]), (&json!("host_wall"), &json!("never")));
    }

    #[test]
    fn numbers_become_durations() {
        let settings = Settings { min_repeat_ms: Some(1.5), budget_s: Some(1e300), ..Settings::default() };
        assert_eq!(settings.timing().min_repeat, Duration::from_micros(1500));
        assert_eq!(settings.timing().budget, Duration::MAX);
        assert_eq!(Settings::default().timing(), Timing::default());
    }
}
