//! Events: wait, poll, await, clone, drop.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::task::{Poll, Wake, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

use runtime_core::{Arg, ErrorKind, Event, Options};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::expect_all;
use crate::wait::{self, block_on};

cases! {
    [Requirement::Queues] => an_event_can_be_waited_for_again, waiting_in_any_order_works,
        an_event_outlives_its_queue, an_event_outlives_its_device, an_event_is_awaited,
        a_thousand_events_are_awaited, events_are_threadsafe;
    [Requirement::Kernel("spin")] => an_event_becomes_done, a_timeout_cancels_nothing, a_clone_is_the_same_point,
        a_clone_outlives_its_original, dropping_an_event_cancels_nothing, dropping_a_future_cancels_nothing,
        events_of_several_queues_are_awaited_together, an_awaited_event_is_woken,
        selecting_the_first_loses_no_other, a_future_wakes_the_task_that_polled_it_last,
        futures_dropped_in_between_disturb_no_other, a_future_of_a_device_that_is_dropped_ends,
        waiting_without_a_deadline_includes_everything_before;
    [Requirement::Kernel("spin"), Requirement::Alone] => waiting_without_a_deadline_does_not_wait_for_late_work,
        waiting_without_a_deadline_does_not_block_other_threads, dropping_idle_objects_does_not_wait_for_running_work;
    [Requirement::Kernel("hold")] => waiting_for_early_work_does_not_wait_for_late_work;
}

fn an_event_can_be_waited_for_again(context: &Context) -> Verdict {
    let queue = context.fixture().queue()?;
    let event = queue.fill(&context.fixture().full(1000, 0.0)?, &[1])?;
    for _ in 0..3 {
        wait::event(&event)?;
        event.wait()?;
        event.wait_timeout(Duration::ZERO)?;
        assert!(event.is_done()?);
    }
    Ok(())
}

fn waiting_in_any_order_works(context: &Context) -> Verdict {
    let (queue, tensor) = (context.fixture().queue()?, context.fixture().full(1000, 0.0)?);
    let events = (0..20).map(|_| queue.fill(&tensor, &[1])).collect::<Result<Vec<_>, _>>()?;
    for index in [19, 0, 7, 3, 12, 18, 1] {
        wait::event(&events[index])?;
    }
    Ok(())
}

fn an_event_outlives_its_queue(context: &Context) -> Verdict {
    let (queue, tensor) = (context.fixture().queue()?, context.fixture().full(1000, 0.0)?);
    let event = queue.fill(&tensor, &[0, 0, 128, 63])?;
    drop(queue);
    wait::event(&event)?;
    expect_all("filled", &tensor, 1.0)
}

fn an_event_outlives_its_device(context: &Context) -> Verdict {
    let fixture = context.reopen(&Options::new())?;
    let event = fixture.queue()?.fill(&fixture.full(1000, 0.0)?, &[1])?;
    drop(fixture);
    // Dropping the device waited for the work.
    Ok(wait::event(&event)?)
}

fn an_event_is_awaited(context: &Context) -> Verdict {
    let queue = context.fixture().queue()?;
    let event = queue.fill(&context.fixture().full(1000, 0.0)?, &[1])?;
    Ok(block_on(event)?)
}

fn a_thousand_events_are_awaited(context: &Context) -> Verdict {
    let (queue, tensor) = (context.fixture().queue()?, context.fixture().full(10, 0.0)?);
    Ok(block_on(async {
        let mut events = Vec::new();
        for _ in 0..1000 {
            events.push(queue.fill(&tensor, &[1])?);
        }
        for event in events.into_iter().rev() {
            event.await?;
        }
        Ok(())
    })?)
}

fn events_are_threadsafe(context: &Context) -> Verdict {
    let queue = context.fixture().queue()?;
    let event = queue.fill(&context.fixture().full(1 << 20, 0.0)?, &[1])?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| wait::event(&event.clone()))).collect();
        threads.into_iter().try_for_each(|thread| {
            Ok(thread.join().map_err(|_| Failure::Failed("a thread panicked".to_owned()))??)
        })
    })
}

