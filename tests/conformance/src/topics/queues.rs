//! Queues: tickets, order, independence, time.

use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use runtime_core::{Arg, ErrorKind, Options, QueueOptions, abi};

use crate::case::{Failure, Need, Verdict, cases};
use crate::context::Context;
use crate::data::{all, refused};
use crate::wait;

cases! {
    [Need::Queues] => tickets_count_from_one, an_idle_queue_is_waited_for_at_once,
        completion_reaches_the_last_ticket, a_priority_is_accepted, many_queues_work_beside_each_other,
        flush_is_harmless, a_queue_waits_for_itself_at_no_cost, a_hundred_queues_come_and_go;
    [Need::Kernel("spin")] => a_later_ticket_is_not_done_before, a_timeout_of_a_queue_poisons_nothing,
        an_explicit_wait_orders_two_queues, waits_in_a_ring_end;
    [Need::Kernel("hold")] => a_busy_queue_holds_up_no_other;
    [Need::Queues, Need::Capability(abi::CAP_EMPTY_KERNEL)] => an_empty_kernel_ends;
    [Need::Kernel("spin"), Need::Capability(abi::CAP_TIMESTAMPS)] => timestamps_are_in_order,
        a_timestamp_is_read_once, a_timestamp_of_another_queue_is_refused,
        an_event_that_is_no_timestamp_has_none;
}

fn tickets_count_from_one(context: &Context) -> Verdict {
    let (queue, tensor) = (context.lab().queue()?, context.lab().full(10, 0.0)?);
    assert_eq!((queue.submitted(), queue.completed()?), (0, 0));
    for ticket in 1..=5 {
        assert_eq!(queue.fill(&tensor, &[1])?.ticket(), ticket);
        assert_eq!(queue.submitted(), ticket);
        assert!(queue.completed()? <= ticket);
    }
    Ok(wait::idle(&queue)?)
}

fn an_idle_queue_is_waited_for_at_once(context: &Context) -> Verdict {
    let queue = context.lab().queue()?;
    queue.wait_idle_timeout(Duration::ZERO)?;
    Ok(queue.wait_idle()?)
}

fn completion_reaches_the_last_ticket(context: &Context) -> Verdict {
    // Of an opening of its own: others that allocate there would have its work handed over.
    let lab = context.reopen(&Options::new())?;
    let (queue, tensor) = (lab.queue()?, lab.full(10_000, 0.0)?);
    for _ in 0..20 {
        drop(queue.fill(&tensor, &[1])?);
    }
    // Whoever only looks must see the end too.
    wait::until("the last ticket", || Ok(queue.completed()? == queue.submitted()))?;
    Ok(queue.wait_idle_timeout(Duration::ZERO)?)
}

fn a_priority_is_accepted(context: &Context) -> Verdict {
    for priority in [-1, 0, 1, i32::MAX] {
        let options = QueueOptions { priority, ..QueueOptions::default() };
        let queue = context.lab().device().open_queue(&options)?;
        wait::done(&queue.fill(&context.lab().full(10, 0.0)?, &[1])?)?;
    }
    Ok(())
}

fn many_queues_work_beside_each_other(context: &Context) -> Verdict {
    let lab = context.lab();
    let queues = (0..16).map(|_| lab.queue()).collect::<Result<Vec<_>, _>>()?;
    let tensors = (0..16).map(|_| lab.full(10_000, 0.0)).collect::<Result<Vec<_>, _>>()?;
    for round in 1..=3u8 {
        for (queue, tensor) in queues.iter().zip(&tensors) {
            drop(queue.fill(tensor, &f32::from(round).to_le_bytes())?);
        }
    }
    for (queue, tensor) in queues.iter().zip(&tensors) {
        wait::idle(queue)?;
        assert_eq!(queue.submitted(), 3);
        all("of its own", tensor, 3.0)?;
    }
    Ok(())
}

fn flush_is_harmless(context: &Context) -> Verdict {
    let queue = context.lab().queue()?;
    queue.flush()?;
    let event = queue.fill(&context.lab().full(10, 0.0)?, &[1])?;
    queue.flush()?;
    queue.flush()?;
    Ok(wait::done(&event)?)
}

fn a_queue_waits_for_itself_at_no_cost(context: &Context) -> Verdict {
    let (queue, tensor) = (context.lab().queue()?, context.lab().full(10, 0.0)?);
    let event = queue.fill(&tensor, &[1])?;
    queue.wait_for(&event)?;
    wait::done(&queue.fill(&tensor, &[0])?)?;
    all("in order", &tensor, 0.0)
}

fn a_hundred_queues_come_and_go(context: &Context) -> Verdict {
    let lab = context.reopen(&Options::new())?;
    let tensor = lab.full(1000, 0.0)?;
    for round in 0..100u8 {
        drop(lab.queue()?.fill(&tensor, &f32::from(round).to_le_bytes())?);
    }
    all("the last one's", &tensor, 99.0)
}

