//! Pseudo-random numbers (`SplitMix64`), the same in every run.

pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number of `low..high`.
    pub(crate) fn within(&mut self, low: i64, high: i64) -> i64 {
        low + (self.word() % (high - low).unsigned_abs()).cast_signed()
    }

    /// An index of `0..count`.
    pub(crate) fn index(&mut self, count: usize) -> usize {
        usize::try_from(self.word() % count as u64).unwrap()
    }
}
