//! Spares: freed memory that a queue keeps for its own next allocations, which then cost no call of the driver.
//!
//! Whatever the queue submits later runs behind what used the block before, so no other order is needed; another queue that
//! uses the new allocation waits for the ticket of it, as for any. Sizes are exact, and there is little of it: the driver's
//! own pool serves the rest.

use parking_lot::Mutex;

use crate::driver::abi::Address;

/// Blocks that a queue keeps unless it is told otherwise.
pub(crate) const BLOCKS: usize = 16;
/// Bytes that a queue keeps at most: larger allocations are used for longer than the driver takes to make them.
const MOST_BYTES: usize = 64 << 20;

/// A block of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) base: Address,
    pub(crate) bytes: usize,
}

#[derive(Debug, Default)]
struct Kept {
    /// The oldest first.
    blocks: Vec<Block>,
    bytes: usize,
}

/// The blocks of a queue.
#[derive(Debug)]
pub(crate) struct Spares {
    most: usize,
    kept: Mutex<Kept>,
}

impl Spares {
    /// Keeps at most so many blocks.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, kept: Mutex::default() }
    }

    /// Takes a block of exactly so many bytes.
    #[inline]
    pub(crate) fn take(&self, bytes: usize) -> Option<Address> {
        let mut kept = self.kept.lock();
        let at = kept.blocks.iter().rposition(|block| block.bytes == bytes)?;
        kept.bytes -= bytes;
        Some(kept.blocks.remove(at).base)
    }

    /// Keeps a block; what there is no room for is handed to `free`.
    #[inline]
    pub(crate) fn keep(&self, block: Block, mut free: impl FnMut(Block)) {
        if self.most == 0 || block.bytes > MOST_BYTES {
            return free(block);
        }
        let mut kept = self.kept.lock();
        while kept.blocks.len() >= self.most || kept.bytes + block.bytes > MOST_BYTES {
            let oldest = kept.blocks.remove(0);
            kept.bytes -= oldest.bytes;
            free(oldest);
        }
        kept.bytes += block.bytes;
        kept.blocks.push(block);
    }

    /// Lets go of everything.
    pub(crate) fn empty(&self, free: impl FnMut(Block)) {
        let mut kept = self.kept.lock();
        kept.bytes = 0;
        kept.blocks.drain(..).for_each(free);
    }

    /// Bytes that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.kept.lock().bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(base: Address, bytes: usize) -> Block {
        Block { base, bytes }
    }

    /// The bases of what had to go when these came.
    fn keep(spares: &Spares, blocks: &[Block]) -> Vec<Address> {
        let mut gone = Vec::new();
        blocks.iter().for_each(|&block| spares.keep(block, |block| gone.push(block.base)));
        gone
    }

    #[test]
    fn the_newest_block_of_exactly_that_size_is_taken() {
        let spares = Spares::new(BLOCKS);
        assert!(keep(&spares, &[block(1, 100), block(2, 100), block(3, 200)]).is_empty());
        assert_eq!(spares.take(150), None);
        assert_eq!((spares.take(100), spares.bytes()), (Some(2), 300));
        assert_eq!((spares.take(100), spares.take(100)), (Some(1), None));
        assert_eq!((spares.take(200), spares.bytes()), (Some(3), 0));
    }

    #[test]
    fn what_has_no_room_goes_the_oldest_first() {
        let spares = Spares::new(2);
        assert_eq!(keep(&spares, &[block(1, 10), block(2, 10), block(3, 10)]), [1]);
        assert_eq!(keep(&spares, &[block(4, MOST_BYTES - 10)]), [2]);
        assert_eq!(keep(&spares, &[block(5, MOST_BYTES + 1)]), [5], "too large to be kept");
        assert_eq!(spares.bytes(), MOST_BYTES);
        let mut gone = Vec::new();
        spares.empty(|block| gone.push(block.base));
        assert_eq!((gone, spares.bytes()), (vec![3, 4], 0));
        assert_eq!(keep(&Spares::new(0), &[block(6, 1)]), [6], "none are wanted");
    }
}