fn a_later_ticket_is_not_done_before(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let mut events = Vec::new();
    for _ in 0..5 {
        lab.delay(&queue)?;
        events.push(lab.launch(&queue, "noop", &[], 1)?);
    }
    wait::until("the last event", || {
        let done = events.iter().rev().map(runtime_core::Event::is_done).collect::<Result<Vec<_>, _>>()?;
        // Looked at from the last: whoever is done then, all before it are done a moment later.
        assert!(done.windows(2).all(|pair| !pair[0] || pair[1]), "{done:?}");
        Ok(done[0])
    })?;
    Ok(())
}

fn a_timeout_of_a_queue_poisons_nothing(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    wait::times_out(|microseconds| {
        drop(lab.launch(&queue, "spin", &[Arg::scalar(microseconds)], 1)?);
        Ok(queue.wait_idle_timeout(Duration::from_micros(10)))
    })?;
    wait::done(&lab.launch(&queue, "noop", &[], 1)?)?;
    Ok(wait::idle(&queue)?)
}

fn an_explicit_wait_orders_two_queues(context: &Context) -> Verdict {
    let (lab, [first, second]) = (context.lab(), context.lab().queues()?);
    for _ in 0..3 {
        lab.delay(&first)?;
        let early = lab.launch(&first, "noop", &[], 1)?;
        second.wait_for(&early)?;
        let late = lab.launch(&second, "noop", &[], 1)?;
        wait::done(&late)?;
        assert!(early.is_done()?, "what waits ended before what it waits for");
    }
    Ok(())
}

fn waits_in_a_ring_end(context: &Context) -> Verdict {
    let (lab, queues) = (context.lab(), context.lab().queues::<3>()?);
    let mut last = lab.launch(&queues[0], "noop", &[], 1)?;
    for round in 1..30 {
        let queue = &queues[round % 3];
        lab.launch(queue, "spin", &[Arg::scalar(200i64)], 1)?;
        queue.wait_for(&last)?;
        last = lab.launch(queue, "noop", &[], 1)?;
    }
    Ok(wait::done(&last)?)
}

fn a_busy_queue_holds_up_no_other(context: &Context) -> Verdict {
    let (lab, [busy, free]) = (context.lab(), context.lab().queues()?);
    let flag = AtomicI32::new(0);
    let address = Arg::scalar(flag.as_ptr().expose_provenance() as u64);
    let held = lab.launch(&busy, "hold", &[address], 1)?;
    let outcome = lab.launch(&free, "noop", &[], 1).map(|event| wait::done(&event));
    let still_held = held.is_done().map(|done| !done);
    flag.store(1, Ordering::Release);
    // The kernel reads the flag, so it has ended before this returns, whatever is refused.
    wait::done(&held).or_else(|_| wait::done(&held))?;
    outcome??;
    assert!(still_held?, "the other queue waited for the busy one");
    Ok(())
}

fn an_empty_kernel_ends(context: &Context) -> Verdict {
    let queue = context.lab().queue()?;
    for ticket in 1..=10 {
        let event = queue.empty()?;
        assert_eq!(event.ticket(), ticket);
        wait::done(&event)?;
    }
    Ok(())
}

/// A queue that can be asked for timestamps.
fn timed(context: &Context) -> runtime_core::Result<runtime_core::Queue> {
    context.lab().device().open_queue(&QueueOptions { timestamps: true, ..QueueOptions::default() })
}

fn timestamps_are_in_order(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), timed(context)?);
    let mut stamps = Vec::new();
    for _ in 0..5 {
        stamps.push(queue.timestamp()?);
        lab.launch(&queue, "spin", &[Arg::scalar(500i64)], 1)?;
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
    wait::done(&event)?;
    queue.read_timestamp(&event)?;
    refused("again", queue.read_timestamp(&event), ErrorKind::NotFound, &["read_timestamp"]).map(drop)
}

fn a_timestamp_of_another_queue_is_refused(context: &Context) -> Verdict {
    let (first, second) = (timed(context)?, timed(context)?);
    let event = first.timestamp()?;
    wait::done(&event)?;
    refused("queue", second.read_timestamp(&event), ErrorKind::InvalidArgument, &["another queue"])?;
    first.read_timestamp(&event)?;
    Ok(())
}

fn an_event_that_is_no_timestamp_has_none(context: &Context) -> Verdict {
    let queue = timed(context)?;
    let event = context.lab().launch(&queue, "noop", &[], 1)?;
    wait::done(&event)?;
    refused("no timestamp", queue.read_timestamp(&event), ErrorKind::NotFound, &[]).map(drop).map_err(
        |failure| match failure {
            Failure::Failed(text) => Failure::Failed(format!("a launch has a time: {text}")),
            other => other,
        },
    )
}
