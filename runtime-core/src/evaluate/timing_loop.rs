//! The timing loop: warm-up, calibration, samples. It depends only on a [`TimingTarget`], not on a device.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use super::calibrate::{Goal, MAX_NUMBER, Trial, next_number};
use super::statistics::percentile;
use super::stop_rule::StopRule;
use super::throttling::Throttling;
use super::timing_target::{TimingTarget, Window};
use super::{FlushCache, Moment, Throttled, Timing, Turn, Warmup};
use crate::{Error, ErrorKind, Result};

/// Number of no-op windows; the overhead is their median.
const OVERHEAD_WINDOWS: usize = 11;
/// Maximum number of calls in such a window; more would not change the cost per call.
const OVERHEAD_NUMBER: u64 = 1000;

/// Minimum time between yields to the executor: yielding after every short sample would cost more than the
/// rest of the loop.
const YIELD_INTERVAL_NS: u64 = 1_000_000;

/// The samples that the timing loop took.
#[derive(Debug)]
pub(crate) struct Samples {
    /// Nanoseconds per call.
    pub(crate) samples_ns: Vec<f64>,
    /// Nanoseconds of transfer per call, one for each sample.
    pub(crate) transfers_ns: Vec<f64>,
    /// Calls per sample.
    pub(crate) number: u64,
    /// Whether the median became as precise as was asked for.
    pub(crate) reached_until: Option<bool>,
    /// How often the device throttled, if it reports that.
    pub(crate) throttled: Option<Throttled>,
}

impl Samples {
    fn push(&mut self, window: Window) {
        self.samples_ns.push(window.elapsed_ns / self.number as f64);
        self.transfers_ns.push(window.transfer_ns / self.number as f64);
    }

    fn truncate(&mut self, count: usize) {
        self.samples_ns.truncate(count);
        self.transfers_ns.truncate(count);
    }
}

/// How many calls are waited for at once.
#[derive(Debug)]
struct WindowLimit {
    /// `None` without a limit.
    most_ns: Option<u64>,
    /// The time of a call in the last window; `None` before the first one.
    call_ns: Option<u64>,
}

impl WindowLimit {
    fn new(timing: &Timing) -> Self {
        Self { most_ns: u64::try_from(timing.max_window.as_nanos()).ok(), call_ns: None }
    }

    const fn calls(&self) -> u64 {
        match (self.most_ns, self.call_ns) {
            (None, _) | (_, Some(0)) => u64::MAX,
            (Some(_), None) => 1,
            (Some(most_ns), Some(call_ns)) if most_ns < call_ns => 1,
            (Some(most_ns), Some(call_ns)) => most_ns / call_ns,
        }
    }
}

/// Times a kernel.
pub(crate) async fn run(
    target: &mut impl TimingTarget,
    timing: &Timing,
    turn: Option<&mut Turn>,
) -> Result<Samples> {
    let (samples_ns, transfers_ns) = (with_capacity(timing.repeat)?, with_capacity(timing.repeat)?);
    let budget_ns = u64::try_from(timing.budget.as_nanos()).unwrap_or(u64::MAX);
    let mut throttling = Throttling::new(target, timing.repeat);
    let mut limit = WindowLimit::new(timing);
    let deadline_ns = target.now_ns().saturating_add(budget_ns);
    throttling.postpone(deadline_ns);
    // A number of calls is what the caller asked for, no more.
    if matches!(timing.warmup, Warmup::Time(time) if !time.is_zero()) {
        let wake_time = target.wake_time();
        warm_up(target, Warmup::Time(wake_time), deadline_ns, &mut limit).await?;
    }
    warm_up(target, timing.warmup, deadline_ns, &mut limit).await?;
    let number = match timing.fixed_number() {
        Some(number) => number,
        None => calibrate(target, timing, deadline_ns, &mut limit).await?,
    };
    let mut run = Samples { samples_ns, transfers_ns, number, reached_until: None, throttled: None };
    let schedule = Schedule { timing, deadline_ns, limit, turn };
    take_samples(target, schedule, &mut throttling, &mut run).await?;
    run.throttled = throttling.result();
    Ok(run)
}

