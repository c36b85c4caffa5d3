use std::pin::{Pin, pin};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};

use super::*;
use crate::abi;
use crate::evaluate::Turns;
use crate::model::throttle_reasons::ThrottleReasons;

const MS: u64 = 1_000_000;

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Setup,
    Restore,
    Observe(Moment),
    Reading,
    Flush,
    Pause(Duration),
    Window(u64),
    Empty(u64),
}

/// A scripted device: a call takes `call_ns` by the host's clock, and the fraction `seen` of that by the
/// evaluation's clock.
#[derive(Debug)]
struct Mock {
    now_ns: u64,
    call_ns: u64,
    wake_ns: u64,
    seen: f64,
    /// Duration of a flush.
    flush_ns: u64,
    /// Added to the elapsed time of the windows after calibration, one value per window.
    noise_ns: Vec<f64>,
    transfer_ns: f64,
    empty_ns: Option<f64>,
    clock_reads: usize,
    fail_at: Option<usize>,
    /// Whether each call needs its initial contents.
    restores: bool,
    /// Whether the device is throttled after each window from the first sample on, if it reports that.
    throttled: Option<Vec<bool>>,
    /// Duration of a reading of the throttle reasons.
    reading_ns: u64,
    steps: Vec<Step>,
}

impl Default for Mock {
    fn default() -> Self {
        Self {
            now_ns: 5,
            call_ns: 1000,
            wake_ns: 0,
            seen: 1.0,
            flush_ns: 0,
            noise_ns: Vec::new(),
            transfer_ns: 0.0,
            empty_ns: Some(100.0),
            clock_reads: 0,
            fail_at: None,
            restores: false,
            throttled: None,
            reading_ns: 0,
            steps: Vec::new(),
        }
    }
}

impl TimingTarget for Mock {
    fn now_ns(&mut self) -> u64 {
        self.clock_reads += 1;
        self.now_ns
    }

    fn wake_time(&mut self) -> Duration {
        Duration::from_nanos(self.wake_ns)
    }

    fn setup(&mut self) {
        self.steps.push(Step::Setup);
    }

    fn restores_each_call(&self) -> bool {
        self.restores
    }

    fn restore(&mut self) -> Result<()> {
        self.steps.push(Step::Restore);
        Ok(())
    }

    fn observe(&mut self, moment: Moment) {
        self.steps.push(Step::Observe(moment));
    }

    fn throttle_reasons(&mut self) -> Option<ThrottleReasons> {
        let throttled = self.throttled.as_ref()?;
        self.now_ns += self.reading_ns;
        self.steps.push(Step::Reading);
        let is_throttled =
            self.windows().len().checked_sub(1).is_some_and(|last| throttled.get(last) == Some(&true));
        Some(ThrottleReasons(if is_throttled {
            abi::THROTTLE_HARDWARE_THERMAL
        } else {
            abi::THROTTLE_POWER_CAP
        }))
    }

    fn flush_cache(&mut self) -> Result<()> {
        self.now_ns += self.flush_ns;
        self.steps.push(Step::Flush);
        Ok(())
    }

    fn pause(&mut self, duration: Duration) {
        if !duration.is_zero() {
            self.now_ns += u64::try_from(duration.as_nanos()).unwrap();
            self.steps.push(Step::Pause(duration));
        }
    }

    async fn window(&mut self, number: u64) -> Result<Window> {
        self.steps.push(Step::Window(number));
        if self.fail_at == Some(self.windows().len()) {
            return Err(Error::new(ErrorKind::Failed, "scripted"));
        }
        let wall_ns = number * self.call_ns;
        self.now_ns += wall_ns;
        let noise_ns = if self.noise_ns.is_empty() { 0.0 } else { self.noise_ns.remove(0) };
        Ok(Window {
            elapsed_ns: wall_ns as f64 * self.seen + noise_ns,
            transfer_ns: self.transfer_ns * number as f64,
        })
    }

