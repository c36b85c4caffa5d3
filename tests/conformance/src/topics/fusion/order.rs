//! What needs the launches of a fusion list earlier gets their results, on every device.

use runtime_core::fusion::FusionOptions;
use runtime_core::{ErrorKind, Event, Kernel, ModuleSource, Queue, Tensor};

use super::kernels::ELEMENTS;
use super::scenario::{COVER, GROUP, N};
use crate::case::{Failure, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_error};
use crate::topics::threads::together;
use crate::wait;

cases! {
    [] => a_host_read_cancels, an_event_is_waited_for_before_completion, an_event_is_waited_for_after_completion,
        a_launch_on_another_queue_needs_the_list, another_queue_depends_on_an_event_of_the_list,
        the_list_depends_on_another_queue, the_list_waits_for_an_event_of_another_queue, an_unrelated_copy_does_not_cancel, a_copy_of_a_listed_tensor_cancels,
        a_host_task_waits_for_the_list, two_fusers_conflict, a_dropped_fuser_loses_nothing, an_error_loses_nothing,
        tensors_dropped_before_completion, sixteen_threads_fuse, cancelled_twice, fusers_do_not_nest,
        a_cycle_cannot_arise;
}

/// `y = 2 x`, then `z = 3 y`, to be listed.
struct Chain {
    scale: Kernel,
    queue: Queue,
    x: Tensor,
    y: Tensor,
    z: Tensor,
}

impl Chain {
    fn new(context: &Context) -> Result<Self, Failure> {
        context.needs_portable_groups(GROUP)?;
        let fixture = context.fixture();
        Ok(Self {
            scale: fixture.device().kernel(ModuleSource::wgsl(ELEMENTS), "scale")?,
            queue: fixture.queue()?,
            x: fixture.full(N, 1.0)?,
            y: fixture.full(N, 0.0)?,
            z: fixture.full(N, 0.0)?,
        })
    }

    fn scale(&self, queue: &Queue, from: &Tensor, to: &Tensor, factor: f32) -> Result<Event, Failure> {
        Ok(queue.launch(&self.scale, COVER, (from, to, factor))?)
    }

    /// Submits both launches, or lists them.
    fn submit(&self, queue: &Queue) -> Result<[Event; 2], Failure> {
        Ok([self.scale(queue, &self.x, &self.y, 2.0)?, self.scale(queue, &self.y, &self.z, 3.0)?])
    }

    fn expect_results(&self) -> Verdict {
        expect_all("the first result", &self.y, 2.0)?;
        expect_all("the second result", &self.z, 6.0)
    }
}

fn a_host_read_cancels(context: &Context) -> Verdict {
    let chain = Chain::new(context)?;
    let fuser = chain.queue.fuser(&FusionOptions::default())?;
    drop(chain.submit(fuser.queue())?);
    chain.expect_results()?;
    let (event, report) = fuser.complete()?;
    wait::event(&event)?;
    assert!(report.cancelled.is_some(), "{report}");
    Ok(())
}

fn an_event_is_waited_for_before_completion(context: &Context) -> Verdict {
    let chain = Chain::new(context)?;
    let fuser = chain.queue.fuser(&FusionOptions::default())?;
    let [first, second] = chain.submit(fuser.queue())?;
    wait::event(&first)?;
    wait::event(&second)?;
    drop(fuser);
    chain.expect_results()
}

fn an_event_is_waited_for_after_completion(context: &Context) -> Verdict {
    let chain = Chain::new(context)?;
    let fuser = chain.queue.fuser(&FusionOptions::default())?;
    let [first, second] = chain.submit(fuser.queue())?;
    let (last, report) = fuser.complete()?;
    for event in [&first, &second, &last] {
        wait::event(event)?;
        assert!(event.is_done()?, "{report}");
    }
    chain.expect_results()
}

fn a_launch_on_another_queue_needs_the_list(context: &Context) -> Verdict {
    let (chain, other) = (Chain::new(context)?, context.fixture().queue()?);
    let fuser = chain.queue.fuser(&FusionOptions::default())?;
    drop(chain.submit(fuser.queue())?);
    let out = context.fixture().full(N, 0.0)?;
    wait::event(&chain.scale(&other, &chain.z, &out, 5.0)?)?;
    expect_all("the other queue's result", &out, 30.0)?;
    drop(fuser);
    chain.expect_results()
}

