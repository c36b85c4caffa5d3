//! Windows of calls in a runner: what is prepared before them, and compared after them.

use std::hash::{BuildHasher as _, RandomState};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use runtime_core::evaluate::{Agreement, CallWindows, HostCaches, Mismatch, Tolerance, Validation};
use runtime_core::{Access, DeviceInfo, Error, ErrorKind, HostArray, Result};

use super::loaded::{Canary, Loaded, SharedTensor};
use super::process::WindowTime;
use crate::heartbeat::{self, Heartbeat};
use crate::job::{Due, Job, JobData, LATER_CALLS};
use crate::row::{CacheState, Check, Finding};
use crate::single_calls::{SingleCall, SingleCalls};
use crate::{platform, random};

/// One of so many windows is checked in full, at random.
const CHECKED: u64 = 8;
/// Of the others, blocks of so many bytes are, at random places,
const BLOCK: usize = 4096;
/// and so many of each tensor.
const BLOCKS: usize = 32;
/// Elements that are compared at once where all are.
const PIECE: usize = 1 << 14;
/// Bytes that are copied at once.
const COPIED: usize = 8 << 20;
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
    /// Those of the last-level cache.
    cache_bytes: usize,
    /// Whether a call has filled the caches before the last batch.
    is_warmed: bool,
    /// The set of the last single call.
    single: usize,
    pub(super) history: History,
}

/// What has happened so far.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Calls of the candidate.
    pub(super) calls: u64,
    windows: usize,
    /// What the caches held when the last window that may be timed began.
    pub(super) cache: Option<CacheState>,
    /// The last window of several calls or of one, if it was not compared in full: its set, and its calls.
    unchecked: Option<(usize, u64)>,
    /// The first wrong output, in a window behind the first one.
    pub(super) wrong: Option<Mismatch>,
    /// Where the first wrong output was found.
    pub(super) found: Option<Finding>,
}

