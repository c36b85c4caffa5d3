//! Kernels as the driver has them: code, layouts, and what the compiler says.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use ash::vk;
use runtime_core::{Error, ErrorKind, Result};

use super::{Logical, Memory};

/// Code that was handed to the driver.
#[derive(Debug)]
pub(crate) struct Shader {
    logical: Arc<Logical>,
    handle: vk::ShaderModule,
}

/// Values of specialisation constants: the constant's number, and the bytes of its value.
pub(crate) type Specialised = Vec<(u32, Vec<u8>)>;

/// A compiled entry point.
#[derive(Debug)]
pub(crate) struct Pipeline {
    logical: Arc<Logical>,
    pub(super) handle: vk::Pipeline,
    pub(super) layout: vk::PipelineLayout,
    pub(super) set_layout: vk::DescriptorSetLayout,
    pub(super) template: vk::DescriptorUpdateTemplate,
    /// How many buffers it takes.
    pub(super) bindings: u32,
    /// They go into the commands.
    pub(super) pushed: bool,
}

/// A range of a buffer, in the form that the driver reads.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub(crate) struct Binding(vk::DescriptorBufferInfo);

/// What the driver's compiler says of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
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
    /// `bytes` bytes from `offset` on, which counts from the first byte of the driver's buffer.
    #[inline]
    pub(crate) fn of_buffer(memory: &Memory, offset: u64, bytes: u64) -> Self {
        Self(vk::DescriptorBufferInfo { buffer: memory.buffer, offset, range: bytes })
    }

    /// `bytes` bytes from `offset` on, which counts from the first byte that counts.
    #[inline]
    pub(crate) fn new(memory: &Memory, offset: u64, bytes: u64) -> Self {
        Self::of_buffer(memory, memory.start + offset, bytes)
    }
}

impl Shader {
    /// Hands code to the driver.
    ///
    /// # Errors
    /// Whatever the driver says.
    pub(crate) fn new(logical: &Arc<Logical>, words: &[u32]) -> Result<Self> {
        let info = vk::ShaderModuleCreateInfo::default().code(words);
        // SAFETY: the device is open; that the code is valid is vouched for by whoever loaded it.
        let made = unsafe { logical.handle.create_shader_module(&info, None) };
        Ok(Self { logical: Arc::clone(logical), handle: logical.check("vkCreateShaderModule", made)? })
    }

    /// Compiles an entry point that takes `bindings` buffers and `push_bytes` bytes of constants.
    ///
    /// # Errors
    /// `CompileFailed`, or whatever else the driver says.
    pub(crate) fn pipeline(
        &self,
        entry: &str,
        bindings: u32,
        push_bytes: u32,
        specialised: &Specialised,
    ) -> Result<Pipeline> {
        let logical = &self.logical;
        // On an error the drop destroys what was made so far.
        let mut made = Pipeline {
            logical: Arc::clone(logical),
            handle: vk::Pipeline::null(),
            layout: vk::PipelineLayout::null(),
            set_layout: vk::DescriptorSetLayout::null(),
            template: vk::DescriptorUpdateTemplate::null(),
            bindings,
            pushed: logical.pushes(bindings),
        };
        made.lay_out(push_bytes)?;
        made.compile(self, entry, specialised)?;
        Ok(made)
    }
}

impl Drop for Shader {
    fn drop(&mut self) {
        // SAFETY: ours; pipelines that were made of it do not need it any more.
        unsafe { self.logical.handle.destroy_shader_module(self.handle, None) };
    }
}

