//! Fills in two phases: prepare everything that can fail, then record the commands, so that an error leaves none behind.

use std::sync::Arc;

use runtime_core::Result;

use crate::builtin::Builtins;
use crate::convert::FillPiece;
use crate::device_state::DeviceState;
use crate::driver::{CommandBuffer, LogicalDevice, Memory};

/// A prepared piece of a fill; `at` is relative to the tensor's first byte.
#[derive(Debug)]
pub(crate) enum FillStep {
    Copy { at: u64, bytes: u64, from: (Arc<Memory>, u64) },
    Word { at: u64, bytes: u64, word: u32 },
    Pattern { at: u64, bytes: u64, words: [u32; 4], builtins: Arc<Builtins> },
}

impl FillStep {
    /// Prepares a piece, whose offset is relative to the `VkBuffer`; the tensor begins at `base_offset` in it. `upload`
    /// allocates 16 bytes that the host writes and the device reads.
    ///
    /// # Errors
    /// Those of `upload`, and of compiling the backend's kernels.
    pub(crate) fn new(
        shared: &DeviceState,
        base_offset: u64,
        piece: FillPiece,
        upload: impl FnOnce() -> Result<(Arc<Memory>, u64)>,
    ) -> Result<Self> {
        Ok(match piece {
            FillPiece::Bytes { at, bytes, data } => {
                let from = upload()?;
                from.0.write_bytes(from.1, &data);
                Self::Copy { at: at - base_offset, bytes, from }
            }
            FillPiece::Word { at, bytes, word } => Self::Word { at: at - base_offset, bytes, word },
            FillPiece::Pattern { at, bytes, words } => {
                Self::Pattern { at: at - base_offset, bytes, words, builtins: shared.builtins()? }
            }
        })
    }

    /// The kernels that must live until the fill has completed.
    pub(crate) fn builtins(&self) -> Option<&Arc<Builtins>> {
        match self {
            Self::Pattern { builtins, .. } => Some(builtins),
            _ => None,
        }
    }

    /// Allocates descriptor sets in advance, so that recording cannot fail.
    ///
    /// # Errors
    /// `OutOfMemory` for descriptor sets.
    pub(crate) fn reserve(&self, logical: &LogicalDevice, commands: &mut CommandBuffer) -> Result<()> {
        match self {
            Self::Pattern { bytes, builtins, .. } => builtins.reserve_fill(logical, commands, *bytes),
            _ => Ok(()),
        }
    }

    /// Records the step.
    ///
    /// # Errors
    /// `OutOfMemory` for descriptor sets, unless [`FillStep::reserve`] allocated them.
    pub(crate) fn record(
        &self,
        logical: &LogicalDevice,
        commands: &mut CommandBuffer,
        to: &Memory,
    ) -> Result<()> {
        match self {
            Self::Copy { at, bytes, from } => commands.copy((to, *at), (&from.0, from.1), *bytes),
            Self::Word { at, bytes, word } => commands.fill((to, *at), *bytes, *word),
            Self::Pattern { at, bytes, words, builtins } => {
                builtins.record_fill(logical, commands, (to, *at), *bytes, *words)?;
            }
        }
        Ok(())
    }
}
