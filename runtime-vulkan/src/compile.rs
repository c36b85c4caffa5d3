//! Compilation without loading: SPIR-V with what the driver makes of it, for an open device, and portable SPIR-V, for none.

use std::sync::Arc;

use runtime_core::backend::{Source, did_you_mean};
use runtime_core::code::{CompiledCode, Fit};
use runtime_core::device::{Capabilities, Limits};
use runtime_core::{DeviceInfo, DeviceKind, Error, ErrorKind, Options, Result};

use crate::binary::{self, VulkanBinary};
use crate::describe::{BASE_CAPABILITIES, DLPACK_VULKAN};
use crate::device_state::DeviceState;
use crate::driver::PipelineCache;
use crate::module::{SHADER_FORMAT, VulkanModule, carried_options, fits_limits, interface_info};
use crate::spirv::{self, SpirvModule};
use crate::spirv_capabilities;

/// An architecture: limits that SPIR-V is checked against, and on which devices it then runs.
struct PortableArch {
    name: &'static str,
    group_size: [u32; 3],
    group_items: u32,
    bindings: i64,
}

/// The architectures; the first is the default.
const ARCHITECTURES: [PortableArch; 2] = [
    // The default limits of WebGPU, which kernels in WGSL expect. Nearly all devices have them (gpuweb issue 1898).
    PortableArch { name: "webgpu", group_size: [256, 256, 64], group_items: 256, bindings: 8 },
    // What Vulkan requires of every device (Vulkan specification, "Required Limits").
    PortableArch { name: "spirv", group_size: [128, 128, 64], group_items: 128, bindings: 4 },
];
/// Prefixes of variables that change what drivers make of the same code, and that choose layers, which may change the code:
/// Mesa's (its shared parts, then lavapipe, AMD, Intel, NVIDIA, Qualcomm, Arm and virtual devices), and NVIDIA's.
const VARIABLES: [&str; 21] = [
    "MESA_", "NIR_", "DRIRC", "LP_", "GALLIVM_", "LLVM", "RADV_", "ACO_", "AMD_", "INTEL_", "ANV_", "NVK_",
    "NAK_", "TU_", "IR3_", "FD_", "PAN_", "PANVK_", "VN_", "__GL_", "VK_",
];
/// Prefixes of those that do not: caches, and where drivers are.
const WITHOUT_EFFECT: [&str; 7] = [
    "MESA_SHADER_CACHE_",
    "MESA_DISK_CACHE_",
    "MESA_GLSL_CACHE_",
    "__GL_SHADER_DISK_CACHE",
    "VK_DRIVER_FILES",
    "VK_ICD_FILENAMES",
    "VK_LOADER_DEBUG",
];

/// What identifies everything outside a source that its compiled form depends on.
///
/// # Errors
/// `Unsupported` for native code.
pub(crate) fn identity(shared: &DeviceState, source: &Source<'_>) -> Result<String> {
    check_compiles(source)?;
    let (logical, caps) = (&shared.logical, &shared.logical.caps);
    let (driver, options) = (&caps.driver, logical.options);
    let variables =
        variables(std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
        }));
    Ok(format!(
        "driver {} {:?} {:?} {} {:?}\ndevice {:#x} {:#x} robust={} push_descriptors={} {:?}\n{variables}",
        driver.id,
        driver.name,
        driver.version,
        caps.version,
        caps.cache_uuid,
        caps.vendor_id,
        caps.device_id,
        options.robust,
        options.push_descriptors,
        caps.features,
    ))
}

/// The variables that matter, in order.
fn variables(all: impl Iterator<Item = (String, String)>) -> String {
    let begins = |name: &str, prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let matters = |name: &str| begins(name, &VARIABLES) && !begins(name, &WITHOUT_EFFECT);
    let mut lines: Vec<_> =
        all.filter(|(name, _)| matters(name)).map(|(name, value)| format!("{name}={value:?}\n")).collect();
    lines.sort();
    lines.concat()
}

fn check_compiles(source: &Source<'_>) -> Result<()> {
    if source.format == SHADER_FORMAT {
        return Ok(());
    }
    Err(Error::unsupported(format!("\"{}\" is not compiled; pass \"{SHADER_FORMAT}\"", source.format)))
}

/// Compiles every entry point of SPIR-V.
///
/// # Errors
/// `Unsupported` for native code, and for code that the device cannot run; `CompileFailed`.
pub(crate) fn for_device(shared: &Arc<DeviceState>, source: &Source<'_>) -> Result<CompiledCode> {
    check_compiles(source)?;
    let code = source.bytes()?.into_owned();
    let cache = PipelineCache::new(&shared.logical, &[])?;
    let module = VulkanModule::load_spirv(shared, &code, source.options, Some(cache))?;
    let (binary, kernels) = module.compile_all(code)?;
    Ok(CompiledCode {
        format: binary::FORMAT.into(),
        code: binary.encode()?,
        log: String::new(),
        options: carried_options(source.options),
        kernels,
    })
}

