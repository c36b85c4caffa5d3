//! Deterministic data, comparisons that say where, and tensors with guards on both sides.

use std::fmt::Debug;

use runtime_core::{Element, Error, ErrorKind, Result, Tensor};

use crate::case::{Failure, Verdict};
use crate::lab::Lab;

/// Element counts that every data path is tried with: none, one, odd, a page of 4-byte elements ± 1, large.
pub(crate) const SIZES: [usize; 7] = [0, 1, 7, 1023, 1024, 1025, (3 << 18) + 5];

/// Bytes of each guard: what any device wants an offset to be a multiple of.
const GUARD_BYTES: usize = 256;
const GUARD: u8 = 0xa5;

/// Numbers that look random and are the same every time (Steele et al., `SplitMix64`).
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

    /// Bytes.
    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| u8::try_from(self.below(256)).unwrap_or(0)).collect()
    }

    /// Small whole numbers, so that sums and products of a few are exact on every device.
    pub(crate) fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| f32::from(u16::try_from(self.below(1024)).unwrap_or(0)) - 512.0).collect()
    }
}

/// Compares, and says where the first difference is.
pub(crate) fn same<T: PartialEq + Debug>(what: &str, actual: &[T], expected: &[T]) -> Verdict {
    if actual.len() != expected.len() {
        return Err(Failure::Differs(format!("{what}: {} elements, not {}", actual.len(), expected.len())));
    }
    match actual.iter().zip(expected).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(at) => {
            let wrong = actual.iter().zip(expected).filter(|(a, b)| a != b).count();
            let text = format!(
                "{what}: element {at} is {:?}, not {:?} ({wrong} of {} differ)",
                actual[at],
                expected[at],
                actual.len()
            );
            Err(Failure::Differs(text))
        }
    }
}

/// Checks that every element of a tensor is `value`.
pub(crate) fn all(what: &str, tensor: &Tensor, value: f32) -> Verdict {
    let actual = tensor.to_vec::<f32>()?;
    same(what, &actual, &vec![value; actual.len()])
}

/// Expects an error of `kind` whose one line holds all `words`.
pub(crate) fn refused<T>(
    what: &str,
    result: Result<T>,
    kind: ErrorKind,
    words: &[&str],
) -> Result<Error, Failure> {
    let Err(error) = result else {
        return Err(Failure::Failed(format!("{what}: not refused, but {kind} was due")));
    };
    let text = error.to_string();
    let problem = if error.kind() != kind {
        format!("its kind is {}, not {kind}", error.kind())
    } else if let Some(word) = words.iter().find(|word| !text.contains(**word)) {
        format!("it does not say \"{word}\"")
    } else if text.contains('\n') {
        "it is more than one line".to_owned()
    } else {
        return Ok(error);
    };
    Err(Failure::Failed(format!("{what}: {problem}: {text}")))
}

/// A tensor in the middle of a larger one, so that a stray access shows.
#[derive(Debug)]
pub(crate) struct Guarded {
    whole: Tensor,
    inner: Tensor,
}

impl Guarded {
    /// A guarded tensor with these elements.
    pub(crate) fn new<T: Element>(lab: &Lab, data: &[T]) -> Result<Self> {
        let guard = GUARD_BYTES / size_of::<T>();
        let whole = lab.room::<T>(data.len() + 2 * guard)?;
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
        same(what, &self.inner.to_vec::<T>()?, expected)?;
        let array = self.whole.to_array()?;
        let (front, rest) = array.bytes().split_at(GUARD_BYTES);
        let back = &rest[rest.len() - GUARD_BYTES..];
        same(&format!("{what}: guard in front"), front, &[GUARD; GUARD_BYTES])?;
        same(&format!("{what}: guard behind"), back, &[GUARD; GUARD_BYTES])
    }
}
