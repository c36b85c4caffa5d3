//! The host's side of a staged transfer.

#![allow(unsafe_code, reason = "threads copy host memory that core keeps until the ticket ends")]

use super::Piece;
use crate::backend::{HostBytes, HostBytesMut};

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Host to device.
    Upload,
    /// Device to host.
    Download,
}

impl Direction {
    /// The two sides of a transfer as `(to, from)`.
    pub fn order<T>(self, device: T, host: T) -> (T, T) {
        match self {
            Self::Upload => (device, host),
            Self::Download => (host, device),
        }
    }
}

/// The host memory of a transfer, whose pieces several threads copy.
#[derive(Debug)]
pub enum HostRange {
    /// Uploaded to the device.
    Source(HostBytes),
    /// Downloaded from the device.
    Destination(HostBytesMut),
}

// SAFETY: threads copy pieces of it that do not overlap, and nothing else accesses it until the ticket ends.
unsafe impl Sync for HostRange {}

impl HostRange {
    /// Direction of the transfer.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        match self {
            Self::Source(_) => Direction::Upload,
            Self::Destination(_) => Direction::Download,
        }
    }

    /// Address of the first byte; an upload only reads it.
    #[must_use]
    pub const fn as_ptr(&self) -> *mut u8 {
        match self {
            Self::Source(bytes) => bytes.as_ptr().cast_mut(),
            Self::Destination(bytes) => bytes.as_ptr(),
        }
    }

    /// Its size.
    #[must_use]
    pub const fn size_bytes(&self) -> usize {
        match self {
            Self::Source(bytes) => bytes.len(),
            Self::Destination(bytes) => bytes.len(),
        }
    }

    /// All of it as one piece.
    #[must_use]
    pub const fn whole(&self) -> Piece {
        Piece { offset: 0, bytes: self.size_bytes() }
    }

    /// Copies a piece to `slot` (upload) or from it (download).
    ///
    /// # Safety
    /// The ticket has not ended. The piece lies within this range, and no other thread copies it. `slot` is valid for as many
    /// bytes, and neither the device nor another thread uses them meanwhile.
    pub unsafe fn copy_piece(&self, slot: *mut u8, piece: Piece) {
        let (to, from) = self.direction().order(slot, self.as_ptr().wrapping_add(piece.offset));
        // SAFETY: the caller's promise, for both sides.
        unsafe { std::ptr::copy_nonoverlapping(from, to, piece.bytes) };
    }
}
