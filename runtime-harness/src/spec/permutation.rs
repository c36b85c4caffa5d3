//! A pseudo-random order of numbers, without storing it.

use crate::random;

/// A permutation of the numbers below a count: a Feistel network (Luby and Rackoff 1988) on the next even number of bits,
/// applied again while the result is too large (cycle walking; Black and Rogaway 2002).
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    count: u64,
    /// Bits of each half.
    half: u32,
    keys: [u64; 4],
}

impl Permutation {
    /// A permutation of the numbers below `count`, which is at most 2⁶³.
    pub(super) fn new(count: u64, mut seed: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Self { count, half: bits.div_ceil(2).max(1), keys: std::array::from_fn(|_| random::next(&mut seed)) }
    }

    /// The number at a position below the count.
    pub(super) fn apply(&self, position: u64) -> u64 {
        let mut number = self.permute(position);
        while number >= self.count {
            number = self.permute(number);
        }
        number
    }

    fn permute(&self, number: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let (mut left, mut right) = (number >> self.half, number & mask);
        for key in self.keys {
            let mut state = right ^ key;
            (left, right) = (right, left ^ (random::next(&mut state) & mask));
        }
        left << self.half | right
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_number_comes_once() {
        for count in [1, 2, 3, 5, 16, 100, 1000] {
            let permutation = Permutation::new(count, 7);
            let numbers: BTreeSet<u64> = (0..count).map(|position| permutation.apply(position)).collect();
            assert_eq!(numbers, (0..count).collect(), "{count}");
        }
        let largest = Permutation::new(1 << 63, 1);
        assert!(largest.apply(0) != largest.apply(1) && largest.apply(5) < 1 << 63);
    }

    #[test]
    fn seeds_give_orders_that_differ_and_look_random() {
        let first =
            |seed| (0..8).map(|position| Permutation::new(1000, seed).apply(position)).collect::<Vec<_>>();
        assert_ne!(first(1), first(2));
        assert_eq!(first(1), first(1));
        let permutation = Permutation::new(1000, 3);
        let low = (0..500).filter(|&position| permutation.apply(position) < 500).count();
        assert!((200..300).contains(&low), "{low} of the first half are small");
    }
}
