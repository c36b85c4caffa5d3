//! Host tasks, groups of events, barriers, and values that are kept until work has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use runtime_core::{Arg, ErrorKind, Event, EventStatus};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_error};
use crate::wait::{self, block_on};

cases! {
    [Requirement::Queues] => a_task_reads_what_was_written_before, a_task_submits_and_waits,
        a_submission_depends_on_a_task, a_group_of_all_ends_with_the_last, groups_of_no_work_are_complete,
        a_barrier_covers_what_came_before, a_hundred_tasks_depend_on_one_event;
    [Requirement::Kernel("spin")] => a_task_waits_for_running_work, a_group_of_any_ends_with_the_first,
        a_value_is_kept_until_work_has_ended, a_group_is_awaited, a_status_follows_the_work;
    [Requirement::Kernel("fail")] => a_failure_travels_to_a_task, a_value_is_kept_until_failed_work_has_ended;
}

fn a_task_reads_what_was_written_before(context: &Context) -> Verdict {
    let (queue, tensor) = (context.fixture().queue()?, context.fixture().full(1000, 0.0)?);
    let event = queue.fill(&tensor, &1.0f32.to_ne_bytes())?;
    let task = queue.host_task(&[&event], move || {
        assert_eq!(tensor.to_vec::<f32>()?, [1.0; 1000]);
        Ok(())
    });
    Ok(wait::event(&task?)?)
}

fn a_task_submits_and_waits(context: &Context) -> Verdict {
    let (queue, tensor) = (Arc::new(context.fixture().queue()?), context.fixture().full(1000, 0.0)?);
    let (own, written) = (queue.clone(), tensor.clone());
    let task = queue.host_task(&[], move || {
        let event = own.fill(&written, &2.0f32.to_ne_bytes())?;
        own.host_task(&[&event], || {})?.wait()
    });
    wait::event(&task?)?;
    expect_all("filled by the task", &tensor, 2.0)
}

fn a_submission_depends_on_a_task(context: &Context) -> Verdict {
    let (queue, tensor) = (context.fixture().queue()?, context.fixture().full(1000, 0.0)?);
    let has_run = Arc::new(AtomicBool::new(false));
    let set = has_run.clone();
    let event = queue.fill(&tensor, &1.0f32.to_ne_bytes())?;
    let task = queue.host_task(&[&event], move || set.store(true, Ordering::SeqCst))?;
    queue.wait_for(&task)?;
    wait::event(&queue.fill(&tensor, &3.0f32.to_ne_bytes())?)?;
    assert!(has_run.load(Ordering::SeqCst));
    expect_all("filled after the task", &tensor, 3.0)
}

fn a_group_of_all_ends_with_the_last(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let queues = fixture.queues::<3>()?;
    let tensors = [fixture.full(1000, 0.0)?, fixture.full(1000, 0.0)?, fixture.full(1000, 0.0)?];
    let fill = |n: usize| queues[n].fill(&tensors[n], &1.0f32.to_ne_bytes());
    let (a, b, c) = (fill(0)?, fill(1)?, fill(2)?);
    // The last queue waits for the others, on its device where it can.
    let others = Event::all(&[&a, &b]);
    queues[2].wait_for(&others)?;
    let last = queues[2].fill(&tensors[2], &2.0f32.to_ne_bytes())?;
    wait::event(&Event::all(&[&others, &c, &last]))?;
    assert!(a.is_done()? && b.is_done()? && c.is_done()? && last.is_done()?);
    expect_all("the last", &tensors[2], 2.0)
}

fn groups_of_no_work_are_complete(context: &Context) -> Verdict {
    let queue = context.fixture().queue()?;
    queue.wait_for_all(&[&Event::completed(), &Event::all(&[])])?;
    wait::event(&queue.host_task(&[&Event::completed()], || {})?)?;
    wait::event(&queue.barrier(&[])?)?;
    let none = Event::any(&[]);
    expect_error("any of nothing", queue.wait_for(&none), ErrorKind::InvalidArgument, &["empty"])?;
    assert_eq!(queue.submitted(), 0);
    Ok(())
}

fn a_barrier_covers_what_came_before(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let ([one, other], tensor) = (fixture.queues()?, fixture.full(1000, 0.0)?);
    let first = one.fill(&tensor, &1.0f32.to_ne_bytes())?;
    let foreign = other.fill(&fixture.full(10, 0.0)?, &[1])?;
    let barrier = one.barrier(&[&foreign])?;
    wait::event(&barrier)?;
    assert!(first.is_done()? && foreign.is_done()?);
    assert_eq!(one.submitted(), 1, "a barrier submits nothing");
    Ok(())
}

