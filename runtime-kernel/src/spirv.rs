//! SPIR-V for Vulkan: naga's writer, with what a compute runtime wants.

use naga::back::spv::{self, WriterFlags, ZeroInitializeWorkgroupMemoryMode};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use runtime_core::{Error, ErrorKind, Result};

use crate::program::{Checks, Program};

/// The newest version that every Vulkan 1.1 device takes; subgroup operations need it.
const VERSION: (u8, u8) = (1, 3);

pub(crate) fn write(program: &Program, checks: Checks) -> Result<Vec<u32>> {
    let policy = match checks {
        Checks::Bounded => BoundsCheckPolicy::ReadZeroSkipWrite,
        Checks::Unchecked => BoundsCheckPolicy::Unchecked,
    };
    let options = spv::Options {
        lang_version: VERSION,
        flags: WriterFlags::DEBUG,
        bounds_check_policies: BoundsCheckPolicies {
            index: policy,
            buffer: policy,
            image_load: policy,
            binding_array: policy,
        },
        // WGSL asks for zeros; they cost a barrier in each kernel, and no other target has them.
        zero_initialize_workgroup_memory: ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        // There is no shader input or output to hold an f16, and not every device has this capability.
        use_storage_input_output_16: false,
        ..spv::Options::default()
    };
    spv::write_vec(&program.module, &program.info, &options, None).map_err(|error| {
        Error::new(ErrorKind::Unsupported, format!("{}: in SPIR-V: {error}", program.path()))
    })
}
