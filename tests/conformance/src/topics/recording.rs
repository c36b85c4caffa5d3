//! Recording: what is recorded, what is rejected, and that nothing runs.

use runtime_core::fusion::FusionOptions;
use runtime_core::graph::Recording;
use runtime_core::{Arg, DType, Error, ErrorKind, Event, Geometry, Options, Queue, abi};

use super::graphs::{N, record, replay};
use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_error};
use crate::wait;

cases! {
    [Requirement::Kernel("spin")] => recording_runs_nothing, an_empty_recording_replays_as_nothing, dependencies_follow_the_tensors,
        arguments_are_taken_when_recorded, copies_and_fills_are_recorded,
        what_cannot_be_recorded_is_refused, a_queue_may_be_used_while_it_is_recorded,
        a_failed_recording_is_discarded, a_wrong_launch_is_refused_while_recording,
        a_dropped_graph_runs_nothing, what_a_queue_is_given_is_recorded, events_of_a_recording_order_its_nodes,
        events_of_a_recording_cannot_be_waited_for, what_a_recording_queue_cannot_record_is_named,
        a_dispatcher_is_recorded, a_cast_is_recorded_if_the_device_makes_it;
}

fn recording_runs_nothing(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 1.0)?;
    let graph = record(&queue, |recorder| {
        fixture.fill(recorder, &x, 2.0)?;
        fixture.scale(recorder, &x, 2.0)?;
        Ok(())
    })?;
    assert_eq!((queue.submitted(), graph.len(), graph.is_empty()), (0, 2, false));
    expect_all("not run", &x, 1.0)
}

/// Programs that record conditionally may record nothing.
fn an_empty_recording_replays_as_nothing(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let executable = queue.instantiate(&record(&queue, |_| Ok(()))?)?;
    assert!(!executable.is_native());
    wait::event(&queue.replay(&executable)?)?;
    assert_eq!(queue.submitted(), 0);
    // In order with the work before it.
    let x = fixture.full(N, 1.0)?;
    fixture.delay(&queue)?;
    fixture.fill(&queue, &x, 2.0)?;
    let submitted = queue.submitted();
    let event = queue.replay(&executable)?;
    wait::event(&event)?;
    assert_eq!((queue.completed()?, queue.submitted()), (submitted, submitted));
    // On another queue, too, and between replays of other graphs.
    let other = context.fixture().queue()?;
    replay(&other, &record(&other, |recorder| fixture.scale(recorder, &x, 3.0).map(drop))?)?;
    wait::event(&other.replay(&executable)?)?;
    expect_all("around it", &x, 6.0)
}

fn dependencies_follow_the_tensors(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y, z) = (fixture.full(N, 0.0)?, fixture.full(N, 0.0)?, fixture.full(N, 0.0)?);
    let graph = record(&queue, |recorder| {
        fixture.fill(recorder, &x, 1.0)?;
        fixture.fill(recorder, &z, 1.0)?;
        fixture.copy(recorder, &x, &y)?;
        fixture.copy(recorder, &x, &z)?;
        fixture.fill(recorder, &x, 2.0)?;
        fixture.scale(recorder, &x, 2.0)?;
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
    let graph = record(&queue, |recorder| fixture.scale(recorder, &x, factor).map(drop))?;
    factor += 1.0;
    replay(&queue, &graph)?;
    expect_all(&format!("not {factor}"), &x, 2.0)
}

fn copies_and_fills_are_recorded(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(N, 0.0)?, fixture.full(N, 0.0)?);
    let graph = record(&queue, |recorder| {
        recorder.fill(&x.slice(0, 100..200)?, &3.0f32.to_le_bytes())?;
        recorder.copy(&y, &x)?;
        Ok(())
    })?;
    expect_all("not run", &x, 0.0)?;
    replay(&queue, &graph)?;
    expect_all("the part", &y.slice(0, 100..200)?, 3.0)?;
    expect_all("the rest", &y.slice(0, 200..N)?, 0.0)
}

fn what_cannot_be_recorded_is_refused(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(N, 1.0)?, fixture.full(N, 0.0)?);
    let gaps = x.view(&[N / 2], &[2], 0)?;
    let kernel = fixture.kernel("fill_f32")?;
    let args = fixture.args("fill_f32", &[Arg::write(&x), Arg::scalar(1.0f32)], N)?;
    let graph = record(&queue, |recorder| {
        let unsupported = |what: &str, recorded, text: &str| {
            expect_error(what, recorded, ErrorKind::Unsupported, &["cannot be recorded", text]).map(drop)
        };
        unsupported("gaps", recorder.copy(&y.slice(0, 0..N / 2)?, &gaps), "gaps")?;
        unsupported("overlap", recorder.copy(&x.slice(0, 1..N)?, &x.slice(0, 0..N - 1)?), "overlap")?;
        let pattern = recorder.fill(&x, &[1; 3]);
        expect_error("pattern", pattern, ErrorKind::InvalidArgument, &["fill", "3"])?;
        if context.info().capabilities.has(abi::CAP_GROUPS) {
            let nothing = recorder.launch(&kernel, Geometry { groups: [0; 3], ..fixture.geometry(N) }, &args);
            expect_error("no groups", nothing, ErrorKind::InvalidArgument, &["0 groups"])?;
        }
        Ok(())
    })?;
    assert!(graph.is_empty());
    expect_all("not run", &x, 1.0)
}

