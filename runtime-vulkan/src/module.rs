//! Loaded code and its entry points.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::backend::{Kernel, KernelInfo, Module, Param, Source};
use runtime_core::{Access, ArgKind, Error, ErrorKind, OptionSpec, Result, suggest};

use crate::capabilities;
use crate::context::Context;
use crate::driver::{Pipeline, Shader, Specialised};
use crate::spirv::{self, Code, Interface};

/// Accepted formats.
pub(crate) const FORMATS: [&str; 1] = ["spirv-shader"];

/// The options of SPIR-V.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![OptionSpec::module(
        "constant",
        "",
        "Value of a specialisation constant, NAME=VALUE or ID=VALUE; a list.",
    )]
}

/// Code that was handed to the driver.
#[derive(Debug)]
struct Loaded {
    // Before `context`, which they were made of.
    pipelines: Mutex<HashMap<String, Arc<Pipeline>>>,
    shader: Shader,
    code: Code,
    specialised: Specialised,
    context: Arc<Context>,
}

/// Loaded code.
#[derive(Debug)]
pub struct VulkanModule {
    loaded: Arc<Loaded>,
    symbols: Vec<String>,
}

impl VulkanModule {
    pub(crate) fn load(context: &Arc<Context>, source: &Source<'_>) -> Result<Self> {
        let logical = &context.logical;
        logical.check_alive()?;
        if !FORMATS.contains(&source.format) {
            let message =
                format!("format \"{}\" on Vulkan; {}", source.format, suggest(source.format, &FORMATS));
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let bytes = match source.code {
            Some(code) => code.to_vec(),
            None => read(Path::new(source.path))?,
        };
        let words = spirv::words(&bytes)?;
        let code = Code::read(&words)?;
        capabilities::check(&code.capabilities, &logical.facts)?;
        let symbols = code.entry_names();
        if symbols.is_empty() {
            return Err(Error::new(
                ErrorKind::CompileFailed,
                "the code has no entry point for compute (GLCompute); compile a compute shader",
            ));
        }
        let given = source.options.texts("constant").filter(|text| !text.is_empty());
        let specialised = code.specialise_all(given)?;
        let shader = Shader::new(logical, &words)?;
        let pipelines = Mutex::default();
        let loaded = Arc::new(Loaded { pipelines, shader, code, specialised, context: Arc::clone(context) });
        Ok(Self { loaded, symbols })
    }
}

impl Module for VulkanModule {
    type Kernel = VulkanKernel;

    fn symbols(&self) -> &[String] {
        &self.symbols
    }

    fn kernel(&self, name: &str) -> Result<VulkanKernel> {
        let loaded = &self.loaded;
        let interface = loaded.code.interface(name, &loaded.specialised)?;
        check_limits(name, &interface, &loaded.context)?;
        let mut pipelines = loaded.pipelines.lock();
        let pipeline = match pipelines.get(name) {
            Some(pipeline) => Arc::clone(pipeline),
            None => {
                loaded.context.before_code()?;
                let bindings = u32::try_from(interface.used).unwrap_or(u32::MAX);
                let made =
                    loaded.shader.pipeline(name, bindings, interface.block.bytes, &loaded.specialised)?;
                let made = Arc::new(made);
                pipelines.insert(name.to_owned(), Arc::clone(&made));
                made
            }
        };
        drop(pipelines);
        Ok(VulkanKernel { pipeline, interface, name: name.to_owned(), loaded: Arc::clone(loaded) })
    }
}

/// An entry point.
#[derive(Clone, Debug)]
pub struct VulkanKernel {
    // Before `loaded`, which it was made of.
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) interface: Interface,
    pub(crate) name: String,
    loaded: Arc<Loaded>,
}

impl VulkanKernel {
    #[inline]
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.loaded.context
    }
}

impl Kernel for VulkanKernel {
    fn info(&self) -> KernelInfo {
        let figures = self.pipeline.figures();
        let facts = &self.context().logical.facts;
        let tensors = self.interface.slots.iter().map(|slot| Param {
            kind: ArgKind::Tensor,
            access: slot.access,
            strided: false,
            dtype: slot.dtype,
        });
        let values = self.interface.block.members.iter().map(|member| Param {
            kind: if member.dtype.is_some() { ArgKind::Scalar } else { ArgKind::Bytes },
            access: Access::Read,
            strided: false,
            dtype: member.dtype,
        });
        KernelInfo {
            registers: figures.registers,
            spilled_bytes: figures.spilled_bytes,
            shared_bytes: Some(self.interface.shared_bytes),
            max_group_items: Some(facts.group_items),
            group_size: Some(self.interface.group_size),
            params: Some(tensors.chain(values).collect()),
            preferred_multiple: Some(facts.sub_group.size).filter(|&size| size > 0),
            ..KernelInfo::default()
        }
    }
}

/// Refuses an entry point that the device is too small for.
fn check_limits(name: &str, interface: &Interface, context: &Context) -> Result<()> {
    let facts = &context.logical.facts;
    let size = interface.group_size;
    let items = size.iter().fold(1_u64, |items, &extent| items.saturating_mul(u64::from(extent)));
    let wrong = |what: String| Err(Error::invalid(format!("kernel \"{name}\" {what}")));
    if items == 0
        || items > u64::from(facts.group_items)
        || size.iter().zip(&facts.group_size).any(|(a, b)| a > b)
    {
        let (items, sizes) = (facts.group_items, facts.group_size);
        return wrong(format!(
            "has groups of {size:?}; the device runs at most {items} items, and {sizes:?}; \
             compile it for smaller groups"
        ));
    }
    if interface.used > facts.bindings as usize {
        return wrong(format!(
            "takes {} tensors; the device binds at most {}, so pass several parts of one",
            interface.used, facts.bindings
        ));
    }
    if interface.block.bytes > facts.push_bytes {
        let (needed, most) = (interface.block.bytes, facts.push_bytes);
        return wrong(format!(
            "takes {needed} bytes of push constants; the device has {most}, so pass the rest in a buffer"
        ));
    }
    if interface.shared_bytes > facts.shared_bytes {
        let (needed, most) = (interface.shared_bytes, facts.shared_bytes);
        return wrong(format!(
            "has {needed} bytes of work-group memory; the device has {most}, so use smaller tiles"
        ));
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        let message = format!("\"{}\": {error}; check the path", path.display());
        Error::new(ErrorKind::Io, message).with_source(error)
    })
}