    async fn empty_window(&mut self, number: u64) -> Result<Option<f64>> {
        let before = self.steps.iter().filter(|step| matches!(step, Step::Empty(_))).count();
        self.steps.push(Step::Empty(number));
        // 100, 81, …, 1, 0 more: neither sorted nor symmetric.
        let noise_ns = (OVERHEAD_WINDOWS - 1 - before).pow(2) as f64;
        Ok(self.empty_ns.map(|ns| (ns + noise_ns) * number as f64))
    }
}

impl Mock {
    fn windows(&self) -> Vec<u64> {
        let number = |step: &Step| if let Step::Window(number) = step { Some(*number) } else { None };
        self.steps.iter().filter_map(number).collect()
    }
}

/// Polls a future to completion; also returns how often it yielded.
fn block_on<T>(future: impl Future<Output = T>) -> (T, usize) {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for polls in 0.. {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return (value, polls);
        }
    }
    unreachable!()
}

fn timed(mock: &mut Mock, timing: &Timing) -> Samples {
    block_on(run(mock, timing, None)).0.unwrap()
}

/// Three samples of two calls each, without warm-up.
fn plain() -> Timing {
    Timing { repeat: 3, number: Some(2), warmup: Warmup::Calls(0), ..Timing::default() }
}

#[test]
fn no_window_is_longer_than_is_waited_for() {
    // With a warm-up; cold, when nothing is known of a call; calls that take longer.
    for (warmup, most, windows) in [(2, 250, &[1, 1, 2, 2, 1][..]), (0, 250, &[1, 2, 2]), (1, 1, &[1; 6])] {
        let (warmup, max_window) = (Warmup::Calls(warmup), Duration::from_millis(most));
        let timing = Timing { number: Some(5), repeat: 1, warmup, max_window, ..plain() };
        let mut mock = Mock { call_ns: 100 * MS, ..Mock::default() };
        assert_eq!(timed(&mut mock, &timing).samples_ns, [100.0 * MS as f64]);
        assert_eq!(mock.windows(), windows);
    }
}

#[test]
fn every_repeat_is_returned_in_order() {
    let mut mock = Mock { noise_ns: vec![20.0, 0.0, 400.0], ..Mock::default() };
    let run = timed(&mut mock, &plain());
    assert_eq!(run.samples_ns, [1010.0, 1000.0, 1200.0]);
    assert_eq!((run.number, mock.windows()), (2, vec![2, 2, 2]));
    assert_eq!(run.transfers_ns, [0.0; 3]);
}

#[test]
fn the_loop_yields_between_long_samples_and_reads_the_clock_once_for_each() {
    for (call_ns, expected) in [(MS, 2), (MS / 4, 1), (10, 0)] {
        let mut mock = Mock { now_ns: 0, call_ns, ..Mock::default() };
        let (_, yields) = block_on(run(&mut mock, &plain(), None));
        assert_eq!((yields, mock.clock_reads), (expected, 3), "calls of {call_ns} ns");
    }
}

#[test]
fn steps_are_in_order_and_no_cooldown_follows_the_last_sample() {
    let cooldown = Duration::from_millis(7);
    let mut mock = Mock::default();
    timed(&mut mock, &Timing { repeat: 2, cooldown, flush_cache: FlushCache::PerSample, ..plain() });
    let sample = [Step::Setup, Step::Flush, Step::Window(2), Step::Observe(Moment::Window)];
    let observed = |moment| [Step::Observe(moment)];
    let (before, after) = (observed(Moment::BeforeSamples), observed(Moment::AfterSamples));
    assert_eq!(mock.steps, [&before[..], &sample, &[Step::Pause(cooldown)], &sample, &after].concat());
}

