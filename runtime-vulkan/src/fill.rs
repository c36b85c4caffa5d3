//! Fills as steps: what can fail is done before the first command, so that a fill that is refused leaves none behind.

use std::sync::Arc;

use runtime_core::{Error, Result};

use crate::builtin::Builtins;
use crate::context::Context;
use crate::convert::{self, Piece};
use crate::driver::{Commands, Logical, Memory};

/// A piece of a fill, with all that it needs; `at` counts from the first byte of the memory that counts.
#[derive(Debug)]
pub(crate) enum Step {
    Copied { at: u64, bytes: u64, from: (Arc<Memory>, u64) },
    Words { at: u64, bytes: u64, word: u32 },
    Wide { at: u64, bytes: u64, words: [u32; 4], builtins: Arc<Builtins> },
}

/// The pattern of a fill of `bytes` bytes, repeated to 16.
///
/// # Errors
/// `InvalidArgument` for a pattern of another length, or one that does not divide the range.
pub(crate) fn pattern(pattern: &[u8], bytes: u64) -> Result<[u8; 16]> {
    let wide = convert::widen(pattern).filter(|_| bytes.is_multiple_of(pattern.len() as u64));
    wide.ok_or_else(|| {
        let unit = pattern.len();
        Error::invalid(format!(
            "fill: {bytes} bytes with a pattern of {unit}; 1, 2, 4, 8 or 16 that divide it"
        ))
    })
}

impl Step {
    /// Makes a step of a piece, which counts from byte 0 of the driver's buffer; the first byte that counts is `start`.
    /// `upload` finds 16 bytes that the program writes and the device reads.
    ///
    /// # Errors
    /// Whatever `upload` says, or the driver of the backend's own kernels.
    pub(crate) fn new(
        context: &Context,
        start: u64,
        piece: Piece,
        upload: impl FnOnce() -> Result<(Arc<Memory>, u64)>,
    ) -> Result<Self> {
        Ok(match piece {
            Piece::Bytes { at, bytes, data } => {
                let from = upload()?;
                from.0.put(from.1, &data);
                Self::Copied { at: at - start, bytes, from }
            }
            Piece::Words { at, bytes, word } => Self::Words { at: at - start, bytes, word },
            Piece::Wide { at, bytes, words } => {
                Self::Wide { at: at - start, bytes, words, builtins: context.builtins()? }
            }
        })
    }

    /// Kernels that must live until the fill has ended.
    pub(crate) fn builtins(&self) -> Option<&Arc<Builtins>> {
        match self {
            Self::Wide { builtins, .. } => Some(builtins),
            _ => None,
        }
    }

    /// Takes what recording needs, so that it does not fail.
    ///
    /// # Errors
    /// `OutOfMemory` for descriptor sets.
    pub(crate) fn reserve(&self, logical: &Logical, commands: &mut Commands) -> Result<()> {
        match self {
            Self::Wide { bytes, builtins, .. } => builtins.reserve_fill(logical, commands, *bytes),
            _ => Ok(()),
        }
    }

    /// Records the step.
    ///
    /// # Errors
    /// `OutOfMemory` for descriptor sets, unless [`Step::reserve`] took them.
    pub(crate) fn record(&self, logical: &Logical, commands: &mut Commands, to: &Memory) -> Result<()> {
        match self {
            Self::Copied { at, bytes, from } => commands.copy((to, *at), (&from.0, from.1), *bytes),
            Self::Words { at, bytes, word } => commands.fill((to, *at), *bytes, *word),
            Self::Wide { at, bytes, words, builtins } => {
                builtins.record_fill(logical, commands, (to, *at), *bytes, *words)?;
            }
        }
        Ok(())
    }
}