/// How native code fits a device: driver's data of another driver or version are ignored, and compiled again.
///
/// # Errors
/// `Io`.
pub(crate) fn fits(shared: &DeviceState, source: &Source<'_>) -> Result<Fit> {
    let (code, caps) = (source.bytes()?, &shared.logical.caps);
    let runs = |code: &[u8]| {
        let spirv = spirv::words(code).and_then(|words| SpirvModule::parse(&words));
        spirv.is_ok_and(|spirv| {
            let fits = |name: &String| fits_limits(&spirv, name, shared);
            spirv_capabilities::check(&spirv.capabilities, caps).is_ok()
                && spirv.entry_names().is_ok_and(|names| names.iter().any(fits))
        })
    };
    let fit = match source.format {
        binary::FORMAT => {
            VulkanBinary::decode(&code).ok().filter(|binary| runs(&binary.spirv)).map(|binary| {
                if binary.pipelines_for(caps).is_some() { Fit::Optimal } else { Fit::Recompile }
            })
        }
        _ => runs(&code).then_some(Fit::Recompile),
    };
    Ok(fit.unwrap_or(Fit::Unsupported))
}

/// The device that portable SPIR-V is compiled for; the default if `name` is empty.
///
/// # Errors
/// `NotFound` for an unknown architecture.
pub(crate) fn architecture(name: &str) -> Result<DeviceInfo> {
    let found = ARCHITECTURES.iter().find(|arch| name.is_empty() || arch.name == name);
    let Some(PortableArch { name, group_size, group_items, bindings }) = found else {
        let names = ARCHITECTURES.map(|arch| arch.name);
        let message = format!("unknown architecture \"{name}\"; {}", did_you_mean(name, &names));
        return Err(Error::new(ErrorKind::NotFound, message));
    };
    let mut info = DeviceInfo::new(DeviceKind::Accelerator, 0, "portable SPIR-V");
    info.arch = Some((*name).to_owned());
    info.dlpack_type = DLPACK_VULKAN;
    info.formats = vec![SHADER_FORMAT.into()];
    info.limits = Limits {
        groups: [65535; 3],
        group_size: *group_size,
        group_items: *group_items,
        shared_bytes: 16 << 10,
        allocation_bytes: Some(1 << 30),
    };
    info.capabilities = Capabilities(BASE_CAPABILITIES);
    info.properties = Options::new()
        .with("bindings", *bindings)
        .with("binding_bytes", 1_i64 << 27)
        .with("push_constant_bytes", 128_i64);
    Ok(info)
}

/// SPIR-V for [`architecture`]: the code itself, which each driver compiles.
///
/// # Errors
/// As [`architecture`]; `Unsupported` for other code; `CompileFailed` if it is not SPIR-V with a compute entry point.
pub(crate) fn for_architecture(name: &str, source: &Source<'_>) -> Result<CompiledCode> {
    architecture(name)?;
    check_compiles(source)?;
    let code = source.bytes()?.into_owned();
    let spirv = SpirvModule::parse(&spirv::words(&code)?)?;
    let spec_values =
        spirv.parse_spec_values(source.options.texts("constant").filter(|text| !text.is_empty()))?;
    let kernel = |name: String| {
        let interface = spirv.interface(&name, &spec_values).ok()?;
        Some((name, interface_info(&interface)))
    };
    Ok(CompiledCode {
        format: SHADER_FORMAT.into(),
        log: String::new(),
        options: source.options.clone(),
        kernels: spirv.entry_names()?.into_iter().filter_map(kernel).collect(),
        code,
    })
}

#[cfg(test)]
mod tests {
    use runtime_core::abi;

    use super::*;

    #[test]
    fn variables_of_drivers_are_told_apart_from_others() {
        let all = [
            ("LP_NATIVE_VECTOR_WIDTH", "128"),
            ("HOME", "/root"),
            ("MESA_SHADER_CACHE_DIR", "/tmp"),
            ("GALLIVM_PERF", "no_opt"),
            ("VK_DRIVER_FILES", "a.json"),
            ("VK_INSTANCE_LAYERS", "x"),
        ];
        let all = all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = "GALLIVM_PERF=\"no_opt\"\nLP_NATIVE_VECTOR_WIDTH=\"128\"\nVK_INSTANCE_LAYERS=\"x\"\n";
        assert_eq!(variables(all), expected);
    }

    #[test]
    fn architectures_have_the_limits_of_their_devices() {
        let items = |name| architecture(name).unwrap().limits.group_items;
        assert_eq!((items(""), items("webgpu"), items("spirv")), (256, 256, 128));
        let info = architecture("spirv").unwrap();
        assert_eq!(info.limits.shared_bytes, 16384);
        assert!(!info.capabilities.has(abi::CAP_F16) && !info.capabilities.has(abi::CAP_F64));
        let error = architecture("nvidia").unwrap_err();
        assert!(error.kind() == ErrorKind::NotFound && error.message().contains("spirv"), "{error}");
    }
}
