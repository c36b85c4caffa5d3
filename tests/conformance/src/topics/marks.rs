//! Marks are lazy: a held event is marked once, a dropped one never. Seen by a kernel that tells its queue's counts.

use runtime_core::{Arg, Queue, Tensor};

use crate::case::{Need, Verdict, cases};
use crate::context::Context;
use crate::data::all;
use crate::lab::Lab;
use crate::wait;

cases! {
    [Need::Kernel("counters")] => a_dropped_event_is_never_marked, a_held_event_is_marked_once,
        an_event_of_a_moment_is_not_marked, a_transfer_is_always_marked,
        waiting_marks_the_last_submission_once, waiting_for_early_work_marks_nothing_later,
        hazards_within_a_queue_cost_no_mark, hazards_between_queues_mark_once,
        a_queue_that_others_wait_for_marks_everything, a_clone_is_marked_at_once, a_call_is_one_launch,
        a_launch_is_one_call_of_the_driver, a_frozen_tensor_costs_no_wait;
}

/// Counts of a queue's calls.
#[derive(Debug)]
struct Counts {
    launch: u64,
    mark: u64,
    flush: u64,
    wait_for: u64,
}

/// Notes the counts so far on the device, without marking or waiting for anything.
fn note(lab: &Lab, queue: &Queue) -> Result<Tensor, crate::case::Failure> {
    let out = lab.tensor(&[u64::MAX; 12])?;
    drop(lab.launch(queue, "counters", &[Arg::write(&out)], 12)?);
    Ok(out)
}

fn read(noted: &Tensor) -> Result<Counts, crate::case::Failure> {
    let counts = noted.to_vec::<u64>()?;
    Ok(Counts { launch: counts[0], mark: counts[1], flush: counts[2], wait_for: counts[5] })
}

fn noops(lab: &Lab, queue: &Queue, count: usize) -> Verdict {
    (0..count).try_for_each(|_| lab.launch(queue, "noop", &[], 1).map(drop))
}

fn a_dropped_event_is_never_marked(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    noops(lab, &queue, 10)?;
    let counts = read(&note(lab, &queue)?)?;
    assert_eq!((counts.launch, counts.mark, counts.flush), (11, 0, 0), "{counts:?}");
    Ok(())
}

fn a_held_event_is_marked_once(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let held = lab.launch(&queue, "noop", &[], 1)?;
    let at_first = note(lab, &queue)?;
    noops(lab, &queue, 10)?;
    wait::done(&held)?;
    let at_last = note(lab, &queue)?;
    assert_eq!(read(&at_first)?.mark, 1, "marked before the next submission");
    assert_eq!(read(&at_last)?.mark, 1, "and not again by the wait");
    Ok(())
}

fn an_event_of_a_moment_is_not_marked(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    for _ in 0..5 {
        let event = lab.launch(&queue, "noop", &[], 1)?;
        assert!(event.ticket() > 0);
    }
    assert_eq!(read(&note(lab, &queue)?)?.mark, 0);
    Ok(())
}

fn a_transfer_is_always_marked(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let (x, y) = (lab.full(10, 0.0)?, lab.full(10, 0.0)?);
    drop(queue.fill(&x, &[1])?);
    drop(queue.copy(&y, &x)?);
    noops(lab, &queue, 3)?;
    assert_eq!(read(&note(lab, &queue)?)?.mark, 2);
    Ok(())
}

fn waiting_marks_the_last_submission_once(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let event = lab.launch(&queue, "noop", &[], 1)?;
    for _ in 0..5 {
        wait::done(&event)?;
        wait::idle(&queue)?;
        assert!(event.is_done()?);
    }
    assert_eq!(read(&note(lab, &queue)?)?.mark, 1);
    Ok(())
}

fn waiting_for_early_work_marks_nothing_later(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let early = lab.launch(&queue, "noop", &[], 1)?;
    noops(lab, &queue, 5)?;
    wait::done(&early)?;
    let counts = read(&note(lab, &queue)?)?;
    assert_eq!(counts.mark, 1, "{counts:?}");
    Ok(())
}

