//! Windows of calls in a runner: what is prepared before them, and compared after them.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use runtime_core::evaluate::{CallWindows, HostCaches, Mismatch, Tolerance, Validation};
use runtime_core::{Access, Error, ErrorKind, HostArray, Result};

use super::loaded::{Canary, Loaded, SharedTensor};
use super::process::WindowTime;
use crate::heartbeat::{self, Heartbeat};
use crate::job::{Due, Job, JobData, LATER_CALLS};
use crate::row::{Check, Finding};
use crate::{platform, random};

/// One of so many windows is checked in full, at random.
const CHECKED: u64 = 8;
/// Of the others, blocks of so many bytes are, at random places,
const BLOCK: usize = 4096;
/// and so many of each tensor.
const BLOCKS: usize = 32;
/// Fewer calls are not preceded by one that fills the caches: it would cost more than it changes.
const WARMED: u64 = 8;

/// A runner whose calls are timed and checked.
#[derive(Debug)]
pub(super) struct Windows {
    pub(super) loaded: Loaded,
    tolerance: Tolerance,
    /// Whether a tensor holds its initial data before each call: each is a window, as all of them begin with initial data.
    restores_each_call: bool,
    /// Whether the calls of a window may depend on what earlier ones have left, in a tensor that is read and written.
    keeps_state: bool,
    /// Told after each window.
    heartbeat: Option<Arc<Heartbeat>>,
    /// What canaries are made of, and windows and blocks chosen by. The candidate can read canaries, so each of them is a hash of its
    /// own.
    secret: RandomState,
    /// Whether the first call is timed, so that nothing is called before it.
    is_cold: bool,
    /// To be flushed before samples or calls.
    caches: Option<HostCaches>,
    /// Before the next window.
    is_flush_due: bool,
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
    /// Where the first wrong output was found.
    pub(super) found: Option<Finding>,
}

/// A call on inputs that were never seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct SingleCall {
    pub(super) time: WindowTime,
    /// How much longer copying all its tensors takes if they are not in the caches.
    pub(super) copy: Duration,
    set: usize,
}

impl Windows {
    /// Windows of a candidate, after its inputs and the canaries are written.
    pub(super) fn new(loaded: Loaded, job: &Job, heartbeat: Option<Arc<Heartbeat>>) -> Self {
        let restores_each_call = job.spec.restores_each_call();
        let windows = Self {
            loaded,
            tolerance: job.tolerance(),
            restores_each_call,
            keeps_state: job.spec.kept().next().is_some() && !restores_each_call,
            heartbeat,
            secret: RandomState::new(),
            is_cold: false,
            caches: None,
            is_flush_due: false,
            history: History::default(),
        };
        (0..windows.loaded.sets.len()).for_each(|set| windows.loaded.write_inputs(set));
        for canary in &windows.loaded.canaries {
            windows.loaded.memory.write(canary.at, &windows.pattern(canary));
        }
        windows
    }

    /// Whether the first call is timed, and the caches that are flushed.
    pub(super) fn begin_with(&mut self, is_cold: bool, caches: Option<HostCaches>) {
        (self.is_cold, self.caches) = (is_cold, caches);
    }

    /// How long a window may take.
    pub(super) fn max_window(&self) -> Duration {
        heartbeat::max_window(self.heartbeat.as_deref())
    }

