//! The kernels of the backend itself: one that does nothing, and fills that the driver has no call for.
//!
//! `*.spv` are what `glslangValidator -V --target-env vulkan1.1 -g0` makes of the `*.comp` beside them.

use std::sync::Arc;

use runtime_core::Result;

use crate::driver::{Binding, Commands, Logical, Memory, Pipeline, Shader};
use crate::spirv;

const EMPTY: &[u8] = include_bytes!("empty.spv");
const FILL: &[u8] = include_bytes!("fill.spv");
/// Work-items of a group of a fill.
const GROUP: u64 = 256;
/// Most groups of a fill: each item stores several times.
const MOST_GROUPS: u64 = 4096;
/// Bytes of a fill's constants: first word, count, and the pattern.
const FILL_CONSTANTS: u32 = 24;

/// The compiled kernels.
#[derive(Debug)]
pub(crate) struct Builtins {
    empty: Pipeline,
    fill: Pipeline,
}

impl Builtins {
    pub(crate) fn load(logical: &Arc<Logical>) -> Result<Self> {
        let compile = |code: &[u8], bindings, push_bytes| {
            Shader::new(logical, &spirv::words(code)?)?.pipeline("main", bindings, push_bytes, &Vec::new())
        };
        Ok(Self { empty: compile(EMPTY, 0, 0)?, fill: compile(FILL, 1, FILL_CONSTANTS)? })
    }

    /// Records the kernel that does nothing.
    pub(crate) fn record_empty(&self, commands: &mut Commands) -> Result<()> {
        commands.dispatch(&self.empty, &[], &[], [1; 3])
    }

    /// Takes what a fill of `bytes` bytes needs, so that recording it does not fail.
    ///
    /// # Errors
    /// `OutOfMemory` for descriptor sets.
    pub(crate) fn reserve_fill(&self, logical: &Logical, commands: &mut Commands, bytes: u64) -> Result<()> {
        let pieces = usize::try_from(bytes.div_ceil(most_bytes(logical))).unwrap_or(usize::MAX);
        commands.reserve(&self.fill, pieces)
    }

    /// Records a fill of whole words: in several pieces, where one binding does not reach that far.
    pub(crate) fn record_fill(
        &self,
        logical: &Logical,
        commands: &mut Commands,
        to: (&Memory, u64),
        bytes: u64,
        words: [u32; 4],
    ) -> Result<()> {
        let alignment = logical.facts.binding_alignment;
        // From the first byte of the driver's buffer: what is bound may begin before the first that counts.
        let (mut at, end) = (to.0.start + to.1, to.0.start + to.1 + bytes);
        while at < end {
            let before = at % alignment;
            if before > 0 {
                // What is bound reaches over bytes that another piece of this fill may have written.
                commands.barrier();
            }
            let piece = (end - at).min(most_bytes(logical));
            let binding = Binding::of_buffer(to.0, at - before, before + piece);
            let count = piece / 4;
            let numbers = [before / 4, count].map(|number| u32::try_from(number).unwrap_or(u32::MAX));
            let constants = [numbers.as_slice(), words.as_slice()].concat();
            let constants: Vec<u8> = constants.into_iter().flat_map(u32::to_le_bytes).collect();
            let groups = u32::try_from(count.div_ceil(GROUP).clamp(1, MOST_GROUPS)).unwrap_or(1);
            commands.dispatch(&self.fill, &[binding], &constants, [groups, 1, 1])?;
            at += piece;
        }
        Ok(())
    }
}

/// Bytes that one piece of a fill covers at most: whole repetitions of the pattern.
fn most_bytes(logical: &Logical) -> u64 {
    (logical.facts.binding_bytes - logical.facts.binding_alignment) / 16 * 16
}
