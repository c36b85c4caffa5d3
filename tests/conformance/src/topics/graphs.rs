//! Graphs: record without running, instantiate, update, replay.

use runtime_core::graph::Recorder;
use runtime_core::{Arg, ErrorKind, Graph, Options, Queue, abi};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_error};
use crate::wait;

pub(super) const N: usize = 1000;

cases! {
    [Requirement::Kernel("spin")] => a_replay_does_it_all, a_replay_can_be_repeated,
        an_update_changes_the_arguments, a_wrong_update_is_refused,
        an_update_that_needs_another_order_is_refused, what_a_graph_uses_stays,
        a_replay_is_ordered_with_other_queues, a_graph_is_native_where_the_device_says_so,
        a_graph_of_another_opening_is_refused, a_graph_of_a_hundred_nodes,
        one_graph_on_two_queues;
    [Requirement::Kernel("fail")] => a_failing_node_fails_the_replay;
}

/// Records what `work` submits to the recorder.
pub(super) fn record(queue: &Queue, work: impl FnOnce(&Recorder) -> Verdict) -> Result<Graph, Failure> {
    let mut verdict = Ok(());
    let graph = queue.record(|recorder| {
        verdict = work(recorder);
        Ok(())
    })?;
    verdict.map(|()| graph)
}

pub(super) fn replay(queue: &Queue, graph: &Graph) -> Verdict {
    let executable = queue.instantiate(graph)?;
    wait::event(&queue.replay(&executable)?)?;
    Ok(())
}

fn a_replay_does_it_all(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(N, 1.0)?, fixture.full(N, 0.0)?);
    let graph = record(&queue, |recorder| {
        fixture.delay(recorder)?;
        fixture.fill(recorder, &x, 2.0)?;
        fixture.copy(recorder, &x, &y)?;
        fixture.scale(recorder, &x, 5.0)?;
        Ok(())
    })?;
    replay(&queue, &graph)?;
    expect_all("copied between", &y, 2.0)?;
    expect_all("scaled last", &x, 10.0)
}

fn a_replay_can_be_repeated(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 1.0)?;
    let graph = record(&queue, |recorder| fixture.scale(recorder, &x, 2.0).map(drop))?;
    let executable = queue.instantiate(&graph)?;
    drop(graph);
    for _ in 0..10 {
        drop(queue.replay(&executable)?);
    }
    wait::idle(&queue)?;
    expect_all("ten times", &x, 1024.0)
}

fn an_update_changes_the_arguments(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(N, 0.0)?, fixture.full(N, 0.0)?);
    let graph = record(&queue, |recorder| fixture.fill(recorder, &x, 1.0).map(drop))?;
    let mut executable = queue.instantiate(&graph)?;
    executable.update(0, &fixture.args("fill_f32", &[Arg::write(&y), Arg::scalar(3.0f32)], N)?)?;
    wait::event(&queue.replay(&executable)?)?;
    expect_all("the old tensor", &x, 0.0)?;
    expect_all("the new one", &y, 3.0)
}

fn a_wrong_update_is_refused(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 0.0)?;
    let graph = record(&queue, |recorder| {
        fixture.fill(recorder, &x, 1.0)?;
        recorder.fill(&x, &[0])?;
        Ok(())
    })?;
    let mut executable = queue.instantiate(&graph)?;
    let other = context.reopen(&Options::new())?.full(N, 0.0)?;
    let args = |x| fixture.args("fill_f32", &[Arg::write(x), Arg::scalar(3.0f32)], N);
    expect_error(
        "no such node",
        executable.update(2, &args(&x)?),
        ErrorKind::InvalidArgument,
        &["node 2", "update"],
    )?;
    expect_error("no launch", executable.update(1, &args(&x)?), ErrorKind::InvalidArgument, &["node 1"])?;
    expect_error(
        "tensor",
        executable.update(0, &args(&other)?),
        ErrorKind::InvalidArgument,
        &["argument 0"],
    )?;
    wait::event(&queue.replay(&executable)?)?;
    expect_all("unchanged", &x, 0.0)
}

fn an_update_that_needs_another_order_is_refused(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y, z) = (fixture.full(N, 0.0)?, fixture.full(N, 0.0)?, fixture.full(N, 0.0)?);
    let graph = record(&queue, |recorder| {
        fixture.fill(recorder, &x, 1.0)?;
        fixture.fill(recorder, &y, 2.0)?;
        fixture.copy(recorder, &x, &z)?;
        Ok(())
    })?;
    let mut executable = queue.instantiate(&graph)?;
    let update = executable.update(2, &fixture.args("copy_f32", &[Arg::read(&y), Arg::write(&z)], N)?);
    expect_error("order", update, ErrorKind::InvalidArgument, &["dependencies", "record the graph again"])?;
    wait::event(&queue.replay(&executable)?)?;
    expect_all("unchanged", &z, 1.0)
}