#[test]
fn a_flush_per_call_makes_each_call_a_window() {
    let mut mock = Mock { flush_ns: 5 * MS, noise_ns: vec![10.0, 30.0], ..Mock::default() };
    let run = timed(&mut mock, &Timing { repeat: 1, flush_cache: FlushCache::PerCall, ..plain() });
    mock.steps.retain(|step| !matches!(step, Step::Observe(_)));
    assert_eq!(mock.steps, [Step::Setup, Step::Flush, Step::Window(1), Step::Flush, Step::Window(1)]);
    assert_eq!(run.samples_ns, [1020.0], "the flush is not part of the sample");
}

#[test]
fn restored_contents_make_each_call_a_window_of_any_kind() {
    let restored = [Step::Restore, Step::Window(1)];
    for (flush_cache, sample) in [
        (FlushCache::Never, [&[Step::Setup][..], &restored, &restored].concat()),
        (
            FlushCache::PerSample,
            vec![Step::Setup, Step::Restore, Step::Flush, Step::Window(1), Step::Restore, Step::Window(1)],
        ),
    ] {
        let mut mock = Mock { restores: true, noise_ns: vec![0.0, 10.0, 30.0], ..Mock::default() };
        let timing = Timing { repeat: 1, flush_cache, warmup: Warmup::Calls(1), ..plain() };
        let run = timed(&mut mock, &timing);
        mock.steps.retain(|step| !matches!(step, Step::Observe(_)));
        assert_eq!(mock.steps, [&[Step::Setup], &restored[..], &sample].concat(), "{flush_cache}");
        assert_eq!(run.samples_ns, [1020.0], "writing is not part of the sample");
    }
    let mut mock = Mock { restores: true, ..Mock::default() };
    let min_repeat = Duration::from_micros(10);
    let run = timed(&mut mock, &Timing { number: None, min_repeat, warmup: Warmup::Calls(1), ..plain() });
    assert!(run.number > 1, "single calls are too short for a clock");
    assert!(mock.windows().iter().all(|&number| number == 1));
    block_on(overhead(&mut mock, run.number)).0.unwrap();
    assert!(
        mock.steps.iter().all(|step| !matches!(step, Step::Empty(number) if *number != 1)),
        "as the windows are"
    );
}

#[test]
fn cold_and_flushed_evaluations_are_not_calibrated() {
    for timing in [
        Timing { number: None, ..plain() },
        Timing { number: None, warmup: Warmup::Time(Duration::ZERO), ..plain() },
        Timing { number: None, warmup: Warmup::Calls(1), flush_cache: FlushCache::PerCall, ..plain() },
    ] {
        let mut mock = Mock::default();
        assert_eq!(timed(&mut mock, &timing).number, 1);
        assert!(mock.windows().iter().all(|&number| number == 1));
    }
}

#[test]
fn warm_up_counts_calls_or_time() {
    let mut mock = Mock::default();
    timed(&mut mock, &Timing { warmup: Warmup::Calls(17), ..plain() });
    assert_eq!(
        mock.windows(),
        [1, 2, 4, 8, 2, 2, 2, 2],
        "17 calls in windows between which the budget is checked"
    );
    let mut mock = Mock::default();
    timed(&mut mock, &Timing { warmup: Warmup::Time(Duration::from_micros(10)), ..plain() });
    assert_eq!(mock.windows(), [1, 2, 4, 8, 2, 2, 2], "15 µs of calls cover 10 µs");
}

#[test]
fn a_device_that_was_idle_works_before_the_warm_up() {
    let idle = || Mock { wake_ns: 10_000, ..Mock::default() };
    let mut mock = idle();
    timed(&mut mock, &Timing { warmup: Warmup::Time(Duration::from_micros(1)), ..plain() });
    assert_eq!(mock.windows(), [1, 2, 4, 8, 1, 2, 2, 2]);
    let mut mock = idle();
    timed(&mut mock, &plain());
    assert_eq!(mock.windows(), [2, 2, 2], "a cold measurement is of the first call");
    let mut mock = idle();
    timed(&mut mock, &Timing { warmup: Warmup::Calls(1), ..plain() });
    assert_eq!(mock.windows(), [1, 2, 2, 2], "as many calls as the caller asked for");
}

