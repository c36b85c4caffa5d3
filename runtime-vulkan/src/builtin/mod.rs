//! The backend's built-in kernels: an empty one, and fills that `vkCmdFillBuffer` cannot do.
//!
//! Each `*.spv` is compiled from the `*.comp` beside it by `glslangValidator -V --target-env vulkan1.1 -g0`.

use std::sync::Arc;

use runtime_core::Result;

use crate::driver::{Binding, CommandBuffer, LogicalDevice, Memory, Pipeline, Shader};
use crate::spirv;

const NOOP: &[u8] = include_bytes!("noop.spv");
const FILL: &[u8] = include_bytes!("fill.spv");
/// Group size of a fill.
const GROUP_SIZE: u64 = 256;
/// Most groups of a fill. For more words, each item stores several.
const MAX_GROUPS: u64 = 4096;
/// Bytes of a fill's push constants: first word, count, and the pattern.
const FILL_PUSH_CONSTANT_BYTES: u32 = 24;

/// The compiled kernels.
#[derive(Debug)]
pub(crate) struct Builtins {
    noop: Pipeline,
    fill: Pipeline,
}

impl Builtins {
    pub(crate) fn load(logical: &Arc<LogicalDevice>) -> Result<Self> {
        let compile = |code: &[u8], bindings, push_constant_bytes| {
            Shader::new(logical, &spirv::words(code)?, true)?.compile(
                "main",
                bindings,
                push_constant_bytes,
                &Vec::new(),
                None,
            )
        };
        Ok(Self { noop: compile(NOOP, 0, 0)?, fill: compile(FILL, 1, FILL_PUSH_CONSTANT_BYTES)? })
    }

    /// Records the empty kernel.
    pub(crate) fn record_noop(&self, commands: &mut CommandBuffer) -> Result<()> {
        commands.dispatch(&self.noop, &[], &[], [1; 3])
    }

    /// Allocates the descriptor sets of a fill of `bytes` bytes, so that recording it cannot fail.
    ///
    /// # Errors
    /// `OutOfMemory` for descriptor sets.
    pub(crate) fn reserve_fill(
        &self,
        logical: &LogicalDevice,
        commands: &mut CommandBuffer,
        bytes: u64,
    ) -> Result<()> {
        let dispatches = usize::try_from(bytes.div_ceil(max_dispatch_bytes(logical))).unwrap_or(usize::MAX);
        commands.reserve(&self.fill, dispatches)
    }

    /// Records a fill of whole words, in several dispatches if one binding cannot cover it.
    pub(crate) fn record_fill(
        &self,
        logical: &LogicalDevice,
        commands: &mut CommandBuffer,
        to: (&Memory, u64),
        bytes: u64,
        words: [u32; 4],
    ) -> Result<()> {
        let alignment = logical.caps.binding_alignment;
        // Relative to the `VkBuffer`: a binding may begin before the tensor does.
        let (mut at, end) = (to.0.base_offset + to.1, to.0.base_offset + to.1 + bytes);
        while at < end {
            let before = at % alignment;
            if before > 0 {
                // The binding covers bytes that an earlier dispatch of this fill may have written.
                commands.barrier();
            }
            let bytes = (end - at).min(max_dispatch_bytes(logical));
            let binding = Binding::of_buffer(to.0, at - before, before + bytes);
            let count = bytes / 4;
            let numbers = [before / 4, count].map(|number| u32::try_from(number).unwrap_or(u32::MAX));
            let constants = [numbers.as_slice(), words.as_slice()].concat();
            let constants: Vec<u8> = constants.into_iter().flat_map(u32::to_le_bytes).collect();
            let groups = u32::try_from(count.div_ceil(GROUP_SIZE).clamp(1, MAX_GROUPS)).unwrap_or(1);
            commands.dispatch(&self.fill, &[binding], &constants, [groups, 1, 1])?;
            at += bytes;
        }
        Ok(())
    }
}

/// Most bytes of one dispatch of a fill: whole repetitions of the pattern.
fn max_dispatch_bytes(logical: &LogicalDevice) -> u64 {
    (logical.caps.binding_bytes - logical.caps.binding_alignment) / 16 * 16
}
