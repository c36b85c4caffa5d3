//! Which devices a backend offers, and what their driver does differently: plain data, which a backend of one vendor supplies.

use std::path::PathBuf;

/// Which library to load, and which of its devices to offer.
///
/// A name is matched by a part of it, in any case. The default takes every device of the system's loader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFilter {
    /// The library; `None`: the system's loader of drivers.
    pub library: Option<PathBuf>,
    /// Part of the platform's name.
    pub platform: Option<String>,
    /// Part of the device's vendor's name.
    pub vendor: Option<String>,
    /// Part of the device's name.
    pub device: Option<String>,
    /// Types of devices, of the `CL_DEVICE_TYPE_*` bits; 0: all.
    pub types: u64,
}

/// What the driver says of a device that selection and order look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceIdentity {
    pub(crate) platform: String,
    pub(crate) vendor: String,
    pub(crate) name: String,
    pub(crate) types: u64,
}

/// `CL_DEVICE_TYPE_CPU`.
pub(crate) const CPU: u64 = 1 << 1;
/// `CL_DEVICE_TYPE_GPU`.
pub(crate) const GPU: u64 = 1 << 2;
/// `CL_DEVICE_TYPE_ACCELERATOR`.
pub(crate) const ACCELERATOR: u64 = 1 << 3;
/// The bits that say what a device is; others say that it is the platform's default.
pub(crate) const KIND_BITS: u64 = CPU | GPU | ACCELERATOR;

impl DeviceFilter {
    /// Whether a device is offered.
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
    /// What devices are ordered by, those of one platform and type staying as the driver has them: GPUs, accelerators,
    /// processors, and what claims to be several of these.
    pub(crate) fn rank(&self) -> (u8, &str) {
        let sort = match self.types & KIND_BITS {
            GPU => 0,
            ACCELERATOR => 1,
            CPU => 2,
            _ => 3,
        };
        (sort, &self.platform)
    }
}

/// How a device is cut into sub-devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partition {
    /// By NUMA node where there are several, else equally, into at most 16.
    #[default]
    Automatic,
    /// Into sub-devices of so many compute units.
    Equally(u32),
    /// Not at all.
    Whole,
}

/// What a driver does differently from what OpenCL says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// Its functions bear one thread at a time: every call holds one lock.
    pub serial: bool,
    /// Its shared virtual memory works.
    pub svm: bool,
    /// Its unified shared memory works.
    pub usm: bool,
    /// What fails ends everything behind it, so that launches need no event each to be watched.
    pub fails_for_good: bool,
    /// Releasing an object waits for every kernel that is running: releases are deferred until the device is idle.
    pub releases_wait: bool,
    /// A kernel is compiled when it is launched first, and the compiler bears no second one beside it: a first launch returns
    /// when the kernel runs.
    pub compiles_at_launch: bool,
    /// Its functions that wait cannot be relied on, so every wait looks again and again.
    pub polls: bool,
    /// Most work-items of a group, where the driver claims more than work.
    pub group_items: Option<u32>,
    /// How devices are cut into sub-devices.
    pub partition: Partition,
    /// Options that every build gets.
    pub build_options: String,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            serial: false,
            svm: true,
            usm: true,
            fails_for_good: false,
            releases_wait: false,
            compiles_at_launch: false,
            polls: false,
            group_items: None,
            partition: Partition::default(),
            build_options: String::new(),
        }
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
    fn a_part_of_a_name_selects_in_any_case() {
        let device = identity("Portable Computing Language", CPU | 1);
        assert!(DeviceFilter::default().matches(&device));
        let selection = |platform: &str, types| DeviceFilter {
            platform: Some(platform.to_owned()),
            types,
            ..DeviceFilter::default()
        };
        assert!(selection("portable", 0).matches(&device));
        assert!(selection("portable", CPU | GPU).matches(&device));
        assert!(!selection("portable", GPU).matches(&device));
        assert!(!selection("intel", 0).matches(&device));
        let vendor = DeviceFilter { vendor: Some("kalray".into()), ..DeviceFilter::default() };
        assert!(!vendor.matches(&device));
    }

    #[test]
    fn gpus_come_first_and_what_claims_to_be_everything_last() {
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