fn what_a_graph_uses_stays(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(N, 6.0)?, fixture.full(N, 0.0)?);
    let graph = record(&queue, |recorder| fixture.copy(recorder, &x, &y).map(drop))?;
    drop(x);
    let executable = queue.instantiate(&graph)?;
    drop(graph);
    let _others = (0..8).map(|_| fixture.full(N, -1.0)).collect::<Result<Vec<_>, _>>()?;
    drop(queue.replay(&executable)?);
    drop(executable);
    expect_all("copied from a dropped tensor by a dropped graph", &y, 6.0)
}

fn a_replay_is_ordered_with_other_queues(context: &Context) -> Verdict {
    let (fixture, [a, b]) = (context.fixture(), context.fixture().queues()?);
    let (x, y) = (fixture.full(N, 1.0)?, fixture.full(N, 0.0)?);
    let graph = record(&b, |recorder| fixture.copy(recorder, &x, &y).map(drop))?;
    let executable = b.instantiate(&graph)?;
    fixture.delay(&a)?;
    drop(fixture.fill(&a, &x, 7.0)?);
    drop(b.replay(&executable)?);
    wait::event(&fixture.fill(&a, &x, 9.0)?)?;
    expect_all("between the two launches", &y, 7.0)
}

fn a_graph_is_native_where_the_device_says_so(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 1.0)?;
    let graph =
        record(&queue, |recorder| (0..3).try_for_each(|_| fixture.scale(recorder, &x, 2.0).map(drop)))?;
    let executable = queue.instantiate(&graph)?;
    let native = context.info().capabilities.has(abi::CAP_GRAPHS);
    assert_eq!(executable.is_native(), native);
    wait::event(&queue.replay(&executable)?)?;
    assert_eq!(queue.submitted(), if native { 1 } else { 3 }, "a native replay is one ticket");
    expect_all("replayed", &x, 8.0)
}

fn a_graph_of_another_opening_is_refused(context: &Context) -> Verdict {
    let (fixture, other) = (context.fixture(), context.reopen(&Options::new())?);
    let (queue, theirs) = (fixture.queue()?, other.queue()?);
    let x = fixture.full(N, 1.0)?;
    let graph = record(&queue, |recorder| fixture.scale(recorder, &x, 2.0).map(drop))?;
    expect_error("instantiate", theirs.instantiate(&graph), ErrorKind::InvalidArgument, &["graph"])?;
    let executable = queue.instantiate(&graph)?;
    expect_error("replay", theirs.replay(&executable), ErrorKind::InvalidArgument, &["graph"]).map(drop)
}

fn a_graph_of_a_hundred_nodes(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (one, x) = (fixture.full(N, 1.0)?, fixture.full(N, 0.0)?);
    let args = [Arg::read(&one), Arg::read_write(&x), Arg::scalar(1.0f32)];
    let graph = record(&queue, |recorder| {
        (0..100).try_for_each(|_| fixture.launch(recorder, "saxpy_f32", &args, N).map(drop))
    })?;
    let executable = queue.instantiate(&graph)?;
    for _ in 0..3 {
        drop(queue.replay(&executable)?);
        drop(fixture.launch(&queue, "saxpy_f32", &args, N)?);
    }
    wait::idle(&queue)?;
    expect_all("counted", &x, 303.0)
}

fn one_graph_on_two_queues(context: &Context) -> Verdict {
    let (fixture, [a, b]) = (context.fixture(), context.fixture().queues()?);
    let x = fixture.full(N, 1.0)?;
    let graph = record(&a, |recorder| {
        fixture.delay(recorder)?;
        fixture.scale(recorder, &x, 2.0).map(drop)
    })?;
    let executable = a.instantiate(&graph)?;
    for _ in 0..3 {
        drop(a.replay(&executable)?);
        drop(b.replay(&executable)?);
    }
    [&a, &b].into_iter().try_for_each(wait::idle)?;
    expect_all("six times", &x, 64.0)
}

fn a_failing_node_fails_the_replay(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 1.0)?;
    let y = fixture.full(N, 1.0)?;
    let graph = record(&queue, |recorder| fixture.fail(recorder, &y, &x).map(drop))?;
    let executable = queue.instantiate(&graph)?;
    let replayed = queue.replay(&executable).and_then(|event| wait::event(&event));
    expect_error("replay", replayed, ErrorKind::Failed, &[fixture.kernels()?.cause])?;
    expect_error("its tensor", x.to_vec::<f32>(), ErrorKind::Failed, &[]).map(drop)
}
