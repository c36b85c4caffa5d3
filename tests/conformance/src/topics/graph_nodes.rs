//! Graphs built node by node and out of graphs, their replays on several queues and threads, and rebinding.

use runtime_core::{Arg, Event, Graph, Queue, QueueOptions, Result, Tensor, abi};

use super::graphs::{N, record, replay};
use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::expect_all;
use crate::fixture::Fixture;
use crate::wait;

cases! {
    [Requirement::Kernel("spin")] => a_recording_is_finished_or_dropped, nodes_are_added_with_their_edges,
        a_graph_runs_in_a_graph, a_graph_without_tensors_is_replayed_on_two_queues,
        replays_of_threads_do_not_mix_their_nodes, a_graph_is_rebound_while_a_replay_is_in_flight,
        views_copies_and_fills_are_rebound, two_tensors_are_exchanged, all_nodes_are_updated_at_once;
    [Requirement::Kernel("spin"), Requirement::Capability(abi::CAP_TIMESTAMPS)] =>
        the_times_of_a_replay_reach_from_the_first_node_to_the_last;
}

/// Launches that are added to a graph.
struct Nodes<'f> {
    fixture: &'f Fixture,
    graph: Graph,
}

impl<'f> Nodes<'f> {
    fn new(fixture: &'f Fixture, queue: &Queue) -> Self {
        Self { fixture, graph: Graph::new(queue) }
    }

    fn launch(
        &mut self,
        name: &str,
        args: &[Arg<'_>],
        items: usize,
        after: &[usize],
    ) -> Result<usize, Failure> {
        let (kernel, args) = (self.fixture.kernel(name)?, self.fixture.args(name, args, items)?);
        Ok(self.graph.add_launch(&kernel, self.fixture.geometry(items), &args, after)?)
    }

    fn scale(&mut self, x: &Tensor, factor: f32, after: &[usize]) -> Result<usize, Failure> {
        self.launch("scale_f32", &[Arg::read_write(x), Arg::scalar(factor)], x.len(), after)
    }

    fn spin(&mut self, microseconds: i64, after: &[usize]) -> Result<usize, Failure> {
        self.launch("spin", &[Arg::scalar(microseconds)], 1, after)
    }
}

fn a_recording_is_finished_or_dropped(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 1.0)?;
    let dropped = queue.recording()?;
    fixture.scale(&*dropped, &x, 3.0)?;
    drop(dropped);
    let recording = queue.recording()?;
    fixture.scale(&*recording, &x, 2.0)?;
    fixture.scale(&*recording, &x, 5.0)?;
    let graph = recording.finish();
    assert_eq!((queue.submitted(), graph.len()), (0, 2));
    replay(&queue, &graph)?;
    expect_all("recorded", &x, 10.0)
}

fn nodes_are_added_with_their_edges(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let [x, y, z] = [fixture.full(N, 1.0)?, fixture.full(N, 0.0)?, fixture.full(N, 0.0)?];
    let mut nodes = Nodes::new(fixture, &queue);
    let busy = nodes.spin(2000, &[])?;
    let filled = nodes.graph.add_fill(&x, &4.0f32.to_le_bytes(), &[busy])?;
    let scaled = nodes.scale(&x, 2.0, &[])?;
    let copied = nodes.graph.add_copy(&y, &x, &[])?;
    nodes.launch("copy_f32", &[Arg::read(&y), Arg::write(&z)], N, &[busy, copied])?;
    nodes.graph.add_fill(&y, &[0; 4], &[])?;
    let edges = |node| nodes.graph.dependencies(node).unwrap_or_default();
    assert_eq!((edges(filled), edges(scaled), edges(4)), (&[0][..], &[1][..], &[0, 3][..]));
    replay(&queue, &nodes.graph)?;
    expect_all("scaled", &x, 8.0)?;
    expect_all("filled last", &y, 0.0)?;
    expect_all("copied before", &z, 8.0)
}

