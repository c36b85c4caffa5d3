//! Whether a time is one that the device can reach: a row beside the measured peaks.

use runtime_core::{DeviceKind, Result};

use crate::device::DeviceUnderTest;
use crate::peak::{Lookup, Part, Peak, PeakStore, Subject, measure_again};
use crate::row::{Floor, Outcome, Phase, Row, UnknownFloor};

/// The row of a device with its share of the kept peak, and with the least time that `[cost]` allows.
///
/// A time below that is impossible; before this is said, the peak is measured again, with the device's lock. Chains have a share only:
/// their bytes are counted here, and some kernels read less than their whole tensors.
pub(crate) fn compared_with_peaks(
    row: Row,
    device: &DeviceUnderTest,
    progress: &mut dyn FnMut(Phase, &str),
) -> Row {
    if device.info.as_ref().is_none_or(|info| info.kind == DeviceKind::Embedded) {
        return row;
    }
    let operation =
        format!("while the peaks of {} are measured again, which \"{}\" beats", device.name, row.kernel.name);
    compared(row, &device.peaks, &mut |part| {
        let opened = device.opened.as_ref().map_err(Clone::clone)?;
        // A wait has no deadline, and what follows has a new one: the kernel may have used up its own.
        progress(Phase::Wait, &operation);
        let _lock = device.lock(&mut |operation| progress(Phase::Wait, operation));
        progress(Phase::Run, &operation);
        measure_again(&**opened, part)
    })
}

fn compared(mut row: Row, store: &PeakStore, again: &mut dyn FnMut(&Part) -> Result<Peak>) -> Row {
    let Some(measurement) = row.measurement.as_ref().filter(|it| it.cost.flops.or(it.cost.bytes).is_some())
    else {
        return row;
    };
    let median_ns = measurement.statistics.median_ns;
    let Some(subject) = Subject::of_row(&row) else { return row };
    let mut peak = match store.find(&subject) {
        Lookup::Found(peak) => *peak,
        lookup => {
            row.floor = Some(without_peak(&subject, &lookup));
            return row;
        }
    };
    if row.fusion.is_some() {
        row.roofline = peak.roofline(&row);
        return row;
    }
    if row.outcome == Outcome::Ok {
        let beaten: Vec<Part> = peak.limits(&row).beaten(median_ns).cloned().collect();
        for part in beaten {
            peak = store.measured_again(peak, &part, again);
        }
    }
    row.roofline = peak.roofline(&row);
    let floor = peak.limits(&row).floor(median_ns, &|part| store.obstacle(&subject, part));
    let impossible = match &floor {
        Floor::Known(bound) if bound.least_ns > median_ns => {
            Some(Outcome::Impossible { median_ns, bound: bound.clone() })
        }
        _ => None,
    };
    row.floor = Some(floor);
    row.doubted(impossible)
}

fn without_peak(subject: &Subject, lookup: &Lookup) -> Floor {
    let device = &subject.device;
    match lookup {
        Lookup::Outdated => Floor::unknown(
            UnknownFloor::Outdated,
            format!(
                "the driver of {device}, its clock limit or this program has changed since its peaks were measured"
            ),
        ),
        _ => Floor::unknown(UnknownFloor::Absent, format!("no peaks of {device} are kept")),
    }
}

#[cfg(test)]
#[path = "physics_tests.rs"]
mod tests;
