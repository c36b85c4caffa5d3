//! Converts device capabilities to `DeviceInfo`.

use runtime_core::device::{Capabilities, Limits, MemorySpace};
use runtime_core::{CodeFormat, DeviceInfo, DeviceKind, Options, abi};

use crate::driver::{DeviceCaps, MemoryLocation};
use crate::memory::{self, ALIGNMENT_BYTES};
use crate::module::FORMATS;

/// DLPack's `DLDeviceType` of Vulkan memory.
pub(crate) const DLPACK_VULKAN: i32 = 7;
/// The capabilities of every device.
pub(crate) const BASE_CAPABILITIES: u64 = abi::CAP_WAIT_FOR
    | abi::CAP_NOOP_KERNEL
    | abi::CAP_GROUPS
    | abi::CAP_GRAPHS
    | abi::CAP_COPY_2D
    | abi::CAP_IMPORT_DEVICE_MEMORY;

/// The description of a device.
pub(crate) fn device(index: u32, caps: &DeviceCaps) -> DeviceInfo {
    let mut info = DeviceInfo::new(DeviceKind::Accelerator, index, &caps.name);
    info.arch = Some(format!("vulkan-{}.{}", caps.version.major, caps.version.minor));
    info.vendor = Some(vendor(caps.vendor_id));
    let driver = [caps.driver.name.as_str(), caps.driver.version.as_str()].join(" ");
    info.driver_version = Some(driver.trim().to_owned()).filter(|driver| !driver.is_empty());
    info.dlpack_type = DLPACK_VULKAN;
    info.uuid = Some(caps.uuid).filter(|uuid| *uuid != [0; 16]);
    info.compute_units = caps.compute_units;
    info.pci_address.clone_from(&caps.pci_address);
    info.unavailable_reason.clone_from(&caps.unavailable_reason);
    info.formats = FORMATS.map(CodeFormat::from).to_vec();
    info.limits = Limits {
        groups: caps.groups.map(u64::from),
        group_size: caps.group_size,
        group_items: caps.group_items,
        shared_bytes: u64::from(caps.shared_bytes),
        allocation_bytes: Some(caps.allocation_bytes).filter(|bytes| *bytes > 0),
    };
    info.spaces = spaces(caps);
    info.capabilities = capabilities(caps);
    info.properties = properties(caps);
    info
}

fn spaces(caps: &DeviceCaps) -> Vec<MemorySpace> {
    let space = |&(space, name): &(MemoryLocation, &str)| MemorySpace {
        name: name.to_owned(),
        total_bytes: Some(caps.heap_bytes(space != MemoryLocation::Pinned)).filter(|bytes| *bytes > 0),
        alignment_bytes: ALIGNMENT_BYTES,
        host_visible: space != MemoryLocation::Device,
        kernel_visible: true,
    };
    memory::spaces(caps).iter().map(space).collect()
}

fn capabilities(caps: &DeviceCaps) -> Capabilities {
    let has = |condition: bool, capability: u64| if condition { capability } else { 0 };
    let features = &caps.features;
    let has_timestamps = caps.compute_family().is_some_and(|family| family.timestamp_bits > 0);
    Capabilities(
        BASE_CAPABILITIES
            | has(has_timestamps && features.host_query_reset, abi::CAP_TIMESTAMPS)
            | has(features.host_import, abi::CAP_IMPORT_HOST)
            | has(features.f16, abi::CAP_F16)
            | has(features.f64, abi::CAP_F64),
    )
}

fn properties(caps: &DeviceCaps) -> Options {
    let mut properties = Options::new();
    properties.push("type", caps.kind);
    properties.push("vulkan_version", caps.version.to_string());
    properties.push("driver_id", i64::from(caps.driver.id));
    properties.push("vendor_id", i64::from(caps.vendor_id));
    properties.push("device_id", i64::from(caps.device_id));
    properties.push_nonzero("binding_bytes", caps.binding_bytes);
    properties.push_nonzero("binding_alignment_bytes", caps.binding_alignment);
    properties.push_nonzero("bindings", u64::from(caps.bindings));
    properties.push_nonzero("push_constant_bytes", u64::from(caps.push_constant_bytes));
    properties.push_nonzero("sub_group_size", u64::from(caps.sub_group.size));
    if let Some((least, most)) = caps.sub_group.sizes {
        properties.push_nonzero("sub_group_size_min", u64::from(least));
        properties.push_nonzero("sub_group_size_max", u64::from(most));
    }
    for family in &caps.queue_families {
        let kinds =
            [(family.compute, "compute"), (family.graphics, "graphics"), (family.transfer, "transfer")];
        let kinds: Vec<_> = kinds.iter().filter(|(is, _)| *is).map(|(_, kind)| *kind).collect();
        properties.push("queues", format!("{} x {}", family.count, kinds.join("+")));
    }
    for heap in &caps.heaps {
        let location = if heap.device_local { "device" } else { "host" };
        properties.push("heap", format!("{} bytes, {location}", heap.bytes));
    }
    for operation in &caps.sub_group.operations {
        properties.push("sub_group_operation", *operation);
    }
    for (name, _) in caps.features.named().iter().filter(|(_, supported)| *supported) {
        properties.push("feature", *name);
    }
    for shape in &caps.cooperative_matrix_shapes {
        properties.push("cooperative_matrix", shape.as_str());
    }
    properties
}

/// A vendor's name, by PCI or Khronos vendor id.
fn vendor(id: u32) -> String {
    match id {
        0x10de => "NVIDIA".to_owned(),
        0x1002 => "AMD".to_owned(),
        0x8086 => "Intel".to_owned(),
        0x13b5 => "Arm".to_owned(),
        0x5143 => "Qualcomm".to_owned(),
        0x106b => "Apple".to_owned(),
        0x1010 => "Imagination".to_owned(),
        0x14e4 => "Broadcom".to_owned(),
        0x1_0005 => "Mesa".to_owned(),
        other => format!("{other:#06x}"),
    }
}
