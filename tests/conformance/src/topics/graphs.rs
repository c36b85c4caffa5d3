//! Graphs: recorded and not run, instantiated, updated, replayed.

use runtime_core::{Arg, ErrorKind, Graph, Options, Queue, abi};

use crate::case::{Failure, Need, Verdict, cases};
use crate::context::Context;
use crate::data::{all, refused};
use crate::lab::Lab;
use crate::wait;

const N: usize = 1000;

cases! {
    [Need::Kernel("spin")] => recording_runs_nothing, a_replay_does_it_all, a_replay_can_be_repeated,
        dependencies_follow_the_tensors, an_update_changes_the_arguments, a_wrong_update_is_refused,
        an_update_that_needs_another_order_is_refused, what_a_graph_uses_stays, arguments_are_taken_when_recorded,
        a_replay_is_ordered_with_other_queues, copies_and_fills_are_recorded, a_graph_is_native_where_the_device_says_so,
        an_empty_graph_is_refused, what_cannot_be_recorded_is_refused, recording_begins_and_ends_once,
        a_recorded_event_cannot_be_waited_for, a_graph_of_another_opening_is_refused, a_wrong_launch_is_refused_while_recording,
        a_discarded_recording_leaves_nothing, a_graph_of_a_hundred_nodes, one_graph_on_two_queues;
    [Need::Kernel("fail")] => a_failing_node_fails_the_replay;
}

/// Records what `work` submits.
fn record(queue: &Queue, work: impl FnOnce() -> Verdict) -> Result<Graph, Failure> {
    queue.begin_recording()?;
    let verdict = work();
    let graph = queue.end_recording();
    verdict?;
    Ok(graph?)
}

fn replay(queue: &Queue, graph: &Graph) -> Verdict {
    let executable = queue.instantiate(graph)?;
    wait::done(&queue.replay(&executable)?)?;
    Ok(())
}

fn recording_runs_nothing(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let x = lab.full(N, 1.0)?;
    let graph = record(&queue, || {
        drop(lab.fill(&queue, &x, 2.0)?);
        drop(lab.scale(&queue, &x, 2.0)?);
        Ok(())
    })?;
    assert_eq!((queue.submitted(), graph.len(), graph.is_empty()), (0, 2, false));
    all("not run", &x, 1.0)
}

fn a_replay_does_it_all(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let (x, y) = (lab.full(N, 1.0)?, lab.full(N, 0.0)?);
    let graph = record(&queue, || {
        lab.delay(&queue)?;
        drop(lab.fill(&queue, &x, 2.0)?);
        drop(lab.copy(&queue, &x, &y)?);
        drop(lab.scale(&queue, &x, 5.0)?);
        Ok(())
    })?;
    replay(&queue, &graph)?;
    all("copied between", &y, 2.0)?;
    all("scaled last", &x, 10.0)
}

fn a_replay_can_be_repeated(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let x = lab.full(N, 1.0)?;
    let graph = record(&queue, || lab.scale(&queue, &x, 2.0).map(drop))?;
    let executable = queue.instantiate(&graph)?;
    drop(graph);
    for _ in 0..10 {
        drop(queue.replay(&executable)?);
    }
    wait::idle(&queue)?;
    all("ten times", &x, 1024.0)
}

fn dependencies_follow_the_tensors(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let (x, y, z) = (lab.full(N, 0.0)?, lab.full(N, 0.0)?, lab.full(N, 0.0)?);
    let graph = record(&queue, || {
        drop(lab.fill(&queue, &x, 1.0)?);
        drop(lab.fill(&queue, &z, 1.0)?);
        drop(lab.copy(&queue, &x, &y)?);
        drop(lab.copy(&queue, &x, &z)?);
        drop(lab.fill(&queue, &x, 2.0)?);
        drop(lab.scale(&queue, &x, 2.0)?);
        Ok(())
    })?;
    let dependencies: Vec<_> = (0..6).map(|node| graph.dependencies(node).unwrap_or_default().to_vec()).collect();
    assert_eq!(dependencies[..2], [vec![], vec![]], "two that share nothing");
    assert_eq!(dependencies[2], [0], "read after write");
    assert_eq!(dependencies[3], [0, 1], "read after write, and write after write");
    assert!(dependencies[4].ends_with(&[2, 3]), "write after read: {:?}", dependencies[4]);
    assert_eq!(dependencies[5], [4], "what is implied already is not said again");
    assert_eq!(graph.dependencies(6), None);
    Ok(())
}

