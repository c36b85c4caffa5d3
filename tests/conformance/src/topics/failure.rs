//! Failures: permanent on their queue, propagated with the data, never a hang and never a success.

use std::sync::Arc;

use runtime_core::{Arg, Error, ErrorKind, Event, Tensor};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_error};
use crate::fixture::Fixture;
use crate::wait::{self, block_on};

cases! {
    [Requirement::Kernel("fail")] => a_failure_is_reported_by_its_event, a_wait_without_a_deadline_reports_the_failure, what_came_before_is_not_failed,
        what_comes_after_fails_too, a_failed_queue_refuses_and_another_works,
        a_failure_travels_through_a_tensor, a_failure_travels_over_three_queues,
        a_failure_travels_to_the_host, a_failure_travels_through_a_copy,
        a_failure_travels_through_an_explicit_wait, a_failure_travels_to_another_opening,
        a_failed_reader_fails_no_writer, a_whole_write_heals_a_tensor, a_failed_call_says_so,
        an_awaited_failure_is_an_error, a_failure_that_is_already_known_is_refused,
        a_failed_queue_can_be_dropped, a_tensor_of_a_failed_kernel_can_be_dropped,
        freezing_a_failed_tensor_is_an_error, a_failure_before_a_slow_kernel_is_seen,
        a_failed_queue_says_when_it_is_idle, flush_and_poll_survive_a_failure, a_failure_among_a_hundred_waits_reaches_what_comes_after;
}

/// Launches a failing kernel that declares a write of `x`.
fn launch_failing(fixture: &Fixture, queue: &runtime_core::Queue, x: &Tensor) -> Result<Event, Failure> {
    let other = fixture.full(1, 0.0)?;
    fixture.delay(queue)?;
    fixture.fail(queue, &other, x)
}

fn expect_failed(what: &str, result: runtime_core::Result<()>) -> Result<Error, Failure> {
    expect_error(what, result, ErrorKind::Failed, &["ticket ", "of queue "])
}

fn a_failure_is_reported_by_its_event(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let event = launch_failing(fixture, &queue, &fixture.full(10, 0.0)?)?;
    let error = expect_failed("the event", wait::event(&event))?;
    assert!(error.to_string().contains("ticket 2"), "{error}");
    assert_eq!(error.device(), Some(context.name()), "{error}");
    for _ in 0..3 {
        expect_failed("again", wait::event(&event))?;
        expect_failed("polled", event.is_done().map(drop))?;
    }
    Ok(())
}

fn a_wait_without_a_deadline_reports_the_failure(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let event = Arc::new(launch_failing(fixture, &queue, &fixture.full(10, 0.0)?)?);
    let waiter = std::thread::spawn({
        let event = event.clone();
        move || event.wait()
    });
    wait::until("a wait to end", || Ok(waiter.is_finished()))?;
    let waited = waiter.join().map_err(|_| Failure::Failed("a wait panicked".to_owned()))?;
    expect_failed("the event", waited).map(drop)
}

fn what_came_before_is_not_failed(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(10, 0.0)?;
    let before = fixture.fill(&queue, &x, 4.0)?;
    let event = launch_failing(fixture, &queue, &fixture.full(10, 0.0)?)?;
    expect_failed("the event", wait::event(&event))?;
    wait::event(&before)?;
    expect_all("written before", &x, 4.0)
}

fn what_comes_after_fails_too(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let event = launch_failing(fixture, &queue, &fixture.full(10, 0.0)?)?;
    // Depends on no data; fails at submission if the failure is already known.
    let after = fixture.try_launch(&queue, "noop", &[], 1)?.and_then(|after| wait::event(&after));
    let error = expect_failed("after it", after)?;
    assert!(error.to_string().contains("ticket 2"), "{error}");
    expect_failed("the event", wait::event(&event)).map(drop)
}