fn an_event_becomes_done(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let tensor = fixture.full(100, 0.0)?;
    fixture.delay(&queue)?;
    let event = fixture.fill(&queue, &tensor, 2.0)?;
    wait::until("the event", || event.is_done())?;
    event.wait_timeout(Duration::ZERO)?;
    expect_all("done means written", &tensor, 2.0)
}

fn a_timeout_cancels_nothing(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let tensor = fixture.full(100, 0.0)?;
    let mut event = None;
    wait::times_out(|microseconds| {
        fixture.launch(&queue, "spin", &[Arg::scalar(microseconds)], 1)?;
        let filled = fixture.fill(&queue, &tensor, 2.0)?;
        let outcome = filled.wait_timeout(Duration::from_micros(10));
        event = Some(filled);
        Ok(outcome)
    })?;
    let event: Event = event.ok_or_else(|| Failure::Failed("nothing was submitted".to_owned()))?;
    wait::event(&event)?;
    expect_all("the work continued", &tensor, 2.0)
}

fn a_clone_is_the_same_point(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    fixture.delay(&queue)?;
    let event = fixture.launch(&queue, "noop", &[], 1)?;
    let clone = event.clone();
    assert_eq!(event.ticket(), clone.ticket());
    wait::event(&event)?;
    assert!(clone.is_done()?);
    Ok(())
}

fn a_clone_outlives_its_original(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    fixture.delay(&queue)?;
    let clone = fixture.launch(&queue, "noop", &[], 1)?.clone();
    for _ in 0..10 {
        drop(fixture.launch(&queue, "noop", &[], 1)?);
    }
    Ok(wait::event(&clone)?)
}

fn dropping_an_event_cancels_nothing(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let tensor = fixture.full(100, 0.0)?;
    fixture.delay(&queue)?;
    drop(fixture.fill(&queue, &tensor, 3.0)?);
    expect_all("submitted", &tensor, 3.0)
}

fn dropping_a_future_cancels_nothing(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let tensor = fixture.full(100, 0.0)?;
    fixture.delay(&queue)?;
    let event = fixture.fill(&queue, &tensor, 3.0)?;
    // Polled once, to register it with the wait thread, and dropped.
    let mut polled = std::pin::pin!(event);
    let _ = wait::poll_once(polled.as_mut());
    expect_all("submitted", &tensor, 3.0)
}

fn events_of_several_queues_are_awaited_together(context: &Context) -> Verdict {
    let (fixture, queues) = (context.fixture(), context.fixture().queues::<4>()?);
    let tensors = (0..4).map(|_| fixture.full(100, 0.0)).collect::<Result<Vec<_>, _>>()?;
    let mut events = Vec::new();
    for (queue, tensor) in queues.iter().zip(&tensors) {
        fixture.delay(queue)?;
        events.push(fixture.fill(queue, tensor, 4.0)?);
    }
    block_on(async {
        for event in events.iter_mut().rev() {
            event.await?;
        }
        Ok(())
    })?;
    tensors.iter().try_for_each(|tensor| expect_all("awaited", tensor, 4.0))
}

fn an_awaited_event_is_woken(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let tensor = fixture.full(100, 0.0)?;
    for round in 1..=5u8 {
        fixture.delay(&queue)?;
        block_on(fixture.fill(&queue, &tensor, f32::from(round))?)?;
        expect_all("awaited means written", &tensor, f32::from(round))?;
    }
    Ok(())
}

fn waiting_for_early_work_does_not_wait_for_late_work(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let early = fixture.launch(&queue, "noop", &[], 1)?;
    let flag = AtomicI32::new(0);
    let held = fixture.launch(&queue, "hold", &[Arg::scalar(flag.as_ptr().expose_provenance() as u64)], 1)?;
    let outcome = wait::event(&early);
    let still_held = held.is_done().map(|done| !done);
    flag.store(1, Ordering::Release);
    // The kernel reads the flag, so wait for its end before returning, even after an error.
    wait::event(&held).or_else(|_| wait::event(&held))?;
    outcome?;
    assert!(still_held?, "the wait for the first event waited for the second");
    Ok(())
}

