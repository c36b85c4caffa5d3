//! Recording: what is recorded, what is rejected, and that nothing runs.

use runtime_core::{Arg, Error, ErrorKind, Geometry, Options, abi};

use super::graphs::{N, record, replay};
use crate::case::{Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_error};
use crate::wait;

cases! {
    [Requirement::Kernel("spin")] => recording_runs_nothing, an_empty_recording_replays_as_nothing, dependencies_follow_the_tensors,
        arguments_are_taken_when_recorded, copies_and_fills_are_recorded,
        what_cannot_be_recorded_is_refused, a_queue_may_be_used_while_it_is_recorded,
        a_failed_recording_is_discarded, a_wrong_launch_is_refused_while_recording,
        a_dropped_graph_runs_nothing;
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
