//! What windows of calls begin with, and what they leave.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use runtime_core::evaluate::{EachCall, FlushCache, Mismatch, Tolerance, Validation, WindowData};
use runtime_core::{Access, CommonRuntime, Error, ErrorKind, HostArray, Queue, Result, Tensor};

use crate::job::{Canaries, Due, Job, JobData, allocate_tensors};
use crate::row::{CacheState, Check, Finding};
use crate::settings::Settings;
use crate::spec::ArgumentKind;

/// Of the windows, so many are compared in full, one at random,
const CHECKED: u64 = 8;
/// as long as comparing takes at most this share of the time.
const SHARE: u32 = 32;
/// There is a second set if all tensors, so many times, fit into the device's memory.
const ROOM: u64 = 6;
/// Elements that are compared at once.
const PIECE: usize = 1 << 18;
/// Fewer calls are not preceded by one that brings their data into the caches: it would cost more than it changes.
const WARMED: u64 = 32;

/// The data of all sets of tensors.
#[derive(Debug)]
pub(crate) struct WatchedData {
    tolerance: Tolerance,
    /// For copies on the device.
    queue: Queue,
    sets: Vec<TensorSet>,
    /// Whether calls of a window depend on what earlier ones have left.
    keeps_state: bool,
    /// Whether the first call is timed, so that kernels are validated behind all windows.
    is_first_timed: bool,
    /// Whether a call before a window would change what is measured.
    is_cold: bool,
    /// What windows are chosen by.
    secret: RandomState,
    begin: Instant,
    /// What comparing has taken.
    compared: Duration,
    /// Whether windows belong to single calls, behind those that are timed.
    are_single: bool,
    /// Inputs that are written before a window,
    new: Option<Arc<JobData>>,
    /// and whether that is the next one.
    is_next: Arc<AtomicBool>,
    /// The set of the last window, and its calls, if it was not compared in full.
    unchecked: Option<(usize, u64)>,
    windows: u64,
    calls: u64,
    cache: Option<CacheState>,
    wrong: Option<Mismatch>,
    found: Option<Finding>,
}

/// The tensors of all arguments.
#[derive(Debug)]
struct TensorSet {
    tensors: Vec<SetTensor>,
    canaries: Vec<Canaries>,
    data: Arc<JobData>,
}

/// A tensor of a set.
#[derive(Debug)]
struct SetTensor {
    /// The index of its argument.
    arg: usize,
    tensor: Tensor,
    access: Access,
    each_call: EachCall,
    /// What a tensor that is read and written begins with, on the device; `None` if the host writes it.
    initial: Option<Tensor>,
}

impl WatchedData {
    /// Data without tensors.
    pub(super) fn new(device: &dyn CommonRuntime, job: &Job, settings: &Settings) -> Result<Self> {
        let timing = settings.timing();
        Ok(Self {
            tolerance: job.tolerance(),
            queue: device.queue()?,
            sets: Vec::new(),
            keeps_state: job.spec.kept().next().is_some() && !job.spec.restores_each_call(),
            is_first_timed: timing.warmup.is_none(),
            is_cold: timing.warmup.is_none() || timing.flush_cache != FlushCache::Never,
            secret: RandomState::new(),
            begin: Instant::now(),
            compared: Duration::ZERO,
            are_single: false,
            new: None,
            is_next: Arc::default(),
            unchecked: None,
            windows: 0,
            calls: 0,
            cache: None,
            wrong: None,
            found: None,
        })
    }

    /// Allocates one more set of tensors, which hold the spec's inputs.
    pub(super) fn add_set(&mut self, device: &dyn CommonRuntime, job: &Job) -> Result<Vec<Option<Tensor>>> {
        let (secret, number) = (&self.secret, self.sets.len());
        let mut canaries = Vec::new();
        let mut arg = 0;
        let tensors = allocate_tensors(job, |spec, input| {
            arg += 1;
            let words = [0, 1].map(|word| secret.hash_one((number, arg, word)).to_le_bytes());
            let mut pattern = [0; 16];
            pattern.iter_mut().zip(words.as_flattened()).for_each(|(to, from)| *to = *from);
            let input = input.filter(|_| number == 0);
            let (tensor, around) = Canaries::around(device, (spec, input), pattern)?;
            canaries.extend(around);
            Ok(tensor)
        })?;
        let data = job.data()?;
        if let Some(first) = self.sets.first() {
            for from in first.tensors.iter().filter(|tensor| data.inputs[tensor.arg].is_some()) {
                if let Some(to) = &tensors[from.arg] {
                    self.queue.copy(to, &from.tensor)?;
                }
            }
        }
        let set = TensorSet { tensors: set_tensors((device, &self.queue), job, &tensors), canaries, data };
        self.sets.push(set);
        Ok(tensors)
    }

