//! Queues: tickets, order, independence, timestamps.

use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use runtime_core::{Arg, ErrorKind, Options, QueueOptions, abi};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_error};
use crate::wait;

cases! {
    [Requirement::Queues] => tickets_count_from_one, an_idle_queue_is_waited_for_at_once,
        completion_reaches_the_last_ticket, a_priority_is_accepted, many_queues_work_beside_each_other,
        flush_is_harmless, a_queue_waits_for_itself_at_no_cost, a_hundred_queues_come_and_go;
    [Requirement::Kernel("spin")] => a_later_ticket_is_not_done_before, a_timeout_of_a_queue_poisons_nothing,
        an_explicit_wait_orders_two_queues, waits_in_a_ring_end;
    [Requirement::Kernel("hold")] => a_busy_queue_holds_up_no_other;
    [Requirement::Queues, Requirement::Capability(abi::CAP_NOOP_KERNEL)] => an_empty_kernel_ends;
    [Requirement::Kernel("spin"), Requirement::Capability(abi::CAP_TIMESTAMPS)] => timestamps_are_in_order,
        a_timestamp_is_read_once, a_timestamp_of_another_queue_is_refused,
        an_event_that_is_no_timestamp_has_none;
}

fn tickets_count_from_one(context: &Context) -> Verdict {
    let (queue, tensor) = (context.fixture().queue()?, context.fixture().full(10, 0.0)?);
    assert_eq!((queue.submitted(), queue.completed()?), (0, 0));
    for ticket in 1..=5 {
        assert_eq!(queue.fill(&tensor, &[1])?.ticket(), ticket);
        assert_eq!(queue.submitted(), ticket);
        assert!(queue.completed()? <= ticket);
    }
    Ok(wait::idle(&queue)?)
}

fn an_idle_queue_is_waited_for_at_once(context: &Context) -> Verdict {
    let queue = context.fixture().queue()?;
    queue.wait_idle_timeout(Duration::ZERO)?;
    Ok(queue.wait_idle()?)
}

fn completion_reaches_the_last_ticket(context: &Context) -> Verdict {
    // A separate device: allocations of other cases would flush its queues.
    let fixture = context.reopen(&Options::new())?;
    let (queue, tensor) = (fixture.queue()?, fixture.full(10_000, 0.0)?);
    for _ in 0..20 {
        drop(queue.fill(&tensor, &[1])?);
    }
    // Polling alone must reach the end too.
    wait::until("the last ticket", || Ok(queue.completed()? == queue.submitted()))?;
    Ok(queue.wait_idle_timeout(Duration::ZERO)?)
}

fn a_priority_is_accepted(context: &Context) -> Verdict {
    for priority in [-1, 0, 1, i32::MAX] {
        let options = QueueOptions { priority, ..QueueOptions::default() };
        let queue = context.fixture().device().open_queue(&options)?;
        wait::event(&queue.fill(&context.fixture().full(10, 0.0)?, &[1])?)?;
    }
    Ok(())
}

fn many_queues_work_beside_each_other(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let queues = (0..16).map(|_| fixture.queue()).collect::<Result<Vec<_>, _>>()?;
    let tensors = (0..16).map(|_| fixture.full(10_000, 0.0)).collect::<Result<Vec<_>, _>>()?;
    for round in 1..=3u8 {
        for (queue, tensor) in queues.iter().zip(&tensors) {
            drop(queue.fill(tensor, &f32::from(round).to_le_bytes())?);
        }
    }
    for (queue, tensor) in queues.iter().zip(&tensors) {
        wait::idle(queue)?;
        assert_eq!(queue.submitted(), 3);
        expect_all("the queue's own tensor", tensor, 3.0)?;
    }
    Ok(())
}

fn flush_is_harmless(context: &Context) -> Verdict {
    let queue = context.fixture().queue()?;
    queue.flush()?;
    let event = queue.fill(&context.fixture().full(10, 0.0)?, &[1])?;
    queue.flush()?;
    queue.flush()?;
    Ok(wait::event(&event)?)
}

fn a_queue_waits_for_itself_at_no_cost(context: &Context) -> Verdict {
    let (queue, tensor) = (context.fixture().queue()?, context.fixture().full(10, 0.0)?);
    let event = queue.fill(&tensor, &[1])?;
    queue.wait_for(&event)?;
    wait::event(&queue.fill(&tensor, &[0])?)?;
    expect_all("in order", &tensor, 0.0)
}

fn a_hundred_queues_come_and_go(context: &Context) -> Verdict {
    let fixture = context.reopen(&Options::new())?;
    let tensor = fixture.full(1000, 0.0)?;
    for round in 0..100u8 {
        drop(fixture.queue()?.fill(&tensor, &f32::from(round).to_le_bytes())?);
    }
    expect_all("the last queue", &tensor, 99.0)
}

