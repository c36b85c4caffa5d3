//! A transfer cut into pieces, which threads take one by one.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::Error;

/// Size of the smallest piece for a slot; larger pieces are multiples of it.
const MIN_PIECE_BYTES: usize = 64 << 10;

/// A part of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bytes of the transfer before it.
    pub offset: usize,
    /// Its length.
    pub bytes: usize,
}

/// The pieces of a transfer. Each is taken once, by any thread, until none are left or one has failed.
#[derive(Debug)]
pub struct Pieces {
    total_bytes: usize,
    piece_bytes: usize,
    /// The next piece's number; at least their count if none are left.
    next: AtomicUsize,
    failure: Mutex<Option<Error>>,
}

impl Pieces {
    /// Cuts `total_bytes` bytes into pieces of `piece_bytes` bytes, more than 0; the last may be shorter.
    #[must_use]
    pub const fn new(total_bytes: usize, piece_bytes: usize) -> Self {
        Self { total_bytes, piece_bytes, next: AtomicUsize::new(0), failure: Mutex::new(None) }
    }

    /// Cuts `total_bytes` bytes into pieces that fit slots of `slot_bytes` bytes, 64 KiB or more: two for each thread, unless
    /// they become too small.
    #[must_use]
    pub fn for_slots(total_bytes: usize, threads: usize, slot_bytes: usize) -> Self {
        let even = total_bytes.div_ceil(2 * threads).next_multiple_of(MIN_PIECE_BYTES);
        Self::new(total_bytes, even.clamp(MIN_PIECE_BYTES, slot_bytes))
    }

    /// Number of pieces, taken or not.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.total_bytes.div_ceil(self.piece_bytes)
    }

    /// Whether there are pieces that no thread has taken.
    pub fn are_left(&self) -> bool {
        self.next.load(Ordering::Acquire) < self.count()
    }

    /// Takes the next piece.
    pub fn take(&self) -> Option<Piece> {
        let number = self.next.fetch_add(1, Ordering::AcqRel);
        let offset = number.checked_mul(self.piece_bytes).filter(|&offset| offset < self.total_bytes)?;
        Some(Piece { offset, bytes: self.piece_bytes.min(self.total_bytes - offset) })
    }

    /// Records why a piece has failed; the first failure is kept. The pieces that are left are not taken any more.
    pub fn fail(&self, error: Error) {
        self.failure.lock().get_or_insert(error);
        self.next.fetch_max(self.count(), Ordering::AcqRel);
    }

    /// Takes the first failure.
    pub fn take_failure(&self) -> Option<Error> {
        self.failure.lock().take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_transfers_have_two_pieces_per_thread() {
        let piece_bytes = |bytes, threads| Pieces::for_slots(bytes, threads, 1 << 20).piece_bytes;
        assert_eq!(piece_bytes(1 << 30, 4), 1 << 20);
        assert_eq!(piece_bytes(1 << 20, 4), 128 << 10);
        assert_eq!(piece_bytes(100_000, 8), 64 << 10);
    }

    #[test]
    fn pieces_cover_the_transfer() {
        let pieces = Pieces::new(10, 4);
        assert_eq!(pieces.count(), 3);
        let taken: Vec<_> =
            std::iter::from_fn(|| pieces.take()).map(|piece| (piece.offset, piece.bytes)).collect();
        assert_eq!(taken, [(0, 4), (4, 4), (8, 2)]);
        assert!(!pieces.are_left() && pieces.take().is_none());
    }

    #[test]
    fn a_failure_ends_the_pieces_and_the_first_is_kept() {
        let pieces = Pieces::new(10, 1);
        assert!(pieces.take().is_some() && pieces.are_left());
        pieces.fail(Error::invalid("first"));
        pieces.fail(Error::invalid("second"));
        assert!(!pieces.are_left() && pieces.take().is_none());
        assert!(pieces.take_failure().unwrap().message().contains("first"));
    }
}
