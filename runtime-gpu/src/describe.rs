//! What the driver tells of its devices.

#![allow(unsafe_code, reason = "asks the driver")]

use std::ffi::c_int;

use runtime_core::{Capabilities, DeviceInfo, DeviceKind, Limits, MemorySpace, Options, Result, abi};

use crate::driver::abi::{Ordinal, device_attribute as attribute};
use crate::driver::{Driver, written};
use crate::memory::{ALIGNMENT_BYTES, Space};
use crate::module::FORMATS;

/// `DLDeviceType` of memory of CUDA devices.
const DLPACK_CUDA: i32 = 2;
/// `CU_COMPUTEMODE_PROHIBITED`.
const PROHIBITED: u32 = 2;
/// Where the kernel module tells its version.
const VERSION_FILE: &str = "/sys/module/nvidia/version";

/// All devices, unusable ones included.
///
/// # Errors
/// Whatever the driver says.
pub(crate) fn list(driver: &Driver) -> Result<Vec<DeviceInfo>> {
    let count = count(driver)?;
    Ok((0..count).map(|index| device(driver, index, count)).collect())
}

/// The driver's number of device `index`.
///
/// # Errors
/// Whatever the driver says.
pub(crate) fn ordinal(driver: &Driver, index: u32) -> Result<Ordinal> {
    let mut ordinal = 0;
    let index = c_int::try_from(index).unwrap_or(c_int::MAX);
    // SAFETY: the out-parameter is writable; an index beyond the last is answered with an error.
    let code = unsafe { (driver.cuDeviceGet)(&raw mut ordinal, index) };
    driver.check("cuDeviceGet", code)?;
    Ok(ordinal)
}

/// Number of devices.
///
/// # Errors
/// Whatever the driver says.
pub(crate) fn count(driver: &Driver) -> Result<u32> {
    let mut count = 0;
    // SAFETY: the out-parameter is writable.
    let code = unsafe { (driver.cuDeviceGetCount)(&raw mut count) };
    driver.check("cuDeviceGetCount", code)?;
    Ok(u32::try_from(count).unwrap_or(0))
}

fn device(driver: &Driver, index: u32, count: u32) -> DeviceInfo {
    let mut info = DeviceInfo::new(DeviceKind::Accelerator, index, "NVIDIA GPU");
    info.vendor = "NVIDIA".to_owned();
    info.dlpack_type = DLPACK_CUDA;
    info.driver_version = version(driver);
    info.formats = FORMATS.map(str::to_owned).to_vec();
    let told = ordinal(driver, index).and_then(|ordinal| describe(driver, &mut info, ordinal, count));
    if let Err(error) = told {
        info.unusable = Some(format!("the driver does not describe it: {error}; see `nvidia-smi`"));
    }
    info
}

fn describe(driver: &Driver, info: &mut DeviceInfo, ordinal: Ordinal, count: u32) -> Result<()> {
    let figure = |key: c_int| driver.attribute(ordinal, key);
    info.name = name(driver, ordinal)?;
    info.arch = format!("sm_{}{}", figure(attribute::MAJOR), figure(attribute::MINOR));
    info.pci_address = pci_address(driver, ordinal);
    info.uuid = uuid(driver, ordinal);
    info.compute_units = figure(attribute::MULTIPROCESSORS);
    info.clock_hz = u64::from(figure(attribute::CLOCK_KHZ)) * 1000;
    info.limits = Limits {
        groups: attribute::MAX_GROUPS.map(|key| u64::from(figure(key))),
        group_size: attribute::MAX_GROUP_SIZE.map(figure),
        group_items: figure(attribute::MAX_GROUP_ITEMS),
        shared_bytes: u64::from(
            figure(attribute::MAX_SHARED_BYTES_OPT_IN).max(figure(attribute::MAX_SHARED_BYTES)),
        ),
        allocation_bytes: 0,
    };
    let total_bytes = total_bytes(driver, ordinal)?;
    info.spaces = spaces(driver, ordinal, total_bytes);
    let peers = peers(driver, ordinal, count);
    info.capabilities = capabilities(driver, ordinal, !peers.is_empty());
    info.properties = properties(driver, ordinal, &peers);
    info.unusable = unusable(driver, ordinal);
    Ok(())
}

