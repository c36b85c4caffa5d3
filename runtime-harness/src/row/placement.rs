//! Where the tensors of a row were when a call began, and whether they were transferred.

use runtime_core::evaluate::DataLocation;
use runtime_core::{DeviceInfo, DeviceKind};
use serde::{Deserialize, Serialize};

use crate::spec::{ArgumentKind, LOCATIONS, Spec};

/// The property of a device whose backend copies `pinned` memory for each kernel.
const PINNED_IS_COPIED: &str = "pinned_is_copied";

/// A tensor argument, and how its data reached the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgumentPlacement {
    /// Name of the argument.
    pub name: String,
    /// Where the data was when a call began, as the spec says.
    pub on: String,
    /// How it reached the kernel.
    pub transfer: ArgumentTransfer,
}

/// How the data of an argument reaches a kernel, and whether that is part of the measured call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentTransfer {
    /// It was transferred before the timed calls.
    Untimed,
    /// It is transferred in each call, and its time is also reported separately.
    Timed,
    /// The backend copies it for the kernel in each call; its time cannot be separated from the kernel's.
    Copied,
    /// It is not transferred: the kernel reads and writes it in place.
    InPlace,
}

impl ArgumentPlacement {
    /// The tensors of a spec on a device.
    pub(crate) fn of(spec: &Spec, device: &DeviceInfo) -> Vec<Self> {
        let tensors = spec.args.iter().filter_map(|arg| match &arg.kind {
            ArgumentKind::Tensor(tensor) => Some((arg, tensor.on)),
            _ => None,
        });
        tensors
            .map(|(arg, on)| Self {
                name: arg.name.clone(),
                on: name(on).to_owned(),
                transfer: ArgumentTransfer::of(on, device),
            })
            .collect()
    }

    /// How the arguments reached the kernel, in words; `None` if the spec places none of them itself.
    #[must_use]
    pub fn note(arguments: &[Self]) -> Option<String> {
        let kinds = [
            (ArgumentTransfer::Timed, "transferred in each call"),
            (ArgumentTransfer::Copied, "copied by the backend in each call"),
            (ArgumentTransfer::InPlace, "accessed in place"),
            (ArgumentTransfer::Untimed, "transferred before"),
        ];
        if arguments.iter().all(|argument| argument.on == name(DataLocation::Device)) {
            return None;
        }
        let with = |(kind, words): (ArgumentTransfer, &str)| {
            let of_kind = arguments.iter().filter(|argument| argument.transfer == kind);
            let names: Vec<_> = of_kind.map(|argument| argument.name.as_str()).collect();
            (!names.is_empty()).then(|| format!("{words}: {}", names.join(", ")))
        };
        Some(kinds.into_iter().filter_map(with).collect::<Vec<_>>().join("; "))
    }
}

impl ArgumentTransfer {
    fn of(on: DataLocation, device: &DeviceInfo) -> Self {
        match (device.kind, on) {
            (DeviceKind::Host, _) | (_, DataLocation::Shared) => Self::InPlace,
            (DeviceKind::Embedded, _) | (_, DataLocation::Device) => Self::Untimed,
            (_, DataLocation::Host) => Self::Timed,
            (_, DataLocation::Pinned) => match device.properties.flag(PINNED_IS_COPIED) {
                true => Self::Copied,
                false => Self::InPlace,
            },
        }
    }
}

fn name(on: DataLocation) -> &'static str {
    LOCATIONS.iter().find(|(_, location)| *location == on).map_or("", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_depends_on_the_location_and_the_device() {
        use ArgumentTransfer::{Copied, InPlace, Timed, Untimed};
        let locations =
            [DataLocation::Device, DataLocation::Host, DataLocation::Pinned, DataLocation::Shared];
        let of = |device: &DeviceInfo| locations.map(|on| ArgumentTransfer::of(on, device));
        let mut device = DeviceInfo::new(DeviceKind::Accelerator, 0, "a");
        assert_eq!(of(&device), [Untimed, Timed, InPlace, InPlace]);
        device.properties.push(PINNED_IS_COPIED, true);
        assert_eq!(of(&device), [Untimed, Timed, Copied, InPlace]);
        assert_eq!(of(&DeviceInfo::new(DeviceKind::Host, 0, "h")), [InPlace; 4]);
        assert_eq!(of(&DeviceInfo::new(DeviceKind::Embedded, 0, "e"))[..2], [Untimed; 2]);
    }

    #[test]
    fn a_note_says_what_was_transferred_where() {
        let argument = |name: &str, on: &str, transfer| ArgumentPlacement {
            name: name.to_owned(),
            on: on.to_owned(),
            transfer,
        };
        let weights = argument("w", "device", ArgumentTransfer::Untimed);
        let input = argument("x", "host", ArgumentTransfer::Timed);
        assert_eq!(ArgumentPlacement::note(std::slice::from_ref(&weights)), None);
        let note =
            ArgumentPlacement::note(&[weights, input, argument("y", "pinned", ArgumentTransfer::InPlace)]);
        assert_eq!(
            note.as_deref(),
            Some("transferred in each call: x; accessed in place: y; transferred before: w")
        );
    }
}
