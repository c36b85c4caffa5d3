//! Windows of calls in a runner: what is prepared before them, and compared after them.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use runtime_core::evaluate::{CallWindows, Mismatch, Tolerance, Validation};
use runtime_core::{Access, Error, ErrorKind, HostArray, Result};

use super::memory::SharedMemory;
use super::process::{Calls, Runner, WindowTime};
use crate::job::JobData;
use crate::{platform, random};

/// One of so many windows is checked in full, at random.
const CHECKED: u64 = 8;
/// Fewer calls are not preceded by one that fills the caches: it would cost more than it changes.
const WARMED: u64 = 8;

/// A tensor in the shared memory.
#[derive(Debug)]
pub(super) struct SharedTensor {
    /// The index of its argument.
    pub(super) arg: usize,
    /// Where it begins.
    pub(super) at: usize,
    pub(super) bytes: usize,
    pub(super) access: Access,
    /// What it holds before a call that only writes it.
    pub(super) poison: u8,
}

/// All tensors of a candidate, at addresses of their own.
#[derive(Debug)]
pub(super) struct TensorSet {
    pub(super) tensors: Vec<SharedTensor>,
    /// The inputs, and what is expected of a call with them.
    pub(super) data: Arc<JobData>,
}

/// Bytes between tensors that nobody may write.
#[derive(Debug)]
pub(super) struct Canary {
    pub(super) at: usize,
    pub(super) bytes: usize,
}

/// A runner with the tensors of its candidate.
#[derive(Debug)]
pub(super) struct Windows {
    pub(super) runner: Runner,
    pub(super) memory: SharedMemory,
    pub(super) sets: Vec<TensorSet>,
    pub(super) canaries: Vec<Canary>,
    pub(super) tolerance: Tolerance,
    /// What canaries are made of, and windows chosen by. The candidate can read canaries, so each of them is a hash of its own.
    pub(super) secret: RandomState,
    pub(super) history: History,
}

/// What has happened so far.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Calls of the candidate.
    pub(super) calls: u64,
    windows: usize,
    /// The first wrong output, in a window behind the first one.
    pub(super) wrong: Option<Mismatch>,
}

/// A call on inputs that were never seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct SingleCall {
    pub(super) time: Duration,
    /// What copying all tensors takes that the candidate had last.
    pub(super) copy: Duration,
}

impl Windows {
    /// Writes the inputs of all sets, and the canaries.
    pub(super) fn fill(&self) {
        self.sets.iter().for_each(|set| self.write_inputs(set));
        self.canaries.iter().for_each(|canary| self.memory.write(canary.at, &self.pattern(canary)));
    }

    fn write_inputs(&self, set: &TensorSet) {
        for tensor in &set.tensors {
            if let Some(input) = &set.data.inputs[tensor.arg] {
                self.memory.write(tensor.at, input.bytes());
            }
        }
    }

    /// What a canary holds.
    fn pattern(&self, canary: &Canary) -> Vec<u8> {
        let mut state = self.secret.hash_one(("canary", canary.at));
        let words = std::iter::repeat_with(|| random::next(&mut state).to_le_bytes());
        words.flatten().take(canary.bytes).collect()
    }

    /// Makes calls with a set, on initial data and poisoned outputs.
    ///
    /// # Errors
    /// Those of [`Runner::window`].
    fn window(&mut self, index: usize, number: u64) -> Result<WindowTime> {
        let set = &self.sets[index];
        for tensor in &set.tensors {
            match (&set.data.inputs[tensor.arg], tensor.access) {
                (Some(initial), Access::ReadWrite) => self.memory.write(tensor.at, initial.bytes()),
                (_, Access::Write) => self.memory.fill(tensor.at, tensor.bytes, tensor.poison),
                _ => {}
            }
        }
        // A tensor that is read and written would not be what is expected.
        let accumulates = set.tensors.iter().any(|tensor| tensor.access == Access::ReadWrite);
        let warm = number >= WARMED && !accumulates;
        self.history.calls += number + u64::from(warm);
        self.history.windows += 1;
        self.runner.window(Calls { set: Some(index), number, warm })
    }

    /// Makes calls with the set whose turn it is, and checks what they left if `checks` says so.
    fn next_window(&mut self, number: u64, checks: bool) -> Result<WindowTime> {
        let index = self.history.windows % self.sets.len();
        let time = self.window(index, number)?;
        if checks && let Validation::Failed(mismatch) = self.check(index, number)? {
            self.note(mismatch);
        }
        Ok(time)
    }

    fn note(&mut self, mut mismatch: Mismatch) {
        mismatch.after_calls = Some(self.history.calls - 1);
        self.history.wrong.get_or_insert(mismatch);
    }

