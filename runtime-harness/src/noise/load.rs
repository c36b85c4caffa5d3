//! What disturbed a series of measurements, some of which are too short for shares of the time.

use runtime_core::evaluate::{Measurement, Moment};
use runtime_core::{CommonRuntime, DeviceKind};

use super::advice::{CROWDED, WIDE, percent};
use super::device::DeviceReading;
use super::host::Beginning;
use super::system::{Snapshot, System};
use crate::row::{DeviceNoise, HostNoise};

/// Sums up readings around the samples of several measurements on a device: compilers that run between them are no load.
pub(crate) struct Load<'d> {
    system: System,
    device: &'d dyn CommonRuntime,
    samples: Samples,
    first: DeviceReading,
    /// The widest interval of a median, as a share of it.
    uncertainty: f64,
    has_throttled: bool,
}

/// Readings around the samples.
#[derive(Default)]
struct Samples {
    before: Option<Snapshot>,
    /// The first reading, and the last one as if there had been nothing between the measurements.
    sum: Option<(Snapshot, Snapshot)>,
}

impl Samples {
    fn observe(&mut self, moment: Moment, now: impl FnOnce() -> Snapshot) {
        match moment {
            Moment::Window => {}
            Moment::BeforeSamples => self.before = Some(now()),
            Moment::AfterSamples => match (self.before.take(), &mut self.sum) {
                (Some(before), Some((_, sum))) => sum.add(&before, &now()),
                (Some(before), sum) => *sum = Some((before, now())),
                (None, _) => {}
            },
        }
    }
}

impl<'d> Load<'d> {
    pub(crate) fn new(device: &'d dyn CommonRuntime) -> Self {
        Self {
            system: System::of_machine(),
            device,
            samples: Samples::default(),
            first: DeviceReading::now(device),
            uncertainty: 0.0,
            has_throttled: false,
        }
    }

    /// Takes a reading.
    pub(crate) fn observe(&mut self, moment: Moment) {
        self.samples.observe(moment, || self.system.snapshot());
    }

    /// Takes what a measurement itself tells.
    pub(crate) fn note(&mut self, measurement: &Measurement) {
        let uncertainty = measurement.statistics.median_uncertainty();
        self.uncertainty = self.uncertainty.max(uncertainty.unwrap_or(0.0));
        self.has_throttled |= measurement.throttled.is_some_and(|throttled| throttled.kept > 0);
    }

    /// What has disturbed the measurements, if they may be slower than the device is.
    pub(crate) fn disturbance(&self) -> Option<String> {
        let info = self.device.info();
        if info.kind == DeviceKind::Host || info.properties.text("type") == Some("cpu") {
            let host = self
                .samples
                .sum
                .as_ref()
                .map(|(begin, end)| HostNoise::between(&self.system, &Beginning::at(begin.clone()), end));
            return of_host(&host.unwrap_or_default());
        }
        let device = DeviceNoise::between(&self.system, &self.first, &DeviceReading::now(self.device), None);
        let others = device.processes.map_or(0, |processes| processes.len());
        match () {
            () if self.has_throttled => Some("the device throttled".to_owned()),
            // One that does nothing, such as a desktop, disturbs nothing.
            () if others > 0 && self.uncertainty > WIDE => {
                Some(format!("{others} other processes used the device, and times varied"))
            }
            () => None,
        }
    }
}

/// What has disturbed measurements on processors. What cannot be told may have.
fn of_host(host: &HostNoise) -> Option<String> {
    let cpus = host.affinity.as_ref().map_or(1, Vec::len);
    let Some(others) = host.others_busy_cpus else {
        return Some("nobody knows how busy the processors were".to_owned());
    };
    let stolen = host.steal_share.unwrap_or(0.0);
    match () {
        () if others >= CROWDED * cpus as f64 => {
            Some(format!("other processes kept {others:.1} of {cpus} processors busy"))
        }
        () if stolen >= CROWDED => {
            Some(format!("{} of the time was stolen by the hypervisor", percent(stolen)))
        }
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::process_usage::ProcessUsage;
    use super::super::system::CpuTimes;
    use super::super::system::tests::machine;
    use super::*;

    #[test]
    fn short_measurements_add_up_to_shares() {
        let folder = tempfile::tempdir().unwrap();
        let system = machine(folder.path());
        let taken = std::time::Instant::now();
        // Each time, half a tick of each of the processors 0 and 2 is somebody else's.
        let at = |ticks: u64, cpu_s: f64| Snapshot {
            taken: taken + Duration::from_millis(10 * ticks),
            cpus: [0, 2].map(|cpu| (cpu, CpuTimes { busy: ticks, ..CpuTimes::default() })).into(),
            own: Some(ProcessUsage { cpu_s, ..ProcessUsage::default() }),
        };
        let mut samples = Samples::default();
        for round in 0..10 {
            samples.observe(Moment::BeforeSamples, || at(100 * round, 7.0));
            samples.observe(Moment::Window, || panic!("nothing is read between windows of calls"));
            samples.observe(Moment::AfterSamples, || at(100 * round + 2, 7.02));
        }
        let (begin, sum) = samples.sum.unwrap();
        let host = HostNoise::between(&system, &Beginning::at(begin), &sum);
        let others = host.others_busy_cpus.unwrap();
        assert!((others - 1.0).abs() < 1e-9, "{host:?}");
        assert!(of_host(&host).unwrap().contains("1.0 of 2 processors"), "{host:?}");
    }

    #[test]
    fn a_host_is_quiet_only_if_it_is_known_to_be() {
        let quiet = HostNoise {
            affinity: Some(vec![0, 1]),
            others_busy_cpus: Some(0.1),
            steal_share: Some(0.01),
            ..HostNoise::default()
        };
        assert_eq!(of_host(&quiet), None);
        let stolen = HostNoise { steal_share: Some(0.2), ..quiet.clone() };
        assert!(of_host(&stolen).unwrap().contains("20%"));
        assert!(of_host(&HostNoise { others_busy_cpus: Some(0.2), ..quiet }).is_some());
        assert!(of_host(&HostNoise::default()).unwrap().contains("nobody knows"));
    }
}
