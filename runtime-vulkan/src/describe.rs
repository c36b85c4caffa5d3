//! What is told of devices.

use runtime_core::{Capabilities, DeviceInfo, DeviceKind, Limits, MemorySpace, Options, abi};

use crate::driver::Facts;
use crate::memory::{ALIGNMENT_BYTES, Space};
use crate::module::FORMATS;

/// `DLDeviceType` of memory of Vulkan devices.
const DLPACK_VULKAN: i32 = 7;

/// A processor has one for each of its threads that the program may use, if the driver does not tell.
fn units(facts: &Facts) -> u32 {
    let threads = || std::thread::available_parallelism().ok().and_then(|n| u32::try_from(n.get()).ok());
    let told = if facts.units == 0 && facts.is_processor() { threads() } else { Some(facts.units) };
    told.unwrap_or(0).max(1)
}

/// A device's description.
pub(crate) fn device(index: u32, facts: &Facts) -> DeviceInfo {
    let mut info = DeviceInfo::new(DeviceKind::Accelerator, index, &facts.name);
    info.arch = format!("vulkan-{}.{}", facts.version.major, facts.version.minor);
    info.vendor = vendor(facts.vendor_id);
    let (_, name, version) = &facts.driver;
    info.driver_version = [name.as_str(), version.as_str()].join(" ").trim().to_owned();
    info.dlpack_type = DLPACK_VULKAN;
    info.uuid = facts.uuid;
    info.compute_units = units(facts);
    info.pci_address.clone_from(&facts.pci_address);
    info.unusable.clone_from(&facts.unusable);
    info.formats = FORMATS.map(str::to_owned).to_vec();
    info.limits = Limits {
        groups: facts.groups.map(u64::from),
        group_size: facts.group_size,
        group_items: facts.group_items,
        shared_bytes: u64::from(facts.shared_bytes),
        allocation_bytes: facts.allocation_bytes,
    };
    info.spaces = spaces(facts);
    info.capabilities = capabilities(facts);
    info.properties = properties(facts);
    info
}

fn spaces(facts: &Facts) -> Vec<MemorySpace> {
    let space = |&(space, name): &(Space, &str)| MemorySpace {
        name: name.to_owned(),
        total_bytes: facts.heap_bytes(space != Space::Pinned),
        alignment_bytes: ALIGNMENT_BYTES,
        host_visible: space != Space::Device,
        kernel_visible: true,
    };
    Space::all(facts).iter().map(space).collect()
}

fn capabilities(facts: &Facts) -> Capabilities {
    let has = |condition: bool, capability: u64| if condition { capability } else { 0 };
    let features = &facts.features;
    let stamps = facts.compute_family().is_some_and(|family| family.stamp_bits > 0);
    Capabilities(
        abi::CAP_WAIT_FOR
            | abi::CAP_EMPTY_KERNEL
            | abi::CAP_GROUPS
            | abi::CAP_GRAPHS
            | abi::CAP_ROWS
            | has(stamps && features.host_reset, abi::CAP_TIMESTAMPS)
            | has(features.host_import, abi::CAP_IMPORT)
            | has(features.f16, abi::CAP_F16)
            | has(features.f64, abi::CAP_F64),
    )
}

fn properties(facts: &Facts) -> Options {
    let mut properties = Options::new();
    properties.push("type", facts.kind);
    properties.push("vulkan_version", facts.version.to_string());
    properties.push("driver_id", i64::from(facts.driver.0));
    properties.push("vendor_id", i64::from(facts.vendor_id));
    properties.push("device_id", i64::from(facts.device_id));
    let mut put = |key: &str, value: u64| {
        if let (1.., Ok(value)) = (value, i64::try_from(value)) {
            properties.push(key, value);
        }
    };
    put("binding_bytes", facts.binding_bytes);
    put("binding_alignment_bytes", facts.binding_alignment);
    put("bindings", u64::from(facts.bindings));
    put("push_constant_bytes", u64::from(facts.push_bytes));
    put("sub_group_size", u64::from(facts.sub_group.size));
    if let Some((least, most)) = facts.sub_group.sizes {
        put("sub_group_size_min", u64::from(least));
        put("sub_group_size_max", u64::from(most));
    }
    for family in &facts.families {
        let kinds =
            [(family.compute, "compute"), (family.graphics, "graphics"), (family.transfer, "transfer")];
        let kinds: Vec<_> = kinds.iter().filter(|(is, _)| *is).map(|(_, kind)| *kind).collect();
        properties.push("queues", format!("{} x {}", family.count, kinds.join("+")));
    }
    for heap in &facts.heaps {
        let place = if heap.on_device { "device" } else { "host" };
        properties.push("heap", format!("{} bytes, {place}", heap.bytes));
    }
    for operation in &facts.sub_group.operations {
        properties.push("sub_group_operation", *operation);
    }
    for (name, _) in facts.features.named().iter().filter(|(_, there)| *there) {
        properties.push("feature", *name);
    }
    for shape in &facts.matrices {
        properties.push("cooperative_matrix", shape.as_str());
    }
    properties
}

/// The vendor's name, by its PCI number or Khronos' own.
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