fn a_failed_queue_refuses_and_another_works(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    expect_failed("the event", wait::event(&launch_failing(fixture, &queue, &fixture.full(10, 0.0)?)?))?;
    let before = queue.submitted();
    expect_failed("launch", fixture.try_launch(&queue, "noop", &[], 1)?.map(drop))?;
    expect_failed("fill", queue.fill(&fixture.full(10, 0.0)?, &[1]).map(drop))?;
    expect_failed("idle", wait::idle(&queue))?;
    assert_eq!(queue.submitted(), before, "a rejected submission takes no ticket");
    wait::event(&fixture.launch(&fixture.queue()?, "noop", &[], 1)?)?;
    Ok(())
}

/// Copies the output of failed work; `None` if the failure was already known, so that the submission failed.
fn dependent(
    fixture: &Fixture,
    queue: &runtime_core::Queue,
    from: &Tensor,
    to: &Tensor,
) -> Result<Option<Event>, Failure> {
    match fixture.try_launch(queue, "copy_f32", &[Arg::read(from), Arg::write(to)], 10)? {
        Ok(event) => Ok(Some(event)),
        known => expect_failed("the known failure", known.map(drop)).map(|_| None),
    }
}

fn a_failure_travels_through_a_tensor(context: &Context) -> Verdict {
    let (fixture, [a, b]) = (context.fixture(), context.fixture().queues()?);
    let (x, y) = (fixture.full(10, 0.0)?, fixture.full(10, 0.0)?);
    let origin = launch_failing(fixture, &a, &x)?;
    let Some(dependent) = dependent(fixture, &b, &x, &y)? else { return Ok(()) };
    let error = expect_failed("the dependent", wait::event(&dependent))?;
    assert!(error.to_string().contains("ticket 2"), "the error names the ticket that failed first: {error}");
    expect_failed("its queue", fixture.try_launch(&b, "noop", &[], 1)?.map(drop))?;
    expect_failed("the origin", wait::event(&origin)).map(drop)
}

fn a_failure_travels_over_three_queues(context: &Context) -> Verdict {
    let (fixture, [a, b, c]) = (context.fixture(), context.fixture().queues()?);
    let (x, y, z) = (fixture.full(10, 0.0)?, fixture.full(10, 0.0)?, fixture.full(10, 0.0)?);
    let _origin = launch_failing(fixture, &a, &x)?;
    let Some(between) = dependent(fixture, &b, &x, &y)? else { return Ok(()) };
    drop(between);
    let Some(last) = dependent(fixture, &c, &y, &z)? else { return Ok(()) };
    let error = expect_failed("the last", wait::event(&last))?;
    assert!(error.to_string().contains(fixture.kernels()?.cause), "the error keeps the cause: {error}");
    expect_failed("its tensor", z.to_vec::<f32>().map(drop)).map(drop)
}

fn a_failure_travels_to_the_host(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(10, 0.0)?;
    drop(launch_failing(fixture, &queue, &x)?);
    expect_failed("read", x.to_vec::<f32>().map(drop))?;
    expect_failed("read of a view", x.slice(0, 0..1)?.to_vec::<f32>().map(drop))?;
    expect_failed("again", x.to_array().map(drop)).map(drop)
}

fn a_failure_travels_through_a_copy(context: &Context) -> Verdict {
    let (fixture, [a, b]) = (context.fixture(), context.fixture().queues()?);
    let (x, y) = (fixture.full(10, 0.0)?, fixture.full(10, 0.0)?);
    drop(launch_failing(fixture, &a, &x)?);
    // The copy fails at submission if the failure is already known.
    expect_failed("the copy", b.copy(&y, &x).and_then(|copied| wait::event(&copied)))?;
    let queue = fixture.queue()?;
    expect_failed("a queue's read", queue.read(&x, &mut [0; 40]))?;
    Ok(())
}

