//! What disturbed a measurement: the state of host and device during its samples, defects of the series, and advice.

mod advice;
mod cpu_list;
mod device;
mod host;
mod process_usage;
mod recorder;
mod series;
mod system;

use serde::{Deserialize, Serialize};

pub(crate) use advice::{Evidence, advice};
pub use device::{DeviceNoise, OtherProcess};
pub use host::HostNoise;
pub(crate) use recorder::Recorder;
pub use series::{Defect, defect};

/// What may have disturbed a measurement. Readings were taken before the first sample and after the last one, outside the
/// timed part; `None` stands for what cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Noise {
    /// The host.
    pub host: HostNoise,
    /// The device.
    pub device: DeviceNoise,
    /// A defect of the series of samples.
    pub defect: Option<Defect>,
}