fn a_hundred_tasks_depend_on_one_event(context: &Context) -> Verdict {
    let (queue, tensor) = (context.fixture().queue()?, context.fixture().full(1000, 0.0)?);
    let event = queue.fill(&tensor, &[1])?;
    let runs = Arc::new(AtomicUsize::new(0));
    let tasks = (0..100).map(|_| {
        let runs = runs.clone();
        queue.host_task(&[&event], move || {
            runs.fetch_add(1, Ordering::SeqCst);
        })
    });
    let tasks = tasks.collect::<Result<Vec<_>, _>>()?;
    wait::event(&Event::all(&tasks.iter().collect::<Vec<_>>()))?;
    assert_eq!(runs.load(Ordering::SeqCst), 100);
    Ok(())
}

fn a_task_waits_for_running_work(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let slow = Arc::new(fixture.launch(&queue, "spin", &[Arg::scalar(20_000i64)], 1)?);
    let seen = slow.clone();
    let task = queue.host_task(&[&slow], move || assert!(seen.is_done().unwrap_or(false)));
    Ok(wait::event(&task?)?)
}

fn a_group_of_any_ends_with_the_first(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let slow = fixture.launch(&queue, "spin", &[Arg::scalar(20_000i64)], 1)?;
    let quick = queue.host_task(&[], || {})?;
    let any = Event::any(&[&slow, &quick]);
    wait::event(&any)?;
    assert!(quick.is_done()? || slow.is_done()?);
    assert_eq!(any.status()?, EventStatus::Complete);
    Ok(wait::event(&slow)?)
}

/// Sets a flag when it is dropped, and another one if that was too early.
struct Kept {
    until: Event,
    dropped: Arc<AtomicBool>,
    early: Arc<AtomicBool>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.early.store(matches!(self.until.is_done(), Ok(false)), Ordering::SeqCst);
        self.dropped.store(true, Ordering::SeqCst);
    }
}

/// Keeps a value until an event has ended, in both ways, and waits until both are dropped.
fn expect_kept(queue: &runtime_core::Queue, event: Event) -> Verdict {
    let kept = || {
        let (dropped, early) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let value = Kept { until: event.clone(), dropped: dropped.clone(), early: early.clone() };
        (dropped, early, value)
    };
    let ((dropped, early, value), (also_dropped, also_early, other)) = (kept(), kept());
    queue.keep_until(&[&event], value)?;
    drop(event.keeping(other));
    let all = || dropped.load(Ordering::SeqCst) && also_dropped.load(Ordering::SeqCst);
    wait::until("the values to be dropped", || Ok(all()))?;
    match early.load(Ordering::SeqCst) || also_early.load(Ordering::SeqCst) {
        true => Err(Failure::Failed("a value was dropped too early".to_owned())),
        false => Ok(()),
    }
}

fn a_value_is_kept_until_work_has_ended(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let slow = fixture.launch(&queue, "spin", &[Arg::scalar(20_000i64)], 1)?;
    expect_kept(&queue, slow)
}

fn a_group_is_awaited(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let [one, other] = fixture.queues()?;
    let slow = fixture.launch(&one, "spin", &[Arg::scalar(20_000i64)], 1)?;
    let quick = other.fill(&fixture.full(10, 0.0)?, &[1])?;
    let (all, any) = (Event::all(&[&slow, &quick]), Event::any(&[&slow, &quick]));
    block_on(async {
        (&any).await?;
        (&all).await
    })?;
    assert!(slow.is_done()? && quick.is_done()?);
    Ok(())
}

fn a_status_follows_the_work(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let slow = fixture.launch(&queue, "spin", &[Arg::scalar(20_000i64)], 1)?;
    let mut last = slow.status()?;
    wait::until("the work to end", || {
        let now = slow.status()?;
        assert!(now >= last, "{now} after {last}");
        last = now;
        Ok(now == EventStatus::Complete)
    })?;
    Ok(())
}

fn a_failure_travels_to_a_task(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, other) = (fixture.full(10, 0.0)?, fixture.full(1, 0.0)?);
    let failing = fixture.fail(&queue, &other, &x)?;
    let has_run = Arc::new(AtomicBool::new(false));
    let set = has_run.clone();
    let task = queue.host_task(&[&failing], move || set.store(true, Ordering::SeqCst))?;
    expect_error(
        "the task",
        wait::event(&task),
        ErrorKind::Failed,
        &["ticket ", "a host task depends on it"],
    )?;
    assert!(!has_run.load(Ordering::SeqCst));
    assert_eq!(task.status()?, EventStatus::Failed);
    Ok(())
}

fn a_value_is_kept_until_failed_work_has_ended(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, other) = (fixture.full(10, 0.0)?, fixture.full(1, 0.0)?);
    fixture.delay(&queue)?;
    let failing = fixture.fail(&queue, &other, &x)?;
    expect_kept(&queue, failing)
}
