//! Memory barriers. Uses `vkCmdPipelineBarrier2` if the driver has it, because it can limit shader accesses to storage buffers,
//! and `vkCmdPipelineBarrier` otherwise.

use std::ffi::CStr;
use std::mem::transmute;

use ash::vk;

use super::Instance;
use super::device_caps::DeviceCaps;

/// A global memory barrier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Barrier {
    src_stage: vk::PipelineStageFlags,
    src_access: vk::AccessFlags,
    dst_stage: vk::PipelineStageFlags,
    dst_access: vk::AccessFlags,
}

const COMPUTE: vk::PipelineStageFlags = vk::PipelineStageFlags::COMPUTE_SHADER;
const COMPUTE_AND_TRANSFER: vk::PipelineStageFlags = vk::PipelineStageFlags::from_raw(
    vk::PipelineStageFlags::COMPUTE_SHADER.as_raw() | vk::PipelineStageFlags::TRANSFER.as_raw(),
);
const WRITES: vk::AccessFlags = vk::AccessFlags::from_raw(
    vk::AccessFlags::SHADER_WRITE.as_raw() | vk::AccessFlags::TRANSFER_WRITE.as_raw(),
);
const READS: vk::AccessFlags = vk::AccessFlags::from_raw(
    vk::AccessFlags::SHADER_READ.as_raw() | vk::AccessFlags::TRANSFER_READ.as_raw(),
);
const READS_AND_WRITES: vk::AccessFlags = vk::AccessFlags::from_raw(READS.as_raw() | WRITES.as_raw());
const SHADER_ACCESSES: vk::AccessFlags =
    vk::AccessFlags::from_raw(vk::AccessFlags::SHADER_READ.as_raw() | vk::AccessFlags::SHADER_WRITE.as_raw());

impl Barrier {
    /// Orders all earlier kernels, copies and fills before all later ones.
    pub(super) const ALL_WORK: Self = Self {
        src_stage: COMPUTE_AND_TRANSFER,
        src_access: WRITES,
        dst_stage: COMPUTE_AND_TRANSFER,
        dst_access: READS_AND_WRITES,
    };
    /// Orders kernels only: cheaper for the host and the device.
    pub(super) const KERNELS: Self = Self {
        src_stage: COMPUTE,
        src_access: vk::AccessFlags::SHADER_WRITE,
        dst_stage: COMPUTE,
        dst_access: SHADER_ACCESSES,
    };
    /// Makes work that the host has seen complete visible to later commands; waits for nothing.
    pub(super) const ACQUIRE_COMPLETED: Self = Self {
        src_stage: vk::PipelineStageFlags::TOP_OF_PIPE,
        src_access: vk::AccessFlags::empty(),
        dst_stage: COMPUTE_AND_TRANSFER,
        dst_access: READS_AND_WRITES,
    };
    /// Makes all earlier writes visible to the host once it has seen them complete.
    pub(super) const TO_HOST: Self = Self {
        src_stage: COMPUTE_AND_TRANSFER,
        src_access: WRITES,
        dst_stage: vk::PipelineStageFlags::HOST,
        dst_access: vk::AccessFlags::HOST_READ,
    };

    /// Makes all writes of work that the runtime does not know visible to later commands, and to the host.
    pub(super) const FOREIGN_WORK: Self = Self {
        src_stage: vk::PipelineStageFlags::ALL_COMMANDS,
        src_access: vk::AccessFlags::MEMORY_WRITE,
        dst_stage: vk::PipelineStageFlags::from_raw(
            vk::PipelineStageFlags::ALL_COMMANDS.as_raw() | vk::PipelineStageFlags::HOST.as_raw(),
        ),
        dst_access: vk::AccessFlags::from_raw(
            vk::AccessFlags::MEMORY_READ.as_raw()
                | vk::AccessFlags::MEMORY_WRITE.as_raw()
                | vk::AccessFlags::HOST_READ.as_raw(),
        ),
    };

    /// The same barrier for a queue that runs no kernels.
    pub(super) fn without_kernels(self) -> Self {
        Self {
            src_stage: self.src_stage & !COMPUTE,
            src_access: self.src_access & !SHADER_ACCESSES,
            dst_stage: self.dst_stage & !COMPUTE,
            dst_access: self.dst_access & !SHADER_ACCESSES,
        }
    }
}

