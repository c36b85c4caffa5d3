//! Recording: what is recorded, what is rejected, and that nothing runs.

use runtime_core::{ErrorKind, Options};

use super::graphs::{N, record, replay};
use crate::case::{Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_error};
use crate::wait;

cases! {
    [Requirement::Kernel("spin")] => recording_runs_nothing, dependencies_follow_the_tensors,
        arguments_are_taken_when_recorded, copies_and_fills_are_recorded,
        what_cannot_be_recorded_is_refused, recording_begins_and_ends_once,
        a_recorded_event_cannot_be_waited_for, a_wrong_launch_is_refused_while_recording,
        a_discarded_recording_leaves_nothing;
}

fn recording_runs_nothing(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 1.0)?;
    let graph = record(&queue, || {
        drop(fixture.fill(&queue, &x, 2.0)?);
        drop(fixture.scale(&queue, &x, 2.0)?);
        Ok(())
    })?;
    assert_eq!((queue.submitted(), graph.len(), graph.is_empty()), (0, 2, false));
    expect_all("not run", &x, 1.0)
}

fn dependencies_follow_the_tensors(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y, z) = (fixture.full(N, 0.0)?, fixture.full(N, 0.0)?, fixture.full(N, 0.0)?);
    let graph = record(&queue, || {
        drop(fixture.fill(&queue, &x, 1.0)?);
        drop(fixture.fill(&queue, &z, 1.0)?);
        drop(fixture.copy(&queue, &x, &y)?);
        drop(fixture.copy(&queue, &x, &z)?);
        drop(fixture.fill(&queue, &x, 2.0)?);
        drop(fixture.scale(&queue, &x, 2.0)?);
        Ok(())
    })?;
    let dependencies: Vec<_> =
        (0..6).map(|node| graph.dependencies(node).unwrap_or_default().to_vec()).collect();
    assert!(dependencies[..2].iter().all(Vec::is_empty), "two independent nodes");
    assert_eq!(dependencies[2], [0], "read after write");
    assert_eq!(dependencies[3], [0, 1], "read after write, and write after write");
    assert!(dependencies[4].ends_with(&[2, 3]), "write after read: {:?}", dependencies[4]);
    assert_eq!(dependencies[5], [4], "implied dependencies are omitted");
    assert_eq!(graph.dependencies(6), None);
    Ok(())
}

fn arguments_are_taken_when_recorded(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 1.0)?;
    let mut factor = 2.0f32;
    let graph = record(&queue, || fixture.scale(&queue, &x, factor).map(drop))?;
    factor += 1.0;
    replay(&queue, &graph)?;
    expect_all(&format!("not {factor}"), &x, 2.0)
}

fn copies_and_fills_are_recorded(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(N, 0.0)?, fixture.full(N, 0.0)?);
    let graph = record(&queue, || {
        drop(queue.fill(&x.slice(0, 100..200)?, &3.0f32.to_le_bytes())?);
        drop(queue.copy(&y, &x)?);
        Ok(())
    })?;
    expect_all("not run", &x, 0.0)?;
    replay(&queue, &graph)?;
    expect_all("the part", &y.slice(0, 100..200)?, 3.0)?;
    expect_all("the rest", &y.slice(0, 200..N)?, 0.0)
}

fn what_cannot_be_recorded_is_refused(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, other) = (fixture.full(N, 1.0)?, fixture.queue()?);
    let graph = record(&other, || fixture.scale(&other, &x, 2.0).map(drop))?;
    let executable = other.instantiate(&graph)?;
    queue.begin_recording()?;
    let what = |what: &str, result: runtime_core::Result<()>| {
        expect_error(what, result, ErrorKind::Unsupported, &["recording"]).map(drop)
    };
    what("write", queue.write(&x, &[0; 4 * N]))?;
    what("read", queue.read(&x, &mut [0; 4 * N]))?;
    what("empty", queue.empty().map(drop))?;
    what("timestamp", queue.timestamp().map(drop))?;
    what("replay", queue.replay(&executable).map(drop))?;
    assert!(queue.end_recording()?.is_empty());
    Ok(())
}

fn recording_begins_and_ends_once(context: &Context) -> Verdict {
    let queue = context.fixture().queue()?;
    expect_error("end", queue.end_recording(), ErrorKind::InvalidArgument, &["end_recording"])?;
    queue.begin_recording()?;
    expect_error("begin", queue.begin_recording(), ErrorKind::InvalidArgument, &["begin_recording"])?;
    queue.end_recording()?;
    expect_error("end again", queue.end_recording(), ErrorKind::InvalidArgument, &["does not record"])?;
    Ok(wait::event(&queue.fill(&context.fixture().full(N, 0.0)?, &[1])?)?)
}

fn a_recorded_event_cannot_be_waited_for(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    queue.begin_recording()?;
    let event = fixture.launch(&queue, "noop", &[], 1);
    queue.end_recording()?;
    let event = event?;
    expect_error("wait", wait::event(&event), ErrorKind::InvalidArgument, &["recorded", "replay"])?;
    expect_error("poll", event.is_done(), ErrorKind::InvalidArgument, &["recorded"])?;
    expect_error("await", wait::block_on(event), ErrorKind::InvalidArgument, &["recorded"]).map(drop)
}

fn a_wrong_launch_is_refused_while_recording(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, frozen) = (fixture.full(N, 1.0)?, fixture.full(N, 1.0)?);
    frozen.freeze()?;
    let other = context.reopen(&Options::new())?.full(N, 1.0)?;
    let graph = record(&queue, || {
        assert!(fixture.fill(&queue, &other, 2.0).is_err(), "a tensor of another opening");
        assert!(fixture.fill(&queue, &frozen, 2.0).is_err(), "a frozen tensor");
        fixture.fill(&queue, &x, 2.0).map(drop)
    })?;
    assert_eq!(graph.len(), 1);
    replay(&queue, &graph)?;
    expect_all("the right one", &x, 2.0)
}

fn a_discarded_recording_leaves_nothing(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let x = fixture.full(N, 1.0)?;
    let queue = fixture.queue()?;
    queue.begin_recording()?;
    drop(fixture.fill(&queue, &x, 2.0)?);
    drop(queue);
    expect_all("never run", &x, 1.0)
}