/// Why a device cannot be opened.
fn unusable(driver: &Driver, ordinal: Ordinal) -> Option<String> {
    if driver.attribute(ordinal, attribute::COMPUTE_MODE) == PROHIBITED {
        return Some("its compute mode is prohibited; `nvidia-smi -c DEFAULT` allows it".to_owned());
    }
    if driver.attribute(ordinal, attribute::UNIFIED_ADDRESSING) == 0 {
        return Some("it has no unified addresses; use another device".to_owned());
    }
    None
}

/// How many of the memory spaces the device has.
pub(crate) fn space_count(driver: &Driver, ordinal: Ordinal) -> usize {
    // Where the program must not touch managed memory while a kernel runs, it would be no memory of ours.
    if driver.attribute(ordinal, attribute::CONCURRENT_MANAGED_ACCESS) == 0 { 2 } else { 3 }
}

fn spaces(driver: &Driver, ordinal: Ordinal, total_bytes: u64) -> Vec<MemorySpace> {
    let space = |&(space, name): &(Space, &str)| MemorySpace {
        name: name.to_owned(),
        total_bytes: if space == Space::Device { total_bytes } else { 0 },
        alignment_bytes: ALIGNMENT_BYTES as u64,
        host_visible: space != Space::Device,
        kernel_visible: true,
    };
    Space::NAMES.iter().take(space_count(driver, ordinal)).map(space).collect()
}

fn capabilities(driver: &Driver, ordinal: Ordinal, peers: bool) -> Capabilities {
    let figure = |key| driver.attribute(ordinal, key);
    let has = |condition: bool, capability: u64| if condition { capability } else { 0 };
    let cooperative = driver.extended.is_some() || driver.cooperative.is_some();
    Capabilities(
        abi::CAP_TIMESTAMPS
            | abi::CAP_WAIT_FOR
            | abi::CAP_EMPTY_KERNEL
            | abi::CAP_GROUPS
            | abi::CAP_F64
            | abi::CAP_ADOPT
            | abi::CAP_ROWS
            | has(driver.pools.is_some() && figure(attribute::MEMORY_POOLS) != 0, abi::CAP_STREAM_ORDERED)
            | has(driver.graphs.is_some(), abi::CAP_GRAPHS)
            | has(cooperative && figure(attribute::COOPERATIVE_LAUNCH) != 0, abi::CAP_COOPERATIVE)
            | has(driver.extended.is_some() && figure(attribute::CLUSTER_LAUNCH) != 0, abi::CAP_CLUSTERS)
            | has(peers, abi::CAP_PEERS)
            | has((figure(attribute::MAJOR), figure(attribute::MINOR)) >= (5, 3), abi::CAP_F16),
    )
}

fn properties(driver: &Driver, ordinal: Ordinal, peers: &[u32]) -> Options {
    let figure = |key| u64::from(driver.attribute(ordinal, key));
    let memory_clock_hz = figure(attribute::MEMORY_CLOCK_KHZ) * 1000;
    let bus_bits = figure(attribute::MEMORY_BUS_BITS);
    let mut properties = Options::new();
    let mut put = |key: &str, value: u64| {
        if let (1.., Ok(value)) = (value, i64::try_from(value)) {
            properties.push(key, value);
        }
    };
    put("cuda_version", u64::from(driver.cuda_version()));
    put("warp_size", figure(attribute::WARP_SIZE));
    put("l2_bytes", figure(attribute::L2_BYTES));
    put("memory_clock_hz", memory_clock_hz);
    put("memory_bus_bits", bus_bits);
    // Two transfers per clock.
    put("memory_bandwidth_bytes_per_s", 2 * memory_clock_hz * bus_bits / 8);
    put("constant_bytes", figure(attribute::CONSTANT_BYTES));
    put("group_registers", figure(attribute::MAX_GROUP_REGISTERS));
    put("unit_registers", figure(attribute::MULTIPROCESSOR_REGISTERS));
    put("unit_shared_bytes", figure(attribute::MULTIPROCESSOR_SHARED_BYTES));
    put("unit_items", figure(attribute::MULTIPROCESSOR_ITEMS));
    put("unit_groups", figure(attribute::MULTIPROCESSOR_GROUPS));
    put("copy_engines", figure(attribute::COPY_ENGINES));
    properties.push("ecc", figure(attribute::ECC) != 0);
    properties.push("integrated", figure(attribute::INTEGRATED) != 0);
    properties.push("mig", is_part(driver, ordinal));
    for peer in peers {
        properties.push("peer", format!("cuda:{peer}"));
    }
    properties
}