    /// The next evaluation is of a single call: its warm-up with the first set, and the call itself with the other one, on this data.
    /// Set the flag before the window of the call.
    pub(super) fn begin_single_call(&mut self, data: Arc<JobData>) -> Arc<AtomicBool> {
        (self.are_single, self.new) = (true, Some(data));
        self.is_next = Arc::default();
        Arc::clone(&self.is_next)
    }

    /// Gives the first set the spec's inputs again, so that what comes before the next single call does not see those of the last one.
    pub(super) fn forget_inputs(&mut self, job: &Job) -> Result<()> {
        let data = job.data()?;
        for tensor in &self.sets[0].tensors {
            if let Some(input) = &data.inputs[tensor.arg] {
                tensor.tensor.write_array(input)?;
            }
        }
        self.sets[0].data = data;
        Ok(())
    }

    /// Whether the device has room for another set, for the copies of initial data, and for whatever else the kernel needs.
    pub(super) fn has_room(&self, device: &dyn CommonRuntime) -> bool {
        let tensors = self.sets.iter().flat_map(|set| &set.tensors);
        has_room(device, tensors.map(|tensor| &tensor.tensor))
    }

    /// That of the last single call, or of the spec.
    pub(super) fn last_data(&self) -> Arc<JobData> {
        Arc::clone(&self.sets[self.sets.len() - 1].data)
    }

    pub(super) const fn cache(&self) -> Option<CacheState> {
        self.cache
    }

    pub(super) const fn calls(&self) -> u64 {
        self.calls
    }

    pub(super) const fn is_wrong(&self) -> bool {
        self.wrong.is_some()
    }

    /// The first wrong output.
    pub(super) fn wrong(&mut self) -> Option<Mismatch> {
        self.wrong.take()
    }

    pub(super) const fn found(&self) -> Option<Finding> {
        self.found
    }

    /// Notes the check that rejects the last window, unless an earlier one was rejected.
    pub(super) fn note_finding(&mut self, check: Check) {
        self.found.get_or_insert(Finding { check, window: self.windows });
    }

    /// Compares what the last timed window has left, in full. If the first call is timed, the call that was validated behind all windows
    /// has overwritten what the first set held.
    pub(super) fn check_last(&mut self) -> Result<()> {
        let is_there = |(set, _): &(usize, u64)| !(self.is_first_timed && *set == 0);
        match self.unchecked.take().filter(is_there).filter(|_| self.wrong.is_none()) {
            Some((set, number)) => self.check_all(set, number, Check::LastWindow),
            None => Ok(()),
        }
    }

    /// Compares what the last single call has left; with other data, if that tells what is expected of its inputs.
    pub(super) fn check_single_call(&mut self, data: Option<Arc<JobData>>) -> Result<()> {
        let last = self.sets.len() - 1;
        if let Some(data) = data {
            self.sets[last].data = data;
        }
        self.check_all(last, 1, Check::SingleCall)
    }

