//! Asking a driver for everything that it tells of a device.

use std::ffi::CStr;

use ash::vk;

use super::facts::{CPU, Facts, Family, Features, Heap, MemoryKind, SubGroup, Version};
use super::{FLOOR, Instance};

/// A device of a driver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Physical(pub(super) vk::PhysicalDevice);

const OPERATIONS: [(vk::SubgroupFeatureFlags, &str); 8] = [
    (vk::SubgroupFeatureFlags::BASIC, "basic"),
    (vk::SubgroupFeatureFlags::VOTE, "vote"),
    (vk::SubgroupFeatureFlags::ARITHMETIC, "arithmetic"),
    (vk::SubgroupFeatureFlags::BALLOT, "ballot"),
    (vk::SubgroupFeatureFlags::SHUFFLE, "shuffle"),
    (vk::SubgroupFeatureFlags::SHUFFLE_RELATIVE, "shuffle_relative"),
    (vk::SubgroupFeatureFlags::CLUSTERED, "clustered"),
    (vk::SubgroupFeatureFlags::QUAD, "quad"),
];

impl Physical {
    /// Everything that the driver tells; `Facts::unusable` says why a device cannot be opened.
    pub(crate) fn facts(self, instance: &Instance) -> Facts {
        let calls = &instance.handle;
        // SAFETY: the device is of this instance.
        let plain = unsafe { calls.get_physical_device_properties(self.0) };
        let mut facts = Facts {
            name: text(&plain.device_name),
            kind: kind(plain.device_type),
            version: Version::of(plain.api_version),
            vendor_id: plain.vendor_id,
            device_id: plain.device_id,
            cache_uuid: plain.pipeline_cache_uuid,
            ..Facts::default()
        };
        limits(&mut facts, &plain.limits);
        self.memory(instance, &mut facts);
        self.families(instance, &mut facts);
        if facts.version < FLOOR {
            facts.unusable = Some(format!(
                "its driver is of Vulkan {}, {FLOOR} is needed; update the driver",
                facts.version
            ));
            return facts;
        }
        self.extensions(instance, &mut facts);
        self.properties(instance, &mut facts);
        self.features(instance, &mut facts);
        self.matrices(instance, &mut facts);
        if !facts.features.timeline {
            facts.unusable = Some("its driver has no timeline semaphores; update the driver".to_owned());
        } else if facts.compute_family().is_none() {
            facts.unusable = Some("it has no queue for compute; use another device".to_owned());
        }
        facts
    }