fn an_update_changes_the_arguments(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let (x, y) = (lab.full(N, 0.0)?, lab.full(N, 0.0)?);
    let graph = record(&queue, || lab.fill(&queue, &x, 1.0).map(drop))?;
    let mut executable = queue.instantiate(&graph)?;
    executable.update(0, &lab.args("fill_f32", &[Arg::write(&y), Arg::scalar(3.0f32)], N)?)?;
    wait::done(&queue.replay(&executable)?)?;
    all("the old tensor", &x, 0.0)?;
    all("the new one", &y, 3.0)
}

fn a_wrong_update_is_refused(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let x = lab.full(N, 0.0)?;
    let graph = record(&queue, || {
        drop(lab.fill(&queue, &x, 1.0)?);
        drop(queue.fill(&x, &[0])?);
        Ok(())
    })?;
    let mut executable = queue.instantiate(&graph)?;
    let other = context.reopen(&Options::new())?.full(N, 0.0)?;
    let args = |x| lab.args("fill_f32", &[Arg::write(x), Arg::scalar(3.0f32)], N);
    refused("no such node", executable.update(2, &args(&x)?), ErrorKind::InvalidArgument, &["node 2", "update"])?;
    refused("no launch", executable.update(1, &args(&x)?), ErrorKind::InvalidArgument, &["node 1"])?;
    refused("tensor", executable.update(0, &args(&other)?), ErrorKind::InvalidArgument, &["argument 0"])?;
    wait::done(&queue.replay(&executable)?)?;
    all("as it was", &x, 0.0)
}

fn an_update_that_needs_another_order_is_refused(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let (x, y, z) = (lab.full(N, 0.0)?, lab.full(N, 0.0)?, lab.full(N, 0.0)?);
    let graph = record(&queue, || {
        drop(lab.fill(&queue, &x, 1.0)?);
        drop(lab.fill(&queue, &y, 2.0)?);
        drop(lab.copy(&queue, &x, &z)?);
        Ok(())
    })?;
    let mut executable = queue.instantiate(&graph)?;
    let update = executable.update(2, &lab.args("copy_f32", &[Arg::read(&y), Arg::write(&z)], N)?);
    refused("order", update, ErrorKind::InvalidArgument, &["order"])?;
    wait::done(&queue.replay(&executable)?)?;
    all("as it was", &z, 1.0)
}

fn what_a_graph_uses_stays(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let (x, y) = (lab.full(N, 6.0)?, lab.full(N, 0.0)?);
    let graph = record(&queue, || lab.copy(&queue, &x, &y).map(drop))?;
    drop(x);
    let executable = queue.instantiate(&graph)?;
    drop(graph);
    let _others = (0..8).map(|_| lab.full(N, -1.0)).collect::<Result<Vec<_>, _>>()?;
    drop(queue.replay(&executable)?);
    drop(executable);
    all("copied from a dropped tensor by a dropped graph", &y, 6.0)
}

fn arguments_are_taken_when_recorded(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let x = lab.full(N, 1.0)?;
    let mut factor = 2.0f32;
    let graph = record(&queue, || lab.scale(&queue, &x, factor).map(drop))?;
    factor += 1.0;
    replay(&queue, &graph)?;
    all(&format!("not {factor}"), &x, 2.0)
}

