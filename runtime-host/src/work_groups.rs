//! Grids of work-groups: `void f(const uint64_t *args, const uint32_t *groups, int64_t begin, int64_t end)`, which
//! runs the work-groups `begin..end` of the grid, x fastest, and is called piece by piece on several threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use runtime_core::{Error, Result};
use smallvec::SmallVec;

use crate::call::{Function, Word};
use crate::convention::Convention;
use crate::parallel_for::{Pieces, Split, Spread};
use crate::pool::Pool;
use crate::range::IndexRange;

/// A grid that takes less than this is done at once: waking another thread takes as long.
const AT_ONCE: Duration = Duration::from_micros(16);
/// A piece takes at least about this long, so that taking it costs nothing.
const PIECE: Duration = Duration::from_micros(16);
/// What is left of the stack of a thread that runs work-groups: their memory lies there, up to half of this.
pub(crate) const STACK_BYTES: usize = 1 << 20;
/// The stack of the threads that are started here.
pub(crate) const THREAD_STACK_BYTES: usize = 4 << 20;
/// Arguments up to this many need no allocation.
const FEW: usize = 32;

/// What a call is spread over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Nothing: one plain call.
    Once,
    /// A range of iterations.
    Range(IndexRange),
    /// A grid of work-groups.
    Groups([u32; 3]),
}

impl Extent {
    /// What a launch of `function` asks for.
    ///
    /// # Errors
    /// `InvalidArgument` for groups of a function that knows none, too many groups, and what [`IndexRange::of`] refuses.
    #[inline]
    pub(crate) fn of(function: &Function, launch: &Asked) -> Result<Self> {
        match IndexRange::of(function, launch.range, launch.grain)? {
            Some(span) => Ok(Self::Range(span)),
            None if function.convention() == Convention::Groups => Self::grid(launch.groups),
            None if launch.groups == [1; 3] && launch.group_size == [1; 3] => Ok(Self::Once),
            None => Err(Error::invalid(format!(
                "groups {:?} of {:?} work-items: the function is called once; load code that runs work-groups \
                 with the option convention = \"groups\"",
                launch.groups, launch.group_size
            ))),
        }
    }

    fn grid(groups: [u32; 3]) -> Result<Self> {
        let fits = groups.iter().try_fold(1_u64, |all, &n| all.checked_mul(u64::from(n)));
        match fits.filter(|&all| i64::try_from(all).is_ok()) {
            Some(_) => Ok(Self::Groups(groups)),
            None => Err(Error::invalid(format!("groups {groups:?} are more than can be counted"))),
        }
    }
}

/// The geometry of a launch, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) groups: [u32; 3],
    pub(crate) group_size: [u32; 3],
    pub(crate) range: Option<[i64; 2]>,
    pub(crate) grain: i64,
}

/// What a function's work-groups took when it ran last, in picoseconds each; 0: not known.
#[derive(Debug)]
pub(crate) struct GroupTime(AtomicU64);

impl GroupTime {
    /// Not known.
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    fn expect(&self, groups: u64) -> Option<Duration> {
        let each = self.0.load(Ordering::Relaxed);
        (each != 0).then(|| Duration::from_nanos(each.saturating_mul(groups) / 1000))
    }

    fn learn(&self, groups: u64, took: Duration) {
        let all = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000);
        self.0.store((all / groups.max(1)).max(1), Ordering::Relaxed);
    }

    /// How many groups take about `time`.
    fn within(&self, time: Duration) -> u64 {
        let all = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000);
        (all / self.0.load(Ordering::Relaxed).max(1)).max(1)
    }
}

/// Calls for the groups of a grid.
#[derive(Debug)]
pub(crate) struct GroupCall {
    function: Arc<Function>,
    args: SmallVec<[u64; FEW]>,
    groups: [u32; 3],
    /// Groups that have run, and the nanoseconds that they took on all threads.
    ran: AtomicU64,
    busy: AtomicU64,
}

impl GroupCall {
    /// Runs the whole grid: small ones on this thread, others on those of `pool` too.
    ///
    /// # Errors
    /// `OutOfResources` if the pool cannot start.
    pub(crate) fn run(function: &Arc<Function>, words: &[Word], groups: [u32; 3], pool: &Pool) -> Result<()> {
        let args = words.iter().map(|word| word.bits).collect();
        let (ran, busy) = (AtomicU64::new(0), AtomicU64::new(0));
        let call = Self { function: Arc::clone(function), args, groups, ran, busy };
        let all: u64 = groups.iter().map(|&n| u64::from(n)).product();
        let done = call.begin(all, pool.threads());
        if done == all {
            return function.outcome();
        }
        let time = function.group_time();
        // Of unknown duration: few pieces. Else not shorter than worth taking.
        let open = Split::new(0, all - done, 0, pool.threads());
        let grain =
            if time.expect(1).is_some() { open.grain.min(time.within(PIECE)).max(1) } else { open.grain };
        let split = Split::new(done.cast_signed(), all - done, grain, pool.threads());
        Spread::new(call, split).run(pool)?;
        function.outcome()
    }

    /// Runs what is worth no other thread's time; says how many groups that were.
    fn begin(&self, all: u64, threads: usize) -> u64 {
        let time = self.function.group_time();
        let small = time.expect(all).is_some_and(|time| time < AT_ONCE);
        if threads > 1 && !small {
            return 0;
        }
        // It may take longer than last time: others are asked to help then.
        let (start, step) = (Instant::now(), if threads > 1 { all.div_ceil(4) } else { all });
        let mut done = 0;
        while done < all && (threads == 1 || start.elapsed() < 2 * AT_ONCE) {
            let next = all.min(done + step);
            self.call([done, next].map(u64::cast_signed));
            done = next;
        }
        time.learn(done, start.elapsed());
        done
    }

    fn call(&self, [begin, end]: [i64; 2]) {
        self.function.call_groups(&self.args, &self.groups, begin, end);
    }
}

impl Pieces for GroupCall {
    type Hand = ();

    fn hand(&self, _index: u64) {}

    fn run(&self, _hand: &mut (), piece: [i64; 2]) -> Result<()> {
        let start = Instant::now();
        self.call(piece);
        let (took, groups) = (start.elapsed().as_nanos(), piece[0].abs_diff(piece[1]));
        let took = u64::try_from(took).unwrap_or(u64::MAX);
        // The mean of the whole call: a piece during which the system ran somebody else says little by itself.
        let busy = took.saturating_add(self.busy.fetch_add(took, Ordering::Relaxed));
        let ran = groups + self.ran.fetch_add(groups, Ordering::Relaxed);
        self.function.group_time().learn(ran, Duration::from_nanos(busy));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
