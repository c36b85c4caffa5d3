//! Copies between host memory and host-visible device memory by the host itself, large ones by several threads.

#![allow(unsafe_code, reason = "copies to and from memory that core keeps until the ticket ends")]

use std::num::NonZero;
use std::sync::OnceLock;

use runtime_core::backend::{Piece, Pieces};

/// Bytes that make another thread worthwhile.
const MIN_BYTES_PER_THREAD: usize = 4 << 20;
/// Maximum number of threads; more do not increase the bandwidth.
const MAX_THREADS: usize = 8;

/// The two sides of a copy.
struct Ranges {
    to: *mut u8,
    from: *const u8,
}

// SAFETY: threads copy disjoint pieces, and are joined before `copy` returns.
unsafe impl Sync for Ranges {}

impl Ranges {
    fn copy(&self, pieces: &Pieces) {
        while let Some(Piece { offset, bytes }) = pieces.take() {
            let (to, from) = (self.to.wrapping_add(offset), self.from.wrapping_add(offset));
            // SAFETY: the promise of `copy`, of whose ranges this is a piece.
            unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
        }
    }
}

/// Copies `bytes` bytes from `from` to `to`.
///
/// # Safety
/// Both ranges are valid for `bytes` bytes and do not overlap. Until this returns, nothing else writes `from` or accesses `to`.
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    let (ranges, threads) = (Ranges { to, from }, thread_count(bytes));
    if threads == 1 {
        return ranges.copy(&Pieces::new(bytes, bytes));
    }
    let pieces = Pieces::new(bytes, bytes.div_ceil(threads).next_multiple_of(4096));
    std::thread::scope(|scope| {
        let work = || ranges.copy(&pieces);
        for _ in 1..threads {
            // If no thread can be spawned, the others copy its piece.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
}

/// Number of threads for a copy of `bytes` bytes, including the caller.
fn thread_count(bytes: usize) -> usize {
    static AVAILABLE: OnceLock<usize> = OnceLock::new();
    if bytes < 2 * MIN_BYTES_PER_THREAD {
        return 1;
    }
    let available = AVAILABLE
        .get_or_init(|| std::thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS));
    (bytes / MIN_BYTES_PER_THREAD).min(*available)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_any_size_are_complete() {
        for bytes in [
            0,
            1,
            4095,
            4097,
            2 * MIN_BYTES_PER_THREAD - 1,
            2 * MIN_BYTES_PER_THREAD + 1,
            5 * MIN_BYTES_PER_THREAD + 4097,
        ] {
            let from: Vec<u8> = (0..=250).cycle().take(bytes).collect();
            let mut to = vec![0; bytes + 1];
            // SAFETY: two vectors of this function, both large enough.
            unsafe { copy(to.as_mut_ptr(), from.as_ptr(), bytes) };
            assert!(to[..bytes] == from[..] && to[bytes] == 0, "{bytes} bytes");
        }
    }
}
