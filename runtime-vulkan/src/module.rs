//! Loaded code and its entry points.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::backend::{Kernel, Module, OptionSpec, Source, check_format};
use runtime_core::code::{ArgKind, KernelInfo, Param};
use runtime_core::{Access, Error, ErrorKind, Options, Result};

use crate::binary::{self, VulkanBinary};
use crate::device_state::DeviceState;
use crate::driver::{Pipeline, PipelineCache, Shader};
use crate::spirv::{self, Interface, SpecValues, SpirvModule};
use crate::spirv_capabilities;

/// SPIR-V.
pub(crate) const SHADER_FORMAT: &str = "spirv-shader";
/// Accepted formats.
pub(crate) const FORMATS: [&str; 2] = [SHADER_FORMAT, binary::FORMAT];

/// The load option of code for a debugger.
const DEBUG: &str = "debug";

/// The load options of SPIR-V.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::module(
            "constant",
            "",
            "Value of a specialisation constant, as NAME=VALUE or ID=VALUE; may be repeated.",
        ),
        OptionSpec::module(
            DEBUG,
            false,
            "Compile without optimisation (VK_PIPELINE_CREATE_DISABLE_OPTIMIZATION_BIT), for debuggers.",
        ),
    ]
}

/// The option for code that was compiled with `options`.
pub(crate) fn carried_options(options: &Options) -> Options {
    if options.flag(DEBUG) { Options::new().with(DEBUG, true) } else { Options::new() }
}

/// A shader module and its compiled entry points.
#[derive(Debug)]
struct Loaded {
    // Declared, and so dropped, before `shared`, which they belong to.
    /// By entry point.
    pipelines: Mutex<HashMap<String, Arc<Pipeline>>>,
    /// What the driver compiled before.
    cache: Option<PipelineCache>,
    shader: Shader,
    spirv: SpirvModule,
    spec_values: SpecValues,
    shared: Arc<DeviceState>,
}

/// Loaded code.
#[derive(Debug)]
pub struct VulkanModule {
    loaded: Arc<Loaded>,
    symbols: Vec<String>,
}

impl VulkanModule {
    pub(crate) fn load(shared: &Arc<DeviceState>, source: &Source<'_>) -> Result<Self> {
        let logical = &shared.logical;
        logical.check_alive()?;
        check_format(source.format, &FORMATS)?;
        let code = source.bytes()?;
        if source.format == SHADER_FORMAT {
            return Self::load_spirv(shared, &code, source.options, None);
        }
        if let Some((key, _)) = source.options.iter().find(|(key, _)| *key != DEBUG) {
            return Err(Error::invalid(format!(
                "option \"{key}\" applies to format \"{SHADER_FORMAT}\"; a binary has its constants' values"
            )));
        }
        Self::load_binary(shared, &VulkanBinary::decode(&code)?, source.options)
    }

    /// Loads SPIR-V; pipelines are looked for in `cache`, and added to it.
    pub(crate) fn load_spirv(
        shared: &Arc<DeviceState>,
        code: &[u8],
        options: &Options,
        cache: Option<PipelineCache>,
    ) -> Result<Self> {
        let words = spirv::words(code)?;
        let spirv = SpirvModule::parse(&words)?;
        let given = options.texts("constant").filter(|text| !text.is_empty());
        let spec_values = spirv.parse_spec_values(given)?;
        Self::new(shared, (&words, !options.flag(DEBUG)), (spirv, spec_values), cache)
    }

    fn load_binary(shared: &Arc<DeviceState>, binary: &VulkanBinary, options: &Options) -> Result<Self> {
        let words = spirv::words(&binary.spirv)?;
        let spirv = SpirvModule::parse(&words)?;
        spirv.check_spec_values(&binary.spec_values)?;
        let pipelines = binary.pipelines_for(&shared.logical.caps);
        let cache = pipelines.map(|data| PipelineCache::new(&shared.logical, data)).transpose()?;
        let spec_values = binary.spec_values.clone();
        Self::new(shared, (&words, !options.flag(DEBUG)), (spirv, spec_values), cache)
    }

    fn new(
        shared: &Arc<DeviceState>,
        (words, is_optimised): (&[u32], bool),
        (spirv, spec_values): (SpirvModule, SpecValues),
        cache: Option<PipelineCache>,
    ) -> Result<Self> {
        let logical = &shared.logical;
        logical.check_alive()?;
        spirv_capabilities::check(&spirv.capabilities, &logical.caps)?;
        let symbols = spirv.entry_names()?;
        let shader = Shader::new(logical, words, is_optimised)?;
        let (pipelines, shared) = (Mutex::default(), Arc::clone(shared));
        let loaded = Arc::new(Loaded { pipelines, cache, shader, spirv, spec_values, shared });
        Ok(Self { loaded, symbols })
    }