/// Waits for an event on another thread, without a deadline.
fn wait_on_thread(event: &Arc<Event>) -> JoinHandle<runtime_core::Result<()>> {
    let event = event.clone();
    let waiter = std::thread::spawn(move || event.wait());
    // By now the thread is probably waiting.
    std::thread::sleep(Duration::from_millis(2));
    waiter
}

/// The result of such a wait; fails if it does not end.
fn join_waiter(waiter: JoinHandle<runtime_core::Result<()>>) -> Verdict {
    wait::until("a wait to end", || Ok(waiter.is_finished()))?;
    Ok(waiter.join().map_err(|_| Failure::Failed("a wait panicked".to_owned()))??)
}

/// Retries `attempt` with longer kernels, given in microseconds, until one is still running when `attempt` returns.
fn expect_ends_before_kernel(what: &str, mut attempt: impl FnMut(i64) -> Result<bool, Failure>) -> Verdict {
    for microseconds in [20_000, 200_000, 1_000_000, 3_000_000] {
        if attempt(microseconds)? {
            return Ok(());
        }
    }
    Err(Failure::Failed(format!("{what} took as long as a kernel of several seconds")))
}

fn waiting_without_a_deadline_does_not_wait_for_late_work(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    expect_ends_before_kernel("a wait for earlier work", |microseconds| {
        let early = Arc::new(fixture.launch(&queue, "noop", &[], 1)?);
        let late = fixture.launch(&queue, "spin", &[Arg::scalar(microseconds)], 1)?;
        join_waiter(wait_on_thread(&early))?;
        let still_runs = !late.is_done()?;
        wait::event(&late)?;
        Ok(still_runs)
    })
}

fn waiting_without_a_deadline_does_not_block_other_threads(context: &Context) -> Verdict {
    let (fixture, [busy, free]) = (context.fixture(), context.fixture().queues()?);
    expect_ends_before_kernel("work beside a wait", |microseconds| {
        let held = Arc::new(fixture.launch(&busy, "spin", &[Arg::scalar(microseconds)], 1)?);
        let waiters = [wait_on_thread(&held), wait_on_thread(&held)];
        // A device may run one kernel at a time, across all queues: only the host side must not block.
        let other = fixture.launch(&free, "noop", &[], 1)?;
        let late = fixture.launch(&busy, "noop", &[], 1)?;
        other.is_done()?;
        let still_runs = !late.is_done()? && !held.is_done()?;
        waiters.into_iter().try_for_each(join_waiter)?;
        assert!(held.is_done()?, "a wait ended before its work");
        wait::event(&late)?;
        wait::event(&other)?;
        Ok(still_runs)
    })
}

fn dropping_idle_objects_does_not_wait_for_running_work(context: &Context) -> Verdict {
    let (fixture, [busy, free]) = (context.fixture(), context.fixture().queues()?);
    expect_ends_before_kernel("dropping a tensor and a module", |microseconds| {
        let tensor = fixture.full(1000, 0.0)?;
        wait::event(&fixture.fill(&free, &tensor, 1.0)?)?;
        let module = fixture.device().load(&fixture.kernels()?.source())?;
        let held = fixture.launch(&busy, "spin", &[Arg::scalar(microseconds)], 1)?;
        drop(tensor);
        drop(module);
        let other = fixture.launch(&free, "noop", &[], 1)?;
        let still_runs = !held.is_done()?;
        wait::event(&held)?;
        wait::event(&other)?;
        Ok(still_runs)
    })
}

