//! Shader modules and compute pipelines: layouts, compilation, and the compiler's statistics.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use ash::vk;
use runtime_core::{Error, ErrorKind, Result};

use super::{LogicalDevice, Memory, PipelineCache};
use crate::spirv::SpecValues;

/// A `VkShaderModule`.
#[derive(Debug)]
pub(crate) struct Shader {
    logical: Arc<LogicalDevice>,
    handle: vk::ShaderModule,
    /// Whether the driver optimises its entry points.
    is_optimised: bool,
}

/// A compiled entry point: a `VkPipeline` with its layouts.
#[derive(Debug)]
pub(crate) struct Pipeline {
    logical: Arc<LogicalDevice>,
    pub(super) handle: vk::Pipeline,
    pub(super) layout: vk::PipelineLayout,
    pub(super) set_layout: vk::DescriptorSetLayout,
    pub(super) template: vk::DescriptorUpdateTemplate,
    /// Number of storage buffers.
    pub(super) bindings: u32,
    /// The buffers are push descriptors.
    pub(super) push_descriptors: bool,
}

/// A range of a buffer, laid out as descriptor update templates read it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub(crate) struct Binding(vk::DescriptorBufferInfo);

/// The compiler's statistics of a kernel; `None` where the driver has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PipelineStatistics {
    pub(crate) registers: Option<u32>,
    pub(crate) spilled_bytes: Option<u32>,
}

impl PartialEq for Binding {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        (self.0.buffer, self.0.offset, self.0.range) == (other.0.buffer, other.0.offset, other.0.range)
    }
}

impl Binding {
    /// `bytes` bytes at `offset`, relative to the start of the `VkBuffer`.
    #[inline]
    pub(crate) fn of_buffer(memory: &Memory, offset: u64, bytes: u64) -> Self {
        Self(vk::DescriptorBufferInfo { buffer: memory.buffer, offset, range: bytes })
    }

    /// `bytes` bytes at `offset`, relative to the tensor's first byte.
    #[inline]
    pub(crate) fn new(memory: &Memory, offset: u64, bytes: u64) -> Self {
        Self::of_buffer(memory, memory.base_offset + offset, bytes)
    }
}

impl Shader {
    /// Creates a shader module.
    ///
    /// # Errors
    /// The driver's error.
    pub(crate) fn new(logical: &Arc<LogicalDevice>, words: &[u32], is_optimised: bool) -> Result<Self> {
        let info = vk::ShaderModuleCreateInfo::default().code(words);
        // SAFETY: the device is open; whoever loaded the code guarantees that it is valid.
        let created = unsafe { logical.handle.create_shader_module(&info, None) };
        let handle = logical.check("vkCreateShaderModule", created)?;
        Ok(Self { logical: Arc::clone(logical), handle, is_optimised })
    }

    /// Compiles an entry point that takes `bindings` buffers and `push_constant_bytes` bytes of push constants, or takes it
    /// from `cache`.
    ///
    /// # Errors
    /// `CompileFailed`, or another error of the driver.
    pub(crate) fn compile(
        &self,
        entry: &str,
        bindings: u32,
        push_constant_bytes: u32,
        spec_values: &SpecValues,
        cache: Option<&PipelineCache>,
    ) -> Result<Pipeline> {
        let logical = &self.logical;
        // On an error, dropping `pipeline` destroys what exists so far.
        let mut pipeline = Pipeline {
            logical: Arc::clone(logical),
            handle: vk::Pipeline::null(),
            layout: vk::PipelineLayout::null(),
            set_layout: vk::DescriptorSetLayout::null(),
            template: vk::DescriptorUpdateTemplate::null(),
            bindings,
            push_descriptors: logical.uses_push_descriptors(bindings),
        };
        pipeline.create_layouts(push_constant_bytes)?;
        pipeline.compile(self, entry, spec_values, cache)?;
        Ok(pipeline)
    }
}

impl Drop for Shader {
    fn drop(&mut self) {
        // SAFETY: ours; pipelines no longer need it once they are created.
        unsafe { self.logical.handle.destroy_shader_module(self.handle, None) };
    }
}

