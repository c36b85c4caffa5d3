//! Describes devices: queries the driver and fills in `DeviceInfo`. Opens no context.

#![allow(unsafe_code, reason = "queries the driver")]

use std::ffi::c_int;

use runtime_core::backend::c_text;
use runtime_core::device::{Capabilities, Limits, MemorySpace};
use runtime_core::{CodeFormat, DeviceInfo, DeviceKind, Options, Result, abi};

use crate::counters;
use crate::driver::Driver;
use crate::driver::abi::{COMPUTE_MODE_PROHIBITED, CUdevice_attribute as key, CUuuid, Ordinal};
use crate::formats::FORMATS;
use crate::memory::{ALIGNMENT_BYTES, Space};
use crate::nvml::Nvml;

/// `kDLCUDA`.
pub(crate) const DLPACK_CUDA: i32 = 2;
/// Most groups along each axis.
pub(crate) const MAX_GROUPS: [key; 3] = [
    key::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
    key::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
    key::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
];
/// Most work-items of a group along each axis.
pub(crate) const MAX_GROUP_SIZE: [key; 3] = [
    key::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
    key::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
    key::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
];
/// Version of the loaded kernel module.
const KERNEL_MODULE_VERSION: &str = "/sys/module/nvidia/version";

/// Lists all devices, unavailable ones included.
///
/// # Errors
/// Any error of the driver.
pub(crate) fn list(driver: &Driver) -> Result<Vec<DeviceInfo>> {
    let count = count(driver)?;
    Ok((0..count).map(|index| device(driver, index, count)).collect())
}

/// The `CUdevice` of device `index`.
///
/// # Errors
/// Any error of the driver.
pub(crate) fn ordinal(driver: &Driver, index: u32) -> Result<Ordinal> {
    let mut ordinal = 0;
    let index = c_int::try_from(index).unwrap_or(c_int::MAX);
    // SAFETY: the out-parameter is writable; an index beyond the last returns an error.
    let code = unsafe { (driver.cuDeviceGet)(&raw mut ordinal, index) };
    driver.check("cuDeviceGet", code)?;
    Ok(ordinal)
}

/// Number of devices.
///
/// # Errors
/// Any error of the driver.
pub(crate) fn count(driver: &Driver) -> Result<u32> {
    let mut count = 0;
    // SAFETY: the out-parameter is writable.
    let code = unsafe { (driver.cuDeviceGetCount)(&raw mut count) };
    driver.check("cuDeviceGetCount", code)?;
    Ok(u32::try_from(count).unwrap_or(0))
}

fn device(driver: &Driver, index: u32, count: u32) -> DeviceInfo {
    let mut info = DeviceInfo::new(DeviceKind::Accelerator, index, "NVIDIA GPU");
    info.vendor = Some("NVIDIA".to_owned());
    info.dlpack_type = DLPACK_CUDA;
    info.driver_version = Some(version(driver));
    info.formats = FORMATS.map(CodeFormat::from).to_vec();
    let described = ordinal(driver, index).and_then(|ordinal| describe(driver, &mut info, ordinal, count));
    if let Err(error) = described {
        info.unavailable_reason = Some(format!("the driver cannot describe it: {error}; see `nvidia-smi`"));
    }
    info
}

