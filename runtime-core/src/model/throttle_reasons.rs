//! Why a device runs slower than it could.

use std::fmt;

use crate::abi;

/// Reasons for which a device runs slower than it could: `THROTTLE_*` bits of [`abi`].
///
/// NVIDIA calls them clocks event reasons (`nvmlDeviceGetCurrentClocksEventReasons`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThrottleReasons(pub u64);

/// Each reason with its name.
const NAMES: [(u64, &str); 6] = [
    (abi::THROTTLE_POWER_CAP, "power cap"),
    (abi::THROTTLE_SOFTWARE_THERMAL, "software thermal"),
    (abi::THROTTLE_HARDWARE_THERMAL, "hardware thermal"),
    (abi::THROTTLE_POWER_BRAKE, "power brake"),
    (abi::THROTTLE_HARDWARE_SLOWDOWN, "hardware slowdown"),
    (abi::THROTTLE_CLOCK_LIMIT, "clock limit"),
];

/// Reasons that come and go with the temperature and the power supply. A power cap is none of them: a kernel that draws so much
/// power runs at these clocks whenever it is measured. Nor is a clock limit, which an administrator has set.
const DISTURBING: u64 = abi::THROTTLE_SOFTWARE_THERMAL
    | abi::THROTTLE_HARDWARE_THERMAL
    | abi::THROTTLE_POWER_BRAKE
    | abi::THROTTLE_HARDWARE_SLOWDOWN;

impl ThrottleReasons {
    /// Whether times that are measured meanwhile are not those of the device at its normal speed.
    #[must_use]
    pub const fn disturbs(self) -> bool {
        self.0 & DISTURBING != 0
    }

    /// The names of the reasons; those without a name are omitted.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().filter(move |(bit, _)| self.0 & bit != 0).map(|(_, name)| name)
    }

    /// The reasons that are in either of both.
    #[must_use]
    pub const fn union(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }
}

impl fmt::Display for ThrottleReasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heat_and_the_power_supply_disturb_but_limits_do_not() {
        for (bit, name) in NAMES {
            let lasting = matches!(name, "power cap" | "clock limit");
            assert_eq!(ThrottleReasons(bit).disturbs(), !lasting, "{name}");
        }
        assert!(!ThrottleReasons(1 << 63).disturbs() && !ThrottleReasons::default().disturbs());
    }

    #[test]
    fn reasons_have_names() {
        let both = ThrottleReasons(abi::THROTTLE_POWER_CAP).union(ThrottleReasons(abi::THROTTLE_POWER_BRAKE));
        assert_eq!(both.to_string(), "power cap, power brake");
        assert_eq!(ThrottleReasons(1 << 63).names().count(), 0);
    }
}
