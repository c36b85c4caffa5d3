//! Hazards between queues: read after write, write after read, write after write, over two and three queues.
//!
//! Each case keeps a queue busy first, to expose work that does not wait for it.

use runtime_core::{Arg, Tensor};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::expect_all;
use crate::wait;

const N: usize = 4096;

cases! {
    [Requirement::Kernel("spin")] => read_after_write_over_two_queues, read_after_write_over_three_queues,
        two_readers_after_a_writer, write_after_read_over_two_queues, write_after_read_over_three_queues,
        a_writer_after_six_readers, write_after_write_over_two_queues, write_after_write_over_three_queues,
        read_write_is_both, a_chain_over_two_queues, views_of_one_buffer_alias,
        disjoint_views_are_ordered_too, copies_and_fills_take_part, queue_reads_and_writes_take_part,
        a_call_waits_for_another_queue, frozen_tensors_are_read_beside_each_other, two_openings_are_ordered,
        a_diamond_of_four_queues, a_tensor_that_is_read_twice_is_read, a_tensor_in_the_first_and_last_place_is_one_use;
}

fn tensors<const K: usize>(context: &Context, value: f32) -> runtime_core::Result<[Tensor; K]> {
    let tensors = (0..K).map(|_| context.fixture().full(N, value)).collect::<Result<Vec<_>, _>>()?;
    tensors.try_into().map_err(|_| runtime_core::Error::invalid("wrong number of tensors"))
}

fn read_after_write_over_two_queues(context: &Context) -> Verdict {
    let (fixture, [a, b], [x, y]) = (context.fixture(), context.fixture().queues()?, tensors(context, 0.0)?);
    fixture.delay(&a)?;
    fixture.fill(&a, &x, 7.0)?;
    wait::event(&fixture.copy(&b, &x, &y)?)?;
    expect_all("the reader", &y, 7.0)
}

fn read_after_write_over_three_queues(context: &Context) -> Verdict {
    let (fixture, [a, b, c], [x, y, z]) =
        (context.fixture(), context.fixture().queues()?, tensors(context, 0.0)?);
    fixture.delay(&a)?;
    fixture.fill(&a, &x, 7.0)?;
    fixture.delay(&b)?;
    fixture.copy(&b, &x, &y)?;
    wait::event(&fixture.copy(&c, &y, &z)?)?;
    expect_all("the reader's reader", &z, 7.0)
}

fn two_readers_after_a_writer(context: &Context) -> Verdict {
    let (fixture, [a, b, c], [x, y, z]) =
        (context.fixture(), context.fixture().queues()?, tensors(context, 0.0)?);
    fixture.delay(&a)?;
    fixture.fill(&a, &x, 7.0)?;
    let events = [fixture.copy(&b, &x, &y)?, fixture.copy(&c, &x, &z)?];
    events.iter().try_for_each(wait::event)?;
    expect_all("one reader", &y, 7.0)?;
    expect_all("the other", &z, 7.0)
}

fn write_after_read_over_two_queues(context: &Context) -> Verdict {
    let (fixture, [a, b], [x, y]) = (context.fixture(), context.fixture().queues()?, tensors(context, 1.0)?);
    y.fill(&[0])?;
    fixture.delay(&a)?;
    fixture.copy(&a, &x, &y)?;
    wait::event(&fixture.fill(&b, &x, 9.0)?)?;
    expect_all("the reader", &y, 1.0)?;
    expect_all("the writer", &x, 9.0)
}

fn write_after_read_over_three_queues(context: &Context) -> Verdict {
    let (fixture, [a, b, c], [x, y, z]) =
        (context.fixture(), context.fixture().queues()?, tensors(context, 1.0)?);
    for (queue, copy) in [(&a, &y), (&b, &z)] {
        copy.fill(&[0])?;
        fixture.delay(queue)?;
        fixture.copy(queue, &x, copy)?;
    }
    wait::event(&fixture.fill(&c, &x, 9.0)?)?;
    expect_all("one reader", &y, 1.0)?;
    expect_all("the other", &z, 1.0)?;
    expect_all("the writer", &x, 9.0)
}

fn a_writer_after_six_readers(context: &Context) -> Verdict {
    let (fixture, queues) = (context.fixture(), context.fixture().queues::<7>()?);
    let (x, copies) = (fixture.full(N, 1.0)?, tensors::<6>(context, 0.0)?);
    for (queue, copy) in queues.iter().zip(&copies) {
        fixture.delay(queue)?;
        fixture.copy(queue, &x, copy)?;
    }
    wait::event(&fixture.fill(&queues[6], &x, 9.0)?)?;
    copies.iter().try_for_each(|copy| expect_all("a reader", copy, 1.0))
}