#[test]
fn number_is_calibrated_once_to_fill_a_sample() {
    let timing = Timing { repeat: 4, warmup: Warmup::Calls(1), ..Timing::default() };
    let mut mock = Mock::default();
    let run = timed(&mut mock, &timing);
    let windows = mock.windows();
    let (trials, samples) = windows.split_at(windows.len() - 4);
    assert!(samples.iter().all(|&number| number == run.number));
    assert!((20_000..=40_000).contains(&run.number), "{}", run.number);
    assert!(trials[1..].windows(2).all(|pair| pair[0] < pair[1] && pair[1] <= 10 * pair[0]), "{trials:?}");
    assert_eq!(run.samples_ns, [1000.0; 4]);
}

#[test]
fn no_measurable_time_terminates() {
    let timing = Timing { min_repeat: Duration::from_millis(100), ..Timing::default() };
    // Not by the evaluation's clock only, and not by any clock.
    for (call_ns, limit_ns) in [(1000, 15_000 * MS), (0, 1)] {
        let mut mock = Mock { call_ns, seen: 0.0, ..Mock::default() };
        let run = timed(&mut mock, &timing);
        assert_eq!(run.samples_ns, vec![0.0; 10]);
        assert!(mock.now_ns - 5 < limit_ns, "took {} ms", mock.now_ns / MS);
    }
}

#[test]
fn the_budget_limits_the_whole_evaluation() {
    // One second for samples of 200 ms: later samples are not started, but the first always is.
    let slow = || Mock { call_ns: 100 * MS, ..Mock::default() };
    let timing = Timing { repeat: 100, budget: Duration::from_secs(1), ..plain() };
    let mut mock = slow();
    assert_eq!(timed(&mut mock, &timing).samples_ns.len(), 5);
    let mut mock = slow();
    assert_eq!(timed(&mut mock, &Timing { budget: Duration::ZERO, ..timing }).samples_ns.len(), 1);
}

#[test]
fn the_budget_limits_warm_up_and_cooldown() {
    let timing = Timing { repeat: 100, budget: Duration::from_secs(1), ..plain() };
    for warmup in [Warmup::Calls(1_000_000), Warmup::Time(Duration::from_secs(60))] {
        let mut mock = Mock { call_ns: MS, ..Mock::default() };
        timed(&mut mock, &Timing { warmup, ..timing.clone() });
        assert!(mock.now_ns <= 1005 * MS, "{warmup:?} took {} ms", mock.now_ns / MS);
        assert!(mock.now_ns >= 990 * MS, "the budget is used: {warmup:?} took {} ms", mock.now_ns / MS);
    }
    let mut mock = Mock::default();
    let run = timed(&mut mock, &Timing { cooldown: Duration::from_millis(600), ..timing.clone() });
    assert_eq!(run.samples_ns.len(), 2, "the budget ends during the second pause");
    assert!(mock.now_ns <= 1001 * MS, "took {} ms", mock.now_ns / MS);
    let mut mock = Mock::default();
    timed(&mut mock, &Timing { cooldown: Duration::from_secs(1 << 40), ..timing });
    assert!(mock.now_ns <= 1001 * MS, "took {} ms", mock.now_ns / MS);
}

#[test]
fn calibration_leaves_budget_for_the_samples() {
    let timing = Timing {
        repeat: 20,
        min_repeat: Duration::from_secs(5),
        budget: Duration::from_secs(2),
        warmup: Warmup::Calls(1),
        ..Timing::default()
    };
    let mut mock = Mock { call_ns: 10_000, ..Mock::default() };
    let run = timed(&mut mock, &timing);
    assert_eq!(run.samples_ns.len(), 20);
    assert!(run.number > 1000, "{}", run.number);
    assert!(mock.now_ns < 2_200 * MS, "took {} ms", mock.now_ns / MS);
}