fn waiting_without_a_deadline_includes_everything_before(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let tensors = (0..10).map(|_| fixture.full(100, 0.0)).collect::<Result<Vec<_>, _>>()?;
    for round in 1..=20u8 {
        fixture.delay(&queue)?;
        let events = tensors.iter().map(|tensor| fixture.fill(&queue, tensor, f32::from(round)));
        let events = events.collect::<Result<Vec<_>, _>>()?;
        // The last submission has no event.
        drop(fixture.launch(&queue, "noop", &[], 1)?);
        queue.wait_idle()?;
        for event in &events {
            event.wait_timeout(Duration::ZERO)?;
        }
        assert_eq!(queue.completed()?, queue.submitted());
    }
    tensors.iter().try_for_each(|tensor| expect_all("waited for", tensor, 20.0))
}

fn selecting_the_first_loses_no_other(context: &Context) -> Verdict {
    let (fixture, queues) = (context.fixture(), context.fixture().queues::<2>()?);
    let tensors = [fixture.full(100, 0.0)?, fixture.full(100, 0.0)?];
    let mut events = Vec::new();
    for ((queue, tensor), microseconds) in queues.iter().zip(&tensors).zip([30_000i64, 100]) {
        fixture.launch(queue, "spin", &[Arg::scalar(microseconds)], 1)?;
        events.push(fixture.fill(queue, tensor, 5.0)?);
    }
    let first = block_on(poll_fn(|task| {
        for (index, event) in events.iter_mut().enumerate() {
            if let Poll::Ready(outcome) = Pin::new(event).poll(task) {
                return Poll::Ready(outcome.map(|()| index));
            }
        }
        Poll::Pending
    }))?;
    expect_all("the first", &tensors[first], 5.0)?;
    // The other future was polled but did not complete: it can still be awaited.
    block_on(&mut events[1 - first])?;
    expect_all("the other", &tensors[1 - first], 5.0)
}

/// Counts wake-ups.
#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn a_future_wakes_the_task_that_polled_it_last(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    fixture.launch(&queue, "spin", &[Arg::scalar(20_000i64)], 1)?;
    let mut event = fixture.launch(&queue, "noop", &[], 1)?;
    let tasks: [Arc<Counter>; 3] = std::array::from_fn(|_| Arc::default());
    for task in &tasks {
        let waker = Waker::from(task.clone());
        if Pin::new(&mut event).poll(&mut std::task::Context::from_waker(&waker)).is_ready() {
            return Err(Failure::Unsupported("the machine is too busy to poll in time".to_owned()));
        }
    }
    wait::until("a wake-up of the last task", || Ok(tasks[2].0.load(Ordering::SeqCst) > 0))?;
    assert!(event.is_done()?);
    Ok(())
}

fn futures_dropped_in_between_disturb_no_other(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let tensor = fixture.full(100, 0.0)?;
    let mut kept = Vec::new();
    fixture.delay(&queue)?;
    for round in 0..300u16 {
        let mut event = fixture.fill(&queue, &tensor, f32::from(round))?;
        let _ = wait::poll_once(Pin::new(&mut event));
        if round % 30 == 29 {
            kept.push(event);
        }
    }
    for event in kept.into_iter().rev() {
        block_on(event)?;
    }
    expect_all("the last one", &tensor, 299.0)
}

fn a_future_of_a_device_that_is_dropped_ends(context: &Context) -> Verdict {
    let fixture = context.reopen(&Options::new())?;
    let queue = fixture.queue()?;
    fixture.launch(&queue, "spin", &[Arg::scalar(20_000i64)], 1)?;
    let mut event = fixture.launch(&queue, "noop", &[], 1)?;
    let _ = wait::poll_once(Pin::new(&mut event));
    let dropping = std::thread::spawn(move || drop((queue, fixture)));
    let outcome = block_on(event);
    dropping.join().map_err(|_| Failure::Failed("the drop panicked".to_owned()))?;
    match outcome {
        Err(error) if error.kind() != ErrorKind::Cancelled => Err(error.into()),
        _ => Ok(()),
    }
}