/// The stages for `vkCmdPipelineBarrier2`, whose low bits are the same.
const fn stages2(stages: vk::PipelineStageFlags) -> vk::PipelineStageFlags2 {
    vk::PipelineStageFlags2::from_raw(stages.as_raw() as u64)
}

/// The accesses for `vkCmdPipelineBarrier2`. Kernels access storage buffers only, so shader accesses are narrowed to those.
const fn accesses2(accesses: vk::AccessFlags) -> vk::AccessFlags2 {
    let shaders = [
        (vk::AccessFlags::SHADER_READ, vk::AccessFlags2::SHADER_STORAGE_READ),
        (vk::AccessFlags::SHADER_WRITE, vk::AccessFlags2::SHADER_STORAGE_WRITE),
    ];
    let mut narrowed = accesses.as_raw() as u64;
    let mut next = 0;
    while next < shaders.len() {
        let (wide, exact) = (shaders[next].0.as_raw() as u64, shaders[next].1.as_raw());
        if narrowed & wide != 0 {
            narrowed = narrowed & !wide | exact;
        }
        next += 1;
    }
    vk::AccessFlags2::from_raw(narrowed)
}

/// The device's `vkCmdPipelineBarrier2`, if it has one.
#[derive(Clone, Copy)]
pub(super) struct BarrierFn(Option<vk::PFN_vkCmdPipelineBarrier2>);

impl BarrierFn {
    /// Looks the function up; without the feature there is none. `ash` has a function that panics for each that a driver lacks.
    pub(super) fn load(instance: &Instance, device: &ash::Device, caps: &DeviceCaps) -> Self {
        let names: [&CStr; 2] = [c"vkCmdPipelineBarrier2", c"vkCmdPipelineBarrier2KHR"];
        let find = |name: &CStr| {
            // SAFETY: the device belongs to this instance, and the name is null-terminated.
            unsafe { instance.handle.get_device_proc_addr(device.handle(), name.as_ptr()) }
        };
        let found = names.into_iter().find_map(find).filter(|_| caps.features.synchronization2);
        // SAFETY: both names are of functions of this type.
        Self(found.map(|function| unsafe {
            transmute::<unsafe extern "system" fn(), vk::PFN_vkCmdPipelineBarrier2>(function)
        }))
    }

    /// Records a barrier into a command buffer in the recording state.
    #[inline]
    pub(super) fn record(self, device: &ash::Device, commands: vk::CommandBuffer, barrier: Barrier) {
        let Barrier { src_stage, src_access, dst_stage, dst_access } = barrier;
        let Some(function) = self.0 else {
            let barriers =
                [vk::MemoryBarrier::default().src_access_mask(src_access).dst_access_mask(dst_access)];
            let flags = vk::DependencyFlags::empty();
            // SAFETY: the command buffer is in the recording state.
            return unsafe {
                device.cmd_pipeline_barrier(commands, src_stage, dst_stage, flags, &barriers, &[], &[]);
            };
        };
        let barriers = [vk::MemoryBarrier2::default()
            .src_stage_mask(stages2(src_stage))
            .src_access_mask(accesses2(src_access))
            .dst_stage_mask(stages2(dst_stage))
            .dst_access_mask(accesses2(dst_access))];
        let info = vk::DependencyInfo::default().memory_barriers(&barriers);
        // SAFETY: the command buffer is in the recording state, the device has the feature, and `info` outlives the call.
        unsafe { function(commands, &raw const info) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shader_accesses_narrow_to_storage() {
        use vk::AccessFlags2 as Access;
        let (read, write) = (Access::SHADER_STORAGE_READ, Access::SHADER_STORAGE_WRITE);
        assert_eq!(accesses2(WRITES), write | Access::TRANSFER_WRITE);
        assert_eq!(
            accesses2(READS_AND_WRITES),
            read | write | Access::TRANSFER_READ | Access::TRANSFER_WRITE
        );
        assert_eq!(accesses2(vk::AccessFlags::HOST_READ), Access::HOST_READ);
    }
}