#[test]
fn the_observer_sees_samples_only() {
    let mut mock = Mock::default();
    timed(&mut mock, &Timing { repeat: 2, warmup: Warmup::Calls(3), number: Some(5), ..Timing::default() });
    let before = mock.steps.iter().position(|step| *step == Step::Observe(Moment::BeforeSamples)).unwrap();
    let windows = |steps: &[Step]| {
        steps.iter().filter(|step| matches!(step, Step::Window(_))).cloned().collect::<Vec<_>>()
    };
    assert_eq!(windows(&mock.steps[..before]), [Step::Window(1), Step::Window(2)], "warm-up");
    assert_eq!(windows(&mock.steps[before..]), [Step::Window(5), Step::Window(5)]);
    assert_eq!(mock.steps.last(), Some(&Step::Observe(Moment::AfterSamples)));
}

#[test]
fn sampling_goes_on_until_the_median_is_precise() {
    let noise_ns = (0..200).map(|index| f64::from(index * 37 % 100) * 4.0).collect();
    let mut mock = Mock { noise_ns, ..Mock::default() };
    let run = timed(&mut mock, &Timing { until: Some(0.01), ..plain() });
    assert_eq!(run.reached_until, Some(true));
    assert!(run.samples_ns.len() > 50 && run.transfers_ns.len() == run.samples_ns.len());
    let spread = (0..20_000).map(|index| f64::from(index * 37 % 100) * 40.0).collect();
    let mut mock = Mock { call_ns: MS, noise_ns: spread, ..Mock::default() };
    let timing = Timing { until: Some(1e-9), budget: Duration::from_secs(1), ..plain() };
    let run = timed(&mut mock, &timing);
    assert_eq!((run.reached_until, run.samples_ns.len()), (Some(false), 500), "the budget bounds the search");
    assert_eq!(timed(&mut Mock::default(), &plain()).reached_until, None);
}

/// `timing` on a device that is throttled during these windows.
fn throttled_during(windows: &[usize], timing: &Timing) -> (Vec<f64>, Throttled, Mock) {
    let mut throttled = vec![false; 1000];
    windows.iter().for_each(|window| throttled[*window] = true);
    // Every window is longer than the one before.
    let noise_ns = (0..1000).map(|index| f64::from(index) * 2.0).collect();
    let mut mock = Mock { throttled: Some(throttled), noise_ns, ..Mock::default() };
    let run = timed(&mut mock, timing);
    assert_eq!(run.transfers_ns.len(), run.samples_ns.len());
    (run.samples_ns.iter().map(|sample| sample - 1000.0).collect(), run.throttled.unwrap(), mock)
}

#[test]
fn a_throttled_sample_is_measured_again() {
    let (samples, throttled, _) = throttled_during(&[1, 2], &plain());
    assert_eq!(samples, [0.0, 3.0, 4.0]);
    assert_eq!((throttled.remeasured, throttled.kept), (2, 0));
    assert_eq!(
        throttled.reasons.to_string(),
        "power cap, hardware thermal",
        "harmless reasons are reported too"
    );
    let (samples, throttled, _) = throttled_during(&[2], &plain());
    assert_eq!((samples, throttled.remeasured), (vec![0.0, 1.0, 3.0], 1), "the last sample, too");
    let (samples, throttled, _) = throttled_during(&[], &plain());
    assert_eq!((samples.len(), throttled.remeasured + throttled.kept), (3, 0));
}

