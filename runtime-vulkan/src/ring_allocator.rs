//! A ring allocator: ranges of a block of memory, freed in the order in which they were allocated.

use std::collections::VecDeque;

/// Alignment of every range.
const ALIGNMENT_BYTES: u64 = 16;

/// The allocated ranges of a block.
#[derive(Debug)]
pub(crate) struct RingAllocator {
    bytes: u64,
    /// Start of the next range.
    head: u64,
    /// Allocated ranges: the ticket that frees each, and its end.
    allocated: VecDeque<(u64, u64)>,
    /// Start of the oldest allocated range.
    tail: u64,
}

impl RingAllocator {
    pub(crate) const fn new(bytes: u64) -> Self {
        Self { bytes, head: 0, allocated: VecDeque::new(), tail: 0 }
    }

    /// Allocates a range until `ticket` has completed, and returns its offset; `None` if it does not fit.
    pub(crate) fn allocate(&mut self, bytes: u64, ticket: u64) -> Option<u64> {
        let bytes = bytes.next_multiple_of(ALIGNMENT_BYTES);
        if self.allocated.is_empty() {
            (self.head, self.tail) = (0, 0);
        }
        let free_to_end = self.allocated.is_empty() || self.head > self.tail;
        let offset = if free_to_end {
            if bytes <= self.bytes - self.head {
                self.head
            } else if bytes <= self.tail {
                0
            } else {
                return None;
            }
        } else if bytes <= self.tail - self.head {
            self.head
        } else {
            return None;
        };
        self.head = offset + bytes;
        self.allocated.push_back((ticket, self.head));
        Some(offset)
    }

    /// Frees the ranges of all tickets up to `completed`.
    pub(crate) fn free_until(&mut self, completed: u64) {
        while let Some((_, end)) = self.allocated.front().copied().filter(|(ticket, _)| *ticket <= completed)
        {
            self.tail = end;
            self.allocated.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_never_overlap_and_are_freed_in_order() {
        let mut ring = RingAllocator::new(128);
        assert_eq!(ring.allocate(129, 1), None);
        assert_eq!(
            (ring.allocate(40, 1), ring.allocate(48, 2), ring.allocate(33, 3)),
            (Some(0), Some(48), None)
        );
        ring.free_until(1);
        assert_eq!(ring.allocate(32, 3), Some(96));
        assert_eq!(
            (ring.allocate(32, 4), ring.allocate(16, 5), ring.allocate(16, 5)),
            (Some(0), Some(32), None)
        );
        ring.free_until(3);
        assert_eq!(ring.allocate(64, 6), Some(48));
        assert_eq!(ring.allocate(16, 6), Some(112));
        assert_eq!(ring.allocate(1, 6), None);
        ring.free_until(9);
        assert_eq!(ring.allocate(128, 7), Some(0));
    }
}
