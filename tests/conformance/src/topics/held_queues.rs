//! Held queues: work waits until the queue is resumed, and nothing hangs because of it.

use std::time::{Duration, Instant};

use runtime_core::{ErrorKind, Event, Queue, QueueOptions, Tensor, abi};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_error};
use crate::wait::{self, block_on};

cases! {
    [Requirement::Queues] => a_queue_that_cannot_be_held_says_so;
    [Requirement::Kernel("scale_f32"), Requirement::Capability(abi::CAP_HOLD)] => held_work_starts_when_the_queue_is_resumed,
        hundreds_of_launches_are_held, a_queue_is_held_again_and_again, dropping_a_hold_ends_it,
        a_held_queue_cannot_be_held_again, earlier_work_is_not_held, waiting_ends_a_hold,
        another_queue_that_needs_the_work_ends_a_hold,
        another_queue_that_waits_for_an_event_ends_a_hold, a_transfer_to_the_program_ends_a_hold,
        a_held_queue_that_is_dropped_finishes_its_work, a_refused_launch_leaves_the_hold;
    [Requirement::Kernel("scale_f32"), Requirement::Capability(abi::CAP_HOLD | abi::CAP_TIMESTAMPS)] =>
        timestamps_are_taken_after_the_hold;
}

/// For this long a held queue is watched.
const WATCHED: Duration = Duration::from_millis(20);

/// A queue, and a tensor of ones that `scale_f32` has compiled for.
fn warm(context: &Context) -> Result<(Queue, Tensor), Failure> {
    let (fixture, options) =
        (context.fixture(), QueueOptions { timestamps: true, ..QueueOptions::default() });
    let has_timestamps = context.info().capabilities.has(abi::CAP_TIMESTAMPS);
    let queue = if has_timestamps { fixture.device().open_queue(&options)? } else { fixture.queue()? };
    let x = fixture.full(100, 1.0)?;
    wait::event(&fixture.scale(&queue, &x, 1.0)?)?;
    Ok((queue, x))
}

fn stays_pending(event: &Event) -> Verdict {
    let begin = Instant::now();
    while begin.elapsed() < WATCHED {
        assert!(!event.is_done()?, "it ran while the queue was held");
        std::thread::sleep(Duration::from_micros(500));
    }
    Ok(())
}

fn a_queue_that_cannot_be_held_says_so(context: &Context) -> Verdict {
    let queue = context.fixture().queue()?;
    if context.info().capabilities.has(abi::CAP_HOLD) {
        queue.hold()?.resume()?;
        return Ok(());
    }
    expect_error("hold", queue.hold(), ErrorKind::Unsupported, &["hold"])?;
    let event = queue.fill(&context.fixture().full(10, 0.0)?, &[1])?;
    Ok(wait::event(&event)?)
}

fn held_work_starts_when_the_queue_is_resumed(context: &Context) -> Verdict {
    let (queue, x) = warm(context)?;
    let before = queue.completed()?;
    let held = queue.hold()?;
    let event = context.fixture().scale(&queue, &x, 2.0)?;
    for _ in 0..4 {
        context.fixture().scale(&queue, &x, 2.0)?;
    }
    stays_pending(&event)?;
    assert_eq!(queue.completed()?, before);
    assert!(held.resume()?, "nothing ended the hold");
    wait::idle(&queue)?;
    expect_all("scaled five times", &x, 32.0)
}

fn hundreds_of_launches_are_held(context: &Context) -> Verdict {
    let (queue, x) = warm(context)?;
    let held = queue.hold()?;
    let first = context.fixture().scale(&queue, &x, -1.0)?;
    for _ in 1..256 {
        context.fixture().scale(&queue, &x, -1.0)?;
    }
    stays_pending(&first)?;
    assert!(held.resume()?, "256 launches must fit");
    wait::idle(&queue)?;
    expect_all("an even number of times", &x, 1.0)
}

fn a_queue_is_held_again_and_again(context: &Context) -> Verdict {
    let (queue, x) = warm(context)?;
    for _ in 0..50 {
        let held = queue.hold()?;
        let event = context.fixture().scale(&queue, &x, -1.0)?;
        assert!(!event.is_done()? && held.resume()?);
        wait::event(&event)?;
    }
    expect_all("an even number of times", &x, 1.0)
}

fn dropping_a_hold_ends_it(context: &Context) -> Verdict {
    let (queue, x) = warm(context)?;
    let held = queue.hold()?;
    let event = context.fixture().scale(&queue, &x, 2.0)?;
    drop(held);
    wait::until("work after a dropped hold", || event.is_done())?;
    expect_all("scaled", &x, 2.0)
}

fn a_held_queue_cannot_be_held_again(context: &Context) -> Verdict {
    let (queue, x) = warm(context)?;
    let held = queue.hold()?;
    expect_error("a second hold", queue.hold(), ErrorKind::InvalidArgument, &["already held"])?;
    let event = context.fixture().scale(&queue, &x, 2.0)?;
    stays_pending(&event)?;
    assert!(held.resume()?);
    Ok(wait::event(&event)?)
}

