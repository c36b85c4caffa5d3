//! Enumerates the devices of a library: the matching ones of every platform, in a stable order, with their sub-devices.

#![allow(unsafe_code, reason = "queries the driver")]

use cl3::ext::{
    CL_DEVICE_AFFINITY_DOMAIN_NUMA, CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN, CL_DEVICE_PARTITION_EQUALLY,
    CL_DEVICE_TYPE_ALL,
};
use cl3::platform::{CL_PLATFORM_NAME, CL_PLATFORM_VERSION};
use parking_lot::Mutex;
use runtime_core::backend::c_text;
use runtime_core::{Error, ErrorKind, Result};

use crate::device_filter::{DeviceFilter, DeviceIdentity};
use crate::driver::info::decode_usizes;
use crate::driver::{Driver, Raw, call, icd};
use crate::quirks::{Partition, Quirks};

/// Schemes of a partition, as devices list them.
const EQUALLY: usize = CL_DEVICE_PARTITION_EQUALLY.cast_unsigned();
const BY_AFFINITY_DOMAIN: usize = CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN.cast_unsigned();
/// The affinity domain as a property of a partition.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const NUMA: usize = CL_DEVICE_AFFINITY_DOMAIN_NUMA as usize;
/// Platforms, or devices of a platform, beyond this number are ignored.
const MAX_HANDLES: u32 = 4096;
/// Maximum number of sub-devices in automatic partitions.
const MAX_SUB_DEVICES: u32 = 16;

/// A device of a platform.
#[derive(Clone, Debug)]
pub(crate) struct ListedDevice {
    pub(crate) platform: Raw,
    pub(crate) platform_version: String,
    pub(crate) identity: DeviceIdentity,
    pub(crate) device: Raw,
    pub(crate) sub_devices: Vec<Raw>,
}

// SAFETY: any thread may query platforms and devices, which live as long as the process.
unsafe impl Send for ListedDevice {}
// SAFETY: the same holds for several threads at once.
unsafe impl Sync for ListedDevice {}

impl ListedDevice {
    /// Whether calls to its driver must be serialised. Oclgrind 21.10 dequeues commands without a lock.
    pub(crate) fn needs_serial_calls(&self) -> bool {
        self.identity.platform == "Oclgrind"
    }
}

/// The sub-devices of a device. They are created once and live as long as the process.
struct SubDevices {
    device: Raw,
    partition: Partition,
    sub_devices: Vec<Raw>,
}

// SAFETY: as for `ListedDevice`.
unsafe impl Send for SubDevices {}

static SUB_DEVICES: Mutex<Vec<SubDevices>> = Mutex::new(Vec::new());

/// Held during enumeration: PoCL 3.1 returns devices to a second thread while the first one is still initialising them, and
/// crashes when their names are queried. Can go with support for PoCL 3.1 (Debian 12).
static ENUMERATION_LOCK: Mutex<()> = Mutex::new(());

/// Lists the devices of a library that match the filter.
///
/// # Errors
/// `Unavailable`, with the registered drivers; or the driver's own error.
pub(crate) fn list_devices(
    driver: &Driver,
    filter: &DeviceFilter,
    quirks: &Quirks,
) -> Result<Vec<ListedDevice>> {
    let _guard = ENUMERATION_LOCK.lock();
    let mut devices = Vec::new();
    for platform in platform_ids(driver)? {
        let text = |key| driver.platform_info(platform, key).map_or_else(String::new, |text| c_text(&text));
        let (name, version) = (text(CL_PLATFORM_NAME), text(CL_PLATFORM_VERSION));
        // A platform that fails or has no devices does not affect the others.
        for device in device_ids(driver, platform).unwrap_or_default() {
            let identity = identify(driver, device, &name);
            if filter.matches(&identity) {
                let platform_version = version.clone();
                devices.push(ListedDevice {
                    platform,
                    platform_version,
                    identity,
                    device,
                    sub_devices: Vec::new(),
                });
            }
        }
    }
    if devices.is_empty() {
        let message = format!("no OpenCL driver has a matching device; {}", icd::explain());
        return Err(Error::new(ErrorKind::Unavailable, message));
    }
    devices.sort_by(|a, b| a.identity.rank().cmp(&b.identity.rank()));
    for listed in &mut devices {
        listed.sub_devices = sub_devices(driver, listed.device, quirks.partition);
    }
    Ok(devices)
}

fn identify(driver: &Driver, device: Raw, platform: &str) -> DeviceIdentity {
    use cl3::device::{CL_DEVICE_NAME, CL_DEVICE_TYPE, CL_DEVICE_VENDOR};
    DeviceIdentity {
        platform: platform.to_owned(),
        vendor: driver.device_text(device, CL_DEVICE_VENDOR),
        name: driver.device_text(device, CL_DEVICE_NAME),
        types: driver.device_number(device, CL_DEVICE_TYPE),
    }
}

