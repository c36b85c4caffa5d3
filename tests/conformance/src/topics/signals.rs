//! Signals are lazy: a held event is signaled once, a dropped one never. Checked with a layer that counts core's calls.

use runtime_core::{Queue, abi};

use crate::call_counter::{Counts, open_queue};
use crate::case::{Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::expect_all;
use crate::fixture::Fixture;
use crate::wait;

cases! {
    [Requirement::Kernel("copy_f32"), Requirement::Library] => a_dropped_event_is_never_signaled, a_held_event_is_signaled_once,
        an_event_of_a_moment_is_not_signaled, a_transfer_is_always_signaled,
        waiting_signals_the_last_submission_once, waiting_for_early_work_signals_nothing_later,
        hazards_within_a_queue_cost_no_signal, a_call_is_one_launch, a_launch_is_one_call_of_the_driver,
        a_frozen_tensor_costs_no_wait;
    [Requirement::Kernel("spin"), Requirement::Library] => a_clone_is_signaled_at_once;
    [Requirement::Kernel("spin"), Requirement::Library, Requirement::Capability(abi::CAP_WAIT_FOR)] => hazards_between_queues_signal_once,
        a_queue_that_others_wait_for_signals_everything;
}

fn noops(fixture: &Fixture, queue: &Queue, count: usize) -> Verdict {
    (0..count).try_for_each(|_| fixture.launch(queue, "noop", &[], 1).map(drop))
}

fn a_dropped_event_is_never_signaled(context: &Context) -> Verdict {
    let fixture = &*context.counting_fixture()?;
    let (queue, calls) = open_queue(fixture)?;
    noops(fixture, &queue, 10)?;
    let counts = calls.counts();
    assert_eq!((counts.launch, counts.signal, counts.flush), (10, 0, 0), "{counts:?}");
    Ok(())
}

fn a_held_event_is_signaled_once(context: &Context) -> Verdict {
    let fixture = &*context.counting_fixture()?;
    let (queue, calls) = open_queue(fixture)?;
    let held = fixture.launch(&queue, "noop", &[], 1)?;
    noops(fixture, &queue, 1)?;
    assert_eq!(calls.counts().signal, 1, "signaled before the next submission");
    noops(fixture, &queue, 10)?;
    wait::event(&held)?;
    noops(fixture, &queue, 1)?;
    assert_eq!(calls.counts().signal, 1, "and not again by the wait");
    Ok(())
}

fn an_event_of_a_moment_is_not_signaled(context: &Context) -> Verdict {
    let fixture = &*context.counting_fixture()?;
    let (queue, calls) = open_queue(fixture)?;
    for _ in 0..5 {
        let event = fixture.launch(&queue, "noop", &[], 1)?;
        assert!(event.ticket() > 0);
    }
    noops(fixture, &queue, 1)?;
    assert_eq!(calls.counts().signal, 0);
    Ok(())
}

fn a_transfer_is_always_signaled(context: &Context) -> Verdict {
    let fixture = &*context.counting_fixture()?;
    let (queue, calls) = open_queue(fixture)?;
    let (x, y) = (fixture.full(10, 0.0)?, fixture.full(10, 0.0)?);
    drop(queue.fill(&x, &[1])?);
    drop(queue.copy(&y, &x)?);
    noops(fixture, &queue, 3)?;
    assert_eq!(calls.counts().signal, 2);
    Ok(())
}

fn waiting_signals_the_last_submission_once(context: &Context) -> Verdict {
    let fixture = &*context.counting_fixture()?;
    let (queue, calls) = open_queue(fixture)?;
    let event = fixture.launch(&queue, "noop", &[], 1)?;
    for _ in 0..5 {
        wait::event(&event)?;
        wait::idle(&queue)?;
        assert!(event.is_done()?);
    }
    noops(fixture, &queue, 1)?;
    assert_eq!(calls.counts().signal, 1);
    Ok(())
}

fn waiting_for_early_work_signals_nothing_later(context: &Context) -> Verdict {
    let fixture = &*context.counting_fixture()?;
    let (queue, calls) = open_queue(fixture)?;
    let early = fixture.launch(&queue, "noop", &[], 1)?;
    noops(fixture, &queue, 5)?;
    wait::event(&early)?;
    let counts = calls.counts();
    assert_eq!(counts.signal, 1, "{counts:?}");
    Ok(())
}

fn hazards_within_a_queue_cost_no_signal(context: &Context) -> Verdict {
    let fixture = &*context.counting_fixture()?;
    let (queue, calls) = open_queue(fixture)?;
    let x = fixture.full(10, 1.0)?;
    for _ in 0..10 {
        drop(fixture.scale(&queue, &x, 2.0)?);
    }
    let counts = calls.counts();
    assert_eq!((counts.signal, counts.wait_for), (0, 0), "{counts:?}");
    expect_all("in order", &x, 1024.0)
}

fn hazards_between_queues_signal_once(context: &Context) -> Verdict {
    let fixture = &*context.counting_fixture()?;
    let ((a, of_a), (b, of_b)) = (open_queue(fixture)?, open_queue(fixture)?);
    let (x, y) = (fixture.full(10, 1.0)?, fixture.full(10, 1.0)?);
    fixture.delay(&a)?;
    drop(fixture.fill(&a, &x, 2.0)?);
    for _ in 0..5 {
        drop(fixture.copy(&b, &x, &y)?);
    }
    let (source, reader) = (of_a.counts(), of_b.counts());
    assert_eq!(source.signal, 1, "only the ticket waited for: {source:?}");
    assert!(source.flush >= 1, "flushed before another queue waits: {source:?}");
    assert_eq!((reader.wait_for, reader.signal), (1, 0), "no second wait for the same ticket: {reader:?}");
    expect_all("read", &y, 2.0)
}

fn a_queue_that_others_wait_for_signals_everything(context: &Context) -> Verdict {
    let fixture = &*context.counting_fixture()?;
    let ((a, of_a), (b, of_b)) = (open_queue(fixture)?, open_queue(fixture)?);
    fixture.delay(&a)?;
    let event = fixture.launch(&a, "noop", &[], 1)?;
    b.wait_for(&event)?;
    drop(event);
    noops(fixture, &a, 5)?;
    let counts = of_a.counts();
    assert_eq!(counts.signal, 6, "the one waited for and the five after it: {counts:?}");
    drop(of_b);
    Ok(())
}

fn a_clone_is_signaled_at_once(context: &Context) -> Verdict {
    let fixture = &*context.counting_fixture()?;
    let (queue, calls) = open_queue(fixture)?;
    fixture.delay(&queue)?;
    let event = fixture.launch(&queue, "noop", &[], 1)?;
    let clones = [event.clone(), event.clone(), event.clone()];
    drop(event);
    noops(fixture, &queue, 3)?;
    let counts = calls.counts();
    assert_eq!(counts.signal, 1, "one signal for all three: {counts:?}");
    clones.iter().try_for_each(|clone| Ok(wait::event(clone)?))
}

fn a_call_is_one_launch(context: &Context) -> Verdict {
    let fixture = &*context.counting_fixture()?;
    let (queue, calls) = open_queue(fixture)?;
    for _ in 0..3 {
        fixture.call(&queue, "noop", &[], 1)?;
    }
    let counts = calls.counts();
    assert!(counts.launch + counts.run_inline == 3 && counts.signal <= 3, "{counts:?}");
    Ok(())
}

fn a_launch_is_one_call_of_the_driver(context: &Context) -> Verdict {
    // An exclusive device: objects that other cases drop would make core poll this queue.
    let fixture = context.open_counting_fixture()?;
    let (queue, calls) = open_queue(&fixture)?;
    let (x, y) = (fixture.full(10, 1.0)?, fixture.full(10, 1.0)?);
    fixture.kernel("copy_f32")?;
    let before = calls.counts();
    for _ in 0..10 {
        drop(fixture.copy(&queue, &x, &y)?);
    }
    assert_eq!(before, Counts::default());
    assert_eq!(calls.counts(), Counts { launch: 10, ..Counts::default() }, "only launches");
    Ok(())
}

fn a_frozen_tensor_costs_no_wait(context: &Context) -> Verdict {
    let fixture = &*context.counting_fixture()?;
    let ((a, of_a), (b, of_b)) = (open_queue(fixture)?, open_queue(fixture)?);
    let (x, y, z) = (fixture.full(10, 1.0)?, fixture.full(10, 0.0)?, fixture.full(10, 0.0)?);
    x.freeze()?;
    drop(fixture.copy(&a, &x, &y)?);
    drop(fixture.copy(&b, &x, &z)?);
    assert_eq!((of_a.counts().wait_for, of_b.counts().wait_for), (0, 0));
    Ok(())
}