    fn memory(self, instance: &Instance, facts: &mut Facts) {
        use vk::MemoryPropertyFlags as Flags;
        // SAFETY: the device is of this instance.
        let memory = unsafe { instance.handle.get_physical_device_memory_properties(self.0) };
        facts.heaps = memory
            .memory_heaps_as_slice()
            .iter()
            .map(|heap| Heap {
                bytes: heap.size,
                on_device: heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL),
            })
            .collect();
        let kinds = memory.memory_types_as_slice().iter().map(|kind| MemoryKind {
            heap: kind.heap_index as usize,
            on_device: kind.property_flags.contains(Flags::DEVICE_LOCAL),
            on_host: kind.property_flags.contains(Flags::HOST_VISIBLE | Flags::HOST_COHERENT),
        });
        facts.memory = kinds.collect();
    }

    fn families(self, instance: &Instance, facts: &mut Facts) {
        // SAFETY: the device is of this instance.
        let families = unsafe { instance.handle.get_physical_device_queue_family_properties(self.0) };
        facts.families = (0..)
            .zip(families)
            .map(|(index, family)| Family {
                index,
                count: family.queue_count,
                compute: family.queue_flags.contains(vk::QueueFlags::COMPUTE),
                graphics: family.queue_flags.contains(vk::QueueFlags::GRAPHICS),
                transfer: family.queue_flags.contains(vk::QueueFlags::TRANSFER),
                stamp_bits: family.timestamp_valid_bits,
            })
            .collect();
    }

    fn extensions(self, instance: &Instance, facts: &mut Facts) {
        // SAFETY: the device is of this instance.
        let found = unsafe { instance.handle.enumerate_device_extension_properties(self.0) };
        let names = found.unwrap_or_default();
        facts.extensions = names.iter().map(|extension| text(&extension.extension_name)).collect();
    }

    fn properties(self, instance: &Instance, facts: &mut Facts) {
        let has = |name: &CStr| has(facts, name);
        let (pci, push) = (has(ash::ext::pci_bus_info::NAME), has(ash::khr::push_descriptor::NAME));
        let import = has(ash::ext::external_memory_host::NAME);
        let sized = has(ash::ext::subgroup_size_control::NAME) || facts.version.minor >= 3;
        let large = has(ash::khr::maintenance4::NAME) || facts.version.minor >= 3;
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
        // SAFETY: the device is of this instance, and knows every structure of the chain.
        unsafe { instance.handle.get_physical_device_properties2(self.0, &mut all) };
        facts.uuid = v11.device_uuid;
        let units = cores.shader_engine_count * cores.shader_arrays_per_engine_count;
        facts.units = multiprocessors.shader_sm_count.max(units * cores.compute_units_per_shader_array);
        facts.driver = (v12.driver_id.as_raw(), text(&v12.driver_name), text(&v12.driver_info));
        facts.allocation_bytes = v11.max_memory_allocation_size;
        if large && four.max_buffer_size != 0 {
            facts.allocation_bytes = facts.allocation_bytes.min(four.max_buffer_size);
        }
        if pci {
            facts.pci_address = format!(
                "{:04x}:{:02x}:{:02x}.{:x}",
                bus.pci_domain, bus.pci_bus, bus.pci_device, bus.pci_function
            );
        }
        facts.pushed_bindings = if push { pushed.max_push_descriptors } else { 0 };
        facts.import_alignment = if import { host.min_imported_host_pointer_alignment } else { 0 };
        let operations =
            OPERATIONS.iter().filter(|(bit, _)| v11.subgroup_supported_operations.contains(*bit));
        let on_compute = v11.subgroup_supported_stages.contains(vk::ShaderStageFlags::COMPUTE);
        facts.sub_group = SubGroup {
            size: v11.subgroup_size,
            sizes: (sized && sizes.min_subgroup_size != 0)
                .then_some((sizes.min_subgroup_size, sizes.max_subgroup_size)),
            operations: operations.filter(|_| on_compute).map(|(_, name)| *name).collect(),
        };
    }

    fn features(self, instance: &Instance, facts: &mut Facts) {
        let has = |name: &CStr| has(facts, name);
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
        let (second, newer) = (has(ash::khr::synchronization2::NAME), facts.version.minor >= 3);
        let mut all = vk::PhysicalDeviceFeatures2::default().push_next(&mut v11).push_next(&mut v12);
        all = if newer { all.push_next(&mut v13) } else { all };
        all = if second && !newer { all.push_next(&mut barriers) } else { all };
        all = if float { all.push_next(&mut atomics) } else { all };
        all = if matrix { all.push_next(&mut matrices) } else { all };
        all = if figures { all.push_next(&mut executable) } else { all };
        all = if fault { all.push_next(&mut faults) } else { all };
        let robust = has(ash::ext::pipeline_robustness::NAME);
        all = if robust { all.push_next(&mut robustness) } else { all };
        // SAFETY: the device is of this instance, and knows every structure of the chain.
        unsafe { instance.handle.get_physical_device_features2(self.0, &mut all) };
        let core = all.features;
        let on = |flag: vk::Bool32| flag == vk::TRUE;
        facts.features = Features {
            timeline: on(v12.timeline_semaphore),
            host_reset: on(v12.host_query_reset),
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
            memory_model_device: on(v12.vulkan_memory_model_device_scope),
            scalar_layout: on(v12.scalar_block_layout),
            variable_pointers: on(v11.variable_pointers_storage_buffer),
            cooperative_matrix: on(matrices.cooperative_matrix),
            memory_budget: has(ash::ext::memory_budget::NAME),
            push_descriptors: facts.pushed_bindings > 0,
            host_import: facts.import_alignment > 0,
            executable_properties: on(executable.pipeline_executable_info),
            device_fault: on(faults.device_fault),
            synchronization2: on(v13.synchronization2) || on(barriers.synchronization2),
            pipeline_robustness: on(robustness.pipeline_robustness),
            calibrated: has(ash::ext::calibrated_timestamps::NAME) && self.has_host_clock(instance),
        };
    }

    /// Whether the driver compares its clock with the host's.
    fn has_host_clock(self, instance: &Instance) -> bool {
        let calls = ash::ext::calibrated_timestamps::Instance::new(instance.entry, &instance.handle);
        // SAFETY: the device is of this instance and has the extension.
        let domains = unsafe { calls.get_physical_device_calibrateable_time_domains(self.0) };
        let wanted = [vk::TimeDomainKHR::DEVICE, vk::TimeDomainKHR::CLOCK_MONOTONIC];
        domains.is_ok_and(|domains| wanted.iter().all(|one| domains.contains(one)))
    }

    fn matrices(self, instance: &Instance, facts: &mut Facts) {
        if !facts.features.cooperative_matrix {
            return;
        }
        let calls = ash::khr::cooperative_matrix::Instance::new(instance.entry, &instance.handle);
        // SAFETY: the device is of this instance and has the extension.
        let found = unsafe { calls.get_physical_device_cooperative_matrix_properties(self.0) };
        let shape = |found: &vk::CooperativeMatrixPropertiesKHR<'_>| {
            let (m, n, k) = (found.m_size, found.n_size, found.k_size);
            let [a, b, c] = [found.a_type, found.b_type, found.c_type].map(component);
            format!("{m}x{n}x{k} {a} * {b} + {c}")
        };
        facts.matrices = found.unwrap_or_default().iter().map(shape).collect();
    }

    /// Bytes of each heap that the system lets the program have, and of those in use; `None` where it does not tell.
    pub(crate) fn budget(self, instance: &Instance, facts: &Facts) -> Option<Vec<(u64, u64)>> {
        if !facts.features.memory_budget {
            return None;
        }
        let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
        let mut memory = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
        // SAFETY: the device is of this instance, and knows the structures.
        unsafe { instance.handle.get_physical_device_memory_properties2(self.0, &mut memory) };
        let both = budget.heap_budget.iter().zip(&budget.heap_usage).map(|(budget, used)| (*budget, *used));
        Some(both.take(facts.heaps.len()).collect())
    }
}