fn a_failure_travels_through_an_explicit_wait(context: &Context) -> Verdict {
    let (fixture, [a, b]) = (context.fixture(), context.fixture().queues()?);
    let event = launch_failing(fixture, &a, &fixture.full(10, 0.0)?)?;
    // The wait fails at submission if the failure is already known.
    let after = match b.wait_for(&event) {
        Ok(()) => fixture.try_launch(&b, "noop", &[], 1)?.and_then(|after| wait::event(&after)),
        known => known,
    };
    expect_failed("after the wait", after)?;
    let c = fixture.queue()?;
    expect_failed("a known failure", c.wait_for(&event))?;
    wait::event(&fixture.launch(&c, "noop", &[], 1)?)?;
    Ok(())
}

fn a_failure_travels_to_another_opening(context: &Context) -> Verdict {
    let (fixture, other) = (context.fixture(), context.reopen(&runtime_core::Options::new())?);
    let (a, b) = (fixture.queue()?, other.queue()?);
    let (x, y) = (fixture.full(10, 0.0)?, other.full(10, 0.0)?);
    drop(launch_failing(fixture, &a, &x)?);
    expect_failed("on the other device", b.copy(&y, &x).and_then(|event| wait::event(&event))).map(drop)
}

fn a_failed_reader_fails_no_writer(context: &Context) -> Verdict {
    let (fixture, [a, b]) = (context.fixture(), context.fixture().queues()?);
    let (x, y) = (fixture.full(10, 0.0)?, fixture.full(1, 0.0)?);
    fixture.delay(&a)?;
    let reader = fixture.fail(&a, &x, &y)?;
    let writer = fixture.fill(&b, &x, 5.0)?;
    wait::event(&writer)?;
    expect_failed("the reader", wait::event(&reader))?;
    expect_all("ordering alone propagates no failure", &x, 5.0)
}

fn a_whole_write_heals_a_tensor(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(10, 0.0)?;
    expect_failed("the event", wait::event(&launch_failing(fixture, &queue, &x)?))?;
    x.write(&[6.0f32; 10])?;
    expect_all("healed", &x, 6.0)?;
    wait::event(&fixture.scale(&fixture.queue()?, &x, 2.0)?)?;
    expect_all("and in use again", &x, 12.0)
}

fn a_failed_call_says_so(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(10, 0.0)?, fixture.full(10, 0.0)?);
    let called = queue.call(&fixture.kernel("fail")?, fixture.geometry(1), &[Arg::read(&y), Arg::write(&x)]);
    expect_error("call", called, ErrorKind::Failed, &[fixture.kernels()?.cause])?;
    expect_failed("its queue", fixture.try_launch(&queue, "noop", &[], 1)?.map(drop)).map(drop)
}

fn an_awaited_failure_is_an_error(context: &Context) -> Verdict {
    let (fixture, [a, b]) = (context.fixture(), context.fixture().queues()?);
    let (x, y) = (fixture.full(10, 0.0)?, fixture.full(10, 0.0)?);
    let event = launch_failing(fixture, &a, &x)?;
    // Fails at submission if the failure is already known.
    let dependent = fixture.try_launch(&b, "copy_f32", &[Arg::read(&x), Arg::write(&y)], 10)?;
    expect_failed("the dependent", dependent.and_then(block_on))?;
    expect_failed("the origin", block_on(event)).map(drop)
}

fn a_failure_that_is_already_known_is_refused(context: &Context) -> Verdict {
    let (fixture, [a, b]) = (context.fixture(), context.fixture().queues()?);
    let (x, y) = (fixture.full(10, 0.0)?, fixture.full(10, 0.0)?);
    expect_failed("the event", wait::event(&launch_failing(fixture, &a, &x)?))?;
    expect_failed(
        "the reader",
        fixture.try_launch(&b, "copy_f32", &[Arg::read(&x), Arg::write(&y)], 10)?.map(drop),
    )?;
    assert_eq!(b.submitted(), 0, "a rejected submission takes no ticket");
    wait::event(&fixture.fill(&b, &y, 1.0)?)?;
    expect_all("the tensor is not poisoned", &y, 1.0)
}

