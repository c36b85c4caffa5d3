//! What may have disturbed a measurement, as plain data.

use serde::{Deserialize, Serialize};

/// What may have disturbed a measurement. Readings were taken before the first sample and after the last one, outside the
/// timed part; `None` stands for what cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Noise {
    /// The kernel took turns with others, whose turns the readings of host and device include. (Readings around each turn would
    /// disturb the times.) The throttle reasons and the defect are its own.
    pub of_group: bool,
    /// The host.
    pub host: HostNoise,
    /// The device.
    pub device: DeviceNoise,
    /// A defect of the series of samples.
    pub defect: Option<Defect>,
}

/// The state of the host during the samples of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostNoise {
    /// Time from before the first sample until after the last.
    pub elapsed_s: Option<f64>,
    /// The processors that the measuring thread may run on.
    pub affinity: Option<Vec<u32>>,
    /// Frequency governors of these processors, each once.
    pub governors: Option<Vec<String>>,
    /// Whether processors may run above their nominal frequency.
    pub turbo: Option<bool>,
    /// Load average over the minute before the samples.
    pub load: Option<f64>,
    /// How many of these processors were busy with other processes, on average.
    pub others_busy_cpus: Option<f64>,
    /// The busiest core: the share of the time in which its second busiest thread was busy. `None` without SMT.
    pub smt_siblings_busy: Option<f64>,
    /// The share that the hypervisor gave to others, of the time in which the processors had work.
    pub steal_share: Option<f64>,
    /// Page faults of this process that needed no input.
    pub minor_page_faults: Option<u64>,
    /// Page faults of this process that waited for input.
    pub major_page_faults: Option<u64>,
    /// Context switches of this process because it waited.
    pub voluntary_switches: Option<u64>,
    /// Context switches of this process because something else ran.
    pub involuntary_switches: Option<u64>,
}

/// The state of the device during the samples of a measurement. Pairs are values before the first sample and after the last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceNoise {
    /// Clock of the compute units.
    pub clock_hz: Option<[u64; 2]>,
    /// Clock of the memory.
    pub memory_clock_hz: Option<[u64; 2]>,
    /// Temperature.
    pub temperature_millicelsius: Option<[i64; 2]>,
    /// Power.
    pub power_milliwatts: Option<[u64; 2]>,
    /// All reasons for throttling that were reported.
    pub throttle_reasons: Option<Vec<String>>,
    /// Other processes that use the device.
    pub processes: Option<Vec<OtherProcess>>,
}

/// Another process that uses the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherProcess {
    /// Its ID; `None` if it is in another PID namespace.
    pub id: Option<u32>,
    /// Its name, if it can be read.
    pub name: Option<String>,
}

/// A defect of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Defect {
    /// The times rise or fall.
    Drift {
        /// The change from the first to the last sample, as a share of the median.
        change: f64,
    },
    /// The first samples differ from the rest.
    FirstPart {
        /// How many samples.
        samples: usize,
        /// Their median, divided by that of the rest.
        ratio: f64,
    },
    /// There are two kinds of samples.
    TwoModes {
        /// The mean of the faster samples.
        low_ns: f64,
        /// The mean of the slower samples.
        high_ns: f64,
        /// The share of the slower samples.
        high_share: f64,
    },
}
