//! Checks a module's SPIR-V capabilities against the device. Those listed here are enabled when a device is opened; all
//! others are rejected, since using them would be undefined behaviour.

use ::spirv::Capability;
use runtime_core::{Error, Result};

use crate::driver::DeviceCaps;

/// Rejects code that needs a capability which the device lacks or this backend does not enable.
///
/// # Errors
/// `Unsupported` with the capability.
pub(crate) fn check(required: &[u32], caps: &DeviceCaps) -> Result<()> {
    let missing = required.iter().find_map(|&number| {
        let (name, supported) = capability(number, caps)?;
        (!supported).then_some(name)
    });
    if let Some(name) = missing {
        return Err(Error::unsupported(format!("the code needs {name}, which this device does not support")));
    }
    let Some(&unknown) = required.iter().find(|&&number| capability(number, caps).is_none()) else {
        return Ok(());
    };
    match Capability::from_u32(unknown) {
        Some(Capability::Addresses | Capability::Kernel) => {
            Err(Error::unsupported("the code is for OpenCL (format \"spirv-kernel\"), not for Vulkan"))
        }
        _ => Err(Error::unsupported(format!(
            "the code needs SPIR-V capability {unknown}, which this backend does not support"
        ))),
    }
}

/// A capability's name, and whether the device supports it; `None` for an unknown one.
fn capability(number: u32, caps: &DeviceCaps) -> Option<(&'static str, bool)> {
    let features = &caps.features;
    let sub_groups = |name| caps.sub_group.operations.contains(&name);
    Some(match Capability::from_u32(number)? {
        Capability::Matrix => ("Matrix", true),
        Capability::Shader => ("Shader", true),
        Capability::Float16 => ("Float16", features.f16),
        Capability::Float64 => ("Float64", features.f64),
        Capability::Int64 => ("Int64", features.i64),
        Capability::Int64Atomics => ("Int64Atomics", features.atomics_i64),
        Capability::Int16 => ("Int16", features.i16),
        Capability::Int8 => ("Int8", features.i8),
        // Images are rejected where they are declared, with a better message.
        image if is_image(image) => ("images", true),
        Capability::GroupNonUniform => ("GroupNonUniform", sub_groups("basic")),
        Capability::GroupNonUniformVote => ("GroupNonUniformVote", sub_groups("vote")),
        Capability::GroupNonUniformArithmetic => ("GroupNonUniformArithmetic", sub_groups("arithmetic")),
        Capability::GroupNonUniformBallot => ("GroupNonUniformBallot", sub_groups("ballot")),
        Capability::GroupNonUniformShuffle => ("GroupNonUniformShuffle", sub_groups("shuffle")),
        Capability::GroupNonUniformShuffleRelative => {
            ("GroupNonUniformShuffleRelative", sub_groups("shuffle_relative"))
        }
        Capability::GroupNonUniformClustered => ("GroupNonUniformClustered", sub_groups("clustered")),
        Capability::GroupNonUniformQuad => ("GroupNonUniformQuad", sub_groups("quad")),
        Capability::StorageBuffer16BitAccess => ("StorageBuffer16BitAccess", features.storage_16),
        Capability::UniformAndStorageBuffer16BitAccess => {
            ("UniformAndStorageBuffer16BitAccess", features.uniform_16)
        }
        Capability::StoragePushConstant16 => ("StoragePushConstant16", features.push_16),
        Capability::DeviceGroup => ("DeviceGroup", true),
        Capability::VariablePointersStorageBuffer | Capability::VariablePointers => {
            ("VariablePointers", features.variable_pointers)
        }
        Capability::StorageBuffer8BitAccess => ("StorageBuffer8BitAccess", features.storage_8),
        Capability::UniformAndStorageBuffer8BitAccess => {
            ("UniformAndStorageBuffer8BitAccess", features.uniform_8)
        }
        Capability::StoragePushConstant8 => ("StoragePushConstant8", features.push_8),
        // Rounding and denormal modes: support differs by float width, and the driver ignores what it cannot do.
        Capability::DenormPreserve
        | Capability::DenormFlushToZero
        | Capability::SignedZeroInfNanPreserve
        | Capability::RoundingModeRTE
        | Capability::RoundingModeRTZ => ("float controls", true),
        Capability::VulkanMemoryModel => ("VulkanMemoryModel", features.memory_model),
        Capability::VulkanMemoryModelDeviceScope => {
            ("VulkanMemoryModelDeviceScope", features.memory_model_device_scope)
        }
        Capability::DotProductInputAll
        | Capability::DotProductInput4x8Bit
        | Capability::DotProductInput4x8BitPacked
        | Capability::DotProduct => ("DotProduct", features.dot_product),
        Capability::CooperativeMatrixKHR => ("CooperativeMatrixKHR", features.cooperative_matrix),
        Capability::AtomicFloat32AddEXT => ("AtomicFloat32AddEXT", features.atomics_f32),
        _ => return None,
    })
}

fn is_image(capability: Capability) -> bool {
    matches!(
        capability,
        Capability::ImageGatherExtended
            | Capability::StorageImageMultisample
            | Capability::ImageCubeArray
            | Capability::Sampled1D
            | Capability::Image1D
            | Capability::SampledCubeArray
            | Capability::SampledBuffer
            | Capability::ImageBuffer
            | Capability::ImageMSArray
            | Capability::StorageImageExtendedFormats
            | Capability::ImageQuery
            | Capability::StorageImageReadWithoutFormat
            | Capability::StorageImageWriteWithoutFormat
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_unknown_capabilities_are_rejected() {
        let mut caps = DeviceCaps::default();
        caps.features.f16 = true;
        caps.sub_group.operations = vec!["basic"];
        let said = |wanted: &[Capability]| {
            let numbers: Vec<u32> = wanted.iter().map(|capability| *capability as u32).collect();
            check(&numbers, &caps).map_err(|error| error.message().to_owned())
        };
        use Capability as C;
        let supported =
            [C::Matrix, C::Shader, C::Float16, C::GroupNonUniform, C::DeviceGroup, C::DenormFlushToZero];
        assert_eq!(said(&supported), Ok(()));
        assert!(said(&[C::Shader, C::Float64]).unwrap_err().contains("Float64"));
        assert!(
            said(&[C::Shader, C::GroupNonUniform, C::GroupNonUniformArithmetic])
                .unwrap_err()
                .contains("GroupNonUniformArithmetic")
        );
        assert!(said(&[C::Kernel]).unwrap_err().contains("spirv-kernel"));
        assert!(said(&[C::Shader, C::ShaderClockKHR]).unwrap_err().contains("5055"));
    }
}
