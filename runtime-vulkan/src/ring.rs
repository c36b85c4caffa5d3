//! Pieces of a block of memory, given back in the order in which they were taken.

use std::collections::VecDeque;

/// Alignment of every piece.
const ALIGNMENT: u64 = 16;

/// What is taken of a block.
#[derive(Debug)]
pub(crate) struct Ring {
    bytes: u64,
    /// Where the next piece begins.
    head: u64,
    /// The pieces in use: the ticket that gives it back, and where it ends.
    taken: VecDeque<(u64, u64)>,
    /// Where the oldest piece in use begins.
    tail: u64,
}

impl Ring {
    pub(crate) const fn new(bytes: u64) -> Self {
        Self { bytes, head: 0, taken: VecDeque::new(), tail: 0 }
    }

    /// Takes a piece until `ticket` has ended: its offset in the block; `None` if there is no room.
    pub(crate) fn take(&mut self, bytes: u64, ticket: u64) -> Option<u64> {
        let bytes = bytes.next_multiple_of(ALIGNMENT);
        if self.taken.is_empty() {
            (self.head, self.tail) = (0, 0);
        }
        let free_to_end = self.taken.is_empty() || self.head > self.tail;
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
        self.taken.push_back((ticket, self.head));
        Some(offset)
    }

    /// Gives back what was taken until `ended`.
    pub(crate) fn give_back(&mut self, ended: u64) {
        while let Some((_, end)) = self.taken.front().copied().filter(|(ticket, _)| *ticket <= ended) {
            self.tail = end;
            self.taken.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_never_overlap_and_come_back_in_order() {
        let mut ring = Ring::new(128);
        assert_eq!(ring.take(129, 1), None);
        assert_eq!((ring.take(40, 1), ring.take(48, 2), ring.take(33, 3)), (Some(0), Some(48), None));
        ring.give_back(1);
        assert_eq!(ring.take(32, 3), Some(96));
        assert_eq!((ring.take(32, 4), ring.take(16, 5), ring.take(16, 5)), (Some(0), Some(32), None));
        ring.give_back(3);
        assert_eq!(ring.take(64, 6), Some(48));
        assert_eq!(ring.take(16, 6), Some(112));
        assert_eq!(ring.take(1, 6), None);
        ring.give_back(9);
        assert_eq!(ring.take(128, 7), Some(0));
    }
}