fn a_queue_may_be_used_while_it_is_recorded(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(N, 1.0)?, fixture.full(N, 1.0)?);
    let graph = record(&queue, |recorder| {
        fixture.scale(recorder, &x, 2.0)?;
        // This thread, and another one, submit to the queue itself.
        wait::event(&fixture.scale(&queue, &x, 3.0)?)?;
        expect_all("run at once", &x, 3.0)?;
        std::thread::scope(|scope| {
            scope
                .spawn(|| fixture.scale(&queue, &y, 5.0).map(drop))
                .join()
                .unwrap_or_else(|_| panic!("the thread"))
        })
    })?;
    wait::idle(&queue)?;
    assert_eq!(graph.len(), 1, "only what was given to the recorder");
    expect_all("by the other thread", &y, 5.0)?;
    replay(&queue, &graph)?;
    expect_all("replayed once", &x, 6.0)?;
    expect_all("not in the graph", &y, 5.0)
}

fn a_failed_recording_is_discarded(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 1.0)?;
    let failed = queue.record(|recorder| {
        recorder.fill(&x, &[0])?;
        Err::<(), _>(Error::new(ErrorKind::Cancelled, "changed my mind"))
    });
    expect_error("its error", failed, ErrorKind::Cancelled, &["changed my mind"])?;
    expect_all("not run", &x, 1.0)?;
    wait::event(&fixture.scale(&queue, &x, 2.0)?)?;
    expect_all("the queue is as before", &x, 2.0)
}

fn a_wrong_launch_is_refused_while_recording(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, frozen) = (fixture.full(N, 1.0)?, fixture.full(N, 1.0)?);
    frozen.freeze()?;
    let other = context.reopen(&Options::new())?.full(N, 1.0)?;
    let graph = record(&queue, |recorder| {
        assert!(fixture.fill(recorder, &other, 2.0).is_err(), "a tensor of another opening");
        assert!(fixture.fill(recorder, &frozen, 2.0).is_err(), "a frozen tensor");
        fixture.fill(recorder, &x, 2.0).map(drop)
    })?;
    assert_eq!(graph.len(), 1);
    replay(&queue, &graph)?;
    expect_all("the right one", &x, 2.0)
}

fn a_dropped_graph_runs_nothing(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 1.0)?;
    let graph = record(&queue, |recorder| fixture.fill(recorder, &x, 2.0).map(drop))?;
    drop(queue.instantiate(&graph)?);
    drop(graph);
    wait::idle(&queue)?;
    assert_eq!(queue.submitted(), 0);
    expect_all("never run", &x, 1.0)
}

/// Begins a recording with a launch on its queue.
fn begin(context: &Context, queue: &Queue) -> Result<(Recording, Event), Failure> {
    let recording = queue.recording()?;
    let event = context.fixture().fill(recording.queue(), &context.fixture().full(N, 0.0)?, 1.0)?;
    Ok((recording, event))
}

fn what_a_queue_is_given_is_recorded(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y, z) = (fixture.full(N, 1.0)?, fixture.full(N, 0.0)?, fixture.full(N, 0.0)?);
    let mut data = vec![7.0f32; N];
    let recording = queue.recording()?;
    let recorded = recording.queue();
    fixture.scale(recorded, &x, 2.0)?;
    recorded.copy(&y, &x)?;
    recorded.fill(&x.slice(0, 0..10)?, &5.0f32.to_le_bytes())?;
    recorded.upload(&z, data.clone())?;
    // Mixed with what the recorder is given.
    fixture.scale(&*recording, &z, 2.0)?;
    assert_eq!(queue.submitted(), 0);
    expect_all("not run", &x, 1.0)?;
    data.fill(0.0);
    let graph = recording.finish();
    assert_eq!(graph.len(), 5);
    replay(&queue, &graph)?;
    expect_all("copied", &y, 2.0)?;
    expect_all("filled", &x.slice(0, 0..10)?, 5.0)?;
    expect_all("uploaded as it was", &z, 14.0)?;
    replay(&queue, &graph)?;
    expect_all("uploaded again", &z, 14.0)?;
    expect_all("scaled again", &y.slice(0, 10..N)?, 4.0)
}

fn events_of_a_recording_order_its_nodes(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (recording, first) = begin(context, &queue)?;
    let recorded = recording.queue();
    let apart = |value| fixture.fill(recorded, &fixture.full(N, 0.0)?, value);
    let second = apart(2.0)?;
    recorded.wait_for(&Event::all(&[&first, &second]))?;
    let third = apart(3.0)?;
    recorded.wait_for(&Event::completed())?;
    recorded.wait_for(&recorded.barrier(&[])?)?;
    apart(4.0)?;
    drop(third);
    let graph = recording.finish();
    assert_eq!(graph.dependencies(1), Some(&[][..]));
    assert_eq!(graph.dependencies(2), Some(&[0, 1][..]));
    assert!(graph.dependencies(3).is_some_and(|nodes| nodes.contains(&2)), "{graph:?}");
    replay(&queue, &graph)
}