    /// Compares what a window has left.
    fn check_all(&mut self, set: usize, number: u64, check: Check) -> Result<()> {
        self.check_unchanged(set)?;
        let TensorSet { tensors, data, .. } = &self.sets[set];
        // What a later call leaves in a tensor that is read and written is not known, and neither is what it makes of it.
        let is_known =
            |tensor: &&SetTensor| number == 1 || !self.keeps_state && tensor.access == Access::Write;
        let mut compared = Validation::default();
        for (arg, expected) in &data.expected {
            let tensor = tensors.iter().filter(is_known).find(|tensor| tensor.arg == *arg);
            let Some(SetTensor { tensor, access, .. }) = tensor else { continue };
            let actual = tensor.to_array()?;
            if !is_right(&self.tolerance, (*arg, *access), &actual, expected)? {
                // Only as a whole, they tell what is wrong.
                let mut actual = Some((actual, *access));
                let expected = [(*arg, expected.clone())];
                compared = self.tolerance.compare_outputs(&expected, |_| Ok(actual.take()))?;
                break;
            }
        }
        if let Validation::Failed(mut mismatch) = compared {
            mismatch.after_calls = (self.calls > 1).then_some(self.calls - 1);
            self.wrong.get_or_insert(mismatch);
            self.note_finding(check);
        }
        Ok(())
    }

    /// Checks that a kernel has changed neither what it only reads, nor what lies beside its tensors.
    fn check_unchanged(&self, set: usize) -> Result<()> {
        let failed = |message: String| {
            Err(Error::new(ErrorKind::Failed, format!("{message}, in window {}", self.windows)))
        };
        let TensorSet { tensors, canaries, data } = &self.sets[set];
        for canaries in canaries {
            if !canaries.are_unchanged()? {
                return failed("the kernel has written beside its tensors".to_owned());
            }
        }
        for tensor in tensors.iter().filter(|tensor| tensor.access == Access::Read) {
            let Some(initial) = &data.inputs[tensor.arg] else { continue };
            let now = tensor.tensor.to_array()?;
            let size = initial.dtype().bytes();
            let mut elements = now.bytes().chunks_exact(size).zip(initial.bytes().chunks_exact(size));
            if now.bytes() != initial.bytes()
                && let Some(element) = elements.position(|(now, initial)| now != initial)
            {
                let arg = tensor.arg;
                return failed(format!(
                    "the kernel has changed element {element} of argument {arg}, which it only reads"
                ));
            }
        }
        Ok(())
    }

    /// Before a window of a single call: writes the inputs that are new, if it is the one that they are for, and leaves them in the caches,
    /// as calls of a batch find them: by a copy into the first set. The result is whether it is.
    fn write_new(&mut self, set: usize) -> Result<bool> {
        let is_next = self.is_next.load(Ordering::SeqCst);
        let Some(data) = self.new.take_if(|_| is_next) else { return Ok(false) };
        // If they are there already, a change of them is found behind the call.
        let is_there = Arc::ptr_eq(&self.sets[set].data, &data);
        for tensor in self.sets[set].tensors.iter().filter(|tensor| !is_there && !tensor.is_updated()) {
            if let Some(input) = &data.inputs[tensor.arg] {
                tensor.tensor.write_array(input)?;
            }
        }
        if let [first, .., last] = &mut self.sets[..=set] {
            for (to, from) in first.tensors.iter().zip(&last.tensors) {
                if data.inputs[from.arg].is_some() {
                    self.queue.copy(&to.tensor, &from.tensor)?;
                }
            }
            first.data = Arc::clone(&data);
        }
        self.sets[set].data = data;
        Ok(true)
    }

    /// Writes initial data into what a call reads and writes, and poison into what it only writes.
    fn prepare_outputs(&self, set: usize, due: Due) -> Result<()> {
        let TensorSet { tensors, data, .. } = &self.sets[set];
        for tensor in tensors {
            let SetTensor { tensor: target, initial, .. } = tensor;
            if due.restores(tensor.access, tensor.each_call) {
                match (initial.as_ref().filter(|_| !self.are_single), &data.inputs[tensor.arg]) {
                    (Some(initial), _) => drop(self.queue.copy(target, initial)?),
                    (None, Some(input)) => target.write_array(input)?,
                    (None, None) => {}
                }
            } else if tensor.access == Access::Write {
                target.fill(&[data.poison(tensor.arg).unwrap_or(u8::MAX)])?;
            }
        }
        self.queue.wait_idle()
    }
}

impl SetTensor {
    /// Whether it is read and written.
    fn is_updated(&self) -> bool {
        self.access == Access::ReadWrite
    }
}

