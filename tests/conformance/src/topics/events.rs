//! Events: waiting, polling, awaiting, cloning, dropping.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::task::{Poll, Wake, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

use runtime_core::{Arg, ErrorKind, Event, Options};

use crate::case::{Failure, Need, Verdict, cases};
use crate::context::Context;
use crate::data::all;
use crate::wait::{self, block_on};

cases! {
    [Need::Queues] => an_event_can_be_waited_for_again, waiting_in_any_order_works,
        an_event_outlives_its_queue, an_event_outlives_its_device, an_event_is_awaited,
        a_thousand_events_are_awaited, events_are_threadsafe;
    [Need::Kernel("spin")] => an_event_becomes_done, a_timeout_cancels_nothing, a_clone_is_the_same_point,
        a_clone_outlives_its_original, dropping_an_event_cancels_nothing, dropping_a_future_cancels_nothing,
        events_of_several_queues_are_awaited_together, an_awaited_event_is_woken,
        selecting_the_first_loses_no_other, a_future_wakes_the_task_that_polled_it_last,
        futures_dropped_in_between_disturb_no_other, a_future_of_a_device_that_is_dropped_ends,
        waiting_without_a_deadline_is_for_all_in_front;
    [Need::Kernel("spin"), Need::Alone] => waiting_without_a_deadline_does_not_wait_for_late_work,
        waiting_without_a_deadline_holds_up_nobody, dropping_idle_objects_does_not_wait_for_running_work;
    [Need::Kernel("hold")] => waiting_for_early_work_does_not_wait_for_late_work;
}

fn an_event_can_be_waited_for_again(context: &Context) -> Verdict {
    let queue = context.lab().queue()?;
    let event = queue.fill(&context.lab().full(1000, 0.0)?, &[1])?;
    for _ in 0..3 {
        wait::done(&event)?;
        event.wait()?;
        event.wait_timeout(Duration::ZERO)?;
        assert!(event.is_done()?);
    }
    Ok(())
}

fn waiting_in_any_order_works(context: &Context) -> Verdict {
    let (queue, tensor) = (context.lab().queue()?, context.lab().full(1000, 0.0)?);
    let events = (0..20).map(|_| queue.fill(&tensor, &[1])).collect::<Result<Vec<_>, _>>()?;
    for index in [19, 0, 7, 3, 12, 18, 1] {
        wait::done(&events[index])?;
    }
    Ok(())
}

fn an_event_outlives_its_queue(context: &Context) -> Verdict {
    let (queue, tensor) = (context.lab().queue()?, context.lab().full(1000, 0.0)?);
    let event = queue.fill(&tensor, &[0, 0, 128, 63])?;
    drop(queue);
    wait::done(&event)?;
    all("filled", &tensor, 1.0)
}

fn an_event_outlives_its_device(context: &Context) -> Verdict {
    let lab = context.reopen(&Options::new())?;
    let event = lab.queue()?.fill(&lab.full(1000, 0.0)?, &[1])?;
    drop(lab);
    // The last drop of the device has waited for the work.
    Ok(wait::done(&event)?)
}

fn an_event_is_awaited(context: &Context) -> Verdict {
    let queue = context.lab().queue()?;
    let event = queue.fill(&context.lab().full(1000, 0.0)?, &[1])?;
    Ok(block_on(event)?)
}

fn a_thousand_events_are_awaited(context: &Context) -> Verdict {
    let (queue, tensor) = (context.lab().queue()?, context.lab().full(10, 0.0)?);
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
    let queue = context.lab().queue()?;
    let event = queue.fill(&context.lab().full(1 << 20, 0.0)?, &[1])?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| wait::done(&event.clone()))).collect();
        threads.into_iter().try_for_each(|thread| {
            Ok(thread.join().map_err(|_| Failure::Failed("a thread panicked".to_owned()))??)
        })
    })
}

fn an_event_becomes_done(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let tensor = lab.full(100, 0.0)?;
    lab.delay(&queue)?;
    let event = lab.fill(&queue, &tensor, 2.0)?;
    wait::until("the event", || event.is_done())?;
    event.wait_timeout(Duration::ZERO)?;
    all("done means written", &tensor, 2.0)
}

fn a_timeout_cancels_nothing(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let tensor = lab.full(100, 0.0)?;
    let mut event = None;
    wait::times_out(|microseconds| {
        lab.launch(&queue, "spin", &[Arg::scalar(microseconds)], 1)?;
        let filled = lab.fill(&queue, &tensor, 2.0)?;
        let outcome = filled.wait_timeout(Duration::from_micros(10));
        event = Some(filled);
        Ok(outcome)
    })?;
    let event: Event = event.ok_or_else(|| Failure::Failed("nothing was submitted".to_owned()))?;
    wait::done(&event)?;
    all("it went on", &tensor, 2.0)
}

fn a_clone_is_the_same_point(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    lab.delay(&queue)?;
    let event = lab.launch(&queue, "noop", &[], 1)?;
    let clone = event.clone();
    assert_eq!(event.ticket(), clone.ticket());
    wait::done(&event)?;
    assert!(clone.is_done()?);
    Ok(())
}

