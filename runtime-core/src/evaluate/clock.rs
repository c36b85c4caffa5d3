//! The clocks that can time a window, and how one is chosen.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::model::options::did_you_mean;
use crate::{DeviceInfo, DeviceKind, Error, ErrorKind, Result, abi};

/// The clock that a time was measured with.
///
/// The same kernel has a different time by each clock. None is wrong: they answer different questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Device timestamps around each kernel: the kernel's own time, plus the overhead of the timestamps,
    /// which shows for short kernels.
    DeviceKernel,
    /// Device timestamps around a batch of calls: the time per call on a busy device.
    DeviceBatch,
    /// Device timestamps around a batch of calls, replayed as a graph: the time per call when the device
    /// never waits for a launch. Calls that write nothing in common may overlap.
    DeviceGraph,
    /// Device timestamps around a batch of calls, on a queue that is held until all of them are submitted: the time per call
    /// when the device never waits for a launch. Long batches are timed in parts of 256 calls. An evaluation whose queue was
    /// not held throughout reports [`Clock::DeviceBatch`].
    DeviceHeld,
    /// The host's clock around submitting a batch and waiting for it: the latency that the program sees.
    HostWall,
    /// The host's clock around submission only: the cost to the submitting thread, independent of the kernel.
    HostSubmit,
}

impl Clock {
    /// All clocks.
    pub const ALL: [Self; 6] = [
        Self::DeviceKernel,
        Self::DeviceBatch,
        Self::DeviceGraph,
        Self::DeviceHeld,
        Self::HostWall,
        Self::HostSubmit,
    ];

    /// The name in listings, specification files and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeviceKernel => "device_kernel",
            Self::DeviceBatch => "device_batch",
            Self::DeviceGraph => "device_graph",
            Self::DeviceHeld => "device_held",
            Self::HostWall => "host_wall",
            Self::HostSubmit => "host_submit",
        }
    }

    /// Whether this is a clock of the device, not the host.
    #[must_use]
    pub const fn is_device(self) -> bool {
        matches!(self, Self::DeviceKernel | Self::DeviceBatch | Self::DeviceGraph | Self::DeviceHeld)
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The choice of a clock for an evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockChoice {
    /// [`Clock::HostWall`] on host devices, where a call is a function call, and on accelerators without timestamps. On other
    /// accelerators [`Clock::DeviceHeld`] if the device can hold a queue and the evaluation is neither cold nor transfers
    /// arguments; else [`Clock::DeviceBatch`].
    #[default]
    Auto,
    /// This clock; an error if the device lacks it.
    Use(Clock),
}

impl fmt::Display for ClockChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Use(clock) => clock.fmt(f),
        }
    }
}

impl From<Clock> for ClockChoice {
    fn from(clock: Clock) -> Self {
        Self::Use(clock)
    }
}

impl FromStr for ClockChoice {
    type Err = Error;

    /// `auto`, or the name of a clock.
    fn from_str(text: &str) -> Result<Self> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let valid: Vec<_> = std::iter::once("auto").chain(Clock::ALL.map(Clock::name)).collect();
        let clock = Clock::ALL.into_iter().find(|clock| clock.name() == text);
        clock.map(Self::Use).ok_or_else(|| {
            Error::invalid(format!("unknown clock \"{text}\"; {}", did_you_mean(text, &valid)))
        })
    }
}

