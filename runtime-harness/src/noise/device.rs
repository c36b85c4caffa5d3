//! The state of the device during the samples.

use runtime_core::CommonRuntime;
use runtime_core::device::{Telemetry, ThrottleReasons};

use super::system::System;
use crate::row::{DeviceNoise, OtherProcess};

/// The device at one moment.
#[derive(Clone, Debug)]
pub(super) struct DeviceReading {
    telemetry: Telemetry,
    processes: Option<Vec<u32>>,
}

impl DeviceReading {
    /// Reads the device. The first reading may initialise a library, which takes long.
    pub(super) fn now(device: &dyn CommonRuntime) -> Self {
        Self { telemetry: device.telemetry().unwrap_or_default(), processes: device.processes().ok() }
    }
}

impl DeviceNoise {
    /// What was read before and after the samples, and the reasons for throttling that were reported meanwhile.
    pub(super) fn between(
        system: &System,
        before: &DeviceReading,
        after: &DeviceReading,
        reasons: Option<ThrottleReasons>,
    ) -> Self {
        fn pair<T>(before: Option<T>, after: Option<T>) -> Option<[T; 2]> {
            Some([before?, after?])
        }
        let (first, last) = (&before.telemetry, &after.telemetry);
        Self {
            clock_hz: pair(first.clock_hz, last.clock_hz),
            memory_clock_hz: pair(first.memory_clock_hz, last.memory_clock_hz),
            temperature_millicelsius: pair(first.temperature_millicelsius, last.temperature_millicelsius),
            power_milliwatts: pair(first.power_milliwatts, last.power_milliwatts),
            throttle_reasons: reasons.map(|reasons| reasons.names().map(str::to_owned).collect()),
            processes: other_processes(system, before, after),
        }
    }
}

/// The processes of both readings. Those without an ID cannot be told apart: the larger number of them counts.
fn other_processes(
    system: &System,
    before: &DeviceReading,
    after: &DeviceReading,
) -> Option<Vec<OtherProcess>> {
    let (first, last) = match (&before.processes, &after.processes) {
        (None, None) => return None,
        (first, last) => (first.clone().unwrap_or_default(), last.clone().unwrap_or_default()),
    };
    let unknown = |ids: &[u32]| ids.iter().filter(|id| **id == 0).count();
    let anonymous = unknown(&first).max(unknown(&last));
    let mut ids: Vec<u32> = first.into_iter().chain(last).filter(|id| *id != 0).collect();
    ids.sort_unstable();
    ids.dedup();
    let known = ids.into_iter().map(|id| OtherProcess { id: Some(id), name: system.process_name(id) });
    Some(known.chain((0..anonymous).map(|_| OtherProcess { id: None, name: None })).collect())
}

#[cfg(test)]
mod tests {
    use super::super::system::tests::machine;
    use super::*;

    #[test]
    fn processes_of_both_readings_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let system = machine(folder.path());
        let reading = |processes| DeviceReading { telemetry: Telemetry::default(), processes };
        let between = |before, after| {
            other_processes(&system, &reading(before), &reading(after))
                .map(|found| found.into_iter().map(|process| (process.id, process.name)).collect::<Vec<_>>())
        };
        let (named, gone) = ((Some(77), Some("train .py".to_owned())), (Some(99), None));
        assert_eq!(between(Some(vec![77]), Some(vec![99, 77])).unwrap(), [named, gone]);
        assert_eq!(between(Some(vec![0]), Some(vec![0, 0])).unwrap(), [(None, None), (None, None)]);
        assert_eq!(between(None, Some(vec![])).unwrap(), []);
        assert_eq!(between(None, None), None);
    }

    #[test]
    fn a_value_needs_both_readings() {
        let folder = tempfile::tempdir().unwrap();
        let mut before = DeviceReading { telemetry: Telemetry::default(), processes: None };
        let mut after = before.clone();
        before.telemetry.clock_hz = Some(2_000_000_000);
        before.telemetry.temperature_millicelsius = Some(40_000);
        after.telemetry.temperature_millicelsius = Some(50_000);
        let noise = DeviceNoise::between(&machine(folder.path()), &before, &after, None);
        assert_eq!(noise.temperature_millicelsius, Some([40_000, 50_000]));
        assert_eq!((noise.clock_hz, noise.throttle_reasons), (None, None));
    }
}