fn a_clone_outlives_its_original(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    lab.delay(&queue)?;
    let clone = lab.launch(&queue, "noop", &[], 1)?.clone();
    for _ in 0..10 {
        drop(lab.launch(&queue, "noop", &[], 1)?);
    }
    Ok(wait::done(&clone)?)
}

fn dropping_an_event_cancels_nothing(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let tensor = lab.full(100, 0.0)?;
    lab.delay(&queue)?;
    drop(lab.fill(&queue, &tensor, 3.0)?);
    all("submitted", &tensor, 3.0)
}

fn dropping_a_future_cancels_nothing(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let tensor = lab.full(100, 0.0)?;
    lab.delay(&queue)?;
    let event = lab.fill(&queue, &tensor, 3.0)?;
    // Polled once, so that the waiter knows it, and dropped.
    let mut polled = std::pin::pin!(event);
    let _ = wait::poll_once(polled.as_mut());
    all("submitted", &tensor, 3.0)
}

fn events_of_several_queues_are_awaited_together(context: &Context) -> Verdict {
    let (lab, queues) = (context.lab(), context.lab().queues::<4>()?);
    let tensors = (0..4).map(|_| lab.full(100, 0.0)).collect::<Result<Vec<_>, _>>()?;
    let mut events = Vec::new();
    for (queue, tensor) in queues.iter().zip(&tensors) {
        lab.delay(queue)?;
        events.push(lab.fill(queue, tensor, 4.0)?);
    }
    block_on(async {
        for event in events.iter_mut().rev() {
            event.await?;
        }
        Ok(())
    })?;
    tensors.iter().try_for_each(|tensor| all("awaited", tensor, 4.0))
}

fn an_awaited_event_is_woken(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let tensor = lab.full(100, 0.0)?;
    for round in 1..=5u8 {
        lab.delay(&queue)?;
        block_on(lab.fill(&queue, &tensor, f32::from(round))?)?;
        all("awaited means written", &tensor, f32::from(round))?;
    }
    Ok(())
}

fn waiting_for_early_work_does_not_wait_for_late_work(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let early = lab.launch(&queue, "noop", &[], 1)?;
    let flag = AtomicI32::new(0);
    let held = lab.launch(&queue, "hold", &[Arg::scalar(flag.as_ptr().expose_provenance() as u64)], 1)?;
    let outcome = wait::done(&early);
    let still_held = held.is_done().map(|done| !done);
    flag.store(1, Ordering::Release);
    // The kernel reads the flag, so it has ended before this returns, whatever is refused.
    wait::done(&held).or_else(|_| wait::done(&held))?;
    outcome?;
    assert!(still_held?, "waiting for the first waited for the second");
    Ok(())
}

/// Waits for an event on a thread of its own, without a deadline.
fn wait_aside(event: &Arc<Event>) -> JoinHandle<runtime_core::Result<()>> {
    let event = event.clone();
    let waiter = std::thread::spawn(move || event.wait());
    // It is likely to wait by then.
    std::thread::sleep(Duration::from_millis(2));
    waiter
}

/// What such a wait came to, which must not last for ever.
fn ended(waiter: JoinHandle<runtime_core::Result<()>>) -> Verdict {
    wait::until("the end of a wait", || Ok(waiter.is_finished()))?;
    Ok(waiter.join().map_err(|_| Failure::Failed("a wait panicked".to_owned()))??)
}

/// Tries with kernels that take longer and longer, in microseconds, until one still runs when `attempt` has ended.
fn while_one_runs(what: &str, mut attempt: impl FnMut(i64) -> Result<bool, Failure>) -> Verdict {
    for microseconds in [20_000, 200_000, 1_000_000, 3_000_000] {
        if attempt(microseconds)? {
            return Ok(());
        }
    }
    Err(Failure::Failed(format!("{what} lasted as long as a kernel of seconds")))
}

fn waiting_without_a_deadline_does_not_wait_for_late_work(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    while_one_runs("a wait for what was before it", |microseconds| {
        let early = Arc::new(lab.launch(&queue, "noop", &[], 1)?);
        let late = lab.launch(&queue, "spin", &[Arg::scalar(microseconds)], 1)?;
        ended(wait_aside(&early))?;
        let still_runs = !late.is_done()?;
        wait::done(&late)?;
        Ok(still_runs)
    })
}

fn waiting_without_a_deadline_holds_up_nobody(context: &Context) -> Verdict {
    let (lab, [busy, free]) = (context.lab(), context.lab().queues()?);
    while_one_runs("work beside a wait", |microseconds| {
        let held = Arc::new(lab.launch(&busy, "spin", &[Arg::scalar(microseconds)], 1)?);
        let waiters = [wait_aside(&held), wait_aside(&held)];
        // A device may run one kernel at a time, of whatever queue: what must go on is the program's own part.
        let other = lab.launch(&free, "noop", &[], 1)?;
        let late = lab.launch(&busy, "noop", &[], 1)?;
        other.is_done()?;
        let still_runs = !late.is_done()? && !held.is_done()?;
        waiters.into_iter().try_for_each(ended)?;
        assert!(held.is_done()?, "a wait ended before its work");
        wait::done(&late)?;
        wait::done(&other)?;
        Ok(still_runs)
    })
}