impl ClockChoice {
    /// Chooses the clock for a device. `can_hold`: the evaluation warms up and makes no transfers.
    ///
    /// # Errors
    /// `Unsupported` for a device clock on a device without timestamps, for `DeviceGraph` without native graphs, or for
    /// `DeviceHeld` on a device that cannot hold queues.
    pub(crate) fn choose(self, info: &DeviceInfo, can_hold: bool) -> Result<Clock> {
        let has = |capability| info.capabilities.has(capability);
        let timestamps = has(abi::CAP_TIMESTAMPS);
        let holds = has(abi::CAP_HOLD) && can_hold;
        match self {
            Self::Auto if timestamps && info.kind == DeviceKind::Accelerator && holds => {
                Ok(Clock::DeviceHeld)
            }
            Self::Auto if timestamps && info.kind == DeviceKind::Accelerator => Ok(Clock::DeviceBatch),
            Self::Auto => Ok(Clock::HostWall),
            Self::Use(clock) if clock.is_device() && !timestamps => Err(Error::new(
                ErrorKind::Unsupported,
                format!("clock {clock}: {} has no timestamps; use host_wall, host_submit or auto", info.id),
            )),
            Self::Use(Clock::DeviceGraph) if !has(abi::CAP_GRAPHS) => Err(Error::new(
                ErrorKind::Unsupported,
                format!("clock device_graph: {} has no native graphs; use device_batch or auto", info.id),
            )),
            Self::Use(Clock::DeviceHeld) if !has(abi::CAP_HOLD) => Err(Error::new(
                ErrorKind::Unsupported,
                format!("clock device_held: {} cannot hold its queues; use device_batch or auto", info.id),
            )),
            Self::Use(clock) => Ok(clock),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::device_info::Capabilities;

    fn info(kind: DeviceKind, capabilities: u64) -> DeviceInfo {
        let mut info = DeviceInfo::new(kind, 0, "test");
        info.id.target = "test".to_owned();
        info.capabilities = Capabilities(capabilities);
        info
    }

    #[test]
    fn auto_chooses_the_best_clock_of_the_device() {
        for (kind, capabilities, expected) in [
            (DeviceKind::Host, 0, Clock::HostWall),
            (DeviceKind::Host, abi::CAP_TIMESTAMPS, Clock::HostWall),
            (DeviceKind::Accelerator, 0, Clock::HostWall),
            (DeviceKind::Accelerator, abi::CAP_TIMESTAMPS, Clock::DeviceBatch),
            (DeviceKind::Accelerator, abi::CAP_HOLD, Clock::HostWall),
            (DeviceKind::Host, abi::CAP_TIMESTAMPS | abi::CAP_HOLD, Clock::HostWall),
            (DeviceKind::Accelerator, abi::CAP_TIMESTAMPS | abi::CAP_HOLD, Clock::DeviceHeld),
            (
                DeviceKind::Accelerator,
                abi::CAP_TIMESTAMPS | abi::CAP_HOLD | abi::CAP_GRAPHS,
                Clock::DeviceHeld,
            ),
        ] {
            assert_eq!(ClockChoice::Auto.choose(&info(kind, capabilities), true).unwrap(), expected);
        }
    }

    #[test]
    fn auto_holds_no_queue_for_a_cold_evaluation() {
        let info = info(DeviceKind::Accelerator, abi::CAP_TIMESTAMPS | abi::CAP_HOLD);
        assert_eq!(ClockChoice::Auto.choose(&info, false).unwrap(), Clock::DeviceBatch);
    }

    #[test]
    fn a_clock_that_the_device_lacks_is_an_error() {
        let without = info(DeviceKind::Accelerator, 0);
        for clock in Clock::ALL {
            let chosen = ClockChoice::from(clock).choose(&without, true);
            match chosen {
                Ok(chosen) => assert!(chosen == clock && !clock.is_device()),
                Err(error) => {
                    assert!(clock.is_device() && error.kind() == ErrorKind::Unsupported);
                    assert!(error.message().contains(clock.name()) && error.message().contains("test:0"));
                }
            }
            assert_eq!(
                ClockChoice::from(clock)
                    .choose(
                        &info(DeviceKind::Host, abi::CAP_TIMESTAMPS | abi::CAP_GRAPHS | abi::CAP_HOLD),
                        true
                    )
                    .unwrap(),
                clock
            );
        }
    }

    #[test]
    fn some_clocks_need_more_than_timestamps() {
        for (clock, what) in
            [(Clock::DeviceGraph, "no native graphs"), (Clock::DeviceHeld, "hold its queues")]
        {
            let error = ClockChoice::Use(clock)
                .choose(&info(DeviceKind::Accelerator, abi::CAP_TIMESTAMPS), true)
                .unwrap_err();
            assert!(error.message().contains(what) && error.message().contains("device_batch"), "{error}");
        }
    }

    #[test]
    fn names_round_trip() {
        for clock in Clock::ALL {
            assert_eq!(clock.to_string().parse::<ClockChoice>().unwrap(), ClockChoice::Use(clock));
        }
        assert_eq!("auto".parse::<ClockChoice>().unwrap(), ClockChoice::Auto);
        assert!("host_wal".parse::<ClockChoice>().unwrap_err().message().contains("host_wall"));
    }
}
