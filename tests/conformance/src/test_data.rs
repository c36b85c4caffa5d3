//! Input data of the cases: element counts, deterministic numbers, and tensors between guard bytes.

use std::fmt::Debug;

use runtime_core::{Element, Result, Tensor};

use crate::case::Verdict;
use crate::expect::expect_equal;
use crate::fixture::Fixture;

/// Element counts for every data path: none, one, odd, a page of 4-byte elements ± 1, large.
pub(crate) const SIZES: [usize; 7] = [0, 1, 7, 1023, 1024, 1025, (3 << 18) + 5];

/// Bytes of each guard: a multiple of every device's offset alignment.
const GUARD_BYTES: usize = 256;
const GUARD: u8 = 0xa5;

/// A deterministic pseudo-random generator (Steele et al., `SplitMix64`).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((word ^ (word >> 31)) % limit as u64).unwrap_or(0)
    }

    /// Random bytes.
    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| u8::try_from(self.below(256)).unwrap_or(0)).collect()
    }

    /// Small integers, so that sums and products of a few are exact on every device.
    pub(crate) fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| f32::from(u16::try_from(self.below(1024)).unwrap_or(0)) - 512.0).collect()
    }
}

/// A tensor in the middle of a larger one, to detect accesses out of range.
#[derive(Debug)]
pub(crate) struct Guarded {
    whole: Tensor,
    inner: Tensor,
}

impl Guarded {
    /// A guarded tensor with these elements.
    pub(crate) fn new<T: Element>(fixture: &Fixture, data: &[T]) -> Result<Self> {
        let guard = GUARD_BYTES / size_of::<T>();
        let whole = fixture.uninitialized::<T>(data.len() + 2 * guard)?;
        whole.fill(&[GUARD])?;
        let inner = whole.slice(0, guard..guard + data.len())?;
        inner.write(data)?;
        Ok(Self { whole, inner })
    }

    /// The tensor.
    pub(crate) fn tensor(&self) -> &Tensor {
        &self.inner
    }

    /// Checks the elements and both guards.
    pub(crate) fn check<T: Element + PartialEq + Debug>(&self, what: &str, expected: &[T]) -> Verdict {
        expect_equal(what, &self.inner.to_vec::<T>()?, expected)?;
        let array = self.whole.to_array()?;
        let (front, rest) = array.bytes().split_at(GUARD_BYTES);
        let back = &rest[rest.len() - GUARD_BYTES..];
        expect_equal(&format!("{what}: guard in front"), front, &[GUARD; GUARD_BYTES])?;
        expect_equal(&format!("{what}: guard behind"), back, &[GUARD; GUARD_BYTES])
    }
}
