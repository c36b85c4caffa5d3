//! Lifetimes: objects dropped while in use stay alive until the work ends, and memory is not reused before.

use runtime_core::{Arg, DType, Options, Placement};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::expect_all;
use crate::fixture::Fixture;
use crate::test_data::Random;
use crate::wait;

const N: usize = 4096;

cases! {
    [Requirement::Kernel("spin")] => a_dropped_tensor_is_not_reused_early, a_dropped_output_is_not_reused_early,
        a_dropped_view_keeps_its_buffer, a_dropped_frozen_tensor_is_not_reused_early,
        a_dropped_kernel_and_module_stay, a_dropped_queue_finishes, a_dropped_device_finishes,
        everything_dropped_in_any_order, five_things_dropped_in_every_order, tensors_dropped_on_many_threads,
        a_dropped_tensor_of_two_queues_waits_for_both, dropping_waits_for_nothing,
        what_is_dropped_comes_back, memory_of_a_queue_is_used_again_in_order;
}

/// Reallocates freed memory and overwrites it.
fn overwrite(fixture: &Fixture) -> Verdict {
    let others = (0..8).map(|_| fixture.full(N, -1.0)).collect::<Result<Vec<_>, _>>()?;
    others.iter().try_for_each(|other| expect_all("reallocated memory", other, -1.0))
}

fn a_dropped_tensor_is_not_reused_early(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    for round in 1..=5u8 {
        let (x, y) = (fixture.full(N, f32::from(round))?, fixture.full(N, 0.0)?);
        fixture.delay(&queue)?;
        drop(fixture.copy(&queue, &x, &y)?);
        drop(x);
        overwrite(fixture)?;
        expect_all("copied from a dropped tensor", &y, f32::from(round))?;
    }
    Ok(())
}

fn a_dropped_output_is_not_reused_early(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    for _ in 0..5 {
        let x = fixture.full(N, 0.0)?;
        fixture.delay(&queue)?;
        drop(fixture.fill(&queue, &x, 7.0)?);
        drop(x);
        let others = (0..8).map(|_| fixture.full(N, -1.0)).collect::<Result<Vec<_>, _>>()?;
        wait::idle(&queue)?;
        others.iter().try_for_each(|other| expect_all("reallocated memory", other, -1.0))?;
    }
    Ok(())
}

fn memory_of_a_queue_is_used_again_in_order(context: &Context) -> Verdict {
    let (fixture, first, second) =
        (context.fixture(), context.fixture().queue()?, context.fixture().queue()?);
    let room = || first.allocate(DType::F32, &[N], &Placement::default());
    for round in 1..=5u8 {
        let x = room()?;
        fixture.delay(&first)?;
        drop(fixture.fill(&first, &x, -1.0)?);
        drop(x);
        // Possibly the same memory, which work in flight still writes.
        let y = room()?;
        drop(fixture.fill(&second, &y, f32::from(round))?);
        wait::idle(&first)?;
        expect_all("reallocated memory", &y, f32::from(round))?;
    }
    Ok(())
}

fn a_dropped_view_keeps_its_buffer(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(2 * N, 5.0)?, fixture.full(N, 0.0)?);
    let view = x.slice(0, N..2 * N)?;
    drop(x);
    fixture.delay(&queue)?;
    drop(fixture.copy(&queue, &view, &y)?);
    drop(view);
    overwrite(fixture)?;
    expect_all("copied from a dropped view", &y, 5.0)
}

fn a_dropped_frozen_tensor_is_not_reused_early(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (x, y) = (fixture.full(N, 5.0)?, fixture.full(N, 0.0)?);
    x.freeze()?;
    fixture.delay(&queue)?;
    drop(fixture.copy(&queue, &x, &y)?);
    drop(x);
    overwrite(fixture)?;
    expect_all("copied from a frozen tensor", &y, 5.0)
}

fn a_dropped_kernel_and_module_stay(context: &Context) -> Verdict {
    let fixture = context.fixture();
    fixture.module()?;
    let module = fixture.device().load(&fixture.kernels()?.source())?;
    let (queue, y) = (fixture.queue()?, fixture.full(N, 0.0)?);
    let fill = module.kernel("fill_f32")?;
    fixture.delay(&queue)?;
    let args = fixture.args("fill_f32", &[Arg::write(&y), Arg::scalar(5.0f32)], N)?;
    drop(queue.launch(&fill, fixture.geometry(N), &args)?);
    drop((module, fill));
    // Makes the device free what it can.
    drop(fixture.full(10, 0.0)?);
    expect_all("written by a dropped kernel", &y, 5.0)
}

fn a_dropped_queue_finishes(context: &Context) -> Verdict {
    let fixture = context.fixture();
    for _ in 0..5 {
        let (queue, y) = (fixture.queue()?, fixture.full(N, 0.0)?);
        fixture.delay(&queue)?;
        drop(fixture.fill(&queue, &y, 5.0)?);
        drop(queue);
        drop(fixture.queue()?);
        expect_all("written by a dropped queue", &y, 5.0)?;
    }
    Ok(())
}

fn a_dropped_device_finishes(context: &Context) -> Verdict {
    let fixture = context.reopen(&Options::new())?;
    let queue = fixture.queue()?;
    let (x, y) = (fixture.full(N, 3.0)?, fixture.full(N, 0.0)?);
    fixture.delay(&queue)?;
    let event = fixture.copy(&queue, &x, &y)?;
    drop((fixture, queue, x));
    expect_all("the last remaining tensor", &y, 3.0)?;
    drop(y);
    Ok(wait::event(&event)?)
}

