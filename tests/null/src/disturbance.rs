//! Simulated disturbances of measurements, through device options: throttling, and other processes.

use std::sync::atomic::{AtomicU64, Ordering};

use runtime_core::backend::{OptionSpec, did_you_mean};
use runtime_core::device::ThrottleReasons;
use runtime_core::{Error, OptionValue, Options, Result, abi};

/// The reasons of `throttle`.
const REASONS: [(&str, u64); 6] = [
    ("power_cap", abi::THROTTLE_POWER_CAP),
    ("software_thermal", abi::THROTTLE_SOFTWARE_THERMAL),
    ("hardware_thermal", abi::THROTTLE_HARDWARE_THERMAL),
    ("power_brake", abi::THROTTLE_POWER_BRAKE),
    ("hardware_slowdown", abi::THROTTLE_HARDWARE_SLOWDOWN),
    ("clock_limit", abi::THROTTLE_CLOCK_LIMIT),
];

/// The options, with their documentation.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::device(
            "throttle",
            "",
            "REASON[:FIRST[:LAST]]: calls FIRST to LAST of `throttle_reasons` report this reason (by default all); may be repeated.",
        ),
        OptionSpec::device("process", -1, "ID of another process that uses the device; may be repeated."),
    ]
}

/// The disturbances selected for a device.
#[derive(Debug, Default)]
pub(crate) struct Disturbances {
    throttles: Vec<Throttle>,
    processes: Vec<u32>,
    readings: AtomicU64,
}

/// One `throttle`.
#[derive(Debug)]
struct Throttle {
    reason: u64,
    first: u64,
    last: u64,
}

impl Disturbances {
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let process = |(key, value): (&str, &OptionValue)| match value {
            OptionValue::Integer(id) if key == "process" => u32::try_from(*id).ok(),
            _ => None,
        };
        Ok(Self {
            throttles: options.texts("throttle").map(Throttle::parse).collect::<Result<_>>()?,
            processes: options.iter().filter_map(process).collect(),
            readings: AtomicU64::new(0),
        })
    }

    pub(crate) fn throttle_reasons(&self) -> ThrottleReasons {
        let reading = self.readings.fetch_add(1, Ordering::Relaxed) + 1;
        let active =
            self.throttles.iter().filter(|throttle| (throttle.first..=throttle.last).contains(&reading));
        ThrottleReasons(active.fold(0, |all, throttle| all | throttle.reason))
    }

    pub(crate) fn processes(&self) -> &[u32] {
        &self.processes
    }
}

impl Throttle {
    fn parse(text: &str) -> Result<Self> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let names = REASONS.map(|(name, _)| name);
        let (_, reason) = REASONS.into_iter().find(|(known, _)| *known == name).ok_or_else(|| {
            Error::invalid(format!("throttle: unknown reason \"{name}\"; {}", did_you_mean(name, &names)))
        })?;
        let mut number = |default: u64| match parts.next() {
            None => Ok(default),
            Some(text) => text.parse().map_err(|_| {
                Error::invalid(format!("throttle: \"{text}\" is not a call number; write \"{name}:1:5\""))
            }),
        };
        Ok(Self { reason, first: number(1)?, last: number(u64::MAX)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttling_begins_and_ends() {
        let options = Options::new().with("throttle", "hardware_thermal:2:3").with("throttle", "power_cap");
        let disturbances = Disturbances::new(&options).unwrap();
        let reasons: Vec<_> = (0..4).map(|_| disturbances.throttle_reasons().disturbs()).collect();
        assert_eq!(reasons, [false, true, true, false]);
        assert_eq!(disturbances.throttle_reasons().to_string(), "power cap");
    }

    #[test]
    fn errors_of_invalid_options_name_the_remedy() {
        for (text, remedy) in [("power", "power_cap"), ("power_cap:x", "power_cap:1:5")] {
            let error = Disturbances::new(&Options::new().with("throttle", text)).unwrap_err();
            assert!(error.message().contains(remedy), "{error}");
        }
    }
}
