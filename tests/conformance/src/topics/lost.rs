//! A lost device: every call says so, and nothing hangs.

use runtime_core::{Arg, ErrorKind, Options, Result};

use super::faults::faulty;
use crate::case::{Failure, Need, Verdict, cases};
use crate::context::Context;
use crate::data::{all, refused};
use crate::lab::Lab;
use crate::wait::{self, block_on};

cases! {
    [Need::Kernel("spin"), Need::Option("lose_after")] => a_lost_device_says_so_in_every_call,
        work_of_a_lost_device_fails, an_awaited_event_of_a_lost_device_fails, a_lost_device_can_be_dropped,
        a_lost_device_can_be_opened_again, losing_one_opening_leaves_the_other;
}

/// An opening that is lost, with what was made before.
fn lost(context: &Context) -> Result<(Lab, runtime_core::Queue, runtime_core::Tensor), Failure> {
    let lab = faulty(context, "lose_after", 4)?;
    let (queue, x) = (lab.queue()?, lab.full(10, 1.0)?);
    for _ in 0..8 {
        let _ = lab.attempt(&queue, "noop", &[], 1)?.and_then(|event| wait::done(&event));
    }
    Ok((lab, queue, x))
}

fn a_lost_device_says_so_in_every_call(context: &Context) -> Verdict {
    let (lab, queue, x) = lost(context)?;
    let what = |what: &str, result: Result<()>| {
        refused(what, result, ErrorKind::DeviceLost, &[context.name()]).map(drop)
    };
    what("allocate", lab.room::<f32>(10).map(drop))?;
    what("open_queue", lab.queue().map(drop))?;
    what("load", lab.device().load(&lab.kernels()?.source()).map(drop))?;
    what("read", x.to_vec::<f32>().map(drop))?;
    what("write", x.write(&[0.0f32; 10]))?;
    what("freeze", x.freeze())?;
    what("fill", queue.fill(&x, &[0]).map(drop))?;
    what("flush", queue.flush())?;
    what("completed", queue.completed().map(drop))?;
    what("idle", wait::idle(&queue))?;
    what("memory_usage", lab.device().memory_usage(x.space()).map(drop))?;
    what("launch", lab.attempt(&queue, "noop", &[], 1)?.map(drop))?;
    Ok(())
}

fn work_of_a_lost_device_fails(context: &Context) -> Verdict {
    let lab = faulty(context, "lose_after", 4)?;
    let [a, b] = lab.queues()?;
    let pending = lab.launch(&a, "spin", &[Arg::scalar(3_000_000i64)], 1)?;
    let other = lab.launch(&b, "spin", &[Arg::scalar(3_000_000i64)], 1)?;
    for _ in 0..4 {
        let _ = lab.attempt(&b, "noop", &[], 1)?;
    }
    refused("pending", wait::done(&pending), ErrorKind::DeviceLost, &[])?;
    refused("on the other queue", wait::done(&other), ErrorKind::DeviceLost, &[]).map(drop)
}

fn an_awaited_event_of_a_lost_device_fails(context: &Context) -> Verdict {
    let lab = faulty(context, "lose_after", 2)?;
    let (queue, kernel) = (lab.queue()?, lab.kernel("noop")?);
    let pending = lab.launch(&queue, "spin", &[Arg::scalar(3_000_000i64)], 1)?;
    let waiting = std::thread::spawn(move || block_on(pending));
    std::thread::sleep(std::time::Duration::from_millis(5));
    let geometry = lab.geometry(1);
    let _ = (queue.launch(&kernel, &geometry, &[]), queue.launch(&kernel, &geometry, &[]));
    let outcome = waiting.join().map_err(|_| Failure::Failed("a thread panicked".to_owned()))?;
    refused("awaited", outcome, ErrorKind::DeviceLost, &[]).map(drop)
}

fn a_lost_device_can_be_dropped(context: &Context) -> Verdict {
    for _ in 0..3 {
        let (lab, queue, x) = lost(context)?;
        drop(x);
        drop((queue, lab));
    }
    Ok(())
}

fn a_lost_device_can_be_opened_again(context: &Context) -> Verdict {
    let gone = lost(context)?;
    let lab = context.reopen(&Options::new())?;
    all("beside the lost one", &lab.full(10, 1.0)?, 1.0)?;
    drop(gone);
    wait::done(&lab.launch(&lab.queue()?, "noop", &[], 1)?)?;
    Ok(())
}

fn losing_one_opening_leaves_the_other(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let y = lab.full(10, 0.0)?;
    let (_lab, _queue, x) = lost(context)?;
    assert!(queue.copy(&y, &x).is_err(), "copied from a lost device");
    wait::done(&lab.fill(&lab.queue()?, &y, 1.0)?)?;
    all("of its own", &y, 1.0)
}
