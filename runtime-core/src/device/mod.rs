//! What opened devices report: capabilities and limits, memory, telemetry, hardware counters.

pub(crate) mod accelerator;
pub(crate) mod common_runtime;
pub(crate) mod counters;
mod creation;
pub(crate) mod embedded;
pub(crate) mod host;
pub(crate) mod inspection;
pub(crate) mod methods;
mod native;

pub use crate::model::counters::{CounterInfo, CounterReading};
pub use crate::model::device_info::{Capabilities, Limits, MemorySpace, MemoryUsage, Telemetry};
pub use crate::model::throttle_reasons::ThrottleReasons;
pub use counters::CounterSet;

use std::sync::Arc;

use crate::DeviceKind;
use crate::device::accelerator::AcceleratorDevice;
use crate::device::common_runtime::CommonRuntime;
use crate::device::embedded::EmbeddedDevice;
use crate::device::host::Host;
use crate::timeline::open_device::OpenDevice;

/// Wraps a newly opened device according to its kind.
pub(crate) fn open(device: Arc<OpenDevice>) -> Arc<dyn CommonRuntime> {
    match device.info.kind {
        DeviceKind::Host => Arc::new(Host(device)),
        DeviceKind::Accelerator => Arc::new(AcceleratorDevice(device)),
        DeviceKind::Embedded => Arc::new(EmbeddedDevice::new(device)),
    }
}
