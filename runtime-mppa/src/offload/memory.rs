//! Memory of a chip.

#![allow(unsafe_code, reason = "calls the shim")]

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use runtime_core::backend::{Buffer, check_range};
use runtime_core::{Error, ErrorKind, Result};

use super::chip::Chip;
use super::functions::Functions;
use crate::counters::CLUSTERS;

/// Alignment of every allocation, and of the memory of whole programs.
pub(crate) const MIN_ALIGNMENT_BYTES: u64 = 64;
/// Bytes of a piece of what goes through a buffer of this backend.
const PIECE_BYTES: u64 = 1 << 20;

/// A function of the shim that writes to memory, or reads it.
type Transfer = unsafe extern "C" fn(*mut c_void, *mut c_void, u64, u64) -> c_int;

/// A direction of transfers: its name, the library's function, and that of the shim.
type Direction = (&'static str, &'static str, fn(&Functions) -> Transfer);

const WRITE: Direction = ("write", "mppa_offload_write", |functions| functions.write);
const READ: Direction = ("read", "mppa_offload_read", |functions| functions.read);

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
        let allocate = move |functions: &Functions, handle| {
            let (mut kernel, mut transfer) = (0, 0);
            let (size, addresses) = (bytes.max(1), (&raw mut kernel, &raw mut transfer));
            // SAFETY: the chip is open, the space exists, and both numbers are writable.
            let code =
                unsafe { (functions.allocate)(handle, space, size, alignment, addresses.0, addresses.1) };
            (code, (kernel, transfer))
        };
        let (kernel_address, transfer_address) =
            chip.call(ErrorKind::OutOfMemory, "mppa_offload_alloc", allocate)?;
        check_addresses((kernel_address, transfer_address), bytes, alignment)?;
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

    /// Copies a piece to the memory, and returns it. The library keeps it if the call does not return.
    ///
    /// # Errors
    /// `InvalidArgument` for a range beyond its end; `Driver`.
    pub fn write(&self, offset: u64, piece: Vec<u8>) -> Result<Vec<u8>> {
        self.transfer(WRITE, offset, piece)
    }

    /// Fills a piece from the memory, and returns it. The library keeps it if the call does not return.
    ///
    /// # Errors
    /// As [`Memory::write`].
    pub fn read(&self, offset: u64, piece: Vec<u8>) -> Result<Vec<u8>> {
        self.transfer(READ, offset, piece)
    }

    fn transfer(
        &self,
        (operation, function, transfer): Direction,
        offset: u64,
        mut piece: Vec<u8>,
    ) -> Result<Vec<u8>> {
        check_range(operation, offset, piece.len() as u64, self.bytes)?;
        let address = self.transfer_address + offset;
        self.chip.call(ErrorKind::Driver, function, move |functions, handle| {
            let (host, bytes) = (piece.as_mut_ptr().cast(), piece.len() as u64);
            // SAFETY: the chip is open, the range is within the memory, and the piece is readable and writable.
            (unsafe { transfer(functions)(handle, host, address, bytes) }, piece)
        })
    }
}

/// Checks that the library's addresses can be those of a block. If not, nothing is known about it, so it is not freed.
fn check_addresses((kernel, transfer): (u64, u64), bytes: u64, alignment: u64) -> Result<()> {
    let has_room = [kernel, transfer].into_iter().all(|address| address.checked_add(bytes).is_some());
    if kernel != 0 && kernel.is_multiple_of(alignment) && has_room {
        return Ok(());
    }
    let message = format!(
        "mppa_offload_alloc returned the addresses {kernel:#x} and {transfer:#x} for {bytes} bytes, aligned to {alignment}: no block of \
         memory"
    );
    Err(Error::new(ErrorKind::Driver, message))
}

/// Host memory that core lends until a ticket ends, or until the device is lost.
struct Lent(*mut u8);

// SAFETY: one thread at a time uses it.
unsafe impl Send for Lent {}

impl Lent {
    /// As the shim takes it.
    fn address(self) -> *mut c_void {
        self.0.cast()
    }
}