impl Pipeline {
    fn create_layouts(&mut self, push_constant_bytes: u32) -> Result<()> {
        let device = &self.logical.handle;
        let binding = |index: u32| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(index)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        };
        let bindings: Vec<_> = (0..self.bindings).map(binding).collect();
        let flags = match self.push_descriptors {
            true => vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR,
            false => vk::DescriptorSetLayoutCreateFlags::empty(),
        };
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).flags(flags);
        // SAFETY: the device is open.
        let created = unsafe { device.create_descriptor_set_layout(&info, None) };
        self.set_layout = self.logical.check("vkCreateDescriptorSetLayout", created)?;
        let constants = [vk::PushConstantRange {
            stage_flags: vk::ShaderStageFlags::COMPUTE,
            offset: 0,
            size: push_constant_bytes,
        }];
        let layouts = [self.set_layout];
        let info = vk::PipelineLayoutCreateInfo::default()
            .set_layouts(&layouts)
            .push_constant_ranges(&constants[..usize::from(push_constant_bytes > 0)]);
        // SAFETY: the device is open, and the layout of the set is alive.
        let created = unsafe { device.create_pipeline_layout(&info, None) };
        self.layout = self.logical.check("vkCreatePipelineLayout", created)?;
        if self.bindings == 0 { Ok(()) } else { self.create_template() }
    }

    /// Creates the template that updates all bindings from an array of [`Binding`]s.
    fn create_template(&mut self) -> Result<()> {
        let stride = size_of::<vk::DescriptorBufferInfo>();
        let entries: Vec<_> = (0..self.bindings)
            .map(|index| {
                vk::DescriptorUpdateTemplateEntry::default()
                    .dst_binding(index)
                    .descriptor_count(1)
                    .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                    .offset(index as usize * stride)
                    .stride(stride)
            })
            .collect();
        let kind = match self.push_descriptors {
            true => vk::DescriptorUpdateTemplateType::PUSH_DESCRIPTORS_KHR,
            false => vk::DescriptorUpdateTemplateType::DESCRIPTOR_SET,
        };
        let info = vk::DescriptorUpdateTemplateCreateInfo::default()
            .descriptor_update_entries(&entries)
            .template_type(kind)
            .descriptor_set_layout(self.set_layout)
            .pipeline_bind_point(vk::PipelineBindPoint::COMPUTE)
            .pipeline_layout(self.layout);
        // SAFETY: the layouts were just created.
        let created = unsafe { self.logical.handle.create_descriptor_update_template(&info, None) };
        self.template = self.logical.check("vkCreateDescriptorUpdateTemplate", created)?;
        Ok(())
    }

    fn compile(
        &mut self,
        shader: &Shader,
        entry: &str,
        spec_values: &SpecValues,
        cache: Option<&PipelineCache>,
    ) -> Result<()> {
        let name = CString::new(entry).map_err(|_| Error::invalid("a kernel's name contains a NUL byte"))?;
        let (mut map_entries, mut data) = (Vec::new(), Vec::new());
        for (constant_id, value) in spec_values {
            let offset = u32::try_from(data.len()).unwrap_or(u32::MAX);
            map_entries.push(vk::SpecializationMapEntry {
                constant_id: *constant_id,
                offset,
                size: value.len(),
            });
            data.extend_from_slice(value);
        }
        let special = vk::SpecializationInfo::default().map_entries(&map_entries).data(&data);
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(shader.handle)
            .name(&name)
            .specialization_info(&special);
        let mut flags = vk::PipelineCreateFlags::empty();
        if self.logical.executable_properties.is_some() {
            flags |= vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR;
        }
        if !shader.is_optimised {
            flags |= vk::PipelineCreateFlags::DISABLE_OPTIMIZATION;
        }
        let disabled = vk::PipelineRobustnessBufferBehaviorEXT::DISABLED;
        let mut robustness = vk::PipelineRobustnessCreateInfoEXT::default()
            .storage_buffers(disabled)
            .uniform_buffers(disabled)
            .vertex_inputs(disabled)
            .images(vk::PipelineRobustnessImageBehaviorEXT::DISABLED);
        let mut info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(self.layout).flags(flags);
        info = if self.logical.disables_robustness { info.push_next(&mut robustness) } else { info };
        let _compiling = self.logical.compiling.read();
        self.logical.check_alive()?;
        let cache = cache.map_or(vk::PipelineCache::null(), |cache| cache.handle);
        // SAFETY: every handle is alive, and the pipeline cache is synchronised by the driver.
        let created = unsafe { self.logical.handle.create_compute_pipelines(cache, &[info], None) };
        let created = created.map_err(|(_, code)| self.logical.fail("vkCreateComputePipelines", code));
        let handle = created.and_then(|created| {
            let first = created.first().copied().filter(|handle| *handle != vk::Pipeline::null());
            first.ok_or_else(|| {
                Error::new(
                    ErrorKind::CompileFailed,
                    "the driver created no pipeline; run `spirv-val` on the code",
                )
            })
        });
        self.handle = handle.map_err(|error| error.with_note(format_args!("kernel \"{entry}\"")))?;
        Ok(())
    }

    /// The compiler's statistics (`VK_KHR_pipeline_executable_properties`).
    pub(crate) fn statistics(&self) -> PipelineStatistics {
        let Some(calls) = &self.logical.executable_properties else { return PipelineStatistics::default() };
        let info = vk::PipelineExecutableInfoKHR::default().pipeline(self.handle);
        // SAFETY: the pipeline was created with CAPTURE_STATISTICS, and has at least one executable.
        let result = unsafe { calls.get_pipeline_executable_statistics(&info) };
        let mut statistics = PipelineStatistics::default();
        for statistic in result.unwrap_or_default() {
            statistics.record(&statistic);
        }
        statistics
    }
}

impl PipelineStatistics {
    /// Records a register count or a spill size; each driver has its own names for these.
    fn record(&mut self, statistic: &vk::PipelineExecutableStatisticKHR<'_>) {
        let name = statistic.name_as_c_str().map(CStr::to_string_lossy).unwrap_or_default().to_lowercase();
        let value = match statistic.format {
            // SAFETY: the format says which field is set.
            vk::PipelineExecutableStatisticFormatKHR::UINT64 => unsafe { statistic.value.u64 },
            // SAFETY: the format says which field is set.
            vk::PipelineExecutableStatisticFormatKHR::INT64 => unsafe { statistic.value.i64 }.unsigned_abs(),
            _ => return,
        };
        let value = u32::try_from(value).ok();
        match name.as_str() {
            "register count" | "registers" | "vgprs" | "register usage" => self.registers = value,
            "spilled bytes" | "local memory size" | "scratch size" | "scratch memory size" => {
                self.spilled_bytes = value;
            }
            _ => {}
        }
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        let device = &self.logical.handle;
        // SAFETY: ours, and no pending work uses it; null is ignored.
        unsafe { device.destroy_pipeline(self.handle, None) };
        // SAFETY: ours, and no pending work uses it; null is ignored.
        unsafe { device.destroy_descriptor_update_template(self.template, None) };
        // SAFETY: ours, and no pending work uses it; null is ignored.
        unsafe { device.destroy_pipeline_layout(self.layout, None) };
        // SAFETY: ours, and no pending work uses it; null is ignored.
        unsafe { device.destroy_descriptor_set_layout(self.set_layout, None) };
    }
}