fn platform_ids(driver: &Driver) -> Result<Vec<Raw>> {
    let none = || {
        let message = format!("the OpenCL loader found no driver; {}", icd::explain());
        Error::new(ErrorKind::Unavailable, message)
    };
    let found = read_handles(|room, platforms, count| {
        // SAFETY: there is room for so many handles.
        unsafe { call!(driver.check, clGetPlatformIDs(room, platforms, count)) }
    });
    match found {
        Err(error) if error.kind() == ErrorKind::Unavailable => Err(none()),
        Ok(platforms) if platforms.is_empty() => Err(none()),
        found => found,
    }
}

fn device_ids(driver: &Driver, platform: Raw) -> Result<Vec<Raw>> {
    read_handles(|room, devices, count| {
        // SAFETY: there is room for so many handles.
        unsafe { call!(driver.check, clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, room, devices, count)) }
    })
}

/// Reads a list of handles: `read` gets the room for handles, and where to write them and their number. First there is no room,
/// for the number alone. A driver may then write fewer.
fn read_handles(read: impl Fn(u32, *mut Raw, *mut u32) -> Result<()>) -> Result<Vec<Raw>> {
    let mut count = 0;
    read(0, std::ptr::null_mut(), &raw mut count)?;
    let mut handles = vec![std::ptr::null_mut(); count.min(MAX_HANDLES) as usize];
    if count > 0 {
        read(count.min(MAX_HANDLES), handles.as_mut_ptr(), std::ptr::null_mut())?;
    }
    handles.retain(|handle| !handle.is_null());
    Ok(handles)
}

/// The sub-devices of a device, in the driver's order.
fn sub_devices(driver: &Driver, device: Raw, partition: Partition) -> Vec<Raw> {
    let mut known = SUB_DEVICES.lock();
    let found = known.iter().find(|known| known.device == device && known.partition == partition);
    if let Some(found) = found {
        return found.sub_devices.clone();
    }
    let sub_devices = partition_schemes(driver, device, partition)
        .iter()
        .map(|properties| create_sub_devices(driver, device, properties))
        .find(|sub_devices| sub_devices.len() > 1)
        .unwrap_or_default();
    known.push(SubDevices { device, partition, sub_devices: sub_devices.clone() });
    sub_devices
}

/// The property lists by which a device can be partitioned, preferred first.
fn partition_schemes(driver: &Driver, device: Raw, partition: Partition) -> Vec<Vec<isize>> {
    use cl3::device::{
        CL_DEVICE_MAX_COMPUTE_UNITS, CL_DEVICE_PARTITION_AFFINITY_DOMAIN, CL_DEVICE_PARTITION_PROPERTIES,
    };
    let supported =
        decode_usizes(&driver.device_info(device, CL_DEVICE_PARTITION_PROPERTIES).unwrap_or_default());
    let units = u32::try_from(driver.device_number(device, CL_DEVICE_MAX_COMPUTE_UNITS)).unwrap_or(0);
    let numa = driver.device_number(device, CL_DEVICE_PARTITION_AFFINITY_DOMAIN)
        & CL_DEVICE_AFFINITY_DOMAIN_NUMA
        != 0;
    let equally = |units: u32| {
        let properties = [EQUALLY, units as usize, 0].map(usize::cast_signed).to_vec();
        supported.contains(&EQUALLY).then_some(properties)
    };
    match partition {
        Partition::Whole => Vec::new(),
        Partition::Equally(units) => equally(units.max(1)).into_iter().collect(),
        Partition::Automatic => {
            let by_numa_node = [BY_AFFINITY_DOMAIN, NUMA, 0].map(usize::cast_signed).to_vec();
            let by_numa_node = (numa && supported.contains(&BY_AFFINITY_DOMAIN)).then_some(by_numa_node);
            let equally = if units > 1 { equally(units.div_ceil(MAX_SUB_DEVICES)) } else { None };
            by_numa_node.into_iter().chain(equally).collect()
        }
    }
}

fn create_sub_devices(driver: &Driver, device: Raw, properties: &[isize]) -> Vec<Raw> {
    let created = read_handles(|room, sub_devices, count| {
        let properties = properties.as_ptr();
        // SAFETY: the list of properties ends with 0, and there is room for so many handles.
        unsafe { call!(driver.check, clCreateSubDevices(device, properties, room, sub_devices, count)) }
    });
    created.unwrap_or_default()
}
