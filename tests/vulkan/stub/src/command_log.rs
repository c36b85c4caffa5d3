//! Prints commands as they are recorded, with the setting `log_commands`.

#![allow(clippy::print_stderr, reason = "the test reads it")]

use std::ffi::c_void;
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering};

use ash::vk;

use crate::settings;

/// The driver's functions, in the order of [`NAMES`].
static REAL: [AtomicPtr<c_void>; NAMES.len()] = [const { AtomicPtr::new(std::ptr::null_mut()) }; NAMES.len()];
const NAMES: [&str; 5] =
    ["vkCmdDispatch", "vkCmdCopyBuffer", "vkCmdFillBuffer", "vkCmdPipelineBarrier", "vkCmdPipelineBarrier2"];

/// The override of a function, if the setting asks for one.
pub(crate) fn override_symbol(name: &str, driver: *mut c_void) -> Option<*const c_void> {
    settings::value("log_commands")?;
    let index = NAMES.iter().position(|known| *known == name)?;
    REAL[index].store(driver, Ordering::Release);
    Some(match index {
        0 => dispatch as *const c_void,
        1 => copy as *const c_void,
        2 => fill as *const c_void,
        3 => barrier as *const c_void,
        _ => barrier2 as *const c_void,
    })
}

unsafe extern "system" fn dispatch(commands: vk::CommandBuffer, x: u32, y: u32, z: u32) {
    eprintln!("records a kernel");
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkCmdDispatch = unsafe { transmute(REAL[0].load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    unsafe { real(commands, x, y, z) }
}

unsafe extern "system" fn copy(
    commands: vk::CommandBuffer,
    from: vk::Buffer,
    to: vk::Buffer,
    count: u32,
    regions: *const vk::BufferCopy,
) {
    eprintln!("records a copy");
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkCmdCopyBuffer = unsafe { transmute(REAL[1].load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    unsafe { real(commands, from, to, count, regions) }
}

unsafe extern "system" fn fill(
    commands: vk::CommandBuffer,
    buffer: vk::Buffer,
    offset: vk::DeviceSize,
    bytes: vk::DeviceSize,
    word: u32,
) {
    eprintln!("records a fill");
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkCmdFillBuffer = unsafe { transmute(REAL[2].load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    unsafe { real(commands, buffer, offset, bytes, word) }
}

#[allow(clippy::too_many_arguments, reason = "Vulkan's signature")]
unsafe extern "system" fn barrier(
    commands: vk::CommandBuffer,
    src_stage: vk::PipelineStageFlags,
    dst_stage: vk::PipelineStageFlags,
    flags: vk::DependencyFlags,
    memory_count: u32,
    memory: *const vk::MemoryBarrier<'static>,
    buffer_count: u32,
    buffers: *const vk::BufferMemoryBarrier<'static>,
    image_count: u32,
    images: *const vk::ImageMemoryBarrier<'static>,
) {
    eprintln!("records a barrier");
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkCmdPipelineBarrier = unsafe { transmute(REAL[3].load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    unsafe {
        real(
            commands,
            src_stage,
            dst_stage,
            flags,
            memory_count,
            memory,
            buffer_count,
            buffers,
            image_count,
            images,
        );
    }
}

unsafe extern "system" fn barrier2(commands: vk::CommandBuffer, info: *const vk::DependencyInfo<'static>) {
    eprintln!("records a barrier");
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkCmdPipelineBarrier2 = unsafe { transmute(REAL[4].load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    unsafe { real(commands, info) }
}
