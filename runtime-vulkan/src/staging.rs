//! Large transfers of pageable memory, copied in pieces by several threads. If the device memory is mapped and cached, threads
//! access it directly. Otherwise they fill or empty slots in pinned memory, while the device copies other slots.
//!
//! A transfer is ready when its dependencies have completed. On a CPU device the submitting thread helps.

mod slot_ring;

use std::sync::Arc;
use std::time::Duration;

use runtime_core::backend::{HostRange, Piece, Pieces, StagedTransfer, StagingOptions, StagingPool};
use runtime_core::{Error, Result};

use crate::batches::Retained;
use crate::driver::{Memory, Semaphore};
use crate::progress::QueueProgress;
use slot_ring::SlotRing;

/// How long a thread waits at a time for the dependencies of a transfer.
const DEPENDENCY_WAIT_SLICE: Duration = Duration::from_millis(1);
/// Unit of the pieces of a direct copy.
const DIRECT_PIECE_UNIT: usize = 64 << 10;
/// Smallest piece of a direct copy: a copy this large bypasses the caches.
const MIN_DIRECT_PIECE_BYTES: usize = 32 << 20;

/// The pieces of a transfer. A direct copy has larger ones.
fn pieces(options: StagingOptions, bytes: usize, direct: bool) -> Pieces {
    if !direct {
        return Pieces::for_slots(bytes, options.threads, options.slot_bytes);
    }
    // Half of the threads saturate memory bandwidth, and the other transfers need threads too.
    let piece_bytes = bytes.div_ceil(options.threads.div_ceil(2)).next_multiple_of(DIRECT_PIECE_UNIT);
    Pieces::new(bytes, piece_bytes.max(MIN_DIRECT_PIECE_BYTES))
}

/// The staging threads of a device.
#[derive(Debug)]
pub(crate) struct Staging {
    pub(crate) options: StagingOptions,
    pool: StagingPool<Transfer>,
}

impl Staging {
    pub(crate) fn new(options: StagingOptions) -> Self {
        Self { options, pool: StagingPool::default() }
    }

    /// Starts threads for a transfer, as far as they are missing.
    ///
    /// # Errors
    /// `OutOfResources` if there is no thread and none can be started.
    pub(crate) fn ensure_threads(&self, host: &HostRange, memory: &Memory) -> Result<()> {
        let pieces = pieces(self.options, host.size_bytes(), is_direct(memory));
        self.pool.start_threads(pieces.count().min(self.options.threads))
    }

    /// Whether a direct copy of so many bytes is a single piece.
    pub(crate) fn is_one_piece(&self, bytes: u64) -> bool {
        usize::try_from(bytes).is_ok_and(|bytes| pieces(self.options, bytes, true).count() <= 1)
    }

    /// Starts a transfer. If the calling thread `helps`, it copies pieces too, for which the transfer must have no pending
    /// dependencies.
    pub(crate) fn submit(&self, transfer: Transfer, helps: bool) {
        let pieces = pieces(self.options, transfer.host.size_bytes(), is_direct(&transfer.memory));
        transfer.progress.begin_staging();
        self.pool.submit(transfer, pieces, helps);
    }
}

/// Whether the host can copy to and from device memory at full speed.
fn is_direct(memory: &Memory) -> bool {
    memory.host_ptr().is_some() && memory.is_host_cached()
}

/// A transfer to stage.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// Completes the ticket.
    pub(crate) progress: Arc<QueueProgress>,
    /// The device: otherwise its drop would end the threads before the transfer.
    pub(crate) _device: Retained,
    pub(crate) ticket: u64,
    pub(crate) host: HostRange,
    pub(crate) memory: Arc<Memory>,
    pub(crate) offset: u64,
    pub(crate) slot_bytes: usize,
    /// Semaphore values to wait for: the queue's earlier work, and what that queue waits for.
    pub(crate) dependencies: Vec<(Arc<Semaphore>, u64)>,
}

impl StagedTransfer for Transfer {
    type Slots = SlotRing;

    const THREAD_NAME: &'static str = "vulkan-staging";

    fn is_ready(&self) -> bool {
        self.pending_dependency().is_none()
    }

    fn wait_until_ready(&self) -> Duration {
        if let Some((semaphore, value)) = self.pending_dependency() {
            let _ = semaphore.wait(*value, DEPENDENCY_WAIT_SLICE);
        }
        Duration::ZERO
    }

    fn copy(&self, slots: &mut Option<SlotRing>, pieces: &Pieces) -> Result<()> {
        if is_direct(&self.memory) {
            return self.copy_direct(pieces);
        }
        let slots = match slots {
            Some(slots) => slots,
            none => none.insert(SlotRing::new(&self.progress.logical, self.slot_bytes)?),
        };
        slots.copy(self, pieces)
    }

    fn complete(&self, failure: Option<Error>) {
        self.progress.end_staging(self.ticket, failure);
    }
}

impl Transfer {
    /// A dependency that has not completed. An error counts as completion: it is reported when the first piece is copied.
    fn pending_dependency(&self) -> Option<&(Arc<Semaphore>, u64)> {
        let mut dependencies = self.dependencies.iter();
        dependencies.find(|(semaphore, value)| semaphore.value().is_ok_and(|current| current < *value))
    }

    fn copy_direct(&self, pieces: &Pieces) -> Result<()> {
        while let Some(piece) = pieces.take() {
            // The only call of the driver here, so that a loss of the device is noticed.
            self.progress.semaphore.value()?;
            self.copy_host(&self.memory, self.offset + piece.offset as u64, piece)?;
        }
        Ok(())
    }

    /// Copies a piece between host memory and mapped memory, where it begins at `offset`.
    ///
    /// # Errors
    /// `DeviceLost` if the host memory must not be accessed any more.
    pub(crate) fn copy_host(&self, memory: &Memory, offset: u64, piece: Piece) -> Result<()> {
        let logical = &self.progress.logical;
        let allowed = logical.host_borrows.access(|| memory.copy_host(offset, &self.host, piece));
        if allowed { Ok(()) } else { Err(logical.device_lost()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_threads_have_a_piece_of_a_direct_copy() {
        let options = StagingOptions { slot_bytes: 1 << 20, threads: 4 };
        let first = |bytes, direct| pieces(options, bytes, direct).take().unwrap().bytes;
        assert_eq!(first(1 << 30, true), 512 << 20);
        assert_eq!(first(40 << 20, true), 32 << 20);
        assert_eq!(first(5 << 20, true), 5 << 20);
        assert_eq!(first(1 << 30, false), 1 << 20);
    }
}
