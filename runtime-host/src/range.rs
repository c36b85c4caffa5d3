//! Runs parallel ranges: calls `void f(args…, int64_t begin, int64_t end)` for chunks of the range, on several threads.

use std::sync::Arc;

use runtime_core::{Error, Result};
use smallvec::SmallVec;

use crate::call::Function;
use crate::convention::Convention;
use crate::parallel_for::{LoopBody, Split};
use crate::register::{RegClass, RegValue};

/// Arguments up to this many, `begin` and `end` included, need no allocation.
const INLINE_ARGS: usize = 18;

/// A half-open range of iterations, and the iterations per call (0: chosen automatically).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexRange {
    begin: i64,
    end: i64,
    grain: u64,
}

impl IndexRange {
    /// The range of a launch of `function`, if the launch has one.
    ///
    /// # Errors
    /// `InvalidArgument` for a range that ends before it begins; `Unsupported` for a function that is not plain.
    #[inline]
    pub(crate) fn of(function: &Function, range: Option<[i64; 2]>, grain: u32) -> Result<Option<Self>> {
        match range {
            None => Ok(None),
            Some(range) => Self::new(function, range, grain).map(Some),
        }
    }

    fn new(function: &Function, [begin, end]: [i64; 2], grain: u32) -> Result<Self> {
        if function.convention() != Convention::Plain {
            return Err(Error::unsupported("a range with a convention other than plain is not supported"));
        }
        if begin > end {
            return Err(Error::invalid(format!("range is [{begin}, {end}]; it ends before it begins")));
        }
        Ok(Self { begin, end, grain: grain.into() })
    }

    /// Divides the range among `threads` threads. Equal arguments give equal chunks.
    pub(crate) fn split(self, threads: usize) -> Split {
        Split::new(self.begin, self.end.wrapping_sub(self.begin).cast_unsigned(), self.grain, threads)
    }
}

/// Calls a function for each chunk of a range.
#[derive(Debug)]
pub(crate) struct RangeCall {
    function: Arc<Function>,
    /// The arguments, then `begin` and `end`.
    words: SmallVec<[RegValue; INLINE_ARGS]>,
    /// Indices of the work-group memory arguments, each with the distance in bytes between the memory of two threads.
    locals: SmallVec<[(usize, u64); 4]>,
}

impl RangeCall {
    /// A loop over calls of `function` with the arguments `words`.
    pub(crate) fn new(
        function: &Arc<Function>,
        words: &[RegValue],
        locals: SmallVec<[(usize, u64); 4]>,
    ) -> Self {
        let mut words = SmallVec::from_slice(words);
        words.extend([0, 0].map(bound));
        Self { function: Arc::clone(function), words, locals }
    }
}

impl LoopBody for RangeCall {
    type WorkerState = SmallVec<[RegValue; INLINE_ARGS]>;

    fn worker_state(&self, index: u64) -> Self::WorkerState {
        let mut words = self.words.clone();
        for &(local, bytes) in &self.locals {
            words[local].bits += index * bytes;
        }
        words
    }

    fn run(&self, words: &mut Self::WorkerState, chunk: [i64; 2]) -> Result<()> {
        let bounds = words.len() - 2;
        words[bounds..].copy_from_slice(&chunk.map(bound));
        self.function.call(words)
    }
}

fn bound(value: i64) -> RegValue {
    RegValue { bits: value.cast_unsigned(), class: RegClass::Integer }
}

#[cfg(test)]
mod tests;