    /// As many of these calls as a window may have, if a call takes this time.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and is not negative"
    )]
    pub(super) fn affordable(&self, number: u64, call_ns: f64) -> u64 {
        number.min((self.max_window().as_nanos() as f64 / call_ns) as u64).max(1)
    }

    /// What a canary holds.
    fn pattern(&self, canary: &Canary) -> Vec<u8> {
        let mut state = self.secret.hash_one(("canary", canary.at));
        let words = std::iter::repeat_with(|| random::next(&mut state).to_le_bytes());
        words.flatten().take(canary.bytes).collect()
    }

    /// Makes calls with a set, whose outputs are prepared.
    ///
    /// # Errors
    /// Those of [`Runner::window`](super::process::Runner::window).
    fn window(&mut self, index: usize, number: u64) -> Result<WindowTime> {
        self.history.calls += number;
        let time = self.loaded.runner.window(Some(index), number)?;
        heartbeat::beat(self.heartbeat.as_deref());
        Ok(time)
    }

    /// Makes the calls of a sample on initial data and poisoned outputs, after one that brings them into the caches.
    fn batch(&mut self, index: usize, number: u64) -> Result<WindowTime> {
        self.loaded.prepare_outputs(index);
        let is_flushed = std::mem::take(&mut self.is_flush_due);
        if let Some(caches) = self.caches.as_mut().filter(|_| is_flushed) {
            // What the runner's processors hold of the tensors is lost when the judge writes them.
            self.loaded.write_inputs(index);
            caches.evict();
        }
        if number >= WARMED && !(self.keeps_state || self.is_cold || is_flushed) {
            self.window(index, 1)?;
        }
        self.history.windows += 1;
        self.window(index, number)
    }

    /// Makes a single call on initial data and poisoned outputs, after one with another set: the code is warm then, the data is not. What
    /// the other call does is not timed, so the data is written after it.
    fn cold_call(&mut self, index: usize, data: Arc<JobData>) -> Result<WindowTime> {
        let other = (index + 1) % self.loaded.sets.len();
        self.loaded.restore(other, Due::Later);
        self.window(other, 1)?;
        self.loaded.replace_data(index, data, &self.tolerance);
        self.loaded.prepare_outputs(index);
        self.history.windows += 1;
        self.window(index, 1)
    }

    /// The set whose turn it is.
    const fn next_set(&self) -> usize {
        self.history.windows % self.loaded.sets.len()
    }

    fn note(&mut self, mut mismatch: Mismatch, check: Check) {
        mismatch.after_calls = (self.history.calls > 1).then_some(self.history.calls - 1);
        self.history.wrong.get_or_insert(mismatch);
        self.note_finding(check);
    }

    /// Notes the check that rejects the last window, unless an earlier one was rejected.
    pub(super) fn note_finding(&mut self, check: Check) {
        self.history.found.get_or_insert(Finding { check, window: self.history.windows as u64 });
    }

    /// Compares what the last window has left, in full.
    fn check_all(&mut self, index: usize, number: u64, check: Check) -> Result<()> {
        let Validation::Failed(mismatch) = self.check(index, number)? else { return Ok(()) };
        if self.keeps_state && number != 1 {
            // What a later call writes may happen to look like the poison.
            self.loaded.change_poison(index);
            self.batch(index, number)?;
            if !self.check(index, number)?.is_failed() {
                return Ok(());
            }
        }
        self.note(mismatch, check);
        Ok(())
    }

    /// A call with each set; the result is that of the first.
    ///
    /// # Errors
    /// Those of calls; `Failed` if a call has changed what it only reads, or what lies beside its tensors.
    pub(super) fn first_calls(&mut self) -> Result<Validation> {
        let mut first = None;
        for index in 0..self.loaded.sets.len() {
            self.batch(index, 1)?;
            let checked = self.check(index, 1)?;
            match (&first, checked) {
                (None, checked) => {
                    if checked.is_failed() {
                        self.note_finding(Check::FirstCalls);
                    }
                    first = Some(checked);
                }
                (Some(Validation::Passed(_)), Validation::Failed(mismatch)) => {
                    self.note(mismatch, Check::FirstCalls);
                }
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
        let (index, number) = (self.next_set(), if self.restores_each_call { 1 } else { number });
        self.batch(index, number)?;
        self.check_all(index, number, Check::LastWindow)
    }

    /// Calls that depend on each other, the last of which is compared with those of the reference.
    ///
    /// # Errors
    /// As for [`first_calls`](Self::first_calls).
    pub(super) fn later_calls(&mut self, job: &Job) -> Result<()> {
        if job.expected_later.is_empty() {
            return Ok(());
        }
        let index = self.next_set();
        self.batch(index, 1)?;
        for _ in 1..LATER_CALLS {
            self.loaded.restore(index, Due::Later);
            self.loaded.poison(index);
            self.window(index, 1)?;
        }
        self.check_unchanged(index)?;
        let tensors = &self.loaded.sets[index].tensors;
        let compared = job.later_tolerance().compare_outputs(&job.expected_later, |arg| {
            let Some(tensor) = tensors.iter().find(|tensor| tensor.arg == arg) else { return Ok(None) };
            Ok(Some((self.loaded.content(&job.spec, tensor)?, tensor.access)))
        })?;
        self.loaded.runner.check_stopped()?;
        if let Validation::Failed(mismatch) = compared {
            self.note(mismatch, Check::LaterCall);
        }
        Ok(())
    }

    /// A single call on inputs that the candidate has seen.
    ///
    /// # Errors
    /// As for [`first_calls`](Self::first_calls).
    pub(super) fn repeated_call(&mut self) -> Result<WindowTime> {
        let index = self.next_set();
        // Written again, as other inputs are: both calls find their data where the judge has left it.
        let data = Arc::clone(&self.loaded.sets[index].data);
        self.cold_call(index, data)
    }

    /// A single call on other inputs.
    ///
    /// # Errors
    /// As for [`first_calls`](Self::first_calls).
    pub(super) fn single_call(&mut self, data: Arc<JobData>) -> Result<SingleCall> {
        let index = self.next_set();
        let time = self.cold_call(index, data)?;
        // Before they are compared, which would bring them into the caches.
        let tensors = self.loaded.sets[index].tensors.iter();
        let mut memory = vec![1; tensors.map(|tensor| tensor.span).max().unwrap_or(0)];
        let [cold, warm] = [(); 2].map(|()| self.copy(index, &mut memory));
        let copy = cold.saturating_sub(warm);
        Ok(SingleCall { time, copy, set: index })
    }

    /// How long it takes to copy all tensors of a set.
    fn copy(&self, index: usize, memory: &mut [u8]) -> Duration {
        let own = std::process::id().cast_signed();
        let begin = platform::processor_time(own);
        for tensor in &self.loaded.sets[index].tensors {
            self.loaded.memory.read(tensor.at, &mut memory[..tensor.span]);
        }
        platform::processor_time(own).saturating_sub(begin)
    }

    /// Compares what the last single call has left; with other data, if that tells what is expected of its inputs.
    ///
    /// # Errors
    /// As for [`first_calls`](Self::first_calls).
    pub(super) fn check_single_call(&mut self, call: &SingleCall, data: Option<Arc<JobData>>) -> Result<()> {
        if let Some(data) = data {
            self.loaded.sets[call.set].data = data;
        }
        self.check_all(call.set, 1, Check::SingleCall)
    }

    /// Compares what a window of a set left, and checks that nothing else has changed. Tensors that the kernel reads and writes hold
    /// what is expected after a single call only.
    fn check(&self, index: usize, number: u64) -> Result<Validation> {
        self.check_unchanged(index)?;
        let compared = self.compare(index, number)?;
        self.loaded.runner.check_stopped()?;
        Ok(compared)
    }

    fn compare(&self, index: usize, number: u64) -> Result<Validation> {
        let set = &self.loaded.sets[index];
        if set.data.expected.is_empty() {
            return Ok(Validation::Skipped { reason: "there is no reference".to_owned() });
        }
        self.tolerance.compare_outputs(&set.data.expected, |arg| {
            let Some((tensor, expected)) = self.output(index, arg, number) else { return Ok(None) };
            Ok(Some((self.actual(tensor, 0, expected, number)?, tensor.access)))
        })
    }

    /// A written tensor of a set, and what it holds after so many calls, if that is known.
    fn output(&self, index: usize, arg: usize, number: u64) -> Option<(&SharedTensor, &HostArray)> {
        let set = &self.loaded.sets[index];
        let tensor = set.tensors.iter().find(|tensor| tensor.arg == arg)?;
        let (_, expected) = set.data.expected.iter().find(|(index, _)| *index == arg)?;
        (tensor.access != Access::ReadWrite || number == 1).then_some((tensor, expected))
    }

    /// What a written tensor holds from a place on, after so many calls. If later calls of a kernel depend on what earlier ones have left
    /// in other tensors, what they write is not known, but that they write is: what is not poison counts as expected.
    fn actual(
        &self,
        tensor: &SharedTensor,
        at: usize,
        expected: &HostArray,
        number: u64,
    ) -> Result<HostArray> {
        let mut actual = HostArray::new(expected.dtype(), expected.shape())?;
        tensor.read(&self.loaded.memory, at, actual.bytes_mut());
        if self.keeps_state && number != 1 {
            let size = expected.dtype().bytes();
            let elements = actual.bytes_mut().chunks_exact_mut(size).zip(expected.bytes().chunks_exact(size));
            for (element, expected) in elements {
                if element.iter().any(|byte| *byte != tensor.poison) {
                    element.copy_from_slice(expected);
                }
            }
        }
        Ok(actual)
    }

    /// Compares blocks of what a window left: all of small tensors, and random ones of large ones.
    fn has_right_blocks(&self, index: usize, number: u64) -> Result<bool> {
        let mut state = self.secret.hash_one(("blocks", self.history.windows));
        for (arg, _) in &self.loaded.sets[index].data.expected {
            let Some((tensor, expected)) = self.output(index, *arg, number) else { continue };
            let count = tensor.bytes.div_ceil(BLOCK);
            for taken in 0..count.min(BLOCKS) {
                let block = if count <= BLOCKS { taken } else { random::below(&mut state, count) };
                if !self.has_right_block((tensor, expected), block, number)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn has_right_block(
        &self,
        (tensor, expected): (&SharedTensor, &HostArray),
        block: usize,
        number: u64,
    ) -> Result<bool> {
        let size = expected.dtype().bytes();
        // Whole elements, whatever their size.
        let begin = block * BLOCK / size * size;
        let end = ((block + 1) * BLOCK).next_multiple_of(size).min(tensor.bytes);
        let mut wanted = HostArray::new(expected.dtype(), &[(end - begin) / size])?;
        wanted.bytes_mut().copy_from_slice(&expected.bytes()[begin..end]);
        let actual = self.actual(tensor, begin, &wanted, number)?;
        let (wanted, mut actual) = ([(tensor.arg, wanted)], Some((actual, tensor.access)));
        Ok(!self.tolerance.compare_outputs(&wanted, |_| Ok(actual.take()))?.is_failed())
    }

    fn check_unchanged(&self, index: usize) -> Result<()> {
        let set = &self.loaded.sets[index];
        for tensor in set.tensors.iter().filter(|tensor| tensor.access == Access::Read) {
            let Some(initial) = &set.data.inputs[tensor.arg] else { continue };
            let mut now = vec![0; tensor.bytes];
            tensor.read(&self.loaded.memory, 0, &mut now);
            if let Some(byte) = first_difference(&now, &tensor.held(initial.bytes())) {
                let element = byte / initial.dtype().bytes();
                let message = format!(
                    "the kernel has changed element {element} of argument {}, which it only reads, in window {}",
                    tensor.arg, self.history.windows
                );
                return Err(Error::new(ErrorKind::Failed, message));
            }
        }
        let is_unchanged = |canary: &Canary| {
            let mut now = vec![0; canary.bytes];
            self.loaded.memory.read(canary.at, &mut now);
            now == self.pattern(canary)
        };
        let memory = &self.loaded.memory;
        if !self.loaded.canaries.iter().all(is_unchanged)
            || !set.tensors.iter().all(|tensor| tensor.has_clean_gaps(memory))
        {
            let window = self.history.windows;
            let message = format!("the kernel has written beside its tensors, in window {window}");
            return Err(Error::new(ErrorKind::Failed, message));
        }
        Ok(())
    }
}

fn first_difference(now: &[u8], expected: &[u8]) -> Option<usize> {
    if now == expected { None } else { now.iter().zip(expected).position(|(now, expected)| now != expected) }
}

impl CallWindows for Windows {
    fn restores_each_call(&self) -> bool {
        self.restores_each_call
    }

    fn calls(&mut self, number: u64) -> Result<f64> {
        let (index, chance) = (self.next_set(), self.secret.hash_one(("check", self.history.windows)));
        let time = self.batch(index, number)?;
        if self.history.wrong.is_none()
            && (chance.is_multiple_of(CHECKED) || !self.has_right_blocks(index, number)?)
        {
            self.check_all(index, number, Check::TimedWindow)?;
        }
        Ok(time.elapsed.as_nanos() as f64)
    }

    fn empty_calls(&mut self, number: u64) -> Result<f64> {
        self.loaded.runner.window(None, number).map(|time| time.elapsed.as_nanos() as f64)
    }

    fn flush_cache(&mut self) -> Result<()> {
        self.is_flush_due = true;
        Ok(())
    }
}