fn dropping_idle_objects_does_not_wait_for_running_work(context: &Context) -> Verdict {
    let (lab, [busy, free]) = (context.lab(), context.lab().queues()?);
    while_one_runs("dropping a tensor and a module", |microseconds| {
        let tensor = lab.full(1000, 0.0)?;
        wait::done(&lab.fill(&free, &tensor, 1.0)?)?;
        let module = lab.device().load(&lab.kernels()?.source())?;
        let held = lab.launch(&busy, "spin", &[Arg::scalar(microseconds)], 1)?;
        drop(tensor);
        drop(module);
        let other = lab.launch(&free, "noop", &[], 1)?;
        let still_runs = !held.is_done()?;
        wait::done(&held)?;
        wait::done(&other)?;
        Ok(still_runs)
    })
}

fn waiting_without_a_deadline_is_for_all_in_front(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let tensors = (0..10).map(|_| lab.full(100, 0.0)).collect::<Result<Vec<_>, _>>()?;
    for round in 1..=20u8 {
        lab.delay(&queue)?;
        let events = tensors.iter().map(|tensor| lab.fill(&queue, tensor, f32::from(round)));
        let events = events.collect::<Result<Vec<_>, _>>()?;
        // One that nobody keeps is the last.
        drop(lab.launch(&queue, "noop", &[], 1)?);
        queue.wait_idle()?;
        for event in &events {
            event.wait_timeout(Duration::ZERO)?;
        }
        assert_eq!(queue.completed()?, queue.submitted());
    }
    tensors.iter().try_for_each(|tensor| all("waited for", tensor, 20.0))
}

fn selecting_the_first_loses_no_other(context: &Context) -> Verdict {
    let (lab, queues) = (context.lab(), context.lab().queues::<2>()?);
    let tensors = [lab.full(100, 0.0)?, lab.full(100, 0.0)?];
    let mut events = Vec::new();
    for ((queue, tensor), microseconds) in queues.iter().zip(&tensors).zip([30_000i64, 100]) {
        lab.launch(queue, "spin", &[Arg::scalar(microseconds)], 1)?;
        events.push(lab.fill(queue, tensor, 5.0)?);
    }
    let first = block_on(poll_fn(|task| {
        for (index, event) in events.iter_mut().enumerate() {
            if let Poll::Ready(outcome) = Pin::new(event).poll(task) {
                return Poll::Ready(outcome.map(|()| index));
            }
        }
        Poll::Pending
    }))?;
    all("of the first", &tensors[first], 5.0)?;
    // The other was polled and not taken: it can be awaited all the same.
    block_on(&mut events[1 - first])?;
    all("of the other", &tensors[1 - first], 5.0)
}

/// Counts how often it is woken.
#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn a_future_wakes_the_task_that_polled_it_last(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    lab.launch(&queue, "spin", &[Arg::scalar(20_000i64)], 1)?;
    let mut event = lab.launch(&queue, "noop", &[], 1)?;
    let tasks: [Arc<Counter>; 3] = std::array::from_fn(|_| Arc::default());
    for task in &tasks {
        let waker = Waker::from(task.clone());
        if Pin::new(&mut event).poll(&mut std::task::Context::from_waker(&waker)).is_ready() {
            return Err(Failure::Unsupported("the machine is too busy to poll in time".to_owned()));
        }
    }
    wait::until("the last task", || Ok(tasks[2].0.load(Ordering::SeqCst) > 0))?;
    assert!(event.is_done()?);
    Ok(())
}

fn futures_dropped_in_between_disturb_no_other(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let tensor = lab.full(100, 0.0)?;
    let mut kept = Vec::new();
    lab.delay(&queue)?;
    for round in 0..300u16 {
        let mut event = lab.fill(&queue, &tensor, f32::from(round))?;
        let _ = wait::poll_once(Pin::new(&mut event));
        if round % 30 == 29 {
            kept.push(event);
        }
    }
    for event in kept.into_iter().rev() {
        block_on(event)?;
    }
    all("the last one", &tensor, 299.0)
}

fn a_future_of_a_device_that_is_dropped_ends(context: &Context) -> Verdict {
    let lab = context.reopen(&Options::new())?;
    let queue = lab.queue()?;
    lab.launch(&queue, "spin", &[Arg::scalar(20_000i64)], 1)?;
    let mut event = lab.launch(&queue, "noop", &[], 1)?;
    let _ = wait::poll_once(Pin::new(&mut event));
    let dropping = std::thread::spawn(move || drop((queue, lab)));
    let outcome = block_on(event);
    dropping.join().map_err(|_| Failure::Failed("the drop panicked".to_owned()))?;
    match outcome {
        Err(error) if error.kind() != ErrorKind::Cancelled => Err(error.into()),
        _ => Ok(()),
    }
}