/// When samples are taken.
struct Schedule<'a> {
    timing: &'a Timing,
    deadline_ns: u64,
    limit: WindowLimit,
    turn: Option<&'a mut Turn>,
}

/// Takes samples until there are enough of them, or the budget is spent.
async fn take_samples(
    target: &mut impl TimingTarget,
    schedule: Schedule<'_>,
    throttling: &mut Throttling,
    run: &mut Samples,
) -> Result<()> {
    let Schedule { timing, mut deadline_ns, mut limit, mut turn } = schedule;
    let mut stop = StopRule::new(timing);
    let (mut is_first, mut yielded_ns) = (true, 0);
    loop {
        if let Some(turn) = &mut turn {
            let waited_ns = take_turn(target, timing, turn, &mut limit).await?;
            deadline_ns = deadline_ns.saturating_add(waited_ns);
            throttling.postpone(waited_ns);
        }
        if is_first {
            target.observe(Moment::BeforeSamples);
        }
        if is_first || turn.is_some() {
            // What happened before, or during the turns of others, does not concern the next sample.
            throttling.begin(target);
        }
        if !is_first {
            let now_ns = cool_down(target, timing.cooldown, deadline_ns);
            if now_ns >= deadline_ns && !run.samples_ns.is_empty() {
                break;
            }
            if now_ns - yielded_ns >= YIELD_INTERVAL_NS {
                yield_now().await;
                yielded_ns = now_ns;
            }
        }
        is_first = false;
        target.setup();
        run.push(window(target, run.number, timing.flush_cache, &mut limit).await?);
        let is_enough = stop.is_enough(&run.samples_ns);
        let remaining = throttling.check(target, run.samples_ns.len(), is_enough || turn.is_some());
        if is_enough && remaining == run.samples_ns.len() {
            break;
        }
        if remaining < run.samples_ns.len() {
            run.truncate(remaining);
            stop.discard(remaining);
        }
    }
    throttling.finish(target, run.samples_ns.len());
    target.observe(Moment::AfterSamples);
    run.reached_until = stop.reached();
    Ok(())
}

/// Lets the other members of the group take their turns; returns how long that took, in nanoseconds.
async fn take_turn(
    target: &mut impl TimingTarget,
    timing: &Timing,
    turn: &mut Turn,
    limit: &mut WindowLimit,
) -> Result<u64> {
    let begin_ns = target.now_ns();
    let has_switched = turn.pass().await;
    let waited_ns = target.now_ns() - begin_ns;
    // Other kernels have replaced the contents of the caches.
    if has_switched && !timing.warmup.is_none() && timing.flush_cache == FlushCache::Never {
        target.setup();
        window(target, 1, FlushCache::Never, limit).await?;
    }
    Ok(waited_ns)
}

/// Reserves memory for `repeat` samples; for more, the loop allocates between windows.
fn with_capacity(count: usize) -> Result<Vec<f64>> {
    let mut samples = Vec::new();
    match samples.try_reserve_exact(count) {
        Ok(()) => Ok(samples),
        Err(_) => {
            Err(Error::new(ErrorKind::OutOfMemory, format!("repeat: not enough memory for {count} samples")))
        }
    }
}

/// Pauses, but not beyond the deadline; returns the time afterwards.
fn cool_down(target: &mut impl TimingTarget, cooldown: Duration, deadline_ns: u64) -> u64 {
    let now_ns = target.now_ns();
    if cooldown.is_zero() || now_ns >= deadline_ns {
        return now_ns;
    }
    target.pause(cooldown.min(Duration::from_nanos(deadline_ns - now_ns)));
    target.now_ns()
}