fn earlier_work_is_not_held(context: &Context) -> Verdict {
    let (queue, x) = warm(context)?;
    let earlier = context.fixture().scale(&queue, &x, 2.0)?;
    let held = queue.hold()?;
    let later = context.fixture().scale(&queue, &x, 2.0)?;
    wait::until("work before a hold", || earlier.is_done())?;
    assert!(!later.is_done()? && held.resume()?);
    wait::event(&later)?;
    expect_all("scaled twice", &x, 4.0)
}

type Wait = fn(&Queue, Event) -> runtime_core::Result<()>;

fn waiting_ends_a_hold(context: &Context) -> Verdict {
    let (queue, x) = warm(context)?;
    let waits: [(&str, Wait); 4] = [
        ("a wait", |_, event| wait::event(&event)),
        ("a wait without a deadline", |_, event| event.wait()),
        ("an await", |_, event| block_on(event)),
        ("a wait for the queue", |queue, _| wait::idle(queue)),
    ];
    for (what, wait) in waits {
        let held = queue.hold()?;
        wait(&queue, context.fixture().scale(&queue, &x, -1.0)?)?;
        assert!(!held.resume()?, "{what} ended the hold");
    }
    expect_all("an even number of times", &x, 1.0)
}

fn another_queue_that_needs_the_work_ends_a_hold(context: &Context) -> Verdict {
    let ((queue, x), other) = (warm(context)?, context.fixture().queue()?);
    let held = queue.hold()?;
    context.fixture().scale(&queue, &x, 2.0)?;
    let after = context.fixture().scale(&other, &x, 3.0)?;
    wait::event(&after)?;
    assert!(!held.resume()?, "the other queue ended the hold");
    expect_all("scaled on both queues", &x, 6.0)
}

fn another_queue_that_waits_for_an_event_ends_a_hold(context: &Context) -> Verdict {
    let (queue, x) = warm(context)?;
    let (other, y) = warm(context)?;
    let held = queue.hold()?;
    let event = context.fixture().scale(&queue, &x, 2.0)?;
    other.wait_for(&event)?;
    wait::event(&context.fixture().scale(&other, &y, 2.0)?)?;
    assert!(event.is_done()?, "the other queue waited for it");
    assert!(!held.resume()?, "the hold had ended");
    Ok(())
}

fn a_transfer_to_the_program_ends_a_hold(context: &Context) -> Verdict {
    let (queue, x) = warm(context)?;
    let held = queue.hold()?;
    context.fixture().scale(&queue, &x, 2.0)?;
    expect_all("read while held", &x, 2.0)?;
    assert!(!held.resume()?, "the transfer ended the hold");
    let held = queue.hold()?;
    context.fixture().scale(&queue, &x, 2.0)?;
    let mut bytes = [0; 400];
    queue.read(&x, &mut bytes)?;
    assert!(bytes.starts_with(&4f32.to_ne_bytes()), "the queue's own copy runs in order");
    held.resume()?;
    Ok(())
}

fn a_held_queue_that_is_dropped_finishes_its_work(context: &Context) -> Verdict {
    let (queue, x) = warm(context)?;
    let held = queue.hold()?;
    let event = context.fixture().scale(&queue, &x, 2.0)?;
    std::mem::forget(held);
    drop(queue);
    wait::until("work of a dropped queue", || event.is_done())?;
    expect_all("scaled", &x, 2.0)
}

fn a_refused_launch_leaves_the_hold(context: &Context) -> Verdict {
    let (queue, x) = warm(context)?;
    let held = queue.hold()?;
    let event = context.fixture().scale(&queue, &x, 2.0)?;
    let kernel = context.fixture().kernel("scale_f32")?;
    queue.launch(&kernel, (1, 1), ()).map(drop).expect_err("a launch without its arguments is refused");
    stays_pending(&event)?;
    assert!(held.resume()?);
    wait::event(&event)?;
    expect_all("scaled once", &x, 2.0)
}

fn timestamps_are_taken_after_the_hold(context: &Context) -> Verdict {
    let (queue, x) = warm(context)?;
    let held = queue.hold()?;
    let begin = queue.timestamp()?;
    context.fixture().scale(&queue, &x, 2.0)?;
    std::thread::sleep(WATCHED);
    let end = queue.timestamp()?;
    let resumed = Instant::now();
    assert!(held.resume()?);
    wait::event(&end)?;
    let (elapsed, wall_ns) =
        ((queue.read_timestamp(&begin)?, queue.read_timestamp(&end)?), resumed.elapsed());
    let elapsed_ns = elapsed.1 - elapsed.0;
    assert!(
        u128::from(elapsed_ns) <= wall_ns.as_nanos(),
        "{elapsed_ns} ns of {wall_ns:?} since it was resumed"
    );
    Ok(())
}