fn a_replay_is_ordered_with_other_queues(context: &Context) -> Verdict {
    let (lab, [a, b]) = (context.lab(), context.lab().queues()?);
    let (x, y) = (lab.full(N, 1.0)?, lab.full(N, 0.0)?);
    let graph = record(&b, || lab.copy(&b, &x, &y).map(drop))?;
    let executable = b.instantiate(&graph)?;
    lab.delay(&a)?;
    drop(lab.fill(&a, &x, 7.0)?);
    drop(b.replay(&executable)?);
    wait::done(&lab.fill(&a, &x, 9.0)?)?;
    all("after the one and before the other", &y, 7.0)
}

fn copies_and_fills_are_recorded(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let (x, y) = (lab.full(N, 0.0)?, lab.full(N, 0.0)?);
    let graph = record(&queue, || {
        drop(queue.fill(&x.slice(0, 100..200)?, &3.0f32.to_le_bytes())?);
        drop(queue.copy(&y, &x)?);
        Ok(())
    })?;
    all("not run", &x, 0.0)?;
    replay(&queue, &graph)?;
    all("the part", &y.slice(0, 100..200)?, 3.0)?;
    all("the rest", &y.slice(0, 200..N)?, 0.0)
}

fn a_graph_is_native_where_the_device_says_so(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let x = lab.full(N, 1.0)?;
    let graph = record(&queue, || (0..3).try_for_each(|_| lab.scale(&queue, &x, 2.0).map(drop)))?;
    let executable = queue.instantiate(&graph)?;
    let native = context.info().capabilities.has(abi::CAP_GRAPHS);
    assert_eq!(executable.is_native(), native);
    wait::done(&queue.replay(&executable)?)?;
    assert_eq!(queue.submitted(), if native { 1 } else { 3 }, "a native replay is one ticket");
    all("replayed", &x, 8.0)
}

fn an_empty_graph_is_refused(context: &Context) -> Verdict {
    let queue = context.lab().queue()?;
    let graph = record(&queue, || Ok(()))?;
    assert!(graph.is_empty());
    let replayed = queue.instantiate(&graph).and_then(|executable| queue.replay(&executable));
    refused("empty", replayed, ErrorKind::InvalidArgument, &["empty"]).map(drop)
}

fn what_cannot_be_recorded_is_refused(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let (x, other) = (lab.full(N, 1.0)?, lab.queue()?);
    let graph = record(&other, || lab.scale(&other, &x, 2.0).map(drop))?;
    let executable = other.instantiate(&graph)?;
    queue.begin_recording()?;
    let what = |what: &str, result: runtime_core::Result<()>| refused(what, result, ErrorKind::Unsupported, &["recording"]).map(drop);
    what("write", queue.write(&x, &[0; 4 * N]))?;
    what("read", queue.read(&x, &mut [0; 4 * N]))?;
    what("empty", queue.empty().map(drop))?;
    what("timestamp", queue.timestamp().map(drop))?;
    what("replay", queue.replay(&executable).map(drop))?;
    assert!(queue.end_recording()?.is_empty());
    Ok(())
}

fn recording_begins_and_ends_once(context: &Context) -> Verdict {
    let queue = context.lab().queue()?;
    refused("end", queue.end_recording(), ErrorKind::InvalidArgument, &["end_recording"])?;
    queue.begin_recording()?;
    refused("begin", queue.begin_recording(), ErrorKind::InvalidArgument, &["begin_recording"])?;
    queue.end_recording()?;
    refused("end again", queue.end_recording(), ErrorKind::InvalidArgument, &["does not record"])?;
    Ok(wait::done(&queue.fill(&context.lab().full(N, 0.0)?, &[1])?)?)
}

fn a_recorded_event_cannot_be_waited_for(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    queue.begin_recording()?;
    let event = lab.launch(&queue, "noop", &[], 1);
    queue.end_recording()?;
    let event = event?;
    refused("wait", wait::done(&event), ErrorKind::InvalidArgument, &["recorded", "replay"])?;
    refused("poll", event.is_done(), ErrorKind::InvalidArgument, &["recorded"])?;
    refused("await", wait::block_on(event), ErrorKind::InvalidArgument, &["recorded"]).map(drop)
}

