//! Failure: permanent on its queue, travelling with the data, never a hang and never a success.

use std::sync::Arc;

use runtime_core::{Arg, Error, ErrorKind, Event, Tensor};

use crate::case::{Failure, Need, Verdict, cases};
use crate::context::Context;
use crate::data::{all, refused};
use crate::lab::Lab;
use crate::wait::{self, block_on};

cases! {
    [Need::Kernel("fail")] => a_failure_is_reported_by_its_event, a_wait_without_a_deadline_tells_the_failure, what_came_before_is_not_failed,
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

/// Submits a kernel that fails and says that it writes `x`.
fn fail(lab: &Lab, queue: &runtime_core::Queue, x: &Tensor) -> Result<Event, Failure> {
    let other = lab.full(1, 0.0)?;
    lab.delay(queue)?;
    lab.fail(queue, &other, x)
}

fn failed(what: &str, result: runtime_core::Result<()>) -> Result<Error, Failure> {
    refused(what, result, ErrorKind::Failed, &["ticket ", "of queue "])
}

fn a_failure_is_reported_by_its_event(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let event = fail(lab, &queue, &lab.full(10, 0.0)?)?;
    let error = failed("the event", wait::done(&event))?;
    assert!(error.to_string().contains("ticket 2"), "{error}");
    assert_eq!(error.device(), Some(context.name()), "{error}");
    for _ in 0..3 {
        failed("again", wait::done(&event))?;
        failed("polled", event.is_done().map(drop))?;
    }
    Ok(())
}

fn a_wait_without_a_deadline_tells_the_failure(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let event = Arc::new(fail(lab, &queue, &lab.full(10, 0.0)?)?);
    let waiter = std::thread::spawn({
        let event = event.clone();
        move || event.wait()
    });
    wait::until("the end of a wait", || Ok(waiter.is_finished()))?;
    let waited = waiter.join().map_err(|_| Failure::Failed("a wait panicked".to_owned()))?;
    failed("the event", waited).map(drop)
}

fn what_came_before_is_not_failed(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let x = lab.full(10, 0.0)?;
    let before = lab.fill(&queue, &x, 4.0)?;
    let event = fail(lab, &queue, &lab.full(10, 0.0)?)?;
    failed("the event", wait::done(&event))?;
    wait::done(&before)?;
    all("written before", &x, 4.0)
}

fn what_comes_after_fails_too(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let event = fail(lab, &queue, &lab.full(10, 0.0)?)?;
    // Of nobody's data; refused at once if the failure is known already.
    let after = lab.attempt(&queue, "noop", &[], 1)?.and_then(|after| wait::done(&after));
    let error = failed("after it", after)?;
    assert!(error.to_string().contains("ticket 2"), "{error}");
    failed("the event", wait::done(&event)).map(drop)
}

fn a_failed_queue_refuses_and_another_works(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    failed("the event", wait::done(&fail(lab, &queue, &lab.full(10, 0.0)?)?))?;
    let before = queue.submitted();
    failed("launch", lab.attempt(&queue, "noop", &[], 1)?.map(drop))?;
    failed("fill", queue.fill(&lab.full(10, 0.0)?, &[1]).map(drop))?;
    failed("idle", wait::idle(&queue))?;
    assert_eq!(queue.submitted(), before, "what is refused takes no ticket");
    wait::done(&lab.launch(&lab.queue()?, "noop", &[], 1)?)?;
    Ok(())
}

/// A copy of what failed work writes; `None` if the failure was known already, so that the copy was refused.
fn dependent(
    lab: &Lab,
    queue: &runtime_core::Queue,
    from: &Tensor,
    to: &Tensor,
) -> Result<Option<Event>, Failure> {
    match lab.attempt(queue, "copy_f32", &[Arg::read(from), Arg::write(to)], 10)? {
        Ok(event) => Ok(Some(event)),
        known => failed("what is known already", known.map(drop)).map(|_| None),
    }
}

fn a_failure_travels_through_a_tensor(context: &Context) -> Verdict {
    let (lab, [a, b]) = (context.lab(), context.lab().queues()?);
    let (x, y) = (lab.full(10, 0.0)?, lab.full(10, 0.0)?);
    let origin = fail(lab, &a, &x)?;
    let Some(dependent) = dependent(lab, &b, &x, &y)? else { return Ok(()) };
    let error = failed("the dependent", wait::done(&dependent))?;
    assert!(error.to_string().contains("ticket 2"), "names the ticket where it began: {error}");
    failed("its queue", lab.attempt(&b, "noop", &[], 1)?.map(drop))?;
    failed("the origin", wait::done(&origin)).map(drop)
}

fn a_failure_travels_over_three_queues(context: &Context) -> Verdict {
    let (lab, [a, b, c]) = (context.lab(), context.lab().queues()?);
    let (x, y, z) = (lab.full(10, 0.0)?, lab.full(10, 0.0)?, lab.full(10, 0.0)?);
    let _origin = fail(lab, &a, &x)?;
    let Some(between) = dependent(lab, &b, &x, &y)? else { return Ok(()) };
    drop(between);
    let Some(last) = dependent(lab, &c, &y, &z)? else { return Ok(()) };
    let error = failed("the last", wait::done(&last))?;
    assert!(error.to_string().contains(lab.kernels()?.cause), "keeps the cause: {error}");
    failed("its tensor", z.to_vec::<f32>().map(drop)).map(drop)
}

fn a_failure_travels_to_the_host(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let x = lab.full(10, 0.0)?;
    drop(fail(lab, &queue, &x)?);
    failed("read", x.to_vec::<f32>().map(drop))?;
    failed("read of a view", x.slice(0, 0..1)?.to_vec::<f32>().map(drop))?;
    failed("again", x.to_array().map(drop)).map(drop)
}

fn a_failure_travels_through_a_copy(context: &Context) -> Verdict {
    let (lab, [a, b]) = (context.lab(), context.lab().queues()?);
    let (x, y) = (lab.full(10, 0.0)?, lab.full(10, 0.0)?);
    drop(fail(lab, &a, &x)?);
    // The copy itself is refused if the failure is known already.
    failed("the copy", b.copy(&y, &x).and_then(|copied| wait::done(&copied)))?;
    let queue = lab.queue()?;
    failed("a queue's read", queue.read(&x, &mut [0; 40]))?;
    Ok(())
}

fn a_failure_travels_through_an_explicit_wait(context: &Context) -> Verdict {
    let (lab, [a, b]) = (context.lab(), context.lab().queues()?);
    let event = fail(lab, &a, &lab.full(10, 0.0)?)?;
    // The wait itself is refused if the failure is known already.
    let after = match b.wait_for(&event) {
        Ok(()) => lab.attempt(&b, "noop", &[], 1)?.and_then(|after| wait::done(&after)),
        known => known,
    };
    failed("after the wait", after)?;
    let c = lab.queue()?;
    failed("a known failure", c.wait_for(&event))?;
    wait::done(&lab.launch(&c, "noop", &[], 1)?)?;
    Ok(())
}

fn a_failure_travels_to_another_opening(context: &Context) -> Verdict {
    let (lab, other) = (context.lab(), context.reopen(&runtime_core::Options::new())?);
    let (a, b) = (lab.queue()?, other.queue()?);
    let (x, y) = (lab.full(10, 0.0)?, other.full(10, 0.0)?);
    drop(fail(lab, &a, &x)?);
    failed("over the border", b.copy(&y, &x).and_then(|event| wait::done(&event))).map(drop)
}

fn a_failed_reader_fails_no_writer(context: &Context) -> Verdict {
    let (lab, [a, b]) = (context.lab(), context.lab().queues()?);
    let (x, y) = (lab.full(10, 0.0)?, lab.full(1, 0.0)?);
    lab.delay(&a)?;
    let reader = lab.fail(&a, &x, &y)?;
    let writer = lab.fill(&b, &x, 5.0)?;
    wait::done(&writer)?;
    failed("the reader", wait::done(&reader))?;
    all("order alone carries no failure", &x, 5.0)
}

fn a_whole_write_heals_a_tensor(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let x = lab.full(10, 0.0)?;
    failed("the event", wait::done(&fail(lab, &queue, &x)?))?;
    x.write(&[6.0f32; 10])?;
    all("healed", &x, 6.0)?;
    wait::done(&lab.scale(&lab.queue()?, &x, 2.0)?)?;
    all("and in use again", &x, 12.0)
}

fn a_failed_call_says_so(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let (x, y) = (lab.full(10, 0.0)?, lab.full(10, 0.0)?);
    let called = queue.call(&lab.kernel("fail")?, &lab.geometry(1), &[Arg::read(&y), Arg::write(&x)]);
    refused("call", called, ErrorKind::Failed, &[lab.kernels()?.cause])?;
    failed("its queue", lab.attempt(&queue, "noop", &[], 1)?.map(drop)).map(drop)
}

fn an_awaited_failure_is_an_error(context: &Context) -> Verdict {
    let (lab, [a, b]) = (context.lab(), context.lab().queues()?);
    let (x, y) = (lab.full(10, 0.0)?, lab.full(10, 0.0)?);
    let event = fail(lab, &a, &x)?;
    // Refused if the failure is known already.
    let dependent = lab.attempt(&b, "copy_f32", &[Arg::read(&x), Arg::write(&y)], 10)?;
    failed("the dependent", dependent.and_then(block_on))?;
    failed("the origin", block_on(event)).map(drop)
}

fn a_failure_that_is_already_known_is_refused(context: &Context) -> Verdict {
    let (lab, [a, b]) = (context.lab(), context.lab().queues()?);
    let (x, y) = (lab.full(10, 0.0)?, lab.full(10, 0.0)?);
    failed("the event", wait::done(&fail(lab, &a, &x)?))?;
    failed("the reader", lab.attempt(&b, "copy_f32", &[Arg::read(&x), Arg::write(&y)], 10)?.map(drop))?;
    assert_eq!(b.submitted(), 0, "what is refused takes no ticket");
    wait::done(&lab.fill(&b, &y, 1.0)?)?;
    all("and poisons nothing", &y, 1.0)
}

fn a_failed_queue_can_be_dropped(context: &Context) -> Verdict {
    let lab = context.lab();
    let x = lab.full(10, 0.0)?;
    let queue = lab.queue()?;
    let event = fail(lab, &queue, &x)?;
    drop(queue);
    failed("the event", wait::done(&event))?;
    drop(event);
    // Asks the device to close what is left; what the queue wrote stays failed.
    (0..3).try_for_each(|_| lab.queue().map(drop))?;
    failed("read", x.to_vec::<f32>().map(drop)).map(drop)
}

fn a_tensor_of_a_failed_kernel_can_be_dropped(context: &Context) -> Verdict {
    let lab = context.lab();
    for _ in 0..20 {
        let (queue, x) = (lab.queue()?, lab.full(10, 0.0)?);
        drop(fail(lab, &queue, &x)?);
        drop((x, queue));
    }
    all("afterwards", &lab.full(10, 1.0)?, 1.0)
}

fn freezing_a_failed_tensor_is_an_error(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let x = lab.full(10, 0.0)?;
    drop(fail(lab, &queue, &x)?);
    failed("freeze", x.freeze())?;
    assert!(!x.is_frozen());
    Ok(())
}

fn a_failure_before_a_slow_kernel_is_seen(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    // Its drop would look at the queue, which then takes nothing any more.
    let x = lab.full(10, 0.0)?;
    let event = fail(lab, &queue, &x)?;
    drop(lab.launch(&queue, "spin", &[Arg::scalar(100_000i64)], 1)?);
    failed("the event", wait::done(&event))?;
    failed("idle", wait::idle(&queue)).map(drop)
}

fn a_failed_queue_says_when_it_is_idle(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    failed("the event", wait::done(&fail(lab, &queue, &lab.full(10, 0.0)?)?))?;
    wait::until("all tickets end, well or badly", || Ok(queue.completed()? == queue.submitted()))?;
    Ok(())
}

fn flush_and_poll_survive_a_failure(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    failed("the event", wait::done(&fail(lab, &queue, &lab.full(10, 0.0)?)?))?;
    queue.flush()?;
    queue.completed()?;
    Ok(())
}

fn a_failure_among_a_hundred_waits_reaches_what_comes_after(context: &Context) -> Verdict {
    /// After so many waits the failing one comes.
    const FAILING: usize = 60;
    let (lab, queue, sources) = (context.lab(), context.lab().queue()?, context.lab().queues::<5>()?);
    let (x, y) = (lab.full(10, 0.0)?, lab.full(10, 0.0)?);
    // Until the end nobody can see which of the waits is over: none may be forgotten, nor be taken for another.
    for source in &sources {
        lab.launch(source, "spin", &[Arg::scalar(100_000i64)], 1)?;
    }
    let mut events = Vec::new();
    for number in 0..100 {
        let event = match number {
            FAILING => lab.fail(&sources[0], &y, &x)?,
            _ => lab.launch(&sources[1 + number % 4], "noop", &[], 1)?,
        };
        if let Err(error) = queue.wait_for(&event) {
            // The machine is so slow that it is known already.
            assert_eq!((number, error.kind()), (FAILING, ErrorKind::Failed), "{error}");
            return Err(Failure::Unsupported("the machine is too busy".to_owned()));
        }
        events.push(lab.launch(&queue, "noop", &[], 1)?);
    }
    for (number, event) in events.iter().enumerate() {
        let outcome = wait::done(event);
        assert_eq!(outcome.is_ok(), number < FAILING, "wait {number}: {outcome:?}");
    }
    Ok(())
}
