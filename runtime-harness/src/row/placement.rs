//! Where the tensors of a row were when a call began, and whether they were transferred.

use runtime_core::evaluate::{DataLocation, EachCall};
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
    /// Whether its initial contents are written again before each call, outside of its time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_restored: bool,
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
            ArgumentKind::Tensor(tensor) => Some((arg, tensor)),
            _ => None,
        });
        tensors
            .map(|(arg, tensor)| Self {
                name: arg.name.clone(),
                on: name(tensor.on).to_owned(),
                transfer: ArgumentTransfer::of(tensor.on, device),
                is_restored: tensor.each_call == EachCall::Initial,
            })
            .collect()
    }

    /// How the arguments reached the kernel, in words; `None` if the spec says nothing of that.
    #[must_use]
    pub fn note(arguments: &[Self]) -> Option<String> {
        let kinds = [
            (ArgumentTransfer::Timed, "transferred in each call"),
            (ArgumentTransfer::Copied, "copied by the backend in each call"),
            (ArgumentTransfer::InPlace, "accessed in place"),
            (ArgumentTransfer::Untimed, "transferred before"),
        ];
        let list = |words: &str, is_listed: &dyn Fn(&Self) -> bool| {
            let names =
                arguments.iter().filter(|argument| is_listed(argument)).map(|argument| &*argument.name);
            let names: Vec<&str> = names.collect();
            (!names.is_empty()).then(|| format!("{words}: {}", names.join(", ")))
        };
        let is_placed = arguments.iter().any(|argument| argument.on != name(DataLocation::Device));
        let transfers = kinds.into_iter().filter(|_| is_placed);
        let transfers =
            transfers.filter_map(|(kind, words)| list(words, &|argument| argument.transfer == kind));
        let restored = list("initial contents before each call", &|argument| argument.is_restored);
        let notes: Vec<String> = transfers.chain(restored).collect();
        (!notes.is_empty()).then(|| notes.join("; "))
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
            is_restored: name == "y",
        };
        let weights = argument("w", "device", ArgumentTransfer::Untimed);
        let input = argument("x", "host", ArgumentTransfer::Timed);
        assert_eq!(ArgumentPlacement::note(std::slice::from_ref(&weights)), None);
        let note =
            ArgumentPlacement::note(&[weights, input, argument("y", "pinned", ArgumentTransfer::InPlace)]);
        assert_eq!(
            note.as_deref(),
            Some(
                "transferred in each call: x; accessed in place: y; transferred before: w; initial contents before each call: y"
            )
        );
    }
}