fn name(driver: &Driver, ordinal: Ordinal) -> Result<String> {
    let mut name = [0_u8; 256];
    // SAFETY: the buffer is writable for as many bytes.
    let code = unsafe { (driver.cuDeviceGetName)(name.as_mut_ptr().cast(), 256, ordinal) };
    driver.check("cuDeviceGetName", code)?;
    Ok(written(&name))
}

fn total_bytes(driver: &Driver, ordinal: Ordinal) -> Result<u64> {
    let mut bytes = 0;
    // SAFETY: the out-parameter is writable.
    let code = unsafe { (driver.cuDeviceTotalMem_v2)(&raw mut bytes, ordinal) };
    driver.check("cuDeviceTotalMem", code)?;
    Ok(bytes as u64)
}

/// As `dddd:bb:dd.f`; empty if the driver does not tell.
fn pci_address(driver: &Driver, ordinal: Ordinal) -> String {
    let mut text = [0_u8; 32];
    // SAFETY: the buffer is writable for as many bytes.
    let code = unsafe { (driver.cuDeviceGetPCIBusId)(text.as_mut_ptr().cast(), 32, ordinal) };
    if code.is_success() { written(&text).to_lowercase() } else { String::new() }
}

/// The identity of the device or, where it is one, of the part.
fn uuid(driver: &Driver, ordinal: Ordinal) -> [u8; 16] {
    let mut uuid = [0; 16];
    if let Some(parts) = driver.parts {
        // SAFETY: the out-parameter is writable.
        let code = unsafe { (parts.cuDeviceGetUuid_v2)(&raw mut uuid, ordinal) };
        if code.is_success() {
            return uuid;
        }
    }
    whole_uuid(driver, ordinal)
}

fn whole_uuid(driver: &Driver, ordinal: Ordinal) -> [u8; 16] {
    let mut uuid = [0; 16];
    // SAFETY: the out-parameter is writable.
    let code = unsafe { (driver.cuDeviceGetUuid)(&raw mut uuid, ordinal) };
    if code.is_success() { uuid } else { [0; 16] }
}

/// Whether the device is a MIG instance: then its units and its memory are the instance's share.
fn is_part(driver: &Driver, ordinal: Ordinal) -> bool {
    driver.parts.is_some() && uuid(driver, ordinal) != whole_uuid(driver, ordinal)
}

/// Devices whose memory the device reaches.
fn peers(driver: &Driver, own: Ordinal, count: u32) -> Vec<u32> {
    let reaches = |index: &u32| {
        let mut reachable = 0;
        let Some(peer) = ordinal(driver, *index).ok().filter(|peer| *peer != own) else { return false };
        // SAFETY: the out-parameter is writable.
        let code = unsafe { (driver.cuDeviceCanAccessPeer)(&raw mut reachable, own, peer) };
        code.is_success() && reachable == 1
    };
    (0..count).filter(reaches).collect()
}

/// The driver's version in its own words, and the CUDA that it speaks.
fn version(driver: &Driver) -> String {
    let cuda = driver.cuda_version();
    let cuda = format!("CUDA {}.{}", cuda / 1000, cuda % 1000 / 10);
    match std::fs::read_to_string(VERSION_FILE) {
        Ok(text) => format!("{} ({cuda})", text.trim()),
        Err(_) => cuda,
    }
}
