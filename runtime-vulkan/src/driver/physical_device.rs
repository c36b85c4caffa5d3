//! Queries the properties of physical devices.

use std::ffi::CStr;

use ash::vk;

use super::device_caps::{
    CPU, DISCRETE, DeviceCaps, DriverInfo, Features, Heap, MemoryType, QueueFamily, SubGroup, Version,
};
use super::enabled_features::EnabledFeatures;
use super::{Instance, MIN_VERSION};

/// A `VkPhysicalDevice`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PhysicalDevice(pub(super) vk::PhysicalDevice);

const SUBGROUP_OPERATIONS: [(vk::SubgroupFeatureFlags, &str); 8] = [
    (vk::SubgroupFeatureFlags::BASIC, "basic"),
    (vk::SubgroupFeatureFlags::VOTE, "vote"),
    (vk::SubgroupFeatureFlags::ARITHMETIC, "arithmetic"),
    (vk::SubgroupFeatureFlags::BALLOT, "ballot"),
    (vk::SubgroupFeatureFlags::SHUFFLE, "shuffle"),
    (vk::SubgroupFeatureFlags::SHUFFLE_RELATIVE, "shuffle_relative"),
    (vk::SubgroupFeatureFlags::CLUSTERED, "clustered"),
    (vk::SubgroupFeatureFlags::QUAD, "quad"),
];

impl PhysicalDevice {
    /// Queries everything; `DeviceCaps::unavailable_reason` says why a device cannot be opened.
    pub(crate) fn query_caps(self, instance: &Instance) -> DeviceCaps {
        let calls = &instance.handle;
        // SAFETY: the device belongs to this instance.
        let properties = unsafe { calls.get_physical_device_properties(self.0) };
        let mut caps = DeviceCaps {
            name: text(&properties.device_name),
            kind: kind(properties.device_type),
            version: Version::from_packed(properties.api_version),
            vendor_id: properties.vendor_id,
            device_id: properties.device_id,
            cache_uuid: properties.pipeline_cache_uuid,
            ..DeviceCaps::default()
        };
        limits(&mut caps, &properties.limits);
        self.memory_types(instance, &mut caps);
        self.queue_families(instance, &mut caps);
        if caps.version < MIN_VERSION {
            caps.unavailable_reason = Some(format!(
                "its driver supports Vulkan {}, but {MIN_VERSION} is required; update the driver",
                caps.version
            ));
            return caps;
        }
        self.extensions(instance, &mut caps);
        self.properties(instance, &mut caps);
        self.features(instance, &mut caps);
        self.cooperative_matrix_shapes(instance, &mut caps);
        if !caps.features.timeline_semaphores {
            caps.unavailable_reason =
                Some("its driver lacks timeline semaphores; update the driver".to_owned());
        } else if caps.compute_family().is_none() {
            caps.unavailable_reason = Some("it has no compute queue; use another device".to_owned());
        }
        caps
    }

