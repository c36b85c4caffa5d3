//! Many threads, and very many events.

use std::sync::Barrier;

use runtime_core::{Arg, Event};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_equal};
use crate::test_data::Random;
use crate::wait::{self, block_on};

const THREADS: u16 = 64;
const EVENTS: usize = 100_000;

cases! {
    [Requirement::Kernel("saxpy_f32")] => sixty_four_threads_on_queues_of_their_own, sixty_four_threads_on_one_queue,
        sixty_four_threads_share_a_tensor;
    [Requirement::Kernel("spin")] => sixty_four_threads_await;
    [Requirement::Kernel("noop")] => a_hundred_thousand_events;
}

/// Runs `work` on all threads, which start together.
fn together(work: impl Fn(u16) -> Verdict + Sync) -> Verdict {
    let barrier = Barrier::new(usize::from(THREADS));
    std::thread::scope(|scope| {
        let run = |thread| {
            barrier.wait();
            work(thread)
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || run(thread))).collect();
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
    together(|thread| {
        let (queue, y) = (fixture.queue()?, fixture.full(100, f32::from(thread))?);
        for _ in 0..10 {
            let args = [Arg::read(&weights), Arg::read_write(&y), Arg::scalar(2.0f32)];
            drop(fixture.launch(&queue, "saxpy_f32", &args, 100)?);
        }
        expect_all("a thread's own", &y, f32::from(thread) + 20.0)
    })
}

fn sixty_four_threads_on_one_queue(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let before = queue.submitted();
    together(|thread| {
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
    together(|_| {
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
    together(|thread| {
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