    /// A call with each set; the result is that of the first.
    ///
    /// # Errors
    /// Those of calls; `Failed` if a call has changed what it only reads, or what lies beside its tensors.
    pub(super) fn first_calls(&mut self) -> Result<Validation> {
        let mut first = None;
        for index in 0..self.sets.len() {
            self.window(index, 1)?;
            let checked = self.check(index, 1)?;
            match (&first, checked) {
                (None, checked) => first = Some(checked),
                (Some(Validation::Passed(_)), Validation::Failed(mismatch)) => self.note(mismatch),
                _ => {}
            }
        }
        Ok(first.unwrap_or_default())
    }

    /// One more window, which is checked: as long as those that were timed.
    ///
    /// # Errors
    /// As for [`first_calls`](Self::first_calls).
    pub(super) fn last_window(&mut self, number: u64) -> Result<()> {
        self.next_window(number, true).map(drop)
    }

    /// A single call on other inputs, which is checked.
    ///
    /// # Errors
    /// As for [`first_calls`](Self::first_calls).
    pub(super) fn single_call(&mut self, data: Arc<JobData>) -> Result<SingleCall> {
        let index = self.history.windows % self.sets.len();
        let set = &mut self.sets[index];
        set.data = data;
        for tensor in &mut set.tensors {
            tensor.poison = self.tolerance.poison(&set.data.expected, tensor.arg);
        }
        self.write_inputs(&self.sets[index]);
        let time = self.next_window(1, true)?;
        let own = std::process::id().cast_signed();
        let begin = platform::processor_time(own);
        for tensor in &self.sets[index].tensors {
            self.memory.read(tensor.at, &mut vec![0; tensor.bytes]);
        }
        let copy = platform::processor_time(own).saturating_sub(begin);
        // On a busy machine, a process of one thread waits for a processor: that is not its time.
        Ok(SingleCall { time: time.elapsed.min(time.processor), copy })
    }

    /// How long an empty window takes.
    ///
    /// # Errors
    /// How the runner has ended.
    pub(super) fn empty_window(&mut self, number: u64) -> Result<Duration> {
        self.runner.window(Calls { set: None, number, warm: false }).map(|time| time.elapsed)
    }

    /// Compares what a window of a set left, and checks that nothing else has changed. Tensors that the kernel reads and writes hold
    /// what is expected after a single call only.
    fn check(&self, index: usize, number: u64) -> Result<Validation> {
        let set = &self.sets[index];
        self.check_unchanged(set)?;
        if set.data.expected.is_empty() {
            return Ok(Validation::Skipped { reason: "there is no reference".to_owned() });
        }
        self.tolerance.compare_outputs(&set.data.expected, |arg| {
            let Some(tensor) = set.tensors.iter().find(|tensor| tensor.arg == arg) else { return Ok(None) };
            if tensor.access == Access::ReadWrite && number != 1 {
                return Ok(None);
            }
            let expected = set.data.expected.iter().find(|(index, _)| *index == arg);
            let Some((_, expected)) = expected else { return Ok(None) };
            let mut actual = HostArray::new(expected.dtype(), expected.shape())?;
            self.memory.read(tensor.at, actual.bytes_mut());
            Ok(Some((actual, tensor.access)))
        })
    }

    fn check_unchanged(&self, set: &TensorSet) -> Result<()> {
        for tensor in set.tensors.iter().filter(|tensor| tensor.access == Access::Read) {
            let Some(initial) = &set.data.inputs[tensor.arg] else { continue };
            if !self.holds(tensor.at, initial.bytes()) {
                let message = format!("the kernel has changed argument {}, which it only reads", tensor.arg);
                return Err(Error::new(ErrorKind::Failed, message));
            }
        }
        if !self.canaries.iter().all(|canary| self.holds(canary.at, &self.pattern(canary))) {
            return Err(Error::new(ErrorKind::Failed, "the kernel has written beside its tensors"));
        }
        Ok(())
    }

    fn holds(&self, at: usize, expected: &[u8]) -> bool {
        let mut now = vec![0; expected.len()];
        self.memory.read(at, &mut now);
        now == expected
    }
}

impl CallWindows for Windows {
    fn calls(&mut self, number: u64) -> Result<f64> {
        let chance = self.secret.hash_one(("check", self.history.windows));
        let checks = self.history.wrong.is_none() && chance.is_multiple_of(CHECKED);
        self.next_window(number, checks).map(|time| time.elapsed.as_nanos() as f64)
    }

    fn empty_calls(&mut self, number: u64) -> Result<f64> {
        self.empty_window(number).map(|elapsed| elapsed.as_nanos() as f64)
    }

    fn flush_cache(&mut self) -> Result<()> {
        Err(Error::unsupported("a flushed cache is not measured in a runner yet"))
    }
}