    fn memory_types(self, instance: &Instance, caps: &mut DeviceCaps) {
        use vk::MemoryPropertyFlags as Flags;
        // SAFETY: the device belongs to this instance.
        let memory = unsafe { instance.handle.get_physical_device_memory_properties(self.0) };
        caps.heaps = memory
            .memory_heaps_as_slice()
            .iter()
            .map(|heap| Heap {
                bytes: heap.size,
                device_local: heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL),
            })
            .collect();
        let kinds = memory.memory_types_as_slice().iter().map(|kind| MemoryType {
            heap: kind.heap_index as usize,
            device_local: kind.property_flags.contains(Flags::DEVICE_LOCAL),
            host_visible: kind.property_flags.contains(Flags::HOST_VISIBLE | Flags::HOST_COHERENT),
        });
        caps.memory_types = kinds.collect();
    }

    fn queue_families(self, instance: &Instance, caps: &mut DeviceCaps) {
        // SAFETY: the device belongs to this instance.
        let families = unsafe { instance.handle.get_physical_device_queue_family_properties(self.0) };
        caps.queue_families = (0..)
            .zip(families)
            .map(|(index, family)| QueueFamily {
                index,
                count: family.queue_count,
                compute: family.queue_flags.contains(vk::QueueFlags::COMPUTE),
                graphics: family.queue_flags.contains(vk::QueueFlags::GRAPHICS),
                transfer: family.queue_flags.contains(vk::QueueFlags::TRANSFER),
                timestamp_bits: family.timestamp_valid_bits,
            })
            .collect();
    }

    fn extensions(self, instance: &Instance, caps: &mut DeviceCaps) {
        // SAFETY: the device belongs to this instance.
        let found = unsafe { instance.handle.enumerate_device_extension_properties(self.0) };
        let names = found.unwrap_or_default();
        caps.extensions = names.iter().map(|extension| text(&extension.extension_name)).collect();
    }

    fn properties(self, instance: &Instance, caps: &mut DeviceCaps) {
        let has = |name: &CStr| has_extension(caps, name);
        let (pci, push) = (has(ash::ext::pci_bus_info::NAME), has(ash::khr::push_descriptor::NAME));
        let import = has(ash::ext::external_memory_host::NAME);
        let sized = has(ash::ext::subgroup_size_control::NAME) || caps.version.minor >= 3;
        let large = has(ash::khr::maintenance4::NAME) || caps.version.minor >= 3;
        let mut v11 = vk::PhysicalDeviceVulkan11Properties::default();
        let mut v12 = vk::PhysicalDeviceVulkan12Properties::default();
        let mut bus = vk::PhysicalDevicePCIBusInfoPropertiesEXT::default();
        let mut pushed = vk::PhysicalDevicePushDescriptorPropertiesKHR::default();
        let mut host = vk::PhysicalDeviceExternalMemoryHostPropertiesEXT::default();
        let mut sizes = vk::PhysicalDeviceSubgroupSizeControlProperties::default();
        let mut four = vk::PhysicalDeviceMaintenance4Properties::default();
        let (nvidia, amd) =
            (has(ash::nv::shader_sm_builtins::NAME), has(ash::amd::shader_core_properties::NAME));
        let mut multiprocessors = vk::PhysicalDeviceShaderSMBuiltinsPropertiesNV::default();
        let mut cores = vk::PhysicalDeviceShaderCorePropertiesAMD::default();
        let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut v11).push_next(&mut v12);
        all = if pci { all.push_next(&mut bus) } else { all };
        all = if push { all.push_next(&mut pushed) } else { all };
        all = if import { all.push_next(&mut host) } else { all };
        all = if sized { all.push_next(&mut sizes) } else { all };
        all = if large { all.push_next(&mut four) } else { all };
        all = if nvidia { all.push_next(&mut multiprocessors) } else { all };
        all = if amd { all.push_next(&mut cores) } else { all };
        // SAFETY: the device belongs to this instance and supports every structure of the chain.
        unsafe { instance.handle.get_physical_device_properties2(self.0, &mut all) };
        caps.uuid = v11.device_uuid;
        let units = cores.shader_engine_count * cores.shader_arrays_per_engine_count;
        let units = multiprocessors.shader_sm_count.max(units * cores.compute_units_per_shader_array);
        caps.compute_units = Some(units).filter(|units| *units > 0);
        caps.driver = DriverInfo {
            id: v12.driver_id.as_raw(),
            name: text(&v12.driver_name),
            version: text(&v12.driver_info),
        };
        caps.allocation_bytes = v11.max_memory_allocation_size;
        if large && four.max_buffer_size != 0 {
            caps.allocation_bytes = caps.allocation_bytes.min(four.max_buffer_size);
        }
        if pci {
            caps.pci_address = Some(format!(
                "{:04x}:{:02x}:{:02x}.{:x}",
                bus.pci_domain, bus.pci_bus, bus.pci_device, bus.pci_function
            ));
        }
        caps.max_push_descriptors = if push { pushed.max_push_descriptors } else { 0 };
        caps.import_alignment = if import { host.min_imported_host_pointer_alignment } else { 0 };
        let operations =
            SUBGROUP_OPERATIONS.iter().filter(|(bit, _)| v11.subgroup_supported_operations.contains(*bit));
        let on_compute = v11.subgroup_supported_stages.contains(vk::ShaderStageFlags::COMPUTE);
        caps.sub_group = SubGroup {
            size: v11.subgroup_size,
            sizes: (sized && sizes.min_subgroup_size != 0)
                .then_some((sizes.min_subgroup_size, sizes.max_subgroup_size)),
            operations: operations.filter(|_| on_compute).map(|(_, name)| *name).collect(),
        };
    }

    fn features(self, instance: &Instance, caps: &mut DeviceCaps) {
        let has = |name: &CStr| has_extension(caps, name);
        let (float, matrix) =
            (has(ash::ext::shader_atomic_float::NAME), has(ash::khr::cooperative_matrix::NAME));
        let (figures, fault) =
            (has(ash::khr::pipeline_executable_properties::NAME), has(ash::ext::device_fault::NAME));
        let mut v11 = vk::PhysicalDeviceVulkan11Features::default();
        let mut v12 = vk::PhysicalDeviceVulkan12Features::default();
        let mut atomics = vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT::default();
        let mut matrices = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default();
        let mut executable = vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default();
        let mut faults = vk::PhysicalDeviceFaultFeaturesEXT::default();
        let mut barriers = vk::PhysicalDeviceSynchronization2Features::default();
        let mut robustness = vk::PhysicalDevicePipelineRobustnessFeaturesEXT::default();
        let mut v13 = vk::PhysicalDeviceVulkan13Features::default();
        let (second, is_1_3) = (has(ash::khr::synchronization2::NAME), caps.version.minor >= 3);
        let mut all = vk::PhysicalDeviceFeatures2::default().push_next(&mut v11).push_next(&mut v12);
        all = if is_1_3 { all.push_next(&mut v13) } else { all };
        all = if second && !is_1_3 { all.push_next(&mut barriers) } else { all };
        all = if float { all.push_next(&mut atomics) } else { all };
        all = if matrix { all.push_next(&mut matrices) } else { all };
        all = if figures { all.push_next(&mut executable) } else { all };
        all = if fault { all.push_next(&mut faults) } else { all };
        let robust = has(ash::ext::pipeline_robustness::NAME);
        all = if robust { all.push_next(&mut robustness) } else { all };
        // SAFETY: the device belongs to this instance and supports every structure of the chain.
        unsafe { instance.handle.get_physical_device_features2(self.0, &mut all) };
        let core = all.features;
        let on = |flag: vk::Bool32| flag == vk::TRUE;
        caps.features = Features {
            timeline_semaphores: on(v12.timeline_semaphore),
            host_query_reset: on(v12.host_query_reset),
            f16: on(v12.shader_float16) && on(v11.storage_buffer16_bit_access),
            f64: on(core.shader_float64),
            i8: on(v12.shader_int8),
            i16: on(core.shader_int16),
            i64: on(core.shader_int64),
            storage_8: on(v12.storage_buffer8_bit_access),
            storage_16: on(v11.storage_buffer16_bit_access),
            uniform_8: on(v12.uniform_and_storage_buffer8_bit_access),
            uniform_16: on(v11.uniform_and_storage_buffer16_bit_access),
            push_8: on(v12.storage_push_constant8),
            push_16: on(v11.storage_push_constant16),
            dot_product: on(v13.shader_integer_dot_product),
            atomics_i64: on(v12.shader_buffer_int64_atomics),
            atomics_f32: on(atomics.shader_buffer_float32_atomic_add),
            memory_model: on(v12.vulkan_memory_model),
            memory_model_device_scope: on(v12.vulkan_memory_model_device_scope),
            scalar_layout: on(v12.scalar_block_layout),
            variable_pointers: on(v11.variable_pointers_storage_buffer),
            cooperative_matrix: on(matrices.cooperative_matrix),
            memory_budget: has(ash::ext::memory_budget::NAME),
            push_descriptors: caps.max_push_descriptors > 0,
            host_import: caps.import_alignment > 0,
            executable_properties: on(executable.pipeline_executable_info),
            device_fault: on(faults.device_fault),
            synchronization2: on(v13.synchronization2) || on(barriers.synchronization2),
            pipeline_robustness: on(robustness.pipeline_robustness),
            calibrated_timestamps: has(ash::ext::calibrated_timestamps::NAME)
                && self.has_host_clock(instance),
        };
        caps.enabled = EnabledFeatures::new(core, (v11, v12, v13), atomics);
    }

    /// Whether the driver can calibrate its clock against the host's monotonic one.
    fn has_host_clock(self, instance: &Instance) -> bool {
        let calls = ash::ext::calibrated_timestamps::Instance::new(instance.entry, &instance.handle);
        // SAFETY: the device belongs to this instance and has the extension.
        let domains = unsafe { calls.get_physical_device_calibrateable_time_domains(self.0) };
        let wanted = [vk::TimeDomainKHR::DEVICE, vk::TimeDomainKHR::CLOCK_MONOTONIC];
        domains.is_ok_and(|domains| wanted.iter().all(|one| domains.contains(one)))
    }

    fn cooperative_matrix_shapes(self, instance: &Instance, caps: &mut DeviceCaps) {
        if !caps.features.cooperative_matrix {
            return;
        }
        let calls = ash::khr::cooperative_matrix::Instance::new(instance.entry, &instance.handle);
        // SAFETY: the device belongs to this instance and has the extension.
        let found = unsafe { calls.get_physical_device_cooperative_matrix_properties(self.0) };
        let shape = |found: &vk::CooperativeMatrixPropertiesKHR<'_>| {
            let (m, n, k) = (found.m_size, found.n_size, found.k_size);
            let [a, b, c] = [found.a_type, found.b_type, found.c_type].map(component);
            format!("{m}x{n}x{k} {a} * {b} + {c}")
        };
        caps.cooperative_matrix_shapes = found.unwrap_or_default().iter().map(shape).collect();
    }

    /// Budget and usage of each heap in bytes; `None` without `VK_EXT_memory_budget`.
    pub(crate) fn budget(self, instance: &Instance, caps: &DeviceCaps) -> Option<Vec<(u64, u64)>> {
        if !caps.features.memory_budget {
            return None;
        }
        let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
        let mut memory = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
        // SAFETY: the device belongs to this instance and supports the structures.
        unsafe { instance.handle.get_physical_device_memory_properties2(self.0, &mut memory) };
        let both = budget.heap_budget.iter().zip(&budget.heap_usage).map(|(budget, used)| (*budget, *used));
        Some(both.take(caps.heaps.len()).collect())
    }
}

