//! The features enabled on a device: those that it has and that the backend or kernels can use.

use ash::vk;

/// The features of a device, limited to those that kernels can use when they are enabled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EnabledFeatures {
    core: vk::PhysicalDeviceFeatures,
    v11: vk::PhysicalDeviceVulkan11Features<'static>,
    v12: vk::PhysicalDeviceVulkan12Features<'static>,
    v13: vk::PhysicalDeviceVulkan13Features<'static>,
    atomics: vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'static>,
}

/// The features of Vulkan 1.1, 1.2 and 1.3.
type VersionFeatures = (
    vk::PhysicalDeviceVulkan11Features<'static>,
    vk::PhysicalDeviceVulkan12Features<'static>,
    vk::PhysicalDeviceVulkan13Features<'static>,
);

impl EnabledFeatures {
    /// Keeps what the driver reported, without the chain of the query.
    pub(super) fn new(
        core: vk::PhysicalDeviceFeatures,
        (mut v11, mut v12, mut v13): VersionFeatures,
        mut atomics: vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT<'static>,
    ) -> Self {
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
