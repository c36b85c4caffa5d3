//! Which rows are of one device model. Device strings do not tell: workers on several machines may have unlike devices of one name.

use crate::peak::Subject;
use crate::row::Row;

/// Whether the devices of both rows are of one model; without descriptions, whether they have one name.
pub(super) fn is_same_model(one: &Row, other: &Row) -> bool {
    match (Subject::of_row(one), Subject::of_row(other)) {
        (Some(one), Some(other)) => one.is_same_model(&other),
        (None, None) => one.device == other.device,
        _ => false,
    }
}

/// The device string with the name of the model, if it is known.
pub(super) fn device_and_model(device: &str, row: &Row) -> String {
    match Subject::of_row(row) {
        Some(subject) => format!("{device} ({})", subject.name),
        None => device.to_owned(),
    }
}
