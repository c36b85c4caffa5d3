//! The free list of a queue: memory that the queue has freed and reuses for its own next allocations, without a driver call.
//!
//! Later work of the queue runs after the work that used the block, so no further ordering is needed; another queue
//! that uses the new allocation waits for its ticket, as with any allocation. Only exact sizes match, and the list is
//! small: the driver's own pool serves the rest.

use parking_lot::Mutex;

use crate::driver::abi::DevicePtr;

/// Default limit on the blocks of a list.
pub(crate) const DEFAULT_BLOCKS: usize = 16;
/// Limit on the bytes of a list. Larger allocations are in use for longer than the driver takes to make them.
const MAX_BYTES: usize = 64 << 20;

/// A block of the memory pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) base: DevicePtr,
    pub(crate) bytes: usize,
}

#[derive(Debug, Default)]
struct Blocks {
    /// Oldest first.
    list: Vec<Block>,
    bytes: usize,
}

/// The free blocks of a queue.
#[derive(Debug)]
pub(crate) struct FreeList {
    max_blocks: usize,
    blocks: Mutex<Blocks>,
}

impl FreeList {
    /// An empty list of at most `max_blocks`.
    pub(crate) fn new(max_blocks: usize) -> Self {
        Self { max_blocks, blocks: Mutex::default() }
    }

    /// Takes the newest block of exactly `bytes` bytes.
    #[inline]
    pub(crate) fn take(&self, bytes: usize) -> Option<DevicePtr> {
        let mut blocks = self.blocks.lock();
        let index = blocks.list.iter().rposition(|block| block.bytes == bytes)?;
        blocks.bytes -= bytes;
        Some(blocks.list.remove(index).base)
    }

    /// Adds a block; passes to `free` the blocks that no longer fit, oldest first.
    #[inline]
    pub(crate) fn insert(&self, block: Block, mut free: impl FnMut(Block)) {
        if self.max_blocks == 0 || block.bytes > MAX_BYTES {
            return free(block);
        }
        let mut blocks = self.blocks.lock();
        while blocks.list.len() >= self.max_blocks || blocks.bytes + block.bytes > MAX_BYTES {
            let oldest = blocks.list.remove(0);
            blocks.bytes -= oldest.bytes;
            free(oldest);
        }
        blocks.bytes += block.bytes;
        blocks.list.push(block);
    }

    /// Removes all blocks and passes each to `free`.
    pub(crate) fn drain(&self, free: impl FnMut(Block)) {
        let mut blocks = self.blocks.lock();
        blocks.bytes = 0;
        blocks.list.drain(..).for_each(free);
    }

    /// Bytes of all blocks.
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.lock().bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(base: DevicePtr, bytes: usize) -> Block {
        Block { base, bytes }
    }

    /// Inserts blocks; returns the bases of those that were freed for them.
    fn insert(list: &FreeList, blocks: &[Block]) -> Vec<DevicePtr> {
        let mut freed = Vec::new();
        blocks.iter().for_each(|&block| list.insert(block, |block| freed.push(block.base)));
        freed
    }

    #[test]
    fn the_newest_block_of_exactly_that_size_is_taken() {
        let list = FreeList::new(DEFAULT_BLOCKS);
        assert!(insert(&list, &[block(1, 100), block(2, 100), block(3, 200)]).is_empty());
        assert_eq!(list.take(150), None);
        assert_eq!((list.take(100), list.bytes()), (Some(2), 300));
        assert_eq!((list.take(100), list.take(100)), (Some(1), None));
        assert_eq!((list.take(200), list.bytes()), (Some(3), 0));
    }

    #[test]
    fn a_full_list_frees_its_oldest_blocks_first() {
        let list = FreeList::new(2);
        assert_eq!(insert(&list, &[block(1, 10), block(2, 10), block(3, 10)]), [1]);
        assert_eq!(insert(&list, &[block(4, MAX_BYTES - 10)]), [2]);
        assert_eq!(insert(&list, &[block(5, MAX_BYTES + 1)]), [5], "larger than the whole list");
        assert_eq!(list.bytes(), MAX_BYTES);
        let mut freed = Vec::new();
        list.drain(|block| freed.push(block.base));
        assert_eq!((freed, list.bytes()), (vec![3, 4], 0));
        assert_eq!(insert(&FreeList::new(0), &[block(6, 1)]), [6], "a list of no blocks");
    }
}