fn hazards_within_a_queue_cost_no_mark(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let x = lab.full(10, 1.0)?;
    for _ in 0..10 {
        drop(lab.scale(&queue, &x, 2.0)?);
    }
    let counts = read(&note(lab, &queue)?)?;
    assert_eq!((counts.mark, counts.wait_for), (0, 0), "{counts:?}");
    all("and in order", &x, 1024.0)
}

fn hazards_between_queues_mark_once(context: &Context) -> Verdict {
    let (lab, [a, b]) = (context.lab(), context.lab().queues()?);
    let (x, y) = (lab.full(10, 1.0)?, lab.full(10, 1.0)?);
    lab.delay(&a)?;
    drop(lab.fill(&a, &x, 2.0)?);
    for _ in 0..5 {
        drop(lab.copy(&b, &x, &y)?);
    }
    let (source, reader) = (note(lab, &a)?, note(lab, &b)?);
    let (source, reader) = (read(&source)?, read(&reader)?);
    // The note itself is marked too, and may see it.
    assert!((1..=2).contains(&source.mark), "the one that is waited for: {source:?}");
    assert!(source.flush >= 1, "nobody waits for what was not submitted: {source:?}");
    assert!(
        reader.wait_for == 1 && reader.mark <= 1,
        "what is waited for is not waited for again: {reader:?}"
    );
    all("read", &y, 2.0)
}

fn a_queue_that_others_wait_for_marks_everything(context: &Context) -> Verdict {
    let (lab, [a, b]) = (context.lab(), context.lab().queues()?);
    lab.delay(&a)?;
    let event = lab.launch(&a, "noop", &[], 1)?;
    b.wait_for(&event)?;
    drop(event);
    noops(lab, &a, 5)?;
    let counts = read(&note(lab, &a)?)?;
    // The note itself is marked too, and may see it.
    assert!((6..=7).contains(&counts.mark), "the one waited for and the five after it: {counts:?}");
    Ok(())
}

fn a_clone_is_marked_at_once(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    lab.delay(&queue)?;
    let event = lab.launch(&queue, "noop", &[], 1)?;
    let clones = [event.clone(), event.clone(), event.clone()];
    drop(event);
    noops(lab, &queue, 3)?;
    let counts = read(&note(lab, &queue)?)?;
    // Reading the note marks it, and it may still be waiting behind the delay.
    assert!((1..=2).contains(&counts.mark), "once for all three: {counts:?}");
    clones.iter().try_for_each(|clone| Ok(wait::done(clone)?))
}

fn a_call_is_one_launch(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    for _ in 0..3 {
        lab.call(&queue, "noop", &[], 1)?;
    }
    let counts = read(&note(lab, &queue)?)?;
    assert!(counts.launch == 4 && counts.mark <= 3, "{counts:?}");
    Ok(())
}

fn a_launch_is_one_call_of_the_driver(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let (x, y) = (lab.full(10, 1.0)?, lab.full(10, 1.0)?);
    for _ in 0..10 {
        drop(lab.copy(&queue, &x, &y)?);
    }
    let out = note(lab, &queue)?;
    let counts = out.to_vec::<u64>()?;
    // launch, mark, flush, poll, wait, wait_for, write, read, copy, fill, empty, timestamp
    crate::data::same("launches alone", &counts, &[11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
}

fn a_frozen_tensor_costs_no_wait(context: &Context) -> Verdict {
    let (lab, [a, b]) = (context.lab(), context.lab().queues()?);
    let (x, y, z) = (lab.full(10, 1.0)?, lab.full(10, 0.0)?, lab.full(10, 0.0)?);
    x.freeze()?;
    drop(lab.copy(&a, &x, &y)?);
    drop(lab.copy(&b, &x, &z)?);
    let (a, b) = (note(lab, &a)?, note(lab, &b)?);
    assert_eq!((read(&a)?.wait_for, read(&b)?.wait_for), (0, 0));
    Ok(())
}
