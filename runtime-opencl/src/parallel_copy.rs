//! Copies between host memory and host-visible device memory by the host itself, large ones by several threads.

#![allow(unsafe_code, reason = "copies to and from memory that core keeps until the ticket ends")]

use std::num::NonZero;
use std::sync::OnceLock;

/// Bytes that make another thread worthwhile.
const MIN_BYTES_PER_THREAD: usize = 4 << 20;
/// Maximum number of threads; more do not increase the bandwidth.
const MAX_THREADS: usize = 8;

/// One thread's part of a copy.
#[derive(Clone, Copy)]
struct Piece {
    to: *mut u8,
    from: *const u8,
    bytes: usize,
}

// SAFETY: the pieces of a copy are disjoint, and their threads are joined before `copy` returns.
unsafe impl Send for Piece {}

impl Piece {
    fn copy(self) {
        // SAFETY: the promise of `copy`, whose pieces these are.
        unsafe { std::ptr::copy_nonoverlapping(self.from, self.to, self.bytes) };
    }
}

/// Copies `bytes` bytes from `from` to `to`.
///
/// # Safety
/// Both ranges are valid for `bytes` bytes and do not overlap. Until this returns, nothing else writes `from` or accesses `to`.
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    let threads = thread_count(bytes);
    if threads == 1 {
        return Piece { to, from, bytes }.copy();
    }
    let step = bytes.div_ceil(threads).next_multiple_of(4096);
    let piece = |offset: usize| Piece {
        to: to.wrapping_add(offset),
        from: from.wrapping_add(offset),
        bytes: step.min(bytes - offset),
    };
    std::thread::scope(|scope| {
        for piece in (step..bytes).step_by(step).map(piece) {
            // If no thread can be spawned, this one copies.
            if std::thread::Builder::new().spawn_scoped(scope, move || piece.copy()).is_err() {
                piece.copy();
            }
        }
        piece(0).copy();
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