/// The name of a matrix's element type.
fn component(kind: vk::ComponentTypeKHR) -> String {
    // `VK_COMPONENT_TYPE_BFLOAT16_KHR`, which is newer than the bindings.
    match kind.as_raw() {
        1_000_141_000 => "bfloat16".to_owned(),
        _ => format!("{kind:?}").to_lowercase(),
    }
}

pub(super) fn has(facts: &Facts, name: &CStr) -> bool {
    facts.extensions.iter().any(|known| known.as_bytes() == name.to_bytes())
}

fn limits(facts: &mut Facts, limits: &vk::PhysicalDeviceLimits) {
    facts.groups = limits.max_compute_work_group_count;
    facts.group_size = limits.max_compute_work_group_size;
    facts.group_items = limits.max_compute_work_group_invocations;
    facts.shared_bytes = limits.max_compute_shared_memory_size;
    facts.binding_bytes = u64::from(limits.max_storage_buffer_range);
    facts.binding_alignment = limits.min_storage_buffer_offset_alignment.max(1);
    facts.bindings = limits
        .max_per_stage_descriptor_storage_buffers
        .min(limits.max_descriptor_set_storage_buffers)
        .min(limits.max_per_stage_resources);
    facts.push_bytes = limits.max_push_constants_size;
    facts.tick_ns = limits.timestamp_period;
}

const fn kind(kind: vk::PhysicalDeviceType) -> &'static str {
    match kind {
        vk::PhysicalDeviceType::DISCRETE_GPU => "discrete",
        vk::PhysicalDeviceType::INTEGRATED_GPU => "integrated",
        vk::PhysicalDeviceType::VIRTUAL_GPU => "virtual",
        vk::PhysicalDeviceType::CPU => CPU,
        _ => "other",
    }
}

/// Terminated text of a fixed size.
fn text(bytes: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> =
        bytes.iter().map(|&byte| byte.to_ne_bytes()[0]).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