fn a_later_ticket_is_not_done_before(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let mut events = Vec::new();
    for _ in 0..5 {
        fixture.delay(&queue)?;
        events.push(fixture.launch(&queue, "noop", &[], 1)?);
    }
    wait::until("the last event", || {
        let done = events.iter().rev().map(runtime_core::Event::is_done).collect::<Result<Vec<_>, _>>()?;
        // Polled from the last to the first: if one is done, all before it are done when they are polled.
        assert!(done.windows(2).all(|pair| !pair[0] || pair[1]), "{done:?}");
        Ok(done[0])
    })?;
    Ok(())
}

fn a_timeout_of_a_queue_poisons_nothing(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    wait::times_out(|microseconds| {
        drop(fixture.launch(&queue, "spin", &[Arg::scalar(microseconds)], 1)?);
        Ok(queue.wait_idle_timeout(Duration::from_micros(10)))
    })?;
    wait::event(&fixture.launch(&queue, "noop", &[], 1)?)?;
    Ok(wait::idle(&queue)?)
}

fn an_explicit_wait_orders_two_queues(context: &Context) -> Verdict {
    let (fixture, [first, second]) = (context.fixture(), context.fixture().queues()?);
    for _ in 0..3 {
        fixture.delay(&first)?;
        let early = fixture.launch(&first, "noop", &[], 1)?;
        second.wait_for(&early)?;
        let late = fixture.launch(&second, "noop", &[], 1)?;
        wait::event(&late)?;
        assert!(early.is_done()?, "the waiting work ended before the work it waits for");
    }
    Ok(())
}

fn waits_in_a_ring_end(context: &Context) -> Verdict {
    let (fixture, queues) = (context.fixture(), context.fixture().queues::<3>()?);
    let mut last = fixture.launch(&queues[0], "noop", &[], 1)?;
    for round in 1..30 {
        let queue = &queues[round % 3];
        fixture.launch(queue, "spin", &[Arg::scalar(200i64)], 1)?;
        queue.wait_for(&last)?;
        last = fixture.launch(queue, "noop", &[], 1)?;
    }
    Ok(wait::event(&last)?)
}

fn a_busy_queue_holds_up_no_other(context: &Context) -> Verdict {
    let (fixture, [busy, free]) = (context.fixture(), context.fixture().queues()?);
    let flag = AtomicI32::new(0);
    let address = Arg::scalar(flag.as_ptr().expose_provenance() as u64);
    let held = fixture.launch(&busy, "hold", &[address], 1)?;
    let outcome = fixture.launch(&free, "noop", &[], 1).map(|event| wait::event(&event));
    let still_held = held.is_done().map(|done| !done);
    flag.store(1, Ordering::Release);
    // The kernel reads the flag, so wait for its end before returning, even after an error.
    wait::event(&held).or_else(|_| wait::event(&held))?;
    outcome??;
    assert!(still_held?, "the other queue waited for the busy one");
    Ok(())
}

fn an_empty_kernel_ends(context: &Context) -> Verdict {
    let queue = context.fixture().queue()?;
    for ticket in 1..=10 {
        let event = queue.launch_noop()?;
        assert_eq!(event.ticket(), ticket);
        wait::event(&event)?;
    }
    Ok(())
}

/// A queue with timestamps.
fn timed(context: &Context) -> runtime_core::Result<runtime_core::Queue> {
    context.fixture().device().open_queue(&QueueOptions { timestamps: true, ..QueueOptions::default() })
}

fn timestamps_are_in_order(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), timed(context)?);
    let mut stamps = Vec::new();
    for _ in 0..5 {
        stamps.push(queue.timestamp()?);
        fixture.launch(&queue, "spin", &[Arg::scalar(500i64)], 1)?;
    }
    stamps.push(queue.timestamp()?);
    wait::idle(&queue)?;
    let times = stamps.iter().map(|event| queue.read_timestamp(event)).collect::<Result<Vec<_>, _>>()?;
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    Ok(())
}

fn a_timestamp_is_read_once(context: &Context) -> Verdict {
    let queue = timed(context)?;
    let event = queue.timestamp()?;
    wait::event(&event)?;
    queue.read_timestamp(&event)?;
    expect_error("again", queue.read_timestamp(&event), ErrorKind::NotFound, &["read_timestamp"]).map(drop)
}

fn a_timestamp_of_another_queue_is_refused(context: &Context) -> Verdict {
    let (first, second) = (timed(context)?, timed(context)?);
    let event = first.timestamp()?;
    wait::event(&event)?;
    expect_error("queue", second.read_timestamp(&event), ErrorKind::InvalidArgument, &["another queue"])?;
    first.read_timestamp(&event)?;
    Ok(())
}

fn an_event_that_is_no_timestamp_has_none(context: &Context) -> Verdict {
    let queue = timed(context)?;
    let event = context.fixture().launch(&queue, "noop", &[], 1)?;
    wait::event(&event)?;
    expect_error("no timestamp", queue.read_timestamp(&event), ErrorKind::NotFound, &[]).map(drop).map_err(
        |failure| match failure {
            Failure::Failed(text) => Failure::Failed(format!("a launch has a time: {text}")),
            other => other,
        },
    )
}