fn describe(driver: &Driver, info: &mut DeviceInfo, ordinal: Ordinal, count: u32) -> Result<()> {
    let attribute = |key: key| driver.attribute(ordinal, key);
    info.name = name(driver, ordinal)?;
    info.arch = Some(format!(
        "sm_{}{}",
        attribute(key::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        attribute(key::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
    ));
    info.pci_address = pci_address(driver, ordinal);
    info.uuid = Some(uuid(driver, ordinal)).filter(|uuid| *uuid != [0; 16]);
    info.compute_units =
        Some(attribute(key::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)).filter(|units| *units > 0);
    info.clock_hz = Some(attribute(key::CU_DEVICE_ATTRIBUTE_CLOCK_RATE))
        .filter(|khz| *khz > 0)
        .map(|khz| u64::from(khz) * 1000);
    info.limits = Limits {
        groups: MAX_GROUPS.map(|key| u64::from(attribute(key))),
        group_size: MAX_GROUP_SIZE.map(attribute),
        group_items: attribute(key::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        shared_bytes: u64::from(
            attribute(key::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
                .max(attribute(key::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)),
        ),
        allocation_bytes: None,
    };
    let total_bytes = total_bytes(driver, ordinal)?;
    info.spaces = spaces(driver, ordinal, total_bytes);
    let peers = peers(driver, ordinal, count);
    info.capabilities = capabilities(driver, ordinal, !peers.is_empty());
    info.properties = properties(driver, ordinal, &peers);
    info.unavailable_reason = unavailable_reason(driver, ordinal);
    Ok(())
}

/// Why a device cannot be opened; `None` if it can.
fn unavailable_reason(driver: &Driver, ordinal: Ordinal) -> Option<String> {
    if driver.attribute(ordinal, key::CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == COMPUTE_MODE_PROHIBITED {
        return Some("its compute mode is prohibited; enable it with `nvidia-smi -c DEFAULT`".to_owned());
    }
    if driver.attribute(ordinal, key::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING) == 0 {
        return Some("it does not support unified addressing; use another device".to_owned());
    }
    None
}

/// How many memory spaces the device has: managed memory comes last.
pub(crate) fn space_count(driver: &Driver, ordinal: Ordinal) -> usize {
    // Without concurrent access the host must not touch managed memory while a kernel runs, so it is not offered.
    if driver.attribute(ordinal, key::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) == 0 { 2 } else { 3 }
}

fn spaces(driver: &Driver, ordinal: Ordinal, total_bytes: u64) -> Vec<MemorySpace> {
    let space = |&(space, name): &(Space, &str)| MemorySpace {
        name: name.to_owned(),
        total_bytes: (space == Space::Device).then_some(total_bytes),
        alignment_bytes: ALIGNMENT_BYTES as u64,
        host_visible: space != Space::Device,
        kernel_visible: true,
    };
    Space::NAMES.iter().take(space_count(driver, ordinal)).map(space).collect()
}

/// The capabilities that every device of a compute capability has.
pub(crate) fn architecture_capabilities(compute_capability: (u32, u32)) -> u64 {
    let has = |condition: bool, capability: u64| if condition { capability } else { 0 };
    abi::CAP_TIMESTAMPS
        | abi::CAP_WAIT_FOR
        | abi::CAP_NOOP_KERNEL
        | abi::CAP_GROUPS
        | abi::CAP_F64
        | abi::CAP_IMPORT_DEVICE_MEMORY
        | abi::CAP_COPY_2D
        | has(compute_capability >= (5, 3), abi::CAP_F16)
        | has(compute_capability >= (6, 0), abi::CAP_COOPERATIVE)
        | has(compute_capability >= (9, 0), abi::CAP_CLUSTERS)
}

fn capabilities(driver: &Driver, ordinal: Ordinal, peers: bool) -> Capabilities {
    let attribute = |key| driver.attribute(ordinal, key);
    let has = |condition: bool, capability: u64| if condition { capability } else { 0 };
    // Whether NVML reports anything of a MIG instance is known only after it is initialised, which listing must not do.
    let compute_capability = (
        attribute(key::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        attribute(key::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
    );
    let has_telemetry = Nvml::load().is_ok() && !is_mig_instance(driver, ordinal);
    let cooperative = driver.launch_ex.is_some() || driver.cooperative_launch.is_some();
    // What a driver has to support, too.
    let of_driver = abi::CAP_COOPERATIVE | abi::CAP_CLUSTERS;
    Capabilities(
        (architecture_capabilities(compute_capability) & !of_driver)
            | has(
                driver.memory_pools.is_some() && attribute(key::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) != 0,
                abi::CAP_STREAM_ORDERED,
            )
            | has(driver.graphs.is_some(), abi::CAP_GRAPHS)
            | has(cooperative && attribute(key::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) != 0, abi::CAP_COOPERATIVE)
            | has(driver.launch_ex.is_some() && attribute(key::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) != 0, abi::CAP_CLUSTERS)
            | has(peers, abi::CAP_PEERS)
            | has(has_telemetry, abi::CAP_TELEMETRY)
            // CUPTI is not loaded before counters are asked for.
            | has(counters::is_supported(compute_capability), abi::CAP_COUNTERS),
    )
}

fn properties(driver: &Driver, ordinal: Ordinal, peers: &[u32]) -> Options {
    let attribute = |key| u64::from(driver.attribute(ordinal, key));
    let memory_clock_hz = attribute(key::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) * 1000;
    let bus_bits = attribute(key::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    let mut properties = Options::new();
    let mut push_nonzero = |key: &str, value: u64| {
        if let (1.., Ok(value)) = (value, i64::try_from(value)) {
            properties.push(key, value);
        }
    };
    push_nonzero("cuda_version", u64::from(driver.cuda_version()));
    push_nonzero("warp_size", attribute(key::CU_DEVICE_ATTRIBUTE_WARP_SIZE));
    push_nonzero("l2_bytes", attribute(key::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
    push_nonzero("memory_clock_hz", memory_clock_hz);
    push_nonzero("memory_bus_bits", bus_bits);
    // Double data rate: two transfers per clock.
    push_nonzero("memory_bandwidth_bytes_per_s", 2 * memory_clock_hz * bus_bits / 8);
    push_nonzero("constant_bytes", attribute(key::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY));
    push_nonzero("group_registers", attribute(key::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK));
    push_nonzero("unit_registers", attribute(key::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR));
    push_nonzero(
        "unit_shared_bytes",
        attribute(key::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    );
    push_nonzero("unit_items", attribute(key::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
    push_nonzero("unit_groups", attribute(key::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR));
    push_nonzero("copy_engines", attribute(key::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT));
    // What portable kernels reach by `mma.sync.m16n8k16`.
    if driver.attribute(ordinal, key::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 8 {
        for sum in ["float16", "float32"] {
            properties.push("cooperative_matrix", format!("16x16x16 float16 * float16 + {sum}"));
        }
    }
    properties.push("ecc", attribute(key::CU_DEVICE_ATTRIBUTE_ECC_ENABLED) != 0);
    properties.push("integrated", attribute(key::CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0);
    properties.push("mig", is_mig_instance(driver, ordinal));
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
    Ok(c_text(&name))
}

fn total_bytes(driver: &Driver, ordinal: Ordinal) -> Result<u64> {
    let mut bytes = 0;
    // SAFETY: the out-parameter is writable.
    let code = unsafe { (driver.cuDeviceTotalMem_v2)(&raw mut bytes, ordinal) };
    driver.check("cuDeviceTotalMem", code)?;
    Ok(bytes as u64)
}

/// The PCI address as `dddd:bb:dd.f`, if the driver reports it.
fn pci_address(driver: &Driver, ordinal: Ordinal) -> Option<String> {
    let mut text = [0_u8; 32];
    // SAFETY: the buffer is writable for as many bytes.
    let code = unsafe { (driver.cuDeviceGetPCIBusId)(text.as_mut_ptr().cast(), 32, ordinal) };
    code.is_success().then(|| c_text(&text).to_lowercase())
}

/// The UUID of the MIG instance, if it is one, else of the GPU.
pub(crate) fn uuid(driver: &Driver, ordinal: Ordinal) -> [u8; 16] {
    let mut uuid = CUuuid { bytes: [0; 16] };
    if let Some(api) = driver.mig_identity {
        // SAFETY: the out-parameter is writable.
        let code = unsafe { (api.cuDeviceGetUuid_v2)(&raw mut uuid, ordinal) };
        if code.is_success() {
            return uuid_bytes(uuid);
        }
    }
    gpu_uuid(driver, ordinal)
}

fn gpu_uuid(driver: &Driver, ordinal: Ordinal) -> [u8; 16] {
    let mut uuid = CUuuid { bytes: [0; 16] };
    // SAFETY: the out-parameter is writable.
    let code = unsafe { (driver.cuDeviceGetUuid)(&raw mut uuid, ordinal) };
    if code.is_success() { uuid_bytes(uuid) } else { [0; 16] }
}

fn uuid_bytes(uuid: CUuuid) -> [u8; 16] {
    uuid.bytes.map(|byte| byte.to_ne_bytes()[0])
}

/// Whether the device is a MIG instance; then units and memory are those of the instance.
pub(crate) fn is_mig_instance(driver: &Driver, ordinal: Ordinal) -> bool {
    driver.mig_identity.is_some() && uuid(driver, ordinal) != gpu_uuid(driver, ordinal)
}

/// Devices whose memory this device can access.
fn peers(driver: &Driver, own: Ordinal, count: u32) -> Vec<u32> {
    let can_access = |index: &u32| {
        let mut reachable = 0;
        let Some(peer) = ordinal(driver, *index).ok().filter(|peer| *peer != own) else { return false };
        // SAFETY: the out-parameter is writable.
        let code = unsafe { (driver.cuDeviceCanAccessPeer)(&raw mut reachable, own, peer) };
        code.is_success() && reachable == 1
    };
    (0..count).filter(can_access).collect()
}

/// The driver's own version, and the CUDA version that it supports.
fn version(driver: &Driver) -> String {
    let cuda = driver.cuda_version();
    let cuda = format!("CUDA {}.{}", cuda / 1000, cuda % 1000 / 10);
    match std::fs::read_to_string(KERNEL_MODULE_VERSION) {
        Ok(text) => format!("{} ({cuda})", text.trim()),
        Err(_) => cuda,
    }
}
