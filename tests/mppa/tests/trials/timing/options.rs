//! Every option of the timing loop, on a device of either transport. The ancestor refused two of them.

use std::time::Duration;

use libtest_mimic::Failed;
use mppa::check_seen;
use runtime_core::evaluate::{FlushCache, Measurement, Timing, Warmup};

/// Times a short kernel with these options.
pub(crate) type Run<'r> = &'r dyn Fn(&dyn Fn(&mut Timing)) -> runtime_core::Result<Measurement>;

pub(crate) fn number(run: Run<'_>) -> Result<(), Failed> {
    let set = |timing: &mut Timing| {
        (timing.number, timing.min_repeat, timing.warmup) = (Some(5), Duration::ZERO, Warmup::Calls(2));
    };
    let measured = run(&set)?;
    check_seen(
        measured.number == 5 && measured.samples_ns.len() == 3 && measured.calls == 2 + 3 * 5,
        &measured,
    )
}

pub(crate) fn min_repeat(run: Run<'_>) -> Result<(), Failed> {
    let measured = run(&|timing| timing.min_repeat = Duration::from_millis(200))?;
    check_seen(measured.number > 1 && measured.samples_ns.len() == 3, &measured)
}

pub(crate) fn flush_cache(run: Run<'_>) -> Result<(), Failed> {
    for flush in [FlushCache::PerSample, FlushCache::PerCall] {
        let measured = run(&|timing| (timing.number, timing.flush_cache) = (Some(2), flush))?;
        check_seen(measured.number == 2 && measured.samples_ns.len() == 3, &measured)?;
    }
    let single = run(&|timing| timing.flush_cache = FlushCache::PerCall)?;
    check_seen(single.number == 1, &single)
}

/// That it pauses is a test of the timing loop: elapsed time would include other work.
pub(crate) fn cooldown(run: Run<'_>) -> Result<(), Failed> {
    let set = |timing: &mut Timing| {
        let pause = Duration::from_millis(1);
        (timing.number, timing.warmup, timing.cooldown) = (Some(1), Warmup::Calls(1), pause);
    };
    let measured = run(&set)?;
    check_seen(measured.calls == 1 + 3 && measured.samples_ns.len() == 3, &measured)
}

pub(crate) fn until(run: Run<'_>) -> Result<(), Failed> {
    let set = |timing: &mut Timing| {
        (timing.number, timing.until, timing.budget) = (Some(1), Some(0.5), Duration::from_secs(5));
    };
    let measured = run(&set)?;
    check_seen(measured.samples_ns.len() >= 20 && measured.reached_until.is_some(), &measured)
}

pub(crate) fn budget(run: Run<'_>) -> Result<(), Failed> {
    let measured = run(&|timing| (timing.number, timing.budget) = (Some(1), Duration::from_nanos(1)))?;
    check_seen(measured.samples_ns.len() == 1 && measured.repeat == 3, &measured)
}

pub(crate) fn cold(run: Run<'_>) -> Result<(), Failed> {
    let measured = run(&|timing| timing.warmup = Warmup::Calls(0))?;
    check_seen(measured.cold && measured.number == 1, &measured)
}
