//! Lists of the same shape: their plans are used again, and several kernels are submitted at once where the device has graphs.

use runtime_core::fusion::{FusionOptions, FusionReport};
use runtime_core::{Queue, abi};

use super::scenario::{COVER, GROUP, N, Scenario};
use crate::case::{Failure, Verdict, cases};
use crate::context::Context;
use crate::expect::expect_all;
use crate::wait;

cases! {
    [] => a_hit_uses_the_current_groups_and_arguments, several_kernels_are_repeated,
        repeated_lists_wait_for_other_queues, repeated_lists_on_one_queue_that_differ;
}

fn completed(queue: &Queue, work: impl FnOnce(&Queue) -> Verdict) -> Result<FusionReport, Failure> {
    let fuser = queue.fuser(&FusionOptions::default())?;
    work(fuser.queue())?;
    let (event, report) = fuser.complete()?;
    wait::event(&event)?;
    Ok(report)
}

fn a_hit_uses_the_current_groups_and_arguments(context: &Context) -> Verdict {
    let scenario = Scenario::new(context)?;
    let (scale, fixture) = (scenario.elements("scale")?, context.fixture());
    for (round, groups) in [16u32, 11, 15].into_iter().enumerate() {
        let (x, y, z) = (fixture.full(N, 1.0)?, fixture.full(N, 0.0)?, fixture.full(N, 0.0)?);
        let report = completed(&scenario.queue, |queue| {
            queue.launch(&scale, (groups, GROUP), (&x, &y, 2.0f32))?;
            queue.launch(&scale, (groups, GROUP), (&y, &z, 3.0f32))?;
            Ok(())
        })?;
        assert!(report.is_one_kernel() && (report.is_cached || round == 0), "{report}");
        let done = N.min((groups * GROUP) as usize);
        for (index, value) in z.to_vec::<f32>()?.into_iter().enumerate() {
            assert!(
                value == if index < done { 6.0 } else { 0.0 },
                "element {index} of {groups} groups is {value}"
            );
        }
    }
    Ok(())
}

fn several_kernels_are_repeated(context: &Context) -> Verdict {
    let scenario = Scenario::new(context)?;
    let (scale, neighbour) = (scenario.elements("scale")?, scenario.elements("neighbour")?);
    let fixture = context.fixture();
    let has_graphs = fixture.device().info().capabilities.has(abi::CAP_GRAPHS);
    for round in 0..6u8 {
        let (x, y) = (fixture.full(N, f32::from(round))?, fixture.full(N, 0.0)?);
        let (z, out) = (fixture.full(N, 0.0)?, fixture.full(N, 0.0)?);
        let report = completed(&scenario.queue, |queue| {
            queue.launch(&scale, COVER, (&x, &y, 2.0f32))?;
            queue.launch(&neighbour, COVER, (&y, &z))?;
            queue.launch(&scale, COVER, (&z, &out, f32::from(round)))?;
            Ok(())
        })?;
        assert!(report.kernels.len() > 1 && report.fallback.is_none(), "{report}");
        assert!(!report.is_graph || has_graphs, "{report}");
        expect_all("the result", &out, 2.0 * f32::from(round) * f32::from(round))?;
    }
    Ok(())
}

fn repeated_lists_wait_for_other_queues(context: &Context) -> Verdict {
    let scenario = Scenario::new(context)?;
    let (scale, neighbour) = (scenario.elements("scale")?, scenario.elements("neighbour")?);
    let (fixture, other) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(N, 1.0)?, fixture.full(N, 0.0)?);
    for round in 1..=5u8 {
        let out = fixture.full(N, 0.0)?;
        other.fill(&x, &f32::from(round).to_le_bytes())?;
        let fuser = scenario.queue.fuser(&FusionOptions::default())?;
        fuser.queue().launch(&scale, COVER, (&x, &y, 2.0f32))?;
        fuser.queue().launch(&neighbour, COVER, (&y, &out))?;
        drop(fuser.complete()?);
        other.fill(&y, &0.0f32.to_le_bytes())?;
        expect_all("a result between the fills", &out, 2.0 * f32::from(round))?;
    }
    Ok(())
}

fn repeated_lists_on_one_queue_that_differ(context: &Context) -> Verdict {
    let scenario = Scenario::new(context)?;
    let (scale, neighbour) = (scenario.elements("scale")?, scenario.elements("neighbour")?);
    let fixture = context.fixture();
    let (x, y, z) = (fixture.full(N, 1.0)?, fixture.full(N, 0.0)?, fixture.full(N, 0.0)?);
    for round in 0..8u8 {
        completed(&scenario.queue, |queue| {
            queue.launch(&scale, COVER, (&x, &y, f32::from(round)))?;
            queue.launch(&neighbour, COVER, (&y, &z))?;
            if round % 2 == 1 {
                queue.launch(&neighbour, COVER, (&z, &y))?;
                queue.launch(&scale, COVER, (&y, &z, 3.0f32))?;
            }
            Ok(())
        })?;
        let factor = if round % 2 == 1 { 3.0 } else { 1.0 };
        expect_all("the result", &z, factor * f32::from(round))?;
    }
    Ok(())
}