/// Warms up in windows of doubling size: this takes few windows for short kernels and never twice the calls
/// needed. Starts no window that, judging by the previous ones, would end after the deadline.
async fn warm_up(
    target: &mut impl TimingTarget,
    warmup: Warmup,
    deadline_ns: u64,
    limit: &mut WindowLimit,
) -> Result<()> {
    if warmup.is_none() {
        return Ok(());
    }
    let (max_calls, min_ns) = match warmup {
        Warmup::Calls(number) => (number, u64::MAX),
        Warmup::Time(time) => (u64::MAX, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
    };
    let begin_ns = target.now_ns();
    let (mut calls, mut number) = (0, 1);
    while calls < max_calls {
        target.setup();
        window(target, number, FlushCache::Never, limit).await?;
        calls += number;
        let now_ns = target.now_ns();
        let spent_ns = now_ns - begin_ns;
        // Terminates even if the clock does not advance.
        let at_call_limit = min_ns != u64::MAX && number >= MAX_NUMBER;
        if spent_ns >= min_ns || now_ns >= deadline_ns || at_call_limit {
            break;
        }
        let affordable = calls_that_fit(deadline_ns - now_ns, calls, spent_ns);
        number = (2 * number).min(MAX_NUMBER).min(max_calls - calls).min(affordable);
        if number == 0 {
            break;
        }
    }
    Ok(())
}

/// Makes calls: in one window, in several if they would take too long in one, or each in a window of its own if something must
/// happen before it, outside of the time.
async fn window(
    target: &mut impl TimingTarget,
    number: u64,
    flush: FlushCache,
    limit: &mut WindowLimit,
) -> Result<Window> {
    let restores = target.restores_each_call();
    let is_single = restores || flush == FlushCache::PerCall;
    let (mut sum, mut left) = (Window::default(), number);
    while left > 0 {
        if restores {
            target.restore()?;
        }
        if flush == FlushCache::PerCall || (flush == FlushCache::PerSample && left == number) {
            target.flush_cache()?;
        }
        let calls = if is_single { 1 } else { left.min(limit.calls()) };
        let begin_ns = limit.most_ns.map(|_| target.now_ns());
        let window = target.window(calls).await?;
        target.observe(Moment::Window);
        limit.call_ns = begin_ns.map(|begin_ns| (target.now_ns() - begin_ns) / calls);
        sum.elapsed_ns += window.elapsed_ns;
        sum.transfer_ns += window.transfer_ns;
        left -= calls;
    }
    Ok(sum)
}

/// The number of calls that fit into `left_ns`, if `calls` calls took `spent_ns`.
fn calls_that_fit(left_ns: u64, calls: u64, spent_ns: u64) -> u64 {
    let fit = u128::from(left_ns) * u128::from(calls) / u128::from(spent_ns.max(1));
    u64::try_from(fit).unwrap_or(u64::MAX)
}

/// Determines the number of calls per sample.
async fn calibrate(
    target: &mut impl TimingTarget,
    timing: &Timing,
    deadline_ns: u64,
    limit: &mut WindowLimit,
) -> Result<u64> {
    let mut number = 1;
    loop {
        target.setup();
        let begin_ns = target.now_ns();
        let window = window(target, number, FlushCache::Never, limit).await?;
        let now_ns = target.now_ns();
        let trial = Trial { number, elapsed_ns: window.elapsed_ns, wall_ns: (now_ns - begin_ns) as f64 };
        // The next trial may use the same share of the remaining budget as each sample.
        let share_ns = deadline_ns.saturating_sub(now_ns) as f64 / (timing.repeat as f64 + 1.0);
        let goal = Goal { sample_ns: timing.min_repeat.as_nanos() as f64, wall_ns: share_ns };
        match next_number(trial, goal) {
            Some(next) => number = next,
            None => return Ok(number),
        }
    }
}

/// The time per call of a no-op kernel by the evaluation's clock, in windows like those of the samples.
pub(crate) async fn overhead(target: &mut impl TimingTarget, number: u64) -> Result<Option<f64>> {
    let number = if target.restores_each_call() { 1 } else { number.min(OVERHEAD_NUMBER) };
    let mut windows = [0.0; OVERHEAD_WINDOWS];
    for window in &mut windows {
        match target.empty_window(number).await? {
            Some(elapsed_ns) => *window = elapsed_ns / number as f64,
            None => return Ok(None),
        }
    }
    windows.sort_unstable_by(f64::total_cmp);
    Ok(Some(percentile(&windows, 50.0)))
}

/// Yields to the executor once.
async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
#[path = "timing_loop_tests.rs"]
mod tests;