fn a_graph_of_another_opening_is_refused(context: &Context) -> Verdict {
    let (lab, other) = (context.lab(), context.reopen(&Options::new())?);
    let (queue, theirs) = (lab.queue()?, other.queue()?);
    let x = lab.full(N, 1.0)?;
    let graph = record(&queue, || lab.scale(&queue, &x, 2.0).map(drop))?;
    refused("instantiate", theirs.instantiate(&graph), ErrorKind::InvalidArgument, &["graph"])?;
    let executable = queue.instantiate(&graph)?;
    refused("replay", theirs.replay(&executable), ErrorKind::InvalidArgument, &["graph"]).map(drop)
}

fn a_wrong_launch_is_refused_while_recording(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let (x, frozen) = (lab.full(N, 1.0)?, lab.full(N, 1.0)?);
    frozen.freeze()?;
    let other = context.reopen(&Options::new())?.full(N, 1.0)?;
    let graph = record(&queue, || {
        assert!(lab.fill(&queue, &other, 2.0).is_err(), "a tensor of another opening");
        assert!(lab.fill(&queue, &frozen, 2.0).is_err(), "a frozen tensor");
        lab.fill(&queue, &x, 2.0).map(drop)
    })?;
    assert_eq!(graph.len(), 1);
    replay(&queue, &graph)?;
    all("the right one", &x, 2.0)
}

fn a_discarded_recording_leaves_nothing(context: &Context) -> Verdict {
    let lab = context.lab();
    let x = lab.full(N, 1.0)?;
    let queue = lab.queue()?;
    queue.begin_recording()?;
    drop(lab.fill(&queue, &x, 2.0)?);
    drop(queue);
    all("never run", &x, 1.0)
}

fn a_graph_of_a_hundred_nodes(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let (one, x) = (lab.full(N, 1.0)?, lab.full(N, 0.0)?);
    let add = |lab: &Lab| lab.launch(&queue, "saxpy_f32", &[Arg::read(&one), Arg::read_write(&x), Arg::scalar(1.0f32)], N).map(drop);
    let graph = record(&queue, || (0..100).try_for_each(|_| add(lab)))?;
    let executable = queue.instantiate(&graph)?;
    for _ in 0..3 {
        drop(queue.replay(&executable)?);
        add(lab)?;
    }
    wait::idle(&queue)?;
    all("counted", &x, 303.0)
}

fn one_graph_on_two_queues(context: &Context) -> Verdict {
    let (lab, [a, b]) = (context.lab(), context.lab().queues()?);
    let x = lab.full(N, 1.0)?;
    let graph = record(&a, || {
        lab.delay(&a)?;
        lab.scale(&a, &x, 2.0).map(drop)
    })?;
    let executable = a.instantiate(&graph)?;
    for _ in 0..3 {
        drop(a.replay(&executable)?);
        drop(b.replay(&executable)?);
    }
    [&a, &b].into_iter().try_for_each(wait::idle)?;
    all("six times", &x, 64.0)
}

fn a_failing_node_fails_the_replay(context: &Context) -> Verdict {
    let (lab, queue) = (context.lab(), context.lab().queue()?);
    let x = lab.full(N, 1.0)?;
    let graph = record(&queue, || lab.launch(&queue, "fail", &[Arg::write(&x)], 1).map(drop))?;
    let executable = queue.instantiate(&graph)?;
    let replayed = queue.replay(&executable).and_then(|event| wait::done(&event));
    refused("replay", replayed, ErrorKind::Failed, &["the kernel `fail`"])?;
    refused("its tensor", x.to_vec::<f32>(), ErrorKind::Failed, &[]).map(drop)
}
