//! Runs grids of work-groups, in chunks on several threads. The function of such a kernel is
//! `void f(const uint64_t *args, const uint32_t *groups, int64_t begin, int64_t end)` and runs the work-groups
//! `begin..end` of the grid, x fastest.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use runtime_core::{Error, Result};
use smallvec::SmallVec;

use crate::call::Function;
use crate::convention::Convention;
use crate::parallel_for::{LoopBody, ParallelFor, Split};
use crate::pool::Pool;
use crate::range::IndexRange;
use crate::register::RegValue;

/// A grid that takes less than this runs on one thread: waking another one takes as long.
const SMALL_GRID: Duration = Duration::from_micros(16);
/// Minimum time of a chunk, so that the cost of taking one is negligible.
const CHUNK_TIME: Duration = Duration::from_micros(16);
/// Stack that a thread needs to run work-groups: their memory is on the stack, up to half of this.
pub(crate) const STACK_BYTES: usize = 1 << 20;
/// Arguments up to this many need no allocation.
const INLINE_ARGS: usize = 32;

/// What a launch iterates over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Nothing: one plain call.
    Single,
    /// A range of iterations.
    Range(IndexRange),
    /// A grid of work-groups.
    Groups([u32; 3]),
}

impl Extent {
    /// The extent of a launch of `function`.
    ///
    /// # Errors
    /// `InvalidArgument` for groups of a function that does not take them, and for too many groups; as
    /// [`IndexRange::of`].
    #[inline]
    pub(crate) fn of(function: &Function, launch: &LaunchShape) -> Result<Self> {
        match IndexRange::of(function, launch.range, launch.grain)? {
            Some(span) => Ok(Self::Range(span)),
            None if function.convention() == Convention::Groups => Self::grid(launch.groups),
            None if launch.groups == [1; 3] && launch.group_size == [1; 3] => Ok(Self::Single),
            None => Err(Error::invalid(format!(
                "groups {:?} of {:?} work-items: a function of this convention is called once, without groups; load \
                 code that runs work-groups with the option convention = \"groups\"",
                launch.groups, launch.group_size
            ))),
        }
    }

    fn grid(groups: [u32; 3]) -> Result<Self> {
        let fits = groups.iter().try_fold(1_u64, |all, &n| all.checked_mul(u64::from(n)));
        match fits.filter(|&all| i64::try_from(all).is_ok()) {
            Some(_) => Ok(Self::Groups(groups)),
            None => Err(Error::invalid(format!("groups {groups:?}: their product must fit into 63 bits"))),
        }
    }
}

/// The part of a launch's geometry that determines its [`Extent`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchShape {
    pub(crate) groups: [u32; 3],
    pub(crate) group_size: [u32; 3],
    pub(crate) range: Option<[i64; 2]>,
    pub(crate) grain: u32,
}

/// Runs the groups of one grid.
#[derive(Debug)]
pub(crate) struct GroupCall {
    function: Arc<Function>,
    args: SmallVec<[u64; INLINE_ARGS]>,
    groups: [u32; 3],
    /// Groups that have run, and their total time in nanoseconds, summed over all threads.
    ran: AtomicU64,
    busy: AtomicU64,
}

impl GroupCall {
    /// Runs the whole grid: a small one on this thread, a larger one on the threads of `pool` too.
    ///
    /// # Errors
    /// `OutOfResources` if the pool cannot start.
    pub(crate) fn run(
        function: &Arc<Function>,
        words: &[RegValue],
        groups: [u32; 3],
        pool: &Pool,
    ) -> Result<()> {
        let args = words.iter().map(|word| word.bits).collect();
        let (ran, busy) = (AtomicU64::new(0), AtomicU64::new(0));
        let call = Self { function: Arc::clone(function), args, groups, ran, busy };
        let all: u64 = groups.iter().map(|&n| u64::from(n)).product();
        let done = call.begin(all, pool.threads());
        if done == all {
            return function.outcome();
        }
        let time = function.group_time();
        // If the duration is unknown, few chunks; otherwise none shorter than `CHUNK_TIME`.
        let open = Split::new(0, all - done, 0, pool.threads());
        let grain = if time.estimate(1).is_some() {
            open.grain.min(time.groups_within(CHUNK_TIME)).max(1)
        } else {
            open.grain
        };
        let split = Split::new(done.cast_signed(), all - done, grain, pool.threads());
        ParallelFor::new(call, split).run(pool)?;
        function.outcome()
    }

    /// Runs groups that are too short for other threads to help with; returns their number.
    fn begin(&self, all: u64, threads: usize) -> u64 {
        let time = self.function.group_time();
        let small = time.estimate(all).is_some_and(|time| time < SMALL_GRID);
        if threads > 1 && !small {
            return 0;
        }
        // If it takes longer than last time, other threads get the rest.
        let (start, step) = (Instant::now(), if threads > 1 { all.div_ceil(4) } else { all });
        let mut done = 0;
        while done < all && (threads == 1 || start.elapsed() < 2 * SMALL_GRID) {
            let next = all.min(done + step);
            self.call([done, next].map(u64::cast_signed));
            done = next;
        }
        time.record(done, start.elapsed());
        done
    }

    fn call(&self, [begin, end]: [i64; 2]) {
        self.function.call_groups(&self.args, &self.groups, begin, end);
    }
}

impl LoopBody for GroupCall {
    type WorkerState = ();

    fn worker_state(&self, _index: u64) {}

    fn run(&self, _state: &mut (), chunk: [i64; 2]) -> Result<()> {
        let start = Instant::now();
        self.call(chunk);
        let (took, groups) = (start.elapsed().as_nanos(), chunk[0].abs_diff(chunk[1]));
        let took = u64::try_from(took).unwrap_or(u64::MAX);
        // The mean over the whole grid: a single chunk may have been interrupted by the scheduler.
        let busy = took.saturating_add(self.busy.fetch_add(took, Ordering::Relaxed));
        let ran = groups + self.ran.fetch_add(groups, Ordering::Relaxed);
        self.function.group_time().record(ran, Duration::from_nanos(busy));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