/// Transfers with lent host memory. A board is not lost while one is in progress, so its library gets that memory. A simulator may end,
/// and a call to it go on, so the library of a simulated chip gets memory of this backend.
impl Memory {
    /// Copies `bytes` bytes from `source` to the memory.
    ///
    /// # Errors
    /// `Driver`; `DeviceLost`.
    ///
    /// # Safety
    /// `source` is lent for `bytes` bytes, and the range is within the memory.
    pub(super) unsafe fn write_lent(&self, offset: u64, source: *const u8, bytes: u64) -> Result<()> {
        if !self.chip.is_simulated() {
            // SAFETY: as the caller's; a source is only read.
            return unsafe { self.transfer_lent(WRITE, offset, source.cast_mut(), bytes) };
        }
        pieces(bytes, |done, mut piece| {
            let source = source.wrapping_add(usize::try_from(done).unwrap_or(0));
            self.chip.while_running(|| {
                // SAFETY: the device is not lost meanwhile, so the source is readable; the piece is no part of it.
                unsafe { source.copy_to_nonoverlapping(piece.as_mut_ptr(), piece.len()) }
            })?;
            self.write(offset + done, piece)
        })
    }

    /// Copies `bytes` bytes from the memory to `destination`.
    ///
    /// # Errors
    /// As [`Memory::write_lent`].
    ///
    /// # Safety
    /// `destination` is lent for `bytes` bytes, and the range is within the memory.
    pub(super) unsafe fn read_lent(&self, offset: u64, destination: *mut u8, bytes: u64) -> Result<()> {
        if !self.chip.is_simulated() {
            // SAFETY: as the caller's.
            return unsafe { self.transfer_lent(READ, offset, destination, bytes) };
        }
        pieces(bytes, |done, piece| {
            let piece = self.read(offset + done, piece)?;
            let destination = destination.wrapping_add(usize::try_from(done).unwrap_or(0));
            self.chip.while_running(|| {
                // SAFETY: the device is not lost meanwhile, so the destination is writable; the piece is no part of it.
                unsafe { destination.copy_from_nonoverlapping(piece.as_ptr(), piece.len()) }
            })?;
            Ok(piece)
        })
    }

    /// Transfers between lent memory and a board.
    ///
    /// # Safety
    /// `host` is lent for `bytes` bytes, and the range is within the memory.
    unsafe fn transfer_lent(
        &self,
        (_, function, transfer): Direction,
        offset: u64,
        host: *mut u8,
        bytes: u64,
    ) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let (lent, address) = (Lent(host), self.transfer_address + offset);
        self.chip.call_unlimited(ErrorKind::Driver, function, move |functions, handle| {
            // SAFETY: the chip is open, and the caller promises the rest.
            unsafe { transfer(functions)(handle, lent.address(), address, bytes) }
        })
    }
}

/// Calls `use_piece` with a buffer for each piece of a range, and how much was before it. It returns the buffer.
pub(super) fn pieces(bytes: u64, mut use_piece: impl FnMut(u64, Vec<u8>) -> Result<Vec<u8>>) -> Result<()> {
    let mut piece = vec![0; usize::try_from(bytes.min(PIECE_BYTES)).unwrap_or(0)];
    let mut done = 0;
    while done < bytes {
        piece.truncate(usize::try_from(bytes - done).unwrap_or(usize::MAX));
        let piece_bytes = piece.len() as u64;
        piece = use_piece(done, piece)?;
        done += piece_bytes;
    }
    Ok(())
}

impl Drop for Memory {
    fn drop(&mut self) {
        let (space, address) = (self.space, self.kernel_address);
        self.chip.release("mppa_offload_free", move |functions, handle| {
            // SAFETY: the chip is open, and the memory was allocated in this space.
            let _ = unsafe { (functions.free)(handle, space, address) };
        });
    }
}

/// Memory of a chip, as core holds it.
#[derive(Debug)]
pub struct OffloadBuffer(pub(super) Arc<Memory>);

impl Buffer for OffloadBuffer {
    fn kernel_address(&self) -> u64 {
        self.0.kernel_address()
    }
}
