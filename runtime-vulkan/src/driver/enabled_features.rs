//! The extensions and features enabled on a device: those that it has and that the backend or kernels can use.

use std::ffi::CStr;

use ash::vk;

use super::device_caps::DeviceCaps;
use super::physical_device::has_extension;
use super::{Instance, PhysicalDevice};

/// Extensions to enable.
pub(super) fn extensions(caps: &DeviceCaps) -> Vec<&'static CStr> {
    let features = caps.features;
    let enabled = [
        (features.push_descriptors, ash::khr::push_descriptor::NAME),
        (features.host_import, ash::ext::external_memory_host::NAME),
        (features.executable_properties, ash::khr::pipeline_executable_properties::NAME),
        (features.device_fault, ash::ext::device_fault::NAME),
        (features.calibrated_timestamps, ash::ext::calibrated_timestamps::NAME),
        (features.memory_budget, ash::ext::memory_budget::NAME),
        (features.synchronization2 && caps.version.minor < 3, ash::khr::synchronization2::NAME),
        (features.pipeline_robustness, ash::ext::pipeline_robustness::NAME),
        (features.atomics_f32, ash::ext::shader_atomic_float::NAME),
        (features.cooperative_matrix, ash::khr::cooperative_matrix::NAME),
        // The specification requires it to be enabled where it exists.
        (has_extension(caps, ash::khr::portability_subset::NAME), ash::khr::portability_subset::NAME),
    ];
    enabled.into_iter().filter(|(supported, _)| *supported).map(|(_, name)| name).collect()
}

/// A device's features, filtered to those that kernels can use.
pub(super) struct EnabledFeatures {
    core: vk::PhysicalDeviceFeatures,
    v11: vk::PhysicalDeviceVulkan11Features<'static>,
    v12: vk::PhysicalDeviceVulkan12Features<'static>,
    v13: vk::PhysicalDeviceVulkan13Features<'static>,
    atomics: vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'static>,
}

impl EnabledFeatures {
    /// Queries the device's features.
    pub(super) fn query(instance: &Instance, physical: PhysicalDevice, caps: &DeviceCaps) -> Self {
        let mut v11 = vk::PhysicalDeviceVulkan11Features::default();
        let mut v12 = vk::PhysicalDeviceVulkan12Features::default();
        let mut v13 = vk::PhysicalDeviceVulkan13Features::default();
        let mut atomics = vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT::default();
        let mut all = vk::PhysicalDeviceFeatures2::default().push_next(&mut v11).push_next(&mut v12);
        all = if caps.version.minor >= 3 { all.push_next(&mut v13) } else { all };
        all = if caps.features.atomics_f32 { all.push_next(&mut atomics) } else { all };
        // SAFETY: the device belongs to this instance and supports every structure of the chain.
        unsafe { instance.handle.get_physical_device_features2(physical.0, &mut all) };
        let core = all.features;
        let end = std::ptr::null_mut();
        (v11.p_next, v12.p_next, v13.p_next, atomics.p_next) = (end, end, end, end);
        Self { core, v11, v12, v13, atomics }
    }

    pub(super) fn core(&self, robust: bool) -> vk::PhysicalDeviceFeatures {
        vk::PhysicalDeviceFeatures {
            shader_float64: self.core.shader_float64,
            shader_int64: self.core.shader_int64,
            shader_int16: self.core.shader_int16,
            robust_buffer_access: if robust { self.core.robust_buffer_access } else { vk::FALSE },
            ..Default::default()
        }
    }

    pub(super) fn v11(&self) -> vk::PhysicalDeviceVulkan11Features<'static> {
        vk::PhysicalDeviceVulkan11Features {
            storage_buffer16_bit_access: self.v11.storage_buffer16_bit_access,
            uniform_and_storage_buffer16_bit_access: self.v11.uniform_and_storage_buffer16_bit_access,
            storage_push_constant16: self.v11.storage_push_constant16,
            variable_pointers_storage_buffer: self.v11.variable_pointers_storage_buffer,
            variable_pointers: self.v11.variable_pointers,
            ..Default::default()
        }
    }

    pub(super) fn v12(&self) -> vk::PhysicalDeviceVulkan12Features<'static> {
        vk::PhysicalDeviceVulkan12Features {
            storage_buffer8_bit_access: self.v12.storage_buffer8_bit_access,
            uniform_and_storage_buffer8_bit_access: self.v12.uniform_and_storage_buffer8_bit_access,
            storage_push_constant8: self.v12.storage_push_constant8,
            shader_buffer_int64_atomics: self.v12.shader_buffer_int64_atomics,
            shader_shared_int64_atomics: self.v12.shader_shared_int64_atomics,
            shader_float16: self.v12.shader_float16,
            shader_int8: self.v12.shader_int8,
            shader_subgroup_extended_types: self.v12.shader_subgroup_extended_types,
            scalar_block_layout: self.v12.scalar_block_layout,
            uniform_buffer_standard_layout: self.v12.uniform_buffer_standard_layout,
            host_query_reset: self.v12.host_query_reset,
            timeline_semaphore: vk::TRUE,
            vulkan_memory_model: self.v12.vulkan_memory_model,
            vulkan_memory_model_device_scope: self.v12.vulkan_memory_model_device_scope,
            ..Default::default()
        }
    }

    pub(super) fn v13(&self) -> vk::PhysicalDeviceVulkan13Features<'static> {
        vk::PhysicalDeviceVulkan13Features {
            subgroup_size_control: self.v13.subgroup_size_control,
            compute_full_subgroups: self.v13.compute_full_subgroups,
            shader_integer_dot_product: self.v13.shader_integer_dot_product,
            shader_zero_initialize_workgroup_memory: self.v13.shader_zero_initialize_workgroup_memory,
            synchronization2: self.v13.synchronization2,
            maintenance4: self.v13.maintenance4,
            ..Default::default()
        }
    }

    pub(super) fn atomics(&self) -> vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'static> {
        vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT {
            shader_buffer_float32_atomics: self.atomics.shader_buffer_float32_atomics,
            shader_buffer_float32_atomic_add: self.atomics.shader_buffer_float32_atomic_add,
            shader_shared_float32_atomics: self.atomics.shader_shared_float32_atomics,
            shader_shared_float32_atomic_add: self.atomics.shader_shared_float32_atomic_add,
            ..Default::default()
        }
    }
}