fn another_queue_depends_on_an_event_of_the_list(context: &Context) -> Verdict {
    let (chain, other) = (Chain::new(context)?, context.fixture().queue()?);
    let fuser = chain.queue.fuser(&FusionOptions::default())?;
    let [_, second] = chain.submit(fuser.queue())?;
    other.wait_for(&second)?;
    let out = context.fixture().full(N, 0.0)?;
    let after = chain.scale(&other, &chain.x, &out, 5.0)?;
    wait::event(&after)?;
    assert!(second.is_done()?, "the other queue waited for it");
    drop(fuser);
    chain.expect_results()
}

fn the_list_depends_on_another_queue(context: &Context) -> Verdict {
    let (chain, other) = (Chain::new(context)?, context.fixture().queue()?);
    let source = context.fixture().full(N, 4.0)?;
    let fuser = chain.queue.fuser(&FusionOptions::default())?;
    context.fixture().delay(&other)?;
    drop(chain.scale(&other, &source, &chain.x, 1.0)?);
    drop(chain.submit(fuser.queue())?);
    let (event, _) = fuser.complete()?;
    wait::event(&event)?;
    expect_all("a result of what the other queue wrote", &chain.z, 24.0)
}

fn the_list_waits_for_an_event_of_another_queue(context: &Context) -> Verdict {
    let (chain, other) = (Chain::new(context)?, context.fixture().queue()?);
    let (source, unrelated) = (context.fixture().full(N, 4.0)?, context.fixture().full(N, 0.0)?);
    context.fixture().delay(&other)?;
    let before = chain.scale(&other, &source, &unrelated, 1.0)?;
    let fuser = chain.queue.fuser(&FusionOptions::default())?;
    fuser.queue().wait_for(&before)?;
    drop(chain.submit(fuser.queue())?);
    let (event, report) = fuser.complete()?;
    wait::event(&event)?;
    assert!(before.is_done()?, "the list waited for it: {report}");
    chain.expect_results()
}

fn an_unrelated_copy_does_not_cancel(context: &Context) -> Verdict {
    let chain = Chain::new(context)?;
    let (from, to) = (context.fixture().full(N, 7.0)?, context.fixture().full(N, 0.0)?);
    let fuser = chain.queue.fuser(&FusionOptions::default())?;
    drop(chain.submit(fuser.queue())?);
    drop(fuser.queue().copy(&to, &from)?);
    let (event, report) = fuser.complete()?;
    wait::event(&event)?;
    assert!(report.cancelled.is_none() && report.kernels.len() == 1, "{report}");
    expect_all("the copy", &to, 7.0)?;
    chain.expect_results()
}

fn a_copy_of_a_listed_tensor_cancels(context: &Context) -> Verdict {
    let chain = Chain::new(context)?;
    let to = context.fixture().full(N, 0.0)?;
    let fuser = chain.queue.fuser(&FusionOptions::default())?;
    drop(chain.submit(fuser.queue())?);
    drop(fuser.queue().copy(&to, &chain.z)?);
    let (event, report) = fuser.complete()?;
    wait::event(&event)?;
    assert!(report.cancelled.is_some(), "{report}");
    expect_all("the copy", &to, 6.0)
}

fn a_host_task_waits_for_the_list(context: &Context) -> Verdict {
    let chain = Chain::new(context)?;
    let fuser = chain.queue.fuser(&FusionOptions::default())?;
    let [_, second] = chain.submit(fuser.queue())?;
    let z = chain.z.clone();
    let task =
        chain.queue.host_task(&[&second], move || assert!(z.to_vec::<f32>().is_ok_and(|z| z == [6.0; N])))?;
    wait::event(&task)?;
    drop(fuser);
    chain.expect_results()
}

fn two_fusers_conflict(context: &Context) -> Verdict {
    let (chain, other) = (Chain::new(context)?, context.fixture().queue()?);
    let out = context.fixture().full(N, 0.0)?;
    let (one, two) = (chain.queue.fuser(&FusionOptions::default())?, other.fuser(&FusionOptions::default())?);
    drop(chain.submit(one.queue())?);
    drop(chain.scale(two.queue(), &chain.z, &out, 5.0)?);
    drop(chain.scale(two.queue(), &chain.x, &chain.y, 10.0)?);
    let (event, _) = two.complete()?;
    wait::event(&event)?;
    let (event, report) = one.complete()?;
    wait::event(&event)?;
    assert!(report.cancelled.is_some(), "{report}");
    expect_all("of the first list's result", &out, 30.0)?;
    expect_all("overwritten by the second list", &chain.y, 10.0)
}