impl Windows {
    /// Windows of a candidate, after the canaries are written.
    pub(super) fn new(
        loaded: Loaded,
        job: &Job,
        host: &DeviceInfo,
        heartbeat: Option<Arc<Heartbeat>>,
    ) -> Self {
        let last_level = ["l3_bytes", "l2_bytes"].iter().find_map(|level| host.properties.integer(level));
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
            cache_bytes: last_level.and_then(|bytes| bytes.try_into().ok()).unwrap_or(usize::MAX),
            is_warmed: false,
            single: 0,
            history: History::default(),
        };
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
            let Loaded { sets, memory, .. } = &self.loaded;
            sets[index].write_inputs(memory);
            caches.evict();
        }
        let is_warmed =
            self.can_be_warmed(index, number) && !(self.keeps_state || self.is_cold || is_flushed);
        if is_warmed {
            self.window(index, 1)?;
        }
        self.is_warmed = is_warmed;
        self.history.windows += 1;
        self.window(index, number)
    }

    /// Whether a call fills the caches before so many: if they can hold the set.
    fn can_be_warmed(&self, index: usize, number: u64) -> bool {
        let bytes: usize = self.loaded.sets[index].tensors.iter().map(|tensor| tensor.span).sum();
        number >= WARMED && bytes <= self.cache_bytes
    }

    /// Makes a single call on initial data and poisoned outputs, after one with another set: the code is warm then, the data is not. What
    /// the other call does is not timed, so the data is written after it.
    fn cold_call(&mut self, index: usize, data: Arc<JobData>) -> Result<WindowTime> {
        let other = (index + 1) % self.loaded.sets.len();
        self.loaded.restore(other, Due::Later);
        self.window(other, 1)?;
        self.loaded.replace_data(index, data);
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

    /// Compares what the last timed window has left, in full. The runner has been stopped since.
    fn check_last(&mut self) -> Result<()> {
        match self.history.unchecked.take().filter(|_| self.history.wrong.is_none()) {
            Some((index, number)) => self.check_all(index, number, Check::LastWindow),
            None => Ok(()),
        }
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
            self.loaded.sets[index].poison(&self.loaded.memory);
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

    /// How long it takes to copy all tensors of a set.
    fn copy(&self, index: usize, memory: &mut [u8]) -> Duration {
        let own = std::process::id().cast_signed();
        let begin = platform::processor_time(own);
        for tensor in &self.loaded.sets[index].tensors {
            for begin in (0..tensor.span).step_by(COPIED) {
                let bytes = COPIED.min(tensor.span - begin);
                self.loaded.memory.read(tensor.at + begin, &mut memory[..bytes]);
            }
        }
        platform::processor_time(own).saturating_sub(begin)
    }

    /// Compares what a window of a set left, and checks that nothing else has changed. Tensors that the kernel reads and writes hold
    /// what is expected after a single call only.
    fn check(&self, index: usize, number: u64) -> Result<Validation> {
        self.check_unchanged(index)?;
        let compared = match self.compare_pieces(index, number)? {
            // Only as a whole, they tell what is wrong.
            Validation::Failed(_) => self.compare(index, number)?,
            compared => compared,
        };
        self.loaded.runner.check_stopped()?;
        Ok(compared)
    }

    /// Compares outputs piece by piece: this needs little memory, which would take as long as all else to get. Anything that is wrong is
    /// wrong in its piece.
    fn compare_pieces(&self, index: usize, number: u64) -> Result<Validation> {
        let outputs = &self.loaded.sets[index].data.expected;
        if outputs.is_empty() {
            return Ok(Validation::Skipped { reason: "there is no reference".to_owned() });
        }
        let mut all = Agreement::default();
        for (arg, _) in outputs {
            let Some((tensor, expected)) = self.output(index, *arg, number) else { continue };
            let size = expected.dtype().bytes();
            for begin in (0..tensor.bytes).step_by(PIECE * size) {
                match self.compare_bytes((tensor, expected), begin..begin + PIECE * size, number)? {
                    Validation::Passed(agreement) => all = all.and(agreement),
                    other => return Ok(other),
                }
            }
        }
        Ok(Validation::Passed(all))
    }

    fn compare(&self, index: usize, number: u64) -> Result<Validation> {
        self.tolerance.compare_outputs(&self.loaded.sets[index].data.expected, |arg| {
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
                let bytes = block * BLOCK..(block + 1) * BLOCK;
                if self.compare_bytes((tensor, expected), bytes, number)?.is_failed() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Compares some bytes of an output: of whole elements, whatever their size.
    fn compare_bytes(
        &self,
        (tensor, expected): (&SharedTensor, &HostArray),
        bytes: Range<usize>,
        number: u64,
    ) -> Result<Validation> {
        let size = expected.dtype().bytes();
        let begin = bytes.start / size * size;
        let end = bytes.end.next_multiple_of(size).min(tensor.bytes);
        let mut wanted = HostArray::new(expected.dtype(), &[(end - begin) / size])?;
        wanted.bytes_mut().copy_from_slice(&expected.bytes()[begin..end]);
        let actual = self.actual(tensor, begin, &wanted, number)?;
        let (wanted, mut actual) = ([(tensor.arg, wanted)], Some((actual, tensor.access)));
        self.tolerance.compare_outputs(&wanted, |_| Ok(actual.take()))
    }

    /// What a single call takes beyond the handshake. On a busy machine, a process waits for a processor, which is not its time; one that
    /// has threads uses the time of several processors.
    fn own_ns(&self, call: &WindowTime) -> f64 {
        let handshake = self.loaded.runner.handshake();
        let processor = call.processor.saturating_sub(handshake.processor);
        let elapsed = call.elapsed.saturating_sub(handshake.elapsed);
        nanoseconds(if self.is_parallel() { processor.min(elapsed) } else { processor })
    }

    fn check_unchanged(&self, index: usize) -> Result<()> {
        let set = &self.loaded.sets[index];
        for tensor in set.tensors.iter().filter(|tensor| tensor.access == Access::Read) {
            let Some(initial) = &set.data.inputs[tensor.arg] else { continue };
            let held = tensor.held(initial.bytes());
            let size = initial.dtype().bytes();
            let mut pieces = held.chunks(PIECE * size).enumerate();
            let mut now = vec![0; held.len().min(PIECE * size)];
            let difference = pieces.find_map(|(index, held)| {
                let (begin, now) = (index * PIECE * size, &mut now[..held.len()]);
                tensor.read(&self.loaded.memory, begin, now);
                first_difference(now, held).map(|byte| begin + byte)
            });
            if let Some(byte) = difference {
                let element = byte / size;
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

const fn nanoseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64
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
        self.history.cache = Some(CacheState::of(self.is_warmed));
        self.history.unchecked = Some((index, number));
        if self.history.wrong.is_none()
            && (chance.is_multiple_of(CHECKED) || !self.has_right_blocks(index, number)?)
        {
            self.history.unchecked = None;
            self.check_all(index, number, Check::TimedWindow)?;
        }
        Ok(time.elapsed.as_nanos() as f64)
    }

    fn empty_calls(&mut self, number: u64) -> Result<f64> {
        // These follow the samples.
        self.check_last()?;
        self.loaded.runner.window(None, number).map(|time| time.elapsed.as_nanos() as f64)
    }

    fn flush_cache(&mut self) -> Result<()> {
        self.is_flush_due = true;
        Ok(())
    }
}

impl SingleCalls for Windows {
    fn repeated_call(&mut self) -> Result<f64> {
        let index = self.next_set();
        // Written again, as other inputs are: both calls find their data where the judge has left it.
        let data = Arc::clone(&self.loaded.sets[index].data);
        let time = self.cold_call(index, data)?;
        Ok(self.own_ns(&time))
    }

    fn single_call(&mut self, data: Arc<JobData>) -> Result<SingleCall> {
        let index = self.next_set();
        let time = self.cold_call(index, data)?;
        self.single = index;
        // Before they are compared, which would bring them into the caches.
        let tensors = self.loaded.sets[index].tensors.iter();
        let mut memory = vec![1; tensors.map(|tensor| tensor.span.min(COPIED)).max().unwrap_or(0)];
        let [cold, warm] = [(); 2].map(|()| self.copy(index, &mut memory));
        Ok(SingleCall { ns: self.own_ns(&time), copy_ns: nanoseconds(cold.saturating_sub(warm)) })
    }

    fn check_single_call(&mut self, data: Option<Arc<JobData>>) -> Result<()> {
        if let Some(data) = data {
            self.loaded.sets[self.single].data = data;
        }
        self.check_all(self.single, 1, Check::SingleCall)
    }

    fn is_parallel(&self) -> bool {
        self.loaded.runner.threads() > 1
    }
}
