//! What code may ask of a device, by the numbers that SPIR-V gives to capabilities. What stands here is turned on when a
//! device is opened; all else is refused, since the driver may do anything with it.

use runtime_core::{Error, Result};

use crate::driver::Facts;

/// Refuses code that asks for what the device does not do.
///
/// # Errors
/// `Unsupported`, which names the capability.
pub(crate) fn check(wanted: &[u32], facts: &Facts) -> Result<()> {
    let lacking = wanted.iter().find_map(|&number| {
        let (name, there) = capability(number, facts)?;
        (!there).then_some(name)
    });
    if let Some(name) = lacking {
        return Err(Error::unsupported(format!("the code needs {name}, which this device does not have")));
    }
    match wanted.iter().find(|&&number| capability(number, facts).is_none()) {
        None => Ok(()),
        Some(4 | 6) => {
            Err(Error::unsupported("the code is for OpenCL (its format is \"spirv-kernel\"), not for Vulkan"))
        }
        Some(number) => Err(Error::unsupported(format!(
            "the code needs capability {number} of SPIR-V, which this backend does not know"
        ))),
    }
}

/// A capability's name, and whether the device has it; `None` for one that is not known.
fn capability(number: u32, facts: &Facts) -> Option<(&'static str, bool)> {
    let features = &facts.features;
    let sub_groups = |name| facts.sub_group.operations.contains(&name);
    Some(match number {
        0 => ("Matrix", true),
        1 => ("Shader", true),
        9 => ("Float16", features.f16),
        10 => ("Float64", features.f64),
        11 => ("Int64", features.i64),
        12 => ("Int64Atomics", features.atomics_i64),
        22 => ("Int16", features.i16),
        39 => ("Int8", features.i8),
        // Images are refused where they are declared, which says more.
        25 | 27 | 34 | 43..=50 | 55 | 56 => ("images", true),
        61 => ("GroupNonUniform", sub_groups("basic")),
        62 => ("GroupNonUniformVote", sub_groups("vote")),
        63 => ("GroupNonUniformArithmetic", sub_groups("arithmetic")),
        64 => ("GroupNonUniformBallot", sub_groups("ballot")),
        65 => ("GroupNonUniformShuffle", sub_groups("shuffle")),
        66 => ("GroupNonUniformShuffleRelative", sub_groups("shuffle_relative")),
        67 => ("GroupNonUniformClustered", sub_groups("clustered")),
        68 => ("GroupNonUniformQuad", sub_groups("quad")),
        4433 => ("StorageBuffer16BitAccess", features.storage_16),
        4434 => ("UniformAndStorageBuffer16BitAccess", features.uniform_16),
        4435 => ("StoragePushConstant16", features.push_16),
        4437 => ("DeviceGroup", true),
        4441 | 4442 => ("VariablePointers", features.variable_pointers),
        4448 => ("StorageBuffer8BitAccess", features.storage_8),
        4449 => ("UniformAndStorageBuffer8BitAccess", features.uniform_8),
        4450 => ("StoragePushConstant8", features.push_8),
        // How floats are rounded and flushed: the driver says so of each width, and ignores what it cannot do.
        4464..=4468 => ("float controls", true),
        5345 => ("VulkanMemoryModel", features.memory_model),
        5346 => ("VulkanMemoryModelDeviceScope", features.memory_model_device),
        6016..=6019 => ("DotProduct", features.dot_product),
        6022 => ("CooperativeMatrixKHR", features.cooperative_matrix),
        6033 => ("AtomicFloat32AddEXT", features.atomics_f32),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_or_not_known_is_refused() {
        let mut facts = Facts::default();
        facts.features.f16 = true;
        facts.sub_group.operations = vec!["basic"];
        let said = |wanted: &[u32]| check(wanted, &facts).map_err(|error| error.message().to_owned());
        assert_eq!(said(&[0, 1, 9, 61, 4437, 4465]), Ok(()));
        assert!(said(&[1, 10]).unwrap_err().contains("Float64"));
        assert!(said(&[1, 61, 63]).unwrap_err().contains("GroupNonUniformArithmetic"));
        assert!(said(&[6]).unwrap_err().contains("spirv-kernel"));
        assert!(said(&[1, 5055]).unwrap_err().contains("5055"));
    }
}