/// Whether an output is right: pieces of it are compared by all processors.
fn is_right(
    tolerance: &Tolerance,
    (arg, access): (usize, Access),
    actual: &HostArray,
    expected: &HostArray,
) -> Result<bool> {
    let size = expected.dtype().bytes();
    let piece = |bytes: &[u8]| -> Result<HostArray> {
        let mut piece = HostArray::new(expected.dtype(), &[bytes.len() / size])?;
        piece.bytes_mut().copy_from_slice(bytes);
        Ok(piece)
    };
    let (actual, expected) = (actual.bytes().chunks(PIECE * size), expected.bytes().chunks(PIECE * size));
    let pieces: Vec<_> = actual.zip(expected).collect();
    let compare = |pieces: &[(&[u8], &[u8])]| -> Result<bool> {
        for (actual, expected) in pieces {
            let (expected, mut actual) = ([(arg, piece(expected)?)], Some((piece(actual)?, access)));
            if tolerance.compare_outputs(&expected, |_| Ok(actual.take()))?.is_failed() {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let compare = &compare;
    std::thread::scope(|scope| {
        let shares = pieces.chunks(pieces.len().div_ceil(threads).max(1));
        let threads: Vec<_> = shares.map(|share| scope.spawn(move || compare(share))).collect();
        let mut results = threads.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        results.try_fold(true, |all, result| Ok(all && result?))
    })
}

/// Whether these tensors take a small part of the device's memory.
fn has_room<'t>(device: &dyn CommonRuntime, tensors: impl Iterator<Item = &'t Tensor>) -> bool {
    let bytes: usize = tensors.map(Tensor::size_bytes).sum();
    let total = device.info().spaces.first().and_then(|space| space.total_bytes);
    total.is_none_or(|total| (bytes as u64).saturating_mul(ROOM) <= total)
}

/// The tensors of a set.
fn set_tensors(
    (device, queue): (&dyn CommonRuntime, &Queue),
    job: &Job,
    tensors: &[Option<Tensor>],
) -> Vec<SetTensor> {
    let has_room = has_room(device, tensors.iter().flatten());
    let args = job.spec.args.iter().zip(tensors).enumerate();
    let tensors = args.filter_map(|(arg, (argument, tensor))| match (&argument.kind, tensor) {
        (ArgumentKind::Tensor(spec), Some(tensor)) => Some(SetTensor {
            arg,
            tensor: tensor.clone(),
            access: spec.access,
            each_call: spec.each_call,
            initial: (has_room && spec.access == Access::ReadWrite)
                .then(|| copy_of((device, queue), tensor))
                .flatten(),
        }),
        _ => None,
    });
    tensors.collect()
}

/// A copy of a tensor; `None` if there is no room for it.
fn copy_of((device, queue): (&dyn CommonRuntime, &Queue), tensor: &Tensor) -> Option<Tensor> {
    let copy = device.allocate(tensor.dtype(), tensor.shape(), &runtime_core::Placement::default()).ok()?;
    queue.copy(&copy, tensor).ok()?;
    Some(copy)
}

impl WindowData for WatchedData {
    fn prepare(&mut self, set: usize, number: u64) -> Result<u64> {
        // What comes before a single call only warms the code.
        let is_whole = !self.are_single || self.write_new(set)?;
        self.prepare_outputs(set, if is_whole { Due::First } else { Due::Later })?;
        let before = u64::from(number >= WARMED && !(self.keeps_state || self.is_cold));
        if !self.are_single {
            self.cache = Some(CacheState::of(before > 0));
        }
        self.calls += before + number;
        self.windows += 1;
        Ok(before)
    }

    fn check(&mut self, set: usize, number: u64) -> Result<()> {
        if self.are_single {
            return Ok(());
        }
        let chance = self.secret.hash_one(self.windows);
        let is_due = chance.is_multiple_of(CHECKED) && self.compared * SHARE <= self.begin.elapsed();
        self.unchecked = Some((set, number));
        if is_due && self.wrong.is_none() {
            self.unchecked = None;
            let begin = Instant::now();
            self.check_all(set, number, Check::TimedWindow)?;
            self.compared += begin.elapsed();
        }
        Ok(())
    }
}