fn events_of_a_recording_cannot_be_waited_for(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (recording, event) = begin(context, &queue)?;
    let text = "wait for the event of a replay";
    expect_error("wait", event.wait(), ErrorKind::Unsupported, &[text])?;
    expect_error("is_done", event.is_done(), ErrorKind::Unsupported, &[text])?;
    expect_error("another queue", queue.wait_for(&event), ErrorKind::Unsupported, &[text])?;
    let other = queue.recording()?;
    expect_error("another recording", other.queue().wait_for(&event), ErrorKind::Unsupported, &[text])?;
    fixture.delay(&queue)?;
    let pending = fixture.fill(&queue, &fixture.full(N, 0.0)?, 1.0)?;
    if !pending.is_done()? {
        let waited = recording.queue().wait_for(&pending);
        assert!(waited.is_ok() || waited.is_err_and(|error| error.message().contains("before the replay")));
    }
    let unordered = fixture.fill(&queue, &fixture.full(N, 0.0)?, 1.0)?;
    wait::event(&unordered)
        .map_err(|error| Failure::Failed(format!("the queue itself is not affected: {error}")))
}

fn what_a_recording_queue_cannot_record_is_named(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (recording, _) = begin(context, &queue)?;
    let (recorded, x) = (recording.queue(), fixture.full(N, 1.0)?);
    let (kernel, geometry) = (fixture.kernel("fill_f32")?, fixture.geometry(N));
    let args = fixture.args("fill_f32", &[Arg::write(&x), Arg::scalar(1.0f32)], N)?;
    let executable = queue.instantiate(&record(&queue, |_| Ok(()))?)?;
    let mut bytes = vec![0; x.size_bytes()];
    let refused = [
        ("call", recorded.call(&kernel, geometry, &args)),
        ("launch_noop", recorded.launch_noop().map(drop)),
        ("call_noop", recorded.call_noop()),
        ("timestamp", recorded.timestamp().map(drop)),
        ("flush", recorded.flush()),
        ("wait_idle", recorded.wait_idle()),
        ("completed", recorded.completed().map(drop)),
        ("write", recorded.write(&x, &bytes)),
        ("read", recorded.read(&x, &mut bytes)),
        ("download", recorded.download::<f32>(&x).map(drop)),
        ("contiguous", recorded.contiguous(&x.view(&[N / 2], &[2], 0)?).map(drop)),
        ("hold", recorded.hold().map(drop)),
        ("timestamp", recorded.timed(|queue| queue.launch(&kernel, geometry, &args)).map(drop)),
        ("host_task", recorded.host_task(&[], || ()).map(drop)),
        ("replay", recorded.replay(&executable).map(drop)),
        ("fuser", recorded.fuser(&FusionOptions::default()).map(drop)),
    ];
    for (operation, refused) in refused {
        expect_error(operation, refused, ErrorKind::Unsupported, &[operation, "cannot be recorded"])?;
    }
    if context.info().capabilities.has(abi::CAP_GROUPS) {
        recorded.launch(&kernel, Geometry { groups: [0; 3], ..geometry }, &args)?.wait()?;
    }
    assert_eq!(recording.finish().len(), 1, "nothing of this, nor an empty launch");
    expect_all("not run", &x, 1.0)
}

fn a_dispatcher_is_recorded(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let add = super::dispatch::add(context)?;
    let n = N.next_multiple_of(1024);
    let (a, b, sum) = (fixture.full(n, 1.0)?, fixture.full(n, 2.0)?, fixture.full(n, 0.0)?);
    let recording = queue.recording()?;
    let added = add.on(recording.queue()).submit(n, &[], (&a, &b, &sum))?;
    add.on(recording.queue()).submit(n, &[&added], (&sum, &b, &a))?;
    expect_all("not run", &sum, 0.0)?;
    replay(&queue, &recording.finish())?;
    expect_all("1 + 2", &sum, 3.0)?;
    expect_all("3 + 2", &a, 5.0)
}

fn a_cast_is_recorded_if_the_device_makes_it(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let x = fixture.full(N, 1.0)?;
    let recording = queue.recording()?;
    let named = ["cast", "cannot be recorded"];
    expect_error("bool", recording.queue().cast(&x, DType::BOOL), ErrorKind::Unsupported, &named)?;
    let cast = match recording.queue().cast(&x, DType::I32) {
        Err(error) => {
            return expect_error("i32", Err::<(), _>(error), ErrorKind::Unsupported, &named).map(drop);
        }
        Ok(cast) => cast,
    };
    let graph = recording.finish();
    for value in [5.0f32, 7.0] {
        x.fill(&value.to_le_bytes())?;
        replay(&queue, &graph)?;
        let elements = cast.to_array()?.cast(DType::F32)?;
        assert_eq!(elements.as_slice::<f32>()?, vec![value; N]);
    }
    Ok(())
}
