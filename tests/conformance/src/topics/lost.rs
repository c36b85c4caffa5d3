//! Lost devices: every call reports the loss, and nothing hangs.

use runtime_core::{Arg, ErrorKind, Options, Result};

use super::faults::open_faulty;
use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_error};
use crate::fixture::Fixture;
use crate::wait::{self, block_on};

cases! {
    [Requirement::Kernel("spin"), Requirement::Option("lose_after")] => a_lost_device_says_so_in_every_call,
        work_of_a_lost_device_fails, an_awaited_event_of_a_lost_device_fails, a_lost_device_can_be_dropped,
        a_lost_device_can_be_opened_again, losing_one_opening_leaves_the_other;
}

/// A lost device, with objects made before the loss.
fn lost(context: &Context) -> Result<(Fixture, runtime_core::Queue, runtime_core::Tensor), Failure> {
    let fixture = open_faulty(context, "lose_after", 4)?;
    let (queue, x) = (fixture.queue()?, fixture.full(10, 1.0)?);
    for _ in 0..8 {
        let _ = fixture.try_launch(&queue, "noop", &[], 1)?.and_then(|event| wait::event(&event));
    }
    Ok((fixture, queue, x))
}

fn a_lost_device_says_so_in_every_call(context: &Context) -> Verdict {
    let (fixture, queue, x) = lost(context)?;
    let lost_error = |what: &str, result: Result<()>| {
        expect_error(what, result, ErrorKind::DeviceLost, &[context.name()]).map(drop)
    };
    lost_error("allocate", fixture.uninitialized::<f32>(10).map(drop))?;
    lost_error("open_queue", fixture.queue().map(drop))?;
    lost_error("load", fixture.device().load(&fixture.kernels()?.source()).map(drop))?;
    lost_error("read", x.to_vec::<f32>().map(drop))?;
    lost_error("write", x.write(&[0.0f32; 10]))?;
    lost_error("freeze", x.freeze())?;
    lost_error("fill", queue.fill(&x, &[0]).map(drop))?;
    lost_error("flush", queue.flush())?;
    lost_error("completed", queue.completed().map(drop))?;
    lost_error("idle", wait::idle(&queue))?;
    lost_error("memory_usage", fixture.device().memory_usage(x.space()).map(drop))?;
    lost_error("launch", fixture.try_launch(&queue, "noop", &[], 1)?.map(drop))?;
    Ok(())
}

fn work_of_a_lost_device_fails(context: &Context) -> Verdict {
    let fixture = open_faulty(context, "lose_after", 4)?;
    let [a, b] = fixture.queues()?;
    let pending = fixture.launch(&a, "spin", &[Arg::scalar(3_000_000i64)], 1)?;
    let other = fixture.launch(&b, "spin", &[Arg::scalar(3_000_000i64)], 1)?;
    for _ in 0..4 {
        let _ = fixture.try_launch(&b, "noop", &[], 1)?;
    }
    expect_error("pending", wait::event(&pending), ErrorKind::DeviceLost, &[])?;
    expect_error("on the other queue", wait::event(&other), ErrorKind::DeviceLost, &[]).map(drop)
}

fn an_awaited_event_of_a_lost_device_fails(context: &Context) -> Verdict {
    let fixture = open_faulty(context, "lose_after", 2)?;
    let (queue, kernel) = (fixture.queue()?, fixture.kernel("noop")?);
    let pending = fixture.launch(&queue, "spin", &[Arg::scalar(3_000_000i64)], 1)?;
    let waiting = std::thread::spawn(move || block_on(pending));
    std::thread::sleep(std::time::Duration::from_millis(5));
    let geometry = fixture.geometry(1);
    let _ = (queue.launch(&kernel, geometry, &[]), queue.launch(&kernel, geometry, &[]));
    let outcome = waiting.join().map_err(|_| Failure::Failed("a thread panicked".to_owned()))?;
    expect_error("awaited", outcome, ErrorKind::DeviceLost, &[]).map(drop)
}

fn a_lost_device_can_be_dropped(context: &Context) -> Verdict {
    for _ in 0..3 {
        let (fixture, queue, x) = lost(context)?;
        drop(x);
        drop((queue, fixture));
    }
    Ok(())
}

fn a_lost_device_can_be_opened_again(context: &Context) -> Verdict {
    let gone = lost(context)?;
    let fixture = context.reopen(&Options::new())?;
    expect_all("on the reopened device", &fixture.full(10, 1.0)?, 1.0)?;
    drop(gone);
    wait::event(&fixture.launch(&fixture.queue()?, "noop", &[], 1)?)?;
    Ok(())
}

fn losing_one_opening_leaves_the_other(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let y = fixture.full(10, 0.0)?;
    let (_lab, _queue, x) = lost(context)?;
    assert!(queue.copy(&y, &x).is_err(), "copied from a lost device");
    wait::event(&fixture.fill(&fixture.queue()?, &y, 1.0)?)?;
    expect_all("on the other opened device", &y, 1.0)
}