    /// Compiles every entry point of the code that was loaded: the binary, and what is known of each. An entry point that the
    /// device does not run fails when it is asked for, and is left out here.
    ///
    /// # Errors
    /// Any error that is not of an entry point alone.
    pub(crate) fn compile_all(&self, spirv: Vec<u8>) -> Result<(VulkanBinary, Vec<(String, KernelInfo)>)> {
        let mut kernels = Vec::new();
        for name in &self.symbols {
            match self.kernel(name) {
                Ok(kernel) => kernels.push((name.clone(), kernel.info())),
                Err(error) if is_of_entry_point(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let pipelines = self.loaded.cache.as_ref().map(PipelineCache::data).transpose()?.unwrap_or_default();
        Ok((VulkanBinary { spirv, spec_values: self.loaded.spec_values.clone(), pipelines }, kernels))
    }
}

/// Whether other entry points may compile after this error.
fn is_of_entry_point(error: &Error) -> bool {
    use ErrorKind as Kind;
    !matches!(error.kind(), Kind::DeviceLost | Kind::Unavailable | Kind::OutOfMemory | Kind::Io)
}

impl Module for VulkanModule {
    type Kernel = VulkanKernel;

    fn symbols(&self) -> &[String] {
        &self.symbols
    }

    fn kernel(&self, name: &str) -> Result<VulkanKernel> {
        let loaded = &self.loaded;
        let interface = loaded.spirv.interface(name, &loaded.spec_values)?;
        check_limits(name, &interface, &loaded.shared)?;
        let mut pipelines = loaded.pipelines.lock();
        let pipeline = match pipelines.get(name) {
            Some(pipeline) => Arc::clone(pipeline),
            None => {
                loaded.shared.warm_up_compiler()?;
                let bindings = u32::try_from(interface.required_tensors).unwrap_or(u32::MAX);
                let pipeline = loaded.shader.compile(
                    name,
                    bindings,
                    interface.push_constants.bytes,
                    &loaded.spec_values,
                    loaded.cache.as_ref(),
                )?;
                let pipeline = Arc::new(pipeline);
                pipelines.insert(name.to_owned(), Arc::clone(&pipeline));
                pipeline
            }
        };
        drop(pipelines);
        Ok(VulkanKernel { pipeline, interface, name: name.to_owned(), loaded: Arc::clone(loaded) })
    }
}

/// An entry point.
#[derive(Clone, Debug)]
pub struct VulkanKernel {
    // Declared, and so dropped, before `loaded`, which it belongs to.
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) interface: Interface,
    pub(crate) name: String,
    loaded: Arc<Loaded>,
}

impl VulkanKernel {
    #[inline]
    pub(crate) fn shared(&self) -> &Arc<DeviceState> {
        &self.loaded.shared
    }
}

impl Kernel for VulkanKernel {
    fn info(&self) -> KernelInfo {
        let statistics = self.pipeline.statistics();
        let caps = &self.shared().logical.caps;
        KernelInfo {
            registers: statistics.registers,
            spilled_bytes: statistics.spilled_bytes,
            max_group_items: Some(caps.group_items),
            preferred_multiple: Some(caps.sub_group.size).filter(|&size| size > 0),
            ..interface_info(&self.interface)
        }
    }
}

/// What the code says of an entry point.
pub(crate) fn interface_info(interface: &Interface) -> KernelInfo {
    let tensors = interface.tensors.iter().map(|tensor| Param {
        kind: ArgKind::Tensor,
        access: Some(tensor.access),
        strided: false,
        dtype: tensor.dtype,
    });
    let values = interface.push_constants.members.iter().map(|member| Param {
        kind: if member.dtype.is_some() { ArgKind::Scalar } else { ArgKind::Bytes },
        access: Some(Access::Read),
        strided: false,
        dtype: member.dtype,
    });
    KernelInfo {
        shared_bytes: Some(interface.shared_bytes),
        group_size: Some(interface.group_size),
        params: Some(tensors.chain(values).collect()),
        ..KernelInfo::default()
    }
}

/// Whether the device can run an entry point, with the constants that the code has by default.
pub(crate) fn fits_limits(spirv: &SpirvModule, name: &str, shared: &DeviceState) -> bool {
    let values = spirv.parse_spec_values(std::iter::empty());
    let interface = values.and_then(|values| spirv.interface(name, &values));
    interface.is_ok_and(|interface| check_limits(name, &interface, shared).is_ok())
}

/// Rejects an entry point that exceeds the device's limits.
///
/// # Errors
/// `InvalidArgument` for groups that no kernel can have on the device; `OutOfResources` for anything else.
fn check_limits(name: &str, interface: &Interface, shared: &DeviceState) -> Result<()> {
    let caps = &shared.logical.caps;
    let size = interface.group_size;
    let items = size.iter().fold(1_u64, |items, &extent| items.saturating_mul(u64::from(extent)));
    let exceeds =
        |what: String| Err(Error::new(ErrorKind::OutOfResources, format!("kernel \"{name}\" {what}")));
    if items == 0
        || items > u64::from(caps.group_items)
        || size.iter().zip(&caps.group_size).any(|(a, b)| a > b)
    {
        let (items, sizes) = (caps.group_items, caps.group_size);
        return Err(Error::invalid(format!(
            "kernel \"{name}\" has groups of {size:?}, but the device supports at most {items} items and {sizes:?}; compile \
             it for smaller groups"
        )));
    }
    if interface.required_tensors > caps.bindings as usize {
        return exceeds(format!(
            "takes {} tensors, but the device binds at most {}; combine some into one",
            interface.required_tensors, caps.bindings
        ));
    }
    if interface.push_constants.bytes > caps.push_constant_bytes {
        let (needed, most) = (interface.push_constants.bytes, caps.push_constant_bytes);
        return exceeds(format!(
            "takes {needed} bytes of push constants, but the device has {most}; pass the rest in a buffer"
        ));
    }
    if interface.shared_bytes > caps.shared_bytes {
        let (needed, most) = (interface.shared_bytes, caps.shared_bytes);
        return exceeds(format!(
            "uses {needed} bytes of work-group memory, but the device has {most}; use smaller tiles"
        ));
    }
    Ok(())
}