fn write_after_write_over_two_queues(context: &Context) -> Verdict {
    let (fixture, [a, b], [x]) = (context.fixture(), context.fixture().queues()?, tensors(context, 0.0)?);
    fixture.delay(&a)?;
    let first = fixture.fill(&a, &x, 1.0)?;
    let second = fixture.fill(&b, &x, 2.0)?;
    [first, second].iter().try_for_each(wait::event)?;
    expect_all("the later one", &x, 2.0)
}

fn write_after_write_over_three_queues(context: &Context) -> Verdict {
    let (fixture, [a, b, c], [x]) = (context.fixture(), context.fixture().queues()?, tensors(context, 0.0)?);
    for queue in [&a, &b] {
        fixture.delay(queue)?;
    }
    let events = [fixture.fill(&a, &x, 1.0)?, fixture.fill(&b, &x, 2.0)?, fixture.fill(&c, &x, 3.0)?];
    events.iter().try_for_each(wait::event)?;
    expect_all("the last one", &x, 3.0)
}

fn read_write_is_both(context: &Context) -> Verdict {
    let (fixture, [a, b, c], [x, y]) =
        (context.fixture(), context.fixture().queues()?, tensors(context, 1.0)?);
    fixture.delay(&a)?;
    fixture.fill(&a, &x, 3.0)?;
    fixture.scale(&b, &x, 2.0)?;
    fixture.delay(&b)?;
    fixture.copy(&c, &x, &y)?;
    let last = fixture.scale(&a, &x, 5.0)?;
    wait::event(&last)?;
    expect_all("between the two", &y, 6.0)?;
    expect_all("after both", &x, 30.0)
}

fn a_chain_over_two_queues(context: &Context) -> Verdict {
    let (fixture, queues, [x, one]) =
        (context.fixture(), context.fixture().queues::<2>()?, tensors(context, 1.0)?);
    for round in 0..100 {
        let queue = &queues[round % 2];
        if round % 25 == 0 {
            fixture.delay(queue)?;
        }
        // x = 1 - x, in two steps whose order matters.
        if round % 2 == 0 {
            drop(fixture.scale(queue, &x, -1.0)?);
        } else {
            let args = [Arg::read(&one), Arg::read_write(&x), Arg::scalar(1.0f32)];
            drop(fixture.launch(queue, "saxpy_f32", &args, N)?);
        }
    }
    queues.iter().try_for_each(wait::idle)?;
    expect_all("fifty times", &x, 1.0)
}

fn views_of_one_buffer_alias(context: &Context) -> Verdict {
    let (fixture, [a, b], [x, y]) = (context.fixture(), context.fixture().queues()?, tensors(context, 0.0)?);
    let part = x.slice(0, 1024..2048)?;
    fixture.delay(&a)?;
    fixture.fill(&a, &part, 7.0)?;
    wait::event(&fixture.copy(&b, &x, &y)?)?;
    expect_all("the part", &y.slice(0, 1024..2048)?, 7.0)?;
    expect_all("before it", &y.slice(0, 0..1024)?, 0.0)
}

fn disjoint_views_are_ordered_too(context: &Context) -> Verdict {
    let (fixture, [a, b], [x]) = (context.fixture(), context.fixture().queues()?, tensors(context, 0.0)?);
    let (low, high) = (x.slice(0, 0..2048)?, x.slice(0, 2048..4096)?);
    fixture.delay(&a)?;
    let early = fixture.fill(&a, &low, 1.0)?;
    wait::event(&fixture.fill(&b, &high, 2.0)?)?;
    assert!(early.is_done()?, "whole buffers are tracked");
    expect_all("low", &low, 1.0)?;
    expect_all("high", &high, 2.0)
}

fn copies_and_fills_take_part(context: &Context) -> Verdict {
    let (fixture, [a, b, c], [x, y]) =
        (context.fixture(), context.fixture().queues()?, tensors(context, 0.0)?);
    fixture.delay(&a)?;
    a.fill(&x, &7.0f32.to_le_bytes())?;
    fixture.delay(&b)?;
    b.copy(&y, &x)?;
    wait::event(&c.fill(&x, &9.0f32.to_le_bytes())?)?;
    expect_all("copied between", &y, 7.0)?;
    expect_all("filled after", &x, 9.0)
}