fn a_failed_queue_can_be_dropped(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let x = fixture.full(10, 0.0)?;
    let queue = fixture.queue()?;
    let event = launch_failing(fixture, &queue, &x)?;
    drop(queue);
    expect_failed("the event", wait::event(&event))?;
    drop(event);
    // Makes the device close dropped objects; what the queue wrote stays failed.
    (0..3).try_for_each(|_| fixture.queue().map(drop))?;
    expect_failed("read", x.to_vec::<f32>().map(drop)).map(drop)
}

fn a_tensor_of_a_failed_kernel_can_be_dropped(context: &Context) -> Verdict {
    let fixture = context.fixture();
    for _ in 0..20 {
        let (queue, x) = (fixture.queue()?, fixture.full(10, 0.0)?);
        drop(launch_failing(fixture, &queue, &x)?);
        drop((x, queue));
    }
    expect_all("afterwards", &fixture.full(10, 1.0)?, 1.0)
}

fn freezing_a_failed_tensor_is_an_error(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(10, 0.0)?;
    drop(launch_failing(fixture, &queue, &x)?);
    expect_failed("freeze", x.freeze())?;
    assert!(!x.is_frozen());
    Ok(())
}

fn a_failure_before_a_slow_kernel_is_seen(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    // Dropping it early would poll the queue, which would then reject the launch below.
    let x = fixture.full(10, 0.0)?;
    let event = launch_failing(fixture, &queue, &x)?;
    // A case on another thread may have polled the queue, which then rejects the launch, too.
    if let Err(error) = fixture.try_launch(&queue, "spin", &[Arg::scalar(100_000i64)], 1)? {
        expect_failed("the launch", Err::<(), _>(error))?;
    }
    expect_failed("the event", wait::event(&event))?;
    expect_failed("idle", wait::idle(&queue)).map(drop)
}

fn a_failed_queue_says_when_it_is_idle(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    expect_failed("the event", wait::event(&launch_failing(fixture, &queue, &fixture.full(10, 0.0)?)?))?;
    wait::until("all tickets to end", || Ok(queue.completed()? == queue.submitted()))?;
    Ok(())
}

fn flush_and_poll_survive_a_failure(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    expect_failed("the event", wait::event(&launch_failing(fixture, &queue, &fixture.full(10, 0.0)?)?))?;
    queue.flush()?;
    queue.completed()?;
    Ok(())
}

fn a_failure_among_a_hundred_waits_reaches_what_comes_after(context: &Context) -> Verdict {
    /// The wait that fails.
    const FAILING: usize = 60;
    let (fixture, queue, sources) =
        (context.fixture(), context.fixture().queue()?, context.fixture().queues::<5>()?);
    let (x, y) = (fixture.full(10, 0.0)?, fixture.full(10, 0.0)?);
    // No wait completes before the end: none may be forgotten or mistaken for another.
    for source in &sources {
        fixture.launch(source, "spin", &[Arg::scalar(100_000i64)], 1)?;
    }
    let mut events = Vec::new();
    for number in 0..100 {
        let event = match number {
            FAILING => fixture.fail(&sources[0], &y, &x)?,
            _ => fixture.launch(&sources[1 + number % 4], "noop", &[], 1)?,
        };
        if let Err(error) = queue.wait_for(&event) {
            // The machine was so slow that the failure was already known.
            assert_eq!((number, error.kind()), (FAILING, ErrorKind::Failed), "{error}");
            return Err(Failure::Unsupported("the machine is too busy".to_owned()));
        }
        events.push(fixture.launch(&queue, "noop", &[], 1)?);
    }
    for (number, event) in events.iter().enumerate() {
        let outcome = wait::event(event);
        assert_eq!(outcome.is_ok(), number < FAILING, "wait {number}: {outcome:?}");
    }
    Ok(())
}