fn everything_dropped_in_any_order(context: &Context) -> Verdict {
    let mut random = Random::new(21);
    for _ in 0..10 {
        let fixture = context.reopen(&Options::new())?;
        let mut things: Vec<Box<dyn std::any::Any>> = Vec::new();
        let (queue, other) = (fixture.queue()?, fixture.queue()?);
        let (x, y) = (fixture.full(N, 1.0)?, fixture.full(N, 1.0)?);
        fixture.launch(&queue, "spin", &[Arg::scalar(500i64)], 1)?;
        things.push(Box::new(fixture.copy(&queue, &x, &y)?));
        things.push(Box::new(fixture.scale(&other, &y, 2.0)?));
        things.push(Box::new(fixture.kernel("noop")?));
        things.extend([
            Box::new(x) as Box<dyn std::any::Any>,
            Box::new(y),
            Box::new(queue),
            Box::new(other),
            Box::new(fixture),
        ]);
        while !things.is_empty() {
            drop(things.swap_remove(random.below(things.len())));
        }
    }
    Ok(())
}

fn five_things_dropped_in_every_order(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let out = fixture.full(N, 0.0)?;
    for order in orders(5) {
        let (queue, other) = (fixture.queue()?, fixture.queue()?);
        let (x, y) = (fixture.full(N, 3.0)?, fixture.full(N, 0.0)?);
        fixture.launch(&queue, "spin", &[Arg::scalar(300i64)], 1)?;
        let event = fixture.copy(&queue, &x, &y)?;
        drop(fixture.copy(&other, &y, &out)?);
        let mut things: [Option<Box<dyn std::any::Any>>; 5] = [
            Some(Box::new(queue)),
            Some(Box::new(other)),
            Some(Box::new(x)),
            Some(Box::new(y)),
            Some(Box::new(event)),
        ];
        order.iter().for_each(|&thing| things[thing] = None);
        overwrite(fixture)?;
        expect_all(&format!("dropped in order {order:?}"), &out, 3.0)?;
        out.fill(&[0])?;
    }
    Ok(())
}

/// All permutations of `count` objects.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let Some(last) = count.checked_sub(1) else { return vec![Vec::new()] };
    let with_last =
        |order: Vec<usize>| (0..=last).map(move |at| [&order[..at], &[last], &order[at..]].concat());
    orders(last).into_iter().flat_map(with_last).collect()
}

fn tensors_dropped_on_many_threads(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let work = |value: u8| -> Verdict {
        let queue = fixture.queue()?;
        for _ in 0..20 {
            let (x, y) = (fixture.full(N, f32::from(value))?, fixture.full(N, 0.0)?);
            fixture.launch(&queue, "spin", &[Arg::scalar(200i64)], 1)?;
            drop(fixture.copy(&queue, &x, &y)?);
            drop(x);
            expect_all("a thread's own", &y, f32::from(value))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=4).map(|value| scope.spawn(move || work(value))).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(Failure::Failed("a panic".to_owned())))
        })
    })
}

fn a_dropped_tensor_of_two_queues_waits_for_both(context: &Context) -> Verdict {
    let (fixture, [a, b]) = (context.fixture(), context.fixture().queues()?);
    let (x, y, z) = (fixture.full(N, 5.0)?, fixture.full(N, 0.0)?, fixture.full(N, 0.0)?);
    drop(fixture.copy(&a, &x, &y)?);
    fixture.delay(&b)?;
    drop(fixture.copy(&b, &x, &z)?);
    drop(x);
    wait::idle(&a)?;
    overwrite(fixture)?;
    expect_all("the quick reader", &y, 5.0)?;
    expect_all("the slow reader", &z, 5.0)
}

fn dropping_waits_for_nothing(context: &Context) -> Verdict {
    let fixture = context.fixture();
    wait::times_out(|microseconds| {
        let (queue, x) = (fixture.queue()?, fixture.full(N, 0.0)?);
        fixture.launch(&queue, "spin", &[Arg::scalar(microseconds)], 1)?;
        let event = fixture.fill(&queue, &x, 1.0)?;
        drop((x, queue));
        Ok(event.wait_timeout(std::time::Duration::ZERO))
    })
}

fn what_is_dropped_comes_back(context: &Context) -> Verdict {
    let fixture = context.reopen(&Options::new())?;
    let space = &context.info().spaces[0].name;
    let free = || fixture.device().memory_usage(space).map(|usage| usage.free_bytes);
    let queue = fixture.queue()?;
    // 2.5 GiB in total; each piece is in use when it is dropped.
    for _ in 0..160 {
        let x = fixture.uninitialized::<f32>(4 << 20)?;
        drop(fixture.fill(&queue, &x.slice(0, 0..16)?, 1.0)?);
    }
    wait::idle(&queue)?;
    drop(fixture.full(10, 0.0)?);
    // Only a simulated device has no other users, so that its free memory is exact.
    let before = context.info().properties.flag("simulated").then(free).transpose()?;
    let total = fixture.device().memory_usage(space).map_or(0, |usage| usage.total_bytes);
    assert!(before.is_none_or(|free| free + 100 >= total), "{before:?} of {total} bytes came back");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::orders;

    #[test]
    fn orders_are_all_there_and_different() {
        let mut all = orders(5);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 120);
    }
}
