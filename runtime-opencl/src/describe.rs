//! Describes the devices of a library: identity, limits, memory spaces, capabilities.

use cl3::ext::{
    CL_DEVICE_AVAILABLE, CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV,
    CL_DEVICE_DOUBLE_FP_CONFIG, CL_DEVICE_ENDIAN_LITTLE, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE,
    CL_DEVICE_GLOBAL_MEM_SIZE, CL_DEVICE_IL_VERSION, CL_DEVICE_LOCAL_MEM_SIZE, CL_DEVICE_LOCAL_MEM_TYPE,
    CL_DEVICE_MAX_CLOCK_FREQUENCY, CL_DEVICE_MAX_COMPUTE_UNITS, CL_DEVICE_MAX_WORK_GROUP_SIZE,
    CL_DEVICE_MAX_WORK_ITEM_SIZES, CL_DEVICE_OPENCL_C_VERSION, CL_DEVICE_PCI_BUS_INFO_KHR, CL_DEVICE_PROFILE,
    CL_DEVICE_UUID_KHR, CL_DEVICE_VERSION, CL_DRIVER_VERSION, CL_LOCAL,
};
use runtime_core::device::{Capabilities, Limits, MemorySpace};
use runtime_core::{DeviceInfo, DeviceKind, Options, abi, backend};

use crate::device_caps::DeviceCaps;
use crate::device_filter::{ACCELERATOR, CPU, GPU};
use crate::driver::info::decode_usizes;
use crate::driver::{Driver, Raw};
use crate::enumeration::ListedDevice;
use crate::formats;
use crate::quirks::Quirks;
use crate::space::Space;

/// `DLDeviceType` of OpenCL memory.
const DLPACK_OPENCL: i32 = 4;
/// Type of work-group memory that is separate from global memory.
const LOCAL: u64 = CL_LOCAL as u64;
/// The oldest OpenCL version with all functions that this backend needs.
const MIN_VERSION: (u32, u32) = (1, 2);

/// All devices, including unavailable ones, each followed by its sub-devices.
pub(crate) fn describe_all(driver: &Driver, devices: &[ListedDevice], quirks: &Quirks) -> Vec<DeviceInfo> {
    let of = |(index, listed): (usize, &ListedDevice)| {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let caps = DeviceCaps::query(driver, listed, quirks);
        let root = describe(driver, listed, &caps, quirks, index);
        let sub_devices = listed.sub_devices.iter().enumerate().map(|(sub, sub_device)| {
            let mut info = root.clone();
            info.id.sub = u32::try_from(sub).ok();
            info.uuid = None;
            info.compute_units = compute_units(driver, *sub_device);
            info
        });
        std::iter::once(root.clone()).chain(sub_devices).collect::<Vec<_>>()
    };
    devices.iter().enumerate().flat_map(of).collect()
}

fn describe(
    driver: &Driver,
    listed: &ListedDevice,
    caps: &DeviceCaps,
    quirks: &Quirks,
    index: u32,
) -> DeviceInfo {
    let device = listed.device;
    let number = |key| driver.device_number(device, key);
    let mut info = DeviceInfo::new(DeviceKind::Accelerator, index, &listed.identity.name);
    info.vendor = Some(listed.identity.vendor.clone());
    info.arch = arch(driver, listed, caps);
    info.driver_version = Some(driver.device_text(device, CL_DRIVER_VERSION));
    info.dlpack_type = DLPACK_OPENCL;
    info.uuid = uuid(driver, device, caps);
    info.pci_address = pci_address(driver, device, caps);
    info.compute_units = compute_units(driver, device);
    info.clock_hz =
        Some(number(CL_DEVICE_MAX_CLOCK_FREQUENCY)).filter(|mhz| *mhz > 0).map(|mhz| mhz * 1_000_000);
    info.limits = limits(driver, device, caps, quirks);
    info.spaces = spaces(caps, number(CL_DEVICE_GLOBAL_MEM_SIZE));
    info.formats = formats::of_device(caps);
    info.capabilities = capabilities(driver, device, caps, quirks);
    info.properties = properties(driver, listed, caps);
    info.unavailable_reason = unavailable_reason(driver, device, caps);
    info
}

fn device_u32(driver: &Driver, device: Raw, key: u32) -> u32 {
    u32::try_from(driver.device_number(device, key)).unwrap_or(u32::MAX)
}

fn compute_units(driver: &Driver, device: Raw) -> Option<u32> {
    Some(device_u32(driver, device, CL_DEVICE_MAX_COMPUTE_UNITS)).filter(|units| *units > 0)
}

/// Why a device cannot be opened.
fn unavailable_reason(driver: &Driver, device: Raw, caps: &DeviceCaps) -> Option<String> {
    if driver.device_number(device, CL_DEVICE_AVAILABLE) == 0 {
        return Some("the driver reports it as unavailable; see the system's log".to_owned());
    }
    if caps.version < MIN_VERSION {
        let (major, minor) = caps.version;
        return Some(format!("OpenCL {major}.{minor} is older than 1.2; update the driver"));
    }
    let little = driver.device_number(device, CL_DEVICE_ENDIAN_LITTLE) != 0;
    (!little).then(|| "its byte order differs from the host's; use another device".to_owned())
}

