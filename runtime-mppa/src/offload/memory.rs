//! Memory of a chip.

#![allow(unsafe_code, reason = "calls the shim")]

use std::sync::Arc;

use runtime_core::backend::check_range;
use runtime_core::{Error, ErrorKind, Result};

use super::chip::Chip;
use crate::counters::CLUSTERS;

/// Alignment of every allocation, and of the memory of whole programs.
pub(crate) const MIN_ALIGNMENT_BYTES: u64 = 64;
/// Bytes of a piece of what goes through a buffer of this backend.
const PIECE_BYTES: u64 = 1 << 20;

/// Where memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// The chip's memory, for all clusters.
    Chip,
    /// The local memory of a cluster.
    Cluster(u32),
}

impl Space {
    /// As the shim takes it.
    fn number(self) -> Result<i32> {
        match self {
            Self::Chip => Ok(-1),
            Self::Cluster(cluster) => i32::try_from(cluster)
                .ok()
                .filter(|_| (cluster as usize) < CLUSTERS)
                .ok_or_else(|| Error::invalid(format!("no cluster {cluster}; valid: 0 to {}", CLUSTERS - 1))),
        }
    }
}

/// A block of a chip's memory, freed on drop.
#[derive(Debug)]
pub struct Memory {
    chip: Arc<Chip>,
    space: i32,
    bytes: u64,
    kernel_address: u64,
    transfer_address: u64,
}

impl Memory {
    /// Allocates memory, aligned to 64 bytes.
    ///
    /// # Errors
    /// `OutOfMemory`; `InvalidArgument` for a cluster that does not exist.
    pub fn allocate(chip: &Arc<Chip>, space: Space, bytes: u64) -> Result<Self> {
        Self::aligned(chip, space, bytes, MIN_ALIGNMENT_BYTES)
    }

    /// Allocates memory with an alignment in bytes: a power of two, at least 64.
    ///
    /// # Errors
    /// As [`Memory::allocate`].
    pub(super) fn aligned(chip: &Arc<Chip>, space: Space, bytes: u64, alignment: u64) -> Result<Self> {
        let space = space.number()?;
        let (mut kernel_address, mut transfer_address) = (0, 0);
        chip.call(ErrorKind::OutOfMemory, "mppa_offload_alloc", |functions, handle| {
            let addresses = (&raw mut kernel_address, &raw mut transfer_address);
            // SAFETY: the chip is open, the space exists, and both numbers are writable.
            unsafe { (functions.allocate)(handle, space, bytes.max(1), alignment, addresses.0, addresses.1) }
        })?;
        Ok(Self { chip: Arc::clone(chip), space, bytes, kernel_address, transfer_address })
    }

    /// Size in bytes.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The address that kernels use.
    #[must_use]
    pub const fn kernel_address(&self) -> u64 {
        self.kernel_address
    }

    /// The address that transfers use.
    #[must_use]
    pub const fn transfer_address(&self) -> u64 {
        self.transfer_address
    }

    /// Copies bytes to the memory.
    ///
    /// # Errors
    /// `InvalidArgument` for a range beyond its end; `Driver`.
    pub fn write(&self, offset: u64, source: &[u8]) -> Result<()> {
        // SAFETY: a slice is readable.
        unsafe { self.write_from(offset, source.as_ptr(), source.len() as u64) }
    }