/// The name of a cooperative matrix's component type.
fn component(kind: vk::ComponentTypeKHR) -> String {
    // `VK_COMPONENT_TYPE_BFLOAT16_KHR`, which `ash` does not have yet.
    match kind.as_raw() {
        1_000_141_000 => "bfloat16".to_owned(),
        _ => format!("{kind:?}").to_lowercase(),
    }
}

pub(super) fn has_extension(caps: &DeviceCaps, name: &CStr) -> bool {
    caps.extensions.iter().any(|known| known.as_bytes() == name.to_bytes())
}

fn limits(caps: &mut DeviceCaps, limits: &vk::PhysicalDeviceLimits) {
    caps.groups = limits.max_compute_work_group_count;
    caps.group_size = limits.max_compute_work_group_size;
    caps.group_items = limits.max_compute_work_group_invocations;
    caps.shared_bytes = limits.max_compute_shared_memory_size;
    caps.binding_bytes = u64::from(limits.max_storage_buffer_range);
    caps.binding_alignment = limits.min_storage_buffer_offset_alignment.max(1);
    caps.bindings = limits
        .max_per_stage_descriptor_storage_buffers
        .min(limits.max_descriptor_set_storage_buffers)
        .min(limits.max_per_stage_resources);
    caps.push_constant_bytes = limits.max_push_constants_size;
    caps.timestamp_period_ns = limits.timestamp_period;
}

const fn kind(kind: vk::PhysicalDeviceType) -> &'static str {
    match kind {
        vk::PhysicalDeviceType::DISCRETE_GPU => DISCRETE,
        vk::PhysicalDeviceType::INTEGRATED_GPU => "integrated",
        vk::PhysicalDeviceType::VIRTUAL_GPU => "virtual",
        vk::PhysicalDeviceType::CPU => CPU,
        _ => "other",
    }
}

/// The text of a null-terminated array.
fn text(bytes: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> =
        bytes.iter().map(|&byte| byte.to_ne_bytes()[0]).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
