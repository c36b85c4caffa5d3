//! Takes readings around the samples of an evaluation.

use runtime_core::CommonRuntime;
use runtime_core::evaluate::{Measurement, Moment};

use super::device::DeviceReading;
use super::host::Beginning;
use super::series::defect;
use super::system::{Snapshot, System};
use crate::row::{DeviceNoise, HostNoise, Noise};

/// Takes readings around the samples of an evaluation on a device.
pub(crate) struct Recorder<'d> {
    system: System,
    device: &'d dyn CommonRuntime,
    of_group: bool,
    before: Option<(Beginning, DeviceReading)>,
    after: Option<(Snapshot, DeviceReading)>,
}

impl<'d> Recorder<'d> {
    /// A recorder for this device; `of_group`: other kernels run between the samples. Initialises what readings need, so that they
    /// take no time between warm-up and samples.
    pub(crate) fn new(device: &'d dyn CommonRuntime, of_group: bool) -> Self {
        drop(DeviceReading::now(device));
        Self { system: System::of_machine(), device, of_group, before: None, after: None }
    }

    /// Counts the time of the process that calls the kernel for this one as its own.
    pub(crate) fn with_runner(mut self, process: i32) -> Self {
        self.system.runner = Some(process);
        self
    }

    /// Takes a reading. The host is read closest to the samples.
    pub(crate) fn observe(&mut self, moment: Moment) {
        match moment {
            Moment::Window => {}
            Moment::BeforeSamples => {
                let reading = DeviceReading::now(self.device);
                self.before = Some((Beginning::now(&self.system), reading));
            }
            Moment::AfterSamples => {
                let snapshot = self.system.snapshot();
                self.after = Some((snapshot, DeviceReading::now(self.device)));
            }
        }
    }

    /// What disturbed the measurement; `None` if there were no samples.
    pub(crate) fn noise(&self, measurement: &Measurement) -> Option<Noise> {
        let ((beginning, before), (end, after)) = self.before.as_ref().zip(self.after.as_ref())?;
        let reasons = measurement.throttled.map(|throttled| throttled.reasons);
        Some(Noise {
            of_group: self.of_group,
            host: HostNoise::between(&self.system, beginning, end),
            device: DeviceNoise::between(&self.system, before, after, reasons),
            defect: defect(&measurement.samples_ns),
        })
    }
}