fn a_dropped_fuser_loses_nothing(context: &Context) -> Verdict {
    let chain = Chain::new(context)?;
    let fuser = chain.queue.fuser(&FusionOptions::default())?;
    let events = chain.submit(fuser.queue())?;
    drop(fuser);
    events.iter().try_for_each(wait::event)?;
    chain.expect_results()
}

fn cancelled_twice(context: &Context) -> Verdict {
    let chain = Chain::new(context)?;
    let fuser = chain.queue.fuser(&FusionOptions::default())?;
    let events = chain.submit(fuser.queue())?;
    fuser.cancel()?;
    fuser.cancel()?;
    events.iter().try_for_each(wait::event)?;
    let (event, report) = fuser.complete()?;
    wait::event(&event)?;
    assert_eq!(report.cancelled.as_ref().map(|(_, count)| *count), Some(2), "{report}");
    chain.expect_results()
}

fn fusers_do_not_nest(context: &Context) -> Verdict {
    let chain = Chain::new(context)?;
    let fuser = chain.queue.fuser(&FusionOptions::default())?;
    drop(chain.submit(fuser.queue())?);
    let nested = fuser.queue().fuser(&FusionOptions::default());
    expect_error("a fuser of a fuser", nested, ErrorKind::InvalidArgument, &["nest"])?;
    let (_, report) = fuser.complete()?;
    assert!(report.is_one_kernel(), "{report}");
    chain.expect_results()
}

fn a_cycle_cannot_arise(context: &Context) -> Verdict {
    let (chain, other) = (Chain::new(context)?, context.fixture().queue()?);
    let fuser = chain.queue.fuser(&FusionOptions::default())?;
    drop(chain.submit(fuser.queue())?);
    // It depends on the list, which is therefore submitted, and the next list depends on it.
    let outside = chain.scale(&other, &chain.z, &chain.x, 2.0)?;
    fuser.queue().wait_for(&outside)?;
    drop(chain.submit(fuser.queue())?);
    let (event, _) = fuser.complete()?;
    wait::event(&event)?;
    expect_all("the result of both lists", &chain.z, 72.0)
}

fn an_error_loses_nothing(context: &Context) -> Verdict {
    let chain = Chain::new(context)?;
    let listing = |fuser: &runtime_core::fusion::Fuser| -> Verdict {
        drop(chain.submit(fuser.queue())?);
        let other = context.fixture().full(N / 2, 0.0)?;
        // Refused: a scalar is missing.
        fuser.queue().launch(&chain.scale, COVER, (&chain.x, &other))?;
        Ok(())
    };
    let fuser = chain.queue.fuser(&FusionOptions::default())?;
    assert!(listing(&fuser).is_err());
    drop(fuser);
    chain.expect_results()
}

fn tensors_dropped_before_completion(context: &Context) -> Verdict {
    let chain = Chain::new(context)?;
    for _ in 0..20 {
        let fuser = chain.queue.fuser(&FusionOptions::default())?;
        let between = context.fixture().uninitialized::<f32>(N)?;
        drop(chain.scale(fuser.queue(), &chain.x, &between, 2.0)?);
        drop(chain.scale(fuser.queue(), &between, &chain.z, 3.0)?);
        drop(between);
        drop(fuser.complete()?);
    }
    expect_all("the result", &chain.z, 6.0)
}

fn sixteen_threads_fuse(context: &Context) -> Verdict {
    let chain = Chain::new(context)?;
    chain.x.freeze()?;
    together(16, |thread| {
        let fixture = context.fixture();
        let (queue, y, z) = (fixture.queue()?, fixture.full(N, 0.0)?, fixture.full(N, 0.0)?);
        for round in 0..5u8 {
            let fuser = queue.fuser(&FusionOptions::default())?;
            let factor = f32::from(thread) + f32::from(round);
            drop(chain.scale(fuser.queue(), &chain.x, &y, factor)?);
            drop(chain.scale(fuser.queue(), &y, &z, 2.0)?);
            if round == 3 {
                drop(fuser);
            } else {
                drop(fuser.complete()?);
            }
            expect_all("a thread's own", &z, 2.0 * factor)?;
        }
        Ok(())
    })
}
