//! Fused graphs.

use runtime_core::fusion::{FusionOptions, FusionReport};
use runtime_core::graph::Recorder;
use runtime_core::{Error, ErrorKind};

use super::scenario::{COVER, N, Scenario};
use crate::case::{Failure, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_equal, expect_error};
use crate::wait;

cases! {
    [] => a_graph, a_graph_with_copies_between, a_graph_that_must_become_one_kernel, an_empty_graph,
        a_graph_in_a_graph, updates_after_fusion;
}

/// Records `work` on a graph, fuses it, and replays it twice on the initial contents.
fn replays_fused(
    scenario: &Scenario<'_>,
    options: &FusionOptions,
    work: impl Fn(&Recorder) -> Result<(), Error>,
) -> Result<FusionReport, Failure> {
    let queue = &scenario.queue;
    queue.replay(&queue.instantiate(&queue.record(&work)?)?)?.wait()?;
    let right = scenario.contents()?;
    let (graph, report) = queue.record(&work)?.fuse(options)?;
    let executable = queue.instantiate(&graph)?;
    for _ in 0..2 {
        scenario.restore()?;
        wait::event(&queue.replay(&executable)?)?;
        for (index, (fused, right)) in scenario.contents()?.iter().zip(&right).enumerate() {
            expect_equal(&format!("tensor {index} ({report})"), fused, right)?;
        }
    }
    Ok(report)
}

fn a_graph(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (add, scale) = (scenario.elements("add")?, scenario.elements("scale")?);
    let (a, b, out, _) = scenario.four()?;
    let report = replays_fused(&scenario, &FusionOptions::default(), |recorder| {
        let sum = context.fixture().uninitialized::<f32>(N)?;
        recorder.launch(&add, COVER, (&a, &b, &sum))?;
        recorder.launch(&scale, COVER, (&sum, &out, 3.0f32))?;
        Ok(())
    })?;
    assert_eq!((report.kernels.len(), report.kernels[0].promoted), (1, 1), "{report}");
    Ok(())
}

fn a_graph_with_copies_between(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (add, scale, relu) =
        (scenario.elements("add")?, scenario.elements("scale")?, scenario.elements("relu")?);
    let (a, b, sum, out) = scenario.four()?;
    let report = replays_fused(&scenario, &FusionOptions::default(), |recorder| {
        recorder.launch(&add, COVER, (&a, &b, &sum))?;
        recorder.launch(&relu, COVER, (&sum,))?;
        recorder.copy(&b, &sum)?;
        recorder.launch(&scale, COVER, (&b, &out, 3.0f32))?;
        recorder.launch(&relu, COVER, (&out,))?;
        recorder.fill(&a, &7.0f32.to_le_bytes())?;
        Ok(())
    })?;
    assert_eq!(report.kernels.len(), 2, "{report}");
    Ok(())
}

fn a_graph_that_must_become_one_kernel(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (scale, neighbour) = (scenario.elements("scale")?, scenario.elements("neighbour")?);
    let (a, b, out, _) = scenario.four()?;
    let graph = scenario.queue.record(|recorder| {
        recorder.launch(&scale, COVER, (&a, &b, 3.0f32))?;
        recorder.launch(&neighbour, COVER, (&b, &out))
    })?;
    let refused = graph.fuse(&FusionOptions::new().require(true));
    expect_error("a seam that stays open", refused, ErrorKind::Unsupported, &["neighbour", "require"])
        .map(drop)
}

fn a_graph_in_a_graph(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (add, scale, relu) =
        (scenario.elements("add")?, scenario.elements("scale")?, scenario.elements("relu")?);
    let (a, b, sum, out) = scenario.four()?;
    let inner = scenario.queue.record(|recorder| {
        recorder.launch(&add, COVER, (&a, &b, &sum))?;
        recorder.launch(&relu, COVER, (&sum,))
    })?;
    let report = replays_fused(&scenario, &FusionOptions::default(), |recorder| {
        recorder.add_graph(&inner)?;
        recorder.launch(&scale, COVER, (&sum, &out, 3.0f32))?;
        recorder.fill(&sum, &1.0f32.to_le_bytes())?;
        recorder.add_graph(&inner)?;
        Ok(())
    })?;
    assert_eq!(report.kernels.len(), 2, "{report}");
    Ok(())
}

fn updates_after_fusion(context: &Context) -> Verdict {
    let scenario = Scenario::new(context)?;
    let (scale, fixture) = (scenario.elements("scale")?, context.fixture());
    let (x, y, z) = (fixture.full(N, 1.0)?, fixture.full(N, 0.0)?, fixture.full(N, 0.0)?);
    let graph = scenario.queue.record(|recorder| {
        recorder.launch(&scale, COVER, (&x, &y, 2.0f32))?;
        recorder.launch(&scale, COVER, (&y, &z, 3.0f32))
    })?;
    let (graph, report) = graph.fuse(&FusionOptions::new().require(true))?;
    assert_eq!((graph.len(), report.kernels.len()), (1, 1), "{report}");
    let mut executable = scenario.queue.instantiate(&graph)?;
    wait::event(&scenario.queue.replay(&executable)?)?;
    expect_all("the result", &z, 6.0)?;
    let (other, out) = (fixture.full(N, 10.0)?, fixture.full(N, 0.0)?);
    executable.rebind(&[(&x, &other), (&z, &out)])?;
    wait::event(&scenario.queue.replay(&executable)?)?;
    expect_all("the result of before", &z, 6.0)?;
    expect_all("the result for other tensors", &out, 60.0)
}

fn an_empty_graph(context: &Context) -> Verdict {
    let scenario = Scenario::new(context)?;
    let (graph, report) = scenario.queue.record(|_| Ok(()))?.fuse(&FusionOptions::default())?;
    assert!(graph.is_empty() && report.kernels.is_empty(), "{report}");
    Ok(())
}