fn a_graph_runs_in_a_graph(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(N, 1.0)?, fixture.full(N, 0.0)?);
    let step = record(&queue, |recorder| {
        fixture.delay(recorder)?;
        fixture.scale(recorder, &x, 2.0)?;
        fixture.copy(recorder, &x, &y)?;
        recorder.fill(&x.slice(0, 0..1)?, &1.0f32.to_le_bytes())?;
        Ok(())
    })?;
    let mut steps = Graph::new(&queue);
    let first = steps.add_graph(&step, &[])?;
    let second = steps.add_graph(&step, &[first.end - 1])?;
    assert_eq!((first, second, steps.len()), (0..4, 4..8, 8));
    drop(step);
    replay(&queue, &steps)?;
    expect_all("scaled twice", &y.slice(0, 1..N)?, 4.0)?;
    expect_all("filled in between", &y.slice(0, 0..1)?, 2.0)
}

/// No hazard orders its replays, but a driver may refuse to run one graph twice at a time.
fn a_graph_without_tensors_is_replayed_on_two_queues(context: &Context) -> Verdict {
    let (fixture, [a, b]) = (context.fixture(), context.fixture().queues()?);
    let graph = record(&a, |recorder| fixture.delay(recorder))?;
    let executable = a.instantiate(&graph)?;
    for _ in 0..3 {
        drop(a.replay(&executable)?);
        drop(b.replay(&executable)?);
    }
    [&a, &b].into_iter().try_for_each(wait::idle)?;
    Ok(())
}

/// If two replays were mixed, `y` would get a sum that no order of whole replays gives.
fn replays_of_threads_do_not_mix_their_nodes(context: &Context) -> Verdict {
    const THREADS: usize = 3;
    const REPLAYS: usize = 10;
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let [one, x, y] = [fixture.full(N, 1.0)?, fixture.full(N, 0.0)?, fixture.full(N, 0.0)?];
    let saxpy = |from, to| [Arg::read(from), Arg::read_write(to), Arg::scalar(1.0f32)];
    let graph = record(&queue, |recorder| {
        fixture.launch(recorder, "saxpy_f32", &saxpy(&one, &x), N)?;
        fixture.launch(recorder, "saxpy_f32", &saxpy(&x, &y), N)?;
        Ok(())
    })?;
    let executable = queue.instantiate(&graph)?;
    let replay_all = || -> Result<()> {
        let queue = fixture.queue()?;
        for _ in 0..REPLAYS {
            drop(queue.replay(&executable)?);
        }
        wait::idle(&queue)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(replay_all)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| panic!("a thread that replays")))
    })?;
    let replays = (THREADS * REPLAYS) as f32;
    expect_all("counted", &x, replays)?;
    expect_all("sums of the counts", &y, replays * (replays + 1.0) / 2.0)
}

fn a_graph_is_rebound_while_a_replay_is_in_flight(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 1.0)?;
    let others = (0..4).map(|_| fixture.full(N, 1.0)).collect::<Result<Vec<_>>>()?;
    let graph = record(&queue, |recorder| {
        fixture.delay(recorder)?;
        (0..3).try_for_each(|_| fixture.scale(recorder, &x, 2.0).map(drop))
    })?;
    let mut executable = queue.instantiate(&graph)?;
    let native = executable.is_native();
    drop(queue.replay(&executable)?);
    let mut bound = &x;
    for other in &others {
        executable.rebind(&[(bound, other)])?;
        bound = other;
        drop(queue.replay(&executable)?);
    }
    assert_eq!(executable.is_native(), native);
    wait::idle(&queue)?;
    [&x].into_iter().chain(&others).try_for_each(|tensor| expect_all("once each", tensor, 8.0))
}

