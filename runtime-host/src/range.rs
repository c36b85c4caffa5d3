//! Parallel ranges: `void f(args…, int64_t begin, int64_t end)`, called piece by piece on several threads.

use std::sync::Arc;

use runtime_core::{Error, Result};
use smallvec::SmallVec;

use crate::call::{Class, Function, Word};
use crate::convention::Convention;
use crate::parallel_for::{Pieces, Split};

/// Arguments up to this many, `begin` and `end` included, need no allocation.
const FEW: usize = 18;

/// A half-open range of iterations, and how many of them one call gets; 0: as many as seems right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexRange {
    begin: i64,
    end: i64,
    grain: u64,
}

impl IndexRange {
    /// The range of a launch of `function`, if it has one.
    ///
    /// # Errors
    /// `InvalidArgument` for a range that ends before it begins, and a negative grain; `Unsupported` for a function
    /// that is not plain.
    #[inline]
    pub(crate) fn of(function: &Function, range: Option<[i64; 2]>, grain: i64) -> Result<Option<Self>> {
        match range {
            None => Ok(None),
            Some(range) => Self::new(function, range, grain).map(Some),
        }
    }

    fn new(function: &Function, [begin, end]: [i64; 2], grain: i64) -> Result<Self> {
        if function.convention() != Convention::Plain {
            return Err(Error::unsupported("range in another convention than plain is not supported"));
        }
        if begin > end {
            return Err(Error::invalid(format!("range is [{begin}, {end}]; it ends before it begins")));
        }
        let grain = u64::try_from(grain).map_err(|_| {
            Error::invalid(format!(
                "grain is {grain}; give the iterations of one call, or 0 to leave it open"
            ))
        })?;
        Ok(Self { begin, end, grain })
    }

    /// Cuts the range for `threads` threads. The same range, grain and number give the same pieces.
    pub(crate) fn split(self, threads: usize) -> Split {
        Split::new(self.begin, self.end.wrapping_sub(self.begin).cast_unsigned(), self.grain, threads)
    }
}

/// A call for every piece of a range.
#[derive(Debug)]
pub(crate) struct RangeCall {
    function: Arc<Function>,
    /// The arguments, then `begin` and `end`.
    words: SmallVec<[Word; FEW]>,
    /// Arguments that are work-group memory, and how far one thread's is from the next one's.
    locals: SmallVec<[(usize, u64); 4]>,
}

impl RangeCall {
    /// Calls of `function` with the arguments `words`.
    pub(crate) fn new(function: &Arc<Function>, words: &[Word], locals: SmallVec<[(usize, u64); 4]>) -> Self {
        let mut words = SmallVec::from_slice(words);
        words.extend([0, 0].map(bound));
        Self { function: Arc::clone(function), words, locals }
    }
}

impl Pieces for RangeCall {
    type Hand = SmallVec<[Word; FEW]>;

    fn hand(&self, index: u64) -> Self::Hand {
        let mut words = self.words.clone();
        for &(local, bytes) in &self.locals {
            words[local].bits += index * bytes;
        }
        words
    }

    fn run(&self, words: &mut Self::Hand, piece: [i64; 2]) -> Result<()> {
        let bounds = words.len() - 2;
        words[bounds..].copy_from_slice(&piece.map(bound));
        self.function.call(words)
    }
}

fn bound(value: i64) -> Word {
    Word { bits: value.cast_unsigned(), class: Class::I64 }
}

#[cfg(test)]
mod tests;