impl Pipeline {
    fn lay_out(&mut self, push_bytes: u32) -> Result<()> {
        let device = &self.logical.handle;
        let binding = |index: u32| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(index)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        };
        let bindings: Vec<_> = (0..self.bindings).map(binding).collect();
        let flags = match self.pushed {
            true => vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR,
            false => vk::DescriptorSetLayoutCreateFlags::empty(),
        };
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).flags(flags);
        // SAFETY: the device is open.
        let made = unsafe { device.create_descriptor_set_layout(&info, None) };
        self.set_layout = self.logical.check("vkCreateDescriptorSetLayout", made)?;
        let constants = [vk::PushConstantRange {
            stage_flags: vk::ShaderStageFlags::COMPUTE,
            offset: 0,
            size: push_bytes,
        }];
        let layouts = [self.set_layout];
        let info = vk::PipelineLayoutCreateInfo::default()
            .set_layouts(&layouts)
            .push_constant_ranges(&constants[..usize::from(push_bytes > 0)]);
        // SAFETY: as above.
        let made = unsafe { device.create_pipeline_layout(&info, None) };
        self.layout = self.logical.check("vkCreatePipelineLayout", made)?;
        if self.bindings == 0 { Ok(()) } else { self.make_template() }
    }

    /// One entry for all buffers, which follow each other.
    fn make_template(&mut self) -> Result<()> {
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
        let kind = match self.pushed {
            true => vk::DescriptorUpdateTemplateType::PUSH_DESCRIPTORS_KHR,
            false => vk::DescriptorUpdateTemplateType::DESCRIPTOR_SET,
        };
        let info = vk::DescriptorUpdateTemplateCreateInfo::default()
            .descriptor_update_entries(&entries)
            .template_type(kind)
            .descriptor_set_layout(self.set_layout)
            .pipeline_bind_point(vk::PipelineBindPoint::COMPUTE)
            .pipeline_layout(self.layout);
        // SAFETY: the layouts were just made.
        let made = unsafe { self.logical.handle.create_descriptor_update_template(&info, None) };
        self.template = self.logical.check("vkCreateDescriptorUpdateTemplate", made)?;
        Ok(())
    }

    fn compile(&mut self, shader: &Shader, entry: &str, specialised: &Specialised) -> Result<()> {
        let name =
            CString::new(entry).map_err(|_| Error::invalid("a kernel's name has a zero byte in it"))?;
        let (mut entries, mut data) = (Vec::new(), Vec::new());
        for (constant_id, value) in specialised {
            let offset = u32::try_from(data.len()).unwrap_or(u32::MAX);
            entries.push(vk::SpecializationMapEntry { constant_id: *constant_id, offset, size: value.len() });
            data.extend_from_slice(value);
        }
        let special = vk::SpecializationInfo::default().map_entries(&entries).data(&data);
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(shader.handle)
            .name(&name)
            .specialization_info(&special);
        let flags = match self.logical.figures {
            Some(_) => vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR,
            None => vk::PipelineCreateFlags::empty(),
        };
        let unchecked = vk::PipelineRobustnessBufferBehaviorEXT::DISABLED;
        let mut robustness = vk::PipelineRobustnessCreateInfoEXT::default()
            .storage_buffers(unchecked)
            .uniform_buffers(unchecked)
            .vertex_inputs(unchecked)
            .images(vk::PipelineRobustnessImageBehaviorEXT::DISABLED);
        let mut info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(self.layout).flags(flags);
        info = if self.logical.tells_unchecked { info.push_next(&mut robustness) } else { info };
        let _compiling = self.logical.compiling.read();
        self.logical.check_alive()?;
        let cache = self.logical.cache.handle;
        // SAFETY: everything that is named is alive, and the driver locks the cache itself.
        let made = unsafe { self.logical.handle.create_compute_pipelines(cache, &[info], None) };
        let made = made.map_err(|(_, code)| self.logical.fail("vkCreateComputePipelines", code));
        let handle = made.and_then(|made| {
            let first = made.first().copied().filter(|handle| *handle != vk::Pipeline::null());
            first.ok_or_else(|| Error::new(ErrorKind::CompileFailed, "the driver made no pipeline"))
        });
        self.handle = handle.map_err(|error| error.with_note(format_args!("kernel \"{entry}\"")))?;
        Ok(())
    }

    /// What the driver's compiler says, where it does.
    pub(crate) fn figures(&self) -> Figures {
        let Some(calls) = &self.logical.figures else { return Figures::default() };
        let info = vk::PipelineExecutableInfoKHR::default().pipeline(self.handle);
        // SAFETY: the pipeline was made to be asked; a compute pipeline has one executable or more.
        let told = unsafe { calls.get_pipeline_executable_statistics(&info) };
        let mut figures = Figures::default();
        for statistic in told.unwrap_or_default() {
            figures.note(&statistic);
        }
        figures
    }
}

impl Figures {
    /// Takes a figure whose name says registers or spilled memory: each driver has names of its own.
    fn note(&mut self, statistic: &vk::PipelineExecutableStatisticKHR<'_>) {
        let name = statistic.name_as_c_str().map(CStr::to_string_lossy).unwrap_or_default().to_lowercase();
        let value = match statistic.format {
            // SAFETY: the format says which member is set.
            vk::PipelineExecutableStatisticFormatKHR::UINT64 => unsafe { statistic.value.u64 },
            // SAFETY: as above.
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
        // SAFETY: ours, and no work uses it any more; null is ignored.
        unsafe { device.destroy_pipeline(self.handle, None) };
        // SAFETY: as above.
        unsafe { device.destroy_descriptor_update_template(self.template, None) };
        // SAFETY: as above.
        unsafe { device.destroy_pipeline_layout(self.layout, None) };
        // SAFETY: as above.
        unsafe { device.destroy_descriptor_set_layout(self.set_layout, None) };
    }
}