fn queue_reads_and_writes_take_part(context: &Context) -> Verdict {
    let (fixture, [a, b], [x, y]) = (context.fixture(), context.fixture().queues()?, tensors(context, 1.0)?);
    fixture.delay(&a)?;
    fixture.copy(&a, &x, &y)?;
    b.write(&x, &5.0f32.to_le_bytes().repeat(N))?;
    expect_all("read before the write", &y, 1.0)?;
    fixture.delay(&a)?;
    fixture.fill(&a, &x, 6.0)?;
    let mut bytes = vec![0; 4 * N];
    b.read(&x, &mut bytes)?;
    crate::expect::expect_equal("read after the fill", &bytes, &6.0f32.to_le_bytes().repeat(N))
}

fn a_call_waits_for_another_queue(context: &Context) -> Verdict {
    let (fixture, [a, b], [x, y]) = (context.fixture(), context.fixture().queues()?, tensors(context, 0.0)?);
    fixture.delay(&a)?;
    fixture.fill(&a, &x, 7.0)?;
    fixture.call(&b, "copy_f32", &[Arg::read(&x), Arg::write(&y)], N)?;
    expect_all("called", &y, 7.0)
}

fn frozen_tensors_are_read_beside_each_other(context: &Context) -> Verdict {
    let (fixture, queues, [x]) =
        (context.fixture(), context.fixture().queues::<4>()?, tensors(context, 0.0)?);
    fixture.delay(&queues[0])?;
    fixture.fill(&queues[0], &x, 7.0)?;
    // Freezing waits for the writer.
    x.freeze()?;
    let copies = tensors::<4>(context, 0.0)?;
    for (queue, copy) in queues.iter().zip(&copies) {
        fixture.copy(queue, &x, copy)?;
    }
    copies.iter().try_for_each(|copy| expect_all("a reader", copy, 7.0))
}

fn two_openings_are_ordered(context: &Context) -> Verdict {
    let (fixture, other) = (context.fixture(), context.reopen(&runtime_core::Options::new())?);
    let (a, b) = (fixture.queue()?, other.queue()?);
    let (x, y) = (fixture.full(N, 0.0)?, other.full(N, 0.0)?);
    fixture.delay(&a)?;
    fixture.fill(&a, &x, 7.0)?;
    wait::event(&b.copy(&y, &x)?)?;
    expect_all("on the other device", &y, 7.0)
}

fn a_diamond_of_four_queues(context: &Context) -> Verdict {
    let (fixture, [a, b, c, d]) = (context.fixture(), context.fixture().queues()?);
    let [x, left, right, out] = tensors(context, 0.0)?;
    for round in 1..=5u8 {
        fixture.delay(&a)?;
        fixture.fill(&a, &x, f32::from(round))?;
        fixture.copy(&b, &x, &left)?;
        fixture.delay(&c)?;
        fixture.copy(&c, &x, &right)?;
        fixture.launch(&d, "add_f32", &[Arg::read(&left), Arg::read(&right), Arg::write(&out)], N)?;
    }
    wait::idle(&d)?;
    expect_all("after five rounds", &out, 10.0)
}

/// Tries both orders of the tensors: core sorts them by address.
fn a_tensor_that_is_read_twice_is_read(context: &Context) -> Verdict {
    let (fixture, [a, b], tensors) =
        (context.fixture(), context.fixture().queues()?, tensors::<2>(context, 1.0)?);
    for (x, y) in [(&tensors[0], &tensors[1]), (&tensors[1], &tensors[0])] {
        x.write(&[1.0f32; N])?;
        fixture.delay(&a)?;
        fixture.launch(&a, "add_f32", &[Arg::read(x), Arg::read(x), Arg::write(y)], N)?;
        wait::event(&fixture.fill(&b, x, 9.0)?)?;
        expect_all("read before it is written", y, 2.0)?;
    }
    Ok(())
}

fn a_tensor_in_the_first_and_last_place_is_one_use(context: &Context) -> Verdict {
    let (fixture, queue, tensors) =
        (context.fixture(), context.fixture().queue()?, tensors::<2>(context, 1.0)?);
    if fixture.kernels()?.portable {
        return Err(Failure::Unsupported("portable code rejects overlapping tensors".to_owned()));
    }
    for (x, y) in [(&tensors[0], &tensors[1]), (&tensors[1], &tensors[0])] {
        x.write(&[1.0f32; N])?;
        y.write(&[2.0f32; N])?;
        fixture.call(&queue, "add_f32", &[Arg::read(x), Arg::read(y), Arg::write(x)], N)?;
        expect_all("the sum", x, 3.0)?;
    }
    Ok(())
}