fn views_copies_and_fills_are_rebound(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(N, 1.0)?, fixture.full(N / 2, 0.0)?);
    let half = x.slice(0, N / 2..N)?;
    let graph = record(&queue, |recorder| {
        fixture.scale(recorder, &half, 3.0)?;
        recorder.fill(&x.slice(0, 0..N / 2)?, &7.0f32.to_le_bytes())?;
        recorder.copy(&y, &half)?;
        Ok(())
    })?;
    let mut executable = queue.instantiate(&graph)?;
    let (other_x, other_y) = (fixture.full(N, 5.0)?, fixture.full(N / 2, 0.0)?);
    executable.rebind(&[(&x, &other_x), (&y, &other_y)])?;
    wait::event(&queue.replay(&executable)?)?;
    expect_all("the old one", &x, 1.0)?;
    expect_all("the old copy", &y, 0.0)?;
    expect_all("filled", &other_x.slice(0, 0..N / 2)?, 7.0)?;
    expect_all("scaled", &other_x.slice(0, N / 2..N)?, 15.0)?;
    expect_all("copied", &other_y, 15.0)
}

fn two_tensors_are_exchanged(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(N, 1.0)?, fixture.full(N, 100.0)?);
    let args = [Arg::read(&x), Arg::read_write(&y), Arg::scalar(1.0f32)];
    let graph = record(&queue, |recorder| {
        fixture.scale(recorder, &x, 2.0)?;
        fixture.launch(recorder, "saxpy_f32", &args, N).map(drop)
    })?;
    let mut executable = queue.instantiate(&graph)?;
    for _ in 0..2 {
        drop(queue.replay(&executable)?);
        executable.rebind(&[(&x, &y), (&y, &x)])?;
    }
    wait::idle(&queue)?;
    expect_all("first 2, then 2 + 204", &x, 206.0)?;
    expect_all("first 102, then 204", &y, 204.0)
}

fn all_nodes_are_updated_at_once(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let [x, y, z] = [fixture.full(N, 1.0)?, fixture.full(N, 2.0)?, fixture.full(N, 0.0)?];
    let graph = record(&queue, |recorder| {
        fixture.scale(recorder, &x, 10.0)?;
        fixture.scale(recorder, &y, 10.0)?;
        fixture.copy(recorder, &x, &z).map(drop)
    })?;
    let mut executable = queue.instantiate(&graph)?;
    let scale =
        |tensor, factor: f32| fixture.args("scale_f32", &[Arg::read_write(tensor), Arg::scalar(factor)], N);
    let copy = fixture.args("copy_f32", &[Arg::read(&y), Arg::write(&z)], N)?;
    executable.update_nodes(&[(0, &scale(&y, 2.0)?), (1, &scale(&x, 3.0)?), (2, &copy)])?;
    wait::event(&queue.replay(&executable)?)?;
    expect_all("by the second node", &x, 3.0)?;
    expect_all("by the first node", &y, 4.0)?;
    expect_all("copied", &z, 4.0)
}

/// Eight nodes take longer than four times as long as one of them. On a busy machine it may take several tries to see that.
fn the_times_of_a_replay_reach_from_the_first_node_to_the_last(context: &Context) -> Verdict {
    const TRIES: usize = 5;
    let fixture = context.fixture();
    let options = QueueOptions { timestamps: true, ..QueueOptions::default() };
    let queue = fixture.device().open_queue(&options)?;
    let mut nodes = Nodes::new(fixture, &queue);
    let mut last = nodes.spin(1000, &[])?;
    for _ in 1..8 {
        last = nodes.spin(1000, &[last])?;
    }
    let executable = queue.instantiate(&nodes.graph)?;
    let span = |event: &Event| -> Result<(u64, u64)> {
        wait::event(event)?;
        event.times().map(|times| (times.start_ns, times.end_ns))
    };
    let (spin, args) = (fixture.kernel("spin")?, fixture.args("spin", &[Arg::scalar(1000i64)], 1)?);
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let one = queue.timed(|queue| queue.launch(&spin, fixture.geometry(1), &args))?;
        let all = queue.timed(|queue| queue.replay(&executable))?;
        let (one, all) = (span(&one)?, span(&all)?);
        assert!(one.0 < one.1 && one.1 <= all.0 && all.0 < all.1, "{one:?} {all:?}");
        if all.1 - all.0 > (one.1 - one.0) * 4 {
            return Ok(());
        }
        seen.push((one.1 - one.0, all.1 - all.0));
    }
    Err(Failure::Differs(format!("one node and eight take, in nanoseconds: {seen:?}")))
}