    /// Copies `bytes` bytes from `source` to the memory.
    ///
    /// # Errors
    /// As [`Memory::write`].
    ///
    /// # Safety
    /// `source` is readable for `bytes` bytes.
    pub(super) unsafe fn write_from(&self, offset: u64, source: *const u8, bytes: u64) -> Result<()> {
        check_range("write", offset, bytes, self.bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        self.chip.call(ErrorKind::Driver, "mppa_offload_write", |functions, handle| {
            let (host, address) = (source.cast_mut().cast(), self.transfer_address + offset);
            // SAFETY: the chip is open, and the range is within the memory; the source is only read.
            unsafe { (functions.write)(handle, host, address, bytes) }
        })
    }

    /// Copies bytes from the memory.
    ///
    /// # Errors
    /// As [`Memory::write`].
    pub fn read(&self, offset: u64, destination: &mut [u8]) -> Result<()> {
        // SAFETY: a mutable slice is writable.
        unsafe { self.read_to(offset, destination.as_mut_ptr(), destination.len() as u64) }
    }

    /// Copies `bytes` bytes from the memory to `destination`.
    ///
    /// # Errors
    /// As [`Memory::write`].
    ///
    /// # Safety
    /// `destination` is writable for `bytes` bytes.
    pub(super) unsafe fn read_to(&self, offset: u64, destination: *mut u8, bytes: u64) -> Result<()> {
        check_range("read", offset, bytes, self.bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        self.chip.call(ErrorKind::Driver, "mppa_offload_read", |functions, handle| {
            // SAFETY: the chip is open, the range is within the memory, and the destination is writable.
            unsafe { (functions.read)(handle, destination.cast(), self.transfer_address + offset, bytes) }
        })
    }
}

/// Transfers with host memory that core lends until their ticket ends, or until the device is lost. A call to a simulator that has
/// ended may go on after that, so the library of a simulated chip gets memory of this backend instead.
impl Memory {
    /// As [`Memory::write_from`].
    ///
    /// # Errors
    /// As [`Memory::write`].
    ///
    /// # Safety
    /// `source` is lent for `bytes` bytes.
    pub(super) unsafe fn write_lent(&self, offset: u64, source: *const u8, bytes: u64) -> Result<()> {
        if !self.chip.is_simulated() {
            // SAFETY: a board is never lost, so the source is readable until the ticket ends.
            return unsafe { self.write_from(offset, source, bytes) };
        }
        pieces(bytes, |done, piece| {
            let source = source.wrapping_add(usize::try_from(done).unwrap_or(0));
            self.chip.while_running(|| {
                // SAFETY: the device is not lost meanwhile, so the source is readable; the piece is no part of it.
                unsafe { source.copy_to_nonoverlapping(piece.as_mut_ptr(), piece.len()) }
            })?;
            self.write(offset + done, piece)
        })
    }

    /// As [`Memory::read_to`].
    ///
    /// # Errors
    /// As [`Memory::write`].
    ///
    /// # Safety
    /// `destination` is lent for `bytes` bytes.
    pub(super) unsafe fn read_lent(&self, offset: u64, destination: *mut u8, bytes: u64) -> Result<()> {
        if !self.chip.is_simulated() {
            // SAFETY: a board is never lost, so the destination is writable until the ticket ends.
            return unsafe { self.read_to(offset, destination, bytes) };
        }
        pieces(bytes, |done, piece| {
            self.read(offset + done, piece)?;
            let destination = destination.wrapping_add(usize::try_from(done).unwrap_or(0));
            self.chip.while_running(|| {
                // SAFETY: the device is not lost meanwhile, so the destination is writable; the piece is no part of it.
                unsafe { destination.copy_from_nonoverlapping(piece.as_ptr(), piece.len()) }
            })
        })
    }
}

/// Calls `use_piece` with a buffer for each piece of a range, and how much was before it.
pub(super) fn pieces(bytes: u64, mut use_piece: impl FnMut(u64, &mut [u8]) -> Result<()>) -> Result<()> {
    let largest = usize::try_from(bytes.min(PIECE_BYTES)).unwrap_or(0);
    let mut buffer = vec![0; largest];
    let mut done = 0;
    while done < bytes {
        let piece = usize::try_from(bytes - done).unwrap_or(largest).min(largest);
        use_piece(done, &mut buffer[..piece])?;
        done += piece as u64;
    }
    Ok(())
}

impl Drop for Memory {
    fn drop(&mut self) {
        // A failure leaves nothing to do.
        let _ = self.chip.call(ErrorKind::Driver, "mppa_offload_free", |functions, handle| {
            // SAFETY: the chip is open, and the memory was allocated in this space.
            unsafe { (functions.free)(handle, self.space, self.kernel_address) }
        });
    }
}
