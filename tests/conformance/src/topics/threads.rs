//! Many threads, and very many events.

use std::sync::Barrier;

use runtime_core::{Arg, Event, ModuleSource};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_equal};
use crate::test_data::Random;
use crate::wait::{self, block_on};

const THREADS: u16 = 64;
const EVENTS: usize = 100_000;
const ROUNDS: u8 = 20;
const COMPILING_THREADS: u16 = 8;
const COMPILED_KERNELS: u16 = 2;

cases! {
    [Requirement::Kernel("saxpy_f32")] => sixty_four_threads_on_queues_of_their_own, sixty_four_threads_on_one_queue,
        sixty_four_threads_share_a_tensor;
    [Requirement::Kernel("scale_f32"), Requirement::Kernel("copy_f32")] => sixty_four_threads_wait_for_every_step;
    [] => threads_run_new_code;
    [Requirement::Kernel("spin")] => sixty_four_threads_await;
    [Requirement::Kernel("noop")] => a_hundred_thousand_events;
}

/// Runs `work` on so many threads, which start together.
pub(super) fn together(threads: u16, work: impl Fn(u16) -> Verdict + Sync) -> Verdict {
    let barrier = Barrier::new(usize::from(threads));
    std::thread::scope(|scope| {
        let run = |thread| {
            barrier.wait();
            work(thread)
        };
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        let ended = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(Failure::Failed("a thread panicked".to_owned())))
        });
        // Join all threads before returning an error.
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}

fn sixty_four_threads_on_queues_of_their_own(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let weights = fixture.full(100, 1.0)?;
    weights.freeze()?;
    together(THREADS, |thread| {
        let (queue, y) = (fixture.queue()?, fixture.full(100, f32::from(thread))?);
        for _ in 0..10 {
            let args = [Arg::read(&weights), Arg::read_write(&y), Arg::scalar(2.0f32)];
            drop(fixture.launch(&queue, "saxpy_f32", &args, 100)?);
        }
        expect_all("a thread's own", &y, f32::from(thread) + 20.0)
    })
}

/// Every step depends on the one before, on another queue or on the host, while many queues submit.
fn sixty_four_threads_wait_for_every_step(context: &Context) -> Verdict {
    let fixture = context.fixture();
    together(THREADS, |thread| {
        let ([first, second], n) = (fixture.queues()?, 1000);
        let (x, y) = (fixture.full(n, 0.0)?, fixture.full(n, 0.0)?);
        for round in 1..=ROUNDS {
            let value = f32::from(thread) + f32::from(round) * 100.0;
            x.write(&vec![value; n])?;
            drop(fixture.scale(&first, &x, 2.0)?);
            drop(fixture.copy(&second, &x, &y)?);
            expect_all("a thread's own", &y, 2.0 * value)?;
        }
        Ok(())
    })
}

/// Code that never ran before runs at once, while other threads compile and submit.
fn threads_run_new_code(context: &Context) -> Verdict {
    let fixture = context.fixture();
    context.needs_portable_code()?;
    together(COMPILING_THREADS, |thread| {
        let (queue, x) = (fixture.queue()?, fixture.full(4096, 0.0)?);
        for round in 0..COMPILED_KERNELS {
            let value = f32::from(thread * 100 + round + 1);
            let kernel = fixture.device().kernel(adds(value), "add")?;
            x.write(&[1.0f32; 4096])?;
            queue.call(&kernel, (256, 16), (&x,))?;
            expect_all("a thread's own", &x, value + 1.0)?;
        }
        Ok(())
    })
}

/// A kernel that adds `value`.
fn adds(value: f32) -> ModuleSource {
    ModuleSource::wgsl(&format!(
        "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
         @compute @workgroup_size(16) fn add(@builtin(global_invocation_id) id: vec3u) {{
             if id.x < arrayLength(&x) {{ x[id.x] += {value:?}; }}
         }}"
    ))
}

fn sixty_four_threads_on_one_queue(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let before = queue.submitted();
    together(THREADS, |thread| {
        let y = fixture.full(100, f32::from(thread))?;
        let mut last = 0;
        for round in 1..=10u8 {
            let event = fixture.scale(&queue, &y, 2.0)?;
            assert!(event.ticket() > last, "the tickets of a thread increase");
            last = event.ticket();
            if round % 5 == 0 {
                wait::event(&event)?;
            }
        }
        expect_all("a thread's own", &y, f32::from(thread) * 1024.0)
    })?;
    assert_eq!(queue.submitted() - before, u64::from(THREADS) * 10, "one ticket per launch");
    Ok(wait::idle(&queue)?)
}

fn sixty_four_threads_share_a_tensor(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let (one, sum) = (fixture.full(100, 1.0)?, fixture.full(100, 0.0)?);
    together(THREADS, |_| {
        let queue = fixture.queue()?;
        for _ in 0..5 {
            let args = [Arg::read(&one), Arg::read_write(&sum), Arg::scalar(1.0f32)];
            drop(fixture.launch(&queue, "saxpy_f32", &args, 100)?);
        }
        Ok(())
    })?;
    expect_all("each addition exactly once", &sum, f32::from(THREADS) * 5.0)
}

fn sixty_four_threads_await(context: &Context) -> Verdict {
    let fixture = context.fixture();
    together(THREADS, |thread| {
        let (queue, y) = (fixture.queue()?, fixture.full(10, 0.0)?);
        for round in 0..5u16 {
            let value = f32::from(thread * 8 + round);
            // Long enough that most are not done at the first poll.
            fixture.launch(&queue, "spin", &[Arg::scalar(1000i64)], 1)?;
            block_on(fixture.fill(&queue, &y, value)?)?;
            expect_all("awaited means written", &y, value)?;
        }
        Ok(())
    })
}

fn a_hundred_thousand_events(context: &Context) -> Verdict {
    let (fixture, queues) = (context.fixture(), context.fixture().queues::<4>()?);
    let (kernel, geometry) = (fixture.kernel("noop")?, fixture.geometry(1));
    let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
    for number in 0..EVENTS {
        events.push(queues[number % 4].launch(&kernel, geometry, &[])?);
    }
    let tickets: Vec<_> = events.iter().map(Event::ticket).collect();
    let expected: Vec<_> = (0..EVENTS as u64).map(|number| number / 4 + 1).collect();
    expect_equal("tickets", &tickets, &expected)?;
    // Complete them in no particular order, by waiting, polling or awaiting; then all of them.
    let mut random = Random::new(31);
    for _ in 0..200 {
        let event = &mut events[random.below(EVENTS)];
        match random.below(3) {
            0 => wait::event(event)?,
            1 => wait::until("an event", || event.is_done())?,
            _ => block_on(event)?,
        }
    }
    queues.iter().try_for_each(wait::idle)?;
    for event in &events {
        assert!(event.is_done()?, "{event:?}");
    }
    Ok(())
}
