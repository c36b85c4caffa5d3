//! Which devices a backend offers, as plain data, and the order in which they are listed.

use std::path::PathBuf;

pub(crate) use cl3::device::{
    CL_DEVICE_TYPE_ACCELERATOR as ACCELERATOR, CL_DEVICE_TYPE_CPU as CPU, CL_DEVICE_TYPE_GPU as GPU,
};

/// Which library to load, and which of its devices to offer.
///
/// Names match by substring, ignoring case. The default offers every device of the system's ICD loader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFilter {
    /// The library; `None`: the system's ICD loader.
    pub library: Option<PathBuf>,
    /// Substring of the platform's name.
    pub platform: Option<String>,
    /// Substring of the vendor's name.
    pub vendor: Option<String>,
    /// Substring of the device's name.
    pub device: Option<String>,
    /// `CL_DEVICE_TYPE_*` bits; 0: all types.
    pub types: u64,
}

/// What devices are filtered and ordered by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceIdentity {
    pub(crate) platform: String,
    pub(crate) vendor: String,
    pub(crate) name: String,
    pub(crate) types: u64,
}

/// The bits that name a kind of device. `CL_DEVICE_TYPE_DEFAULT` and others do not.
pub(crate) const KIND_BITS: u64 = CPU | GPU | ACCELERATOR;

impl DeviceFilter {
    /// Whether the device is offered.
    pub(crate) fn matches(&self, device: &DeviceIdentity) -> bool {
        let has = |part: &Option<String>, name: &str| {
            part.as_ref().is_none_or(|part| name.to_lowercase().contains(&part.to_lowercase()))
        };
        has(&self.platform, &device.platform)
            && has(&self.vendor, &device.vendor)
            && has(&self.device, &device.name)
            && (self.types == 0 || self.types & device.types != 0)
    }
}

impl DeviceIdentity {
    /// The sort key: GPUs, accelerators, processors, then devices that claim to be several of these; by platform name within
    /// a kind. Equal keys keep the driver's order.
    pub(crate) fn rank(&self) -> (u8, &str) {
        let kind = match self.types & KIND_BITS {
            GPU => 0,
            ACCELERATOR => 1,
            CPU => 2,
            _ => 3,
        };
        (kind, &self.platform)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(platform: &str, types: u64) -> DeviceIdentity {
        DeviceIdentity {
            platform: platform.into(),
            vendor: "A Vendor".into(),
            name: "Device X".into(),
            types,
        }
    }

    #[test]
    fn names_match_by_substring_ignoring_case() {
        let device = identity("Portable Computing Language", CPU | 1);
        assert!(DeviceFilter::default().matches(&device));
        let filter = |platform: &str, types| DeviceFilter {
            platform: Some(platform.to_owned()),
            types,
            ..DeviceFilter::default()
        };
        assert!(filter("portable", 0).matches(&device));
        assert!(filter("portable", CPU | GPU).matches(&device));
        assert!(!filter("portable", GPU).matches(&device));
        assert!(!filter("intel", 0).matches(&device));
        let vendor = DeviceFilter { vendor: Some("kalray".into()), ..DeviceFilter::default() };
        assert!(!vendor.matches(&device));
    }

    #[test]
    fn gpus_come_first_and_devices_of_several_kinds_last() {
        let mut devices = [
            identity("Oclgrind", KIND_BITS | 1),
            identity("PoCL", CPU),
            identity("Intel", CPU),
            identity("Z", GPU),
            identity("MPPA", ACCELERATOR),
        ];
        devices.sort_by(|a, b| a.rank().cmp(&b.rank()));
        let order: Vec<_> = devices.iter().map(|device| device.platform.as_str()).collect();
        assert_eq!(order, ["Z", "MPPA", "Intel", "PoCL", "Oclgrind"]);
    }
}
