//! Barriers, in the form that says exactly what kernels touch where the driver has it, else in the older one.

use std::ffi::CStr;
use std::mem::transmute;

use ash::vk;

use super::Instance;
use super::facts::Facts;

/// What a barrier orders.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    from: vk::PipelineStageFlags,
    written: vk::AccessFlags,
    to: vk::PipelineStageFlags,
    accessed: vk::AccessFlags,
}

const WORK: vk::PipelineStageFlags = vk::PipelineStageFlags::from_raw(
    vk::PipelineStageFlags::COMPUTE_SHADER.as_raw() | vk::PipelineStageFlags::TRANSFER.as_raw(),
);
const WRITES: vk::AccessFlags = vk::AccessFlags::from_raw(
    vk::AccessFlags::SHADER_WRITE.as_raw() | vk::AccessFlags::TRANSFER_WRITE.as_raw(),
);
const READS: vk::AccessFlags = vk::AccessFlags::from_raw(
    vk::AccessFlags::SHADER_READ.as_raw() | vk::AccessFlags::TRANSFER_READ.as_raw(),
);
const ALL: vk::AccessFlags = vk::AccessFlags::from_raw(READS.as_raw() | WRITES.as_raw());

impl Order {
    /// Whatever comes later sees all that came before.
    pub(super) const WORK: Self = Self { from: WORK, written: WRITES, to: WORK, accessed: ALL };
    /// The same for kernels, before and behind: less to do, for the program and for the device.
    pub(super) const KERNELS: Self = Self {
        from: vk::PipelineStageFlags::COMPUTE_SHADER,
        written: vk::AccessFlags::SHADER_WRITE,
        to: vk::PipelineStageFlags::COMPUTE_SHADER,
        accessed: vk::AccessFlags::from_raw(
            vk::AccessFlags::SHADER_READ.as_raw() | vk::AccessFlags::SHADER_WRITE.as_raw(),
        ),
    };
    /// The same on a queue that copies and runs no kernels.
    pub(super) fn without_kernels(self) -> Self {
        let kernels = vk::PipelineStageFlags::COMPUTE_SHADER;
        let touched = vk::AccessFlags::SHADER_READ | vk::AccessFlags::SHADER_WRITE;
        Self {
            from: self.from & !kernels,
            written: self.written & !touched,
            to: self.to & !kernels,
            accessed: self.accessed & !touched,
        }
    }

    /// What follows sees all that the program has seen to end: it waits for nothing.
    pub(super) const SEEN: Self = Self {
        from: vk::PipelineStageFlags::TOP_OF_PIPE,
        written: vk::AccessFlags::empty(),
        to: WORK,
        accessed: ALL,
    };
    /// The program sees all that came before, once it knows that this has ended.
    pub(super) const PUBLISHED: Self = Self {
        from: WORK,
        written: WRITES,
        to: vk::PipelineStageFlags::HOST,
        accessed: vk::AccessFlags::HOST_READ,
    };
}

/// The older form's bits mean the same in the newer one.
const fn stages(older: vk::PipelineStageFlags) -> vk::PipelineStageFlags2 {
    vk::PipelineStageFlags2::from_raw(older.as_raw() as u64)
}

/// As [`stages`], but for what kernels read and write: that is storage buffers, and nothing else.
const fn accesses(older: vk::AccessFlags) -> vk::AccessFlags2 {
    let shaders = [
        (vk::AccessFlags::SHADER_READ, vk::AccessFlags2::SHADER_STORAGE_READ),
        (vk::AccessFlags::SHADER_WRITE, vk::AccessFlags2::SHADER_STORAGE_WRITE),
    ];
    let mut newer = older.as_raw() as u64;
    let mut next = 0;
    while next < shaders.len() {
        let (wide, exact) = (shaders[next].0.as_raw() as u64, shaders[next].1.as_raw());
        if newer & wide != 0 {
            newer = newer & !wide | exact;
        }
        next += 1;
    }
    vk::AccessFlags2::from_raw(newer)
}

/// The driver's newer function, where it has one.
#[derive(Clone, Copy)]
pub(super) struct Barriers(Option<vk::PFN_vkCmdPipelineBarrier2>);

impl Barriers {
    /// Finds the function; a device without the feature has none.
    pub(super) fn of(instance: &Instance, device: &ash::Device, facts: &Facts) -> Self {
        let names: [&CStr; 2] = [c"vkCmdPipelineBarrier2", c"vkCmdPipelineBarrier2KHR"];
        let find = |name: &CStr| {
            // SAFETY: the device is of this instance, and the name is terminated.
            unsafe { instance.handle.get_device_proc_addr(device.handle(), name.as_ptr()) }
        };
        let found = names.into_iter().find_map(find).filter(|_| facts.features.synchronization2);
        // SAFETY: both names are of functions of this type.
        Self(found.map(|function| unsafe {
            transmute::<unsafe extern "system" fn(), vk::PFN_vkCmdPipelineBarrier2>(function)
        }))
    }

    /// Records a barrier into commands that are being recorded.
    #[inline]
    pub(super) fn record(self, device: &ash::Device, commands: vk::CommandBuffer, order: Order) {
        let Order { from, written, to, accessed } = order;
        let Some(function) = self.0 else {
            let barriers = [vk::MemoryBarrier::default().src_access_mask(written).dst_access_mask(accessed)];
            let none = vk::DependencyFlags::empty();
            // SAFETY: the list is being recorded.
            return unsafe { device.cmd_pipeline_barrier(commands, from, to, none, &barriers, &[], &[]) };
        };
        let barriers = [vk::MemoryBarrier2::default()
            .src_stage_mask(stages(from))
            .src_access_mask(accesses(written))
            .dst_stage_mask(stages(to))
            .dst_access_mask(accesses(accessed))];
        let info = vk::DependencyInfo::default().memory_barriers(&barriers);
        // SAFETY: the list is being recorded, the device has the feature, and the description lives during the call.
        unsafe { function(commands, &raw const info) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kernels_touch_is_storage() {
        use vk::AccessFlags2 as Access;
        let (read, write) = (Access::SHADER_STORAGE_READ, Access::SHADER_STORAGE_WRITE);
        assert_eq!(accesses(WRITES), write | Access::TRANSFER_WRITE);
        assert_eq!(accesses(ALL), read | write | Access::TRANSFER_READ | Access::TRANSFER_WRITE);
        assert_eq!(accesses(vk::AccessFlags::HOST_READ), Access::HOST_READ);
    }
}