#[test]
fn samples_are_kept_if_throttling_does_not_end() {
    let all: Vec<usize> = (0..1000).collect();
    let (samples, throttled, _) = throttled_during(&all, &plain());
    assert_eq!(samples, [3.0, 4.0, 5.0], "as many as were asked for are measured again");
    assert_eq!((throttled.remeasured, throttled.kept), (3, 3));
    // With the budget spent, nothing is measured again.
    let (samples, throttled, _) = throttled_during(&all, &Timing { budget: Duration::ZERO, ..plain() });
    assert_eq!((samples.len(), throttled.remeasured, throttled.kept), (1, 0, 1));
    let budget = Duration::from_nanos(5000);
    let (samples, throttled, _) = throttled_during(&all, &Timing { budget, ..plain() });
    assert_eq!(
        (samples, throttled.remeasured, throttled.kept),
        (vec![2.0], 2, 1),
        "there is always a sample"
    );
}

#[test]
fn more_samples_are_measured_again_as_more_are_taken() {
    // Equal samples are enough after 26. One in four is throttled.
    let throttled: Vec<bool> = (0..1000).map(|window| window % 4 == 2).collect();
    let timing = Timing { until: Some(0.01), ..plain() };
    let mut mock = Mock { throttled: Some(throttled), ..Mock::default() };
    let run = timed(&mut mock, &timing);
    let Throttled { remeasured, kept, .. } = run.throttled.unwrap();
    assert!(
        remeasured >= 6 && kept == 0,
        "{remeasured} measured again, {kept} kept of {}",
        run.samples_ns.len()
    );
    assert_eq!(mock.windows().len(), run.samples_ns.len() + remeasured);
    assert!(run.samples_ns.len() < 60, "throttling now and then does not keep it from ending");

    let mut always = Mock { throttled: Some(vec![true; 1 << 16]), ..Mock::default() };
    let run = timed(&mut always, &timing);
    let Throttled { remeasured, kept, .. } = run.throttled.unwrap();
    assert_eq!((remeasured, kept), (run.samples_ns.len(), run.samples_ns.len()), "it ends nevertheless");
}

#[test]
fn a_slow_reading_covers_several_samples() {
    let timing = Timing { repeat: 100, ..plain() };
    let throttled = vec![false; 1000];
    let mut mock = Mock { throttled: Some(throttled), reading_ns: 1000, ..Mock::default() };
    timed(&mut mock, &timing);
    let readings = mock.steps.iter().filter(|step| **step == Step::Reading).count();
    // 200 µs of samples allow 4 readings of 1 µs, beside those before the samples and after the last.
    assert!((4..=8).contains(&readings), "{readings} readings");
    let mut quick = Mock { throttled: Some(vec![false; 1000]), ..Mock::default() };
    timed(&mut quick, &timing);
    assert!(quick.steps.iter().filter(|step| **step == Step::Reading).count() >= 100);
}

#[test]
fn transfers_are_reported_per_call() {
    let mut mock = Mock { transfer_ns: 300.0, ..Mock::default() };
    assert_eq!(timed(&mut mock, &plain()).transfers_ns, [300.0; 3]);
}

#[test]
fn failures_are_returned() {
    for fail_at in 1..=3 {
        let mut mock = Mock { fail_at: Some(fail_at), ..Mock::default() };
        assert_eq!(block_on(run(&mut mock, &plain(), None)).0.unwrap_err().kind(), ErrorKind::Failed);
        assert_eq!(mock.windows().len(), fail_at);
    }
}

#[test]
fn more_samples_than_memory_is_an_error() {
    let timing = Timing { repeat: usize::MAX, ..plain() };
    assert_eq!(
        block_on(run(&mut Mock::default(), &timing, None)).0.unwrap_err().kind(),
        ErrorKind::OutOfMemory
    );
}

/// A device that others use, too: they share its clock. A call takes 1 ms.
struct Shared<'a> {
    name: char,
    clock_ns: &'a AtomicU64,
    windows: &'a Mutex<String>,
}