/// The architecture, if known: CUDA's name on NVIDIA, the host's on a CPU device.
fn arch(driver: &Driver, listed: &ListedDevice, caps: &DeviceCaps) -> Option<String> {
    let number = |key| driver.device_number(listed.device, key);
    if caps.has("cl_nv_device_attribute_query") {
        let (major, minor) =
            (number(CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV), number(CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV));
        return Some(format!("sm_{major}{minor}"));
    }
    caps.is_processor.then(|| std::env::consts::ARCH.to_owned())
}

fn limits(driver: &Driver, device: Raw, caps: &DeviceCaps, quirks: &Quirks) -> Limits {
    let sizes = decode_usizes(&driver.device_info(device, CL_DEVICE_MAX_WORK_ITEM_SIZES).unwrap_or_default());
    let most = device_u32(driver, device, CL_DEVICE_MAX_WORK_GROUP_SIZE).max(1);
    let group_items = quirks.group_items.map_or(most, |own| own.min(most));
    let size = |axis: usize| {
        let size = sizes.get(axis).and_then(|size| u32::try_from(*size).ok()).unwrap_or(1);
        quirks.group_items.map_or(size, |own| own.min(size))
    };
    Limits {
        groups: [u64::from(u32::MAX); 3],
        group_size: std::array::from_fn(size),
        group_items,
        shared_bytes: driver.device_number(device, CL_DEVICE_LOCAL_MEM_SIZE),
        allocation_bytes: Some(caps.allocation_bytes).filter(|bytes| *bytes > 0),
    }
}

fn spaces(caps: &DeviceCaps, total_bytes: u64) -> Vec<MemorySpace> {
    let space = |space: &Space| MemorySpace {
        name: space.name().to_owned(),
        total_bytes: (*space == Space::Device).then_some(total_bytes),
        alignment_bytes: caps.alignment_bytes as u64,
        host_visible: space.host_visible(),
        kernel_visible: true,
    };
    caps.spaces.iter().map(space).collect()
}

fn capabilities(driver: &Driver, device: Raw, caps: &DeviceCaps, quirks: &Quirks) -> Capabilities {
    let has = |condition: bool, capability: u64| if condition { capability } else { 0 };
    let doubles = caps.has("cl_khr_fp64") || driver.device_number(device, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
    Capabilities(
        abi::CAP_TIMESTAMPS
            | abi::CAP_WAIT_FOR
            | abi::CAP_GROUPS
            | abi::CAP_COPY_2D
            | abi::CAP_IMPORT_DEVICE_MEMORY
            | has(caps.has_compiler, abi::CAP_NOOP_KERNEL)
            | has(caps.command_buffers.is_some(), abi::CAP_GRAPHS)
            | has(caps.is_processor, abi::CAP_IMPORT_HOST)
            | has(quirks.holds, abi::CAP_HOLD)
            | has(doubles, abi::CAP_F64)
            | has(caps.has("cl_khr_fp16"), abi::CAP_F16),
    )
}

fn properties(driver: &Driver, listed: &ListedDevice, caps: &DeviceCaps) -> Options {
    let device = listed.device;
    let mut properties = Options::new();
    properties.push("platform", listed.identity.platform.as_str());
    properties.push("platform_version", listed.platform_version.as_str());
    for (key, query) in [
        ("opencl_version", CL_DEVICE_VERSION),
        ("opencl_c_version", CL_DEVICE_OPENCL_C_VERSION),
        ("profile", CL_DEVICE_PROFILE),
        ("il_version", CL_DEVICE_IL_VERSION),
    ] {
        let text = driver.device_text(device, query);
        if !text.is_empty() {
            properties.push(key, text);
        }
    }
    for (bit, name) in [(CPU, "cpu"), (GPU, "gpu"), (ACCELERATOR, "accelerator")] {
        if listed.identity.types & bit != 0 {
            properties.push("type", name);
        }
    }
    if caps.is_processor
        && let Some(bytes) = backend::thread_stack_bytes().and_then(|bytes| i64::try_from(bytes).ok())
    {
        properties.push("thread_stack_bytes", bytes);
    }
    let local = driver.device_number(device, CL_DEVICE_LOCAL_MEM_TYPE) == LOCAL;
    properties.push("dedicated_shared_memory", local);
    if caps.spaces.contains(&Space::Mapped) {
        properties.push("pinned_is_copied", true);
    }
    properties.push("view_alignment_bytes", i64::try_from(caps.alignment_bytes).unwrap_or(0));
    let cache = i64::try_from(driver.device_number(device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE)).unwrap_or(0);
    if cache > 0 {
        properties.push("cache_bytes", cache);
    }
    properties.push("extensions", caps.extensions.trim());
    properties
}

fn uuid(driver: &Driver, device: Raw, caps: &DeviceCaps) -> Option<[u8; 16]> {
    let info = caps.has("cl_khr_device_uuid").then(|| driver.device_info(device, CL_DEVICE_UUID_KHR));
    info.flatten()?.try_into().ok()
}

/// As `dddd:bb:dd.f`, if the driver reports it.
fn pci_address(driver: &Driver, device: Raw, caps: &DeviceCaps) -> Option<String> {
    let info =
        caps.has("cl_khr_pci_bus_info").then(|| driver.device_info(device, CL_DEVICE_PCI_BUS_INFO_KHR));
    let info = info.flatten()?;
    let mut words = info.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap_or_default()));
    match [(); 4].map(|()| words.next()) {
        [Some(domain), Some(bus), Some(device), Some(function)] => {
            Some(format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}"))
        }
        _ => None,
    }
}