impl TimingTarget for Shared<'_> {
    fn now_ns(&mut self) -> u64 {
        self.clock_ns.load(Ordering::Relaxed)
    }

    fn wake_time(&mut self) -> Duration {
        Duration::ZERO
    }

    fn setup(&mut self) {}

    fn observe(&mut self, _: Moment) {}

    fn throttle_reasons(&mut self) -> Option<ThrottleReasons> {
        None
    }

    fn flush_cache(&mut self) -> Result<()> {
        Ok(())
    }

    fn pause(&mut self, _: Duration) {}

    async fn window(&mut self, number: u64) -> Result<Window> {
        self.clock_ns.fetch_add(number * MS, Ordering::Relaxed);
        self.windows.lock().unwrap().push_str(&format!("{}{number} ", self.name));
        Ok(Window { elapsed_ns: (number * MS) as f64, transfer_ns: 0.0 })
    }

    async fn empty_window(&mut self, _: u64) -> Result<Option<f64>> {
        Ok(None)
    }
}

/// The windows of two kernels that take turns, and the number of samples of each.
fn interleaved(timing: &Timing) -> (String, Vec<usize>) {
    let (clock_ns, windows, turns) = (AtomicU64::new(0), Mutex::default(), Turns::new());
    let mut samples = vec![0; 2];
    let members =
        samples.iter_mut().zip(['a', 'b']).map(|(count, name)| -> Pin<Box<dyn Future<Output = ()>>> {
            let (mut target, mut turn) =
                (Shared { name, clock_ns: &clock_ns, windows: &windows }, turns.join());
            Box::pin(async move {
                turn.wait().await;
                *count = run(&mut target, timing, Some(&mut turn)).await.unwrap().samples_ns.len();
            })
        });
    let mut members: Vec<_> = members.collect();
    while !members.is_empty() {
        members
            .retain_mut(|member| member.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    drop(members);
    (windows.into_inner().unwrap(), samples)
}

#[test]
fn kernels_take_turns_and_each_sample_follows_a_call_of_its_own() {
    let warm = Timing { warmup: Warmup::Calls(3), repeat: 2, ..plain() };
    let (windows, _) = interleaved(&warm);
    assert_eq!(windows, "a1 a2 b1 b2 a1 a2 b1 b2 a1 a2 b1 b2 ");
    let (windows, _) = interleaved(&Timing { flush_cache: FlushCache::PerSample, ..warm.clone() });
    assert_eq!(windows, "a1 a2 b1 b2 a2 b2 a2 b2 ");
    let (windows, _) = interleaved(&Timing { warmup: Warmup::Calls(0), ..warm });
    assert_eq!(windows, "a2 b2 a2 b2 ");
}

#[test]
fn waiting_for_a_turn_does_not_count_against_the_budget() {
    let timing = Timing { repeat: 10, number: Some(10), budget: Duration::from_millis(35), ..plain() };
    let (_, samples) = interleaved(&timing);
    assert_eq!(samples, [4, 4]);
}

#[test]
fn overhead_is_a_median_per_call() {
    let mut mock = Mock::default();
    assert_eq!(block_on(overhead(&mut mock, 3)).0.unwrap(), Some(125.0));
    assert_eq!(mock.steps, vec![Step::Empty(3); OVERHEAD_WINDOWS]);
    let mut mock = Mock::default();
    block_on(overhead(&mut mock, 1 << 20)).0.unwrap();
    assert_eq!(mock.steps[0], Step::Empty(OVERHEAD_NUMBER));
    let mut without = Mock { empty_ns: None, ..Mock::default() };
    assert_eq!(block_on(overhead(&mut without, 3)).0.unwrap(), None);
}

#[test]
fn invalid_timings_are_rejected() {
    assert!(Timing { repeat: 0, ..Timing::default() }.check().unwrap_err().message().contains("repeat"));
    let none = Timing { number: Some(0), ..Timing::default() };
    assert!(none.check().unwrap_err().message().contains("number"));
    let endless = Timing { number: Some(u64::MAX), ..Timing::default() };
    assert!(endless.check().unwrap_err().message().contains("at most 100000000000 calls"));
    assert!(Timing::default().check().is_ok());
}
