//! Hazards between queues: read after write, write after read, write after write, over two and three queues.
//!
//! Each case keeps a queue busy first, so that what does not wait for it comes too early and is seen.

use runtime_core::{Arg, Tensor};

use crate::case::{Failure, Need, Verdict, cases};
use crate::context::Context;
use crate::data::all;
use crate::wait;

const N: usize = 4096;

cases! {
    [Need::Kernel("spin")] => read_after_write_over_two_queues, read_after_write_over_three_queues,
        two_readers_after_a_writer, write_after_read_over_two_queues, write_after_read_over_three_queues,
        a_writer_after_six_readers, write_after_write_over_two_queues, write_after_write_over_three_queues,
        read_write_is_both, a_chain_over_two_queues, views_of_one_buffer_alias,
        disjoint_views_are_ordered_too, copies_and_fills_take_part, queue_reads_and_writes_take_part,
        a_call_waits_for_another_queue, frozen_tensors_are_read_beside_each_other, two_openings_are_ordered,
        a_diamond_of_four_queues, a_tensor_that_is_read_twice_is_read, a_tensor_in_the_first_and_last_place_is_one_use;
}

fn tensors<const K: usize>(context: &Context, value: f32) -> runtime_core::Result<[Tensor; K]> {
    let tensors = (0..K).map(|_| context.lab().full(N, value)).collect::<Result<Vec<_>, _>>()?;
    tensors.try_into().map_err(|_| runtime_core::Error::invalid("another number of tensors"))
}

fn read_after_write_over_two_queues(context: &Context) -> Verdict {
    let (lab, [a, b], [x, y]) = (context.lab(), context.lab().queues()?, tensors(context, 0.0)?);
    lab.delay(&a)?;
    lab.fill(&a, &x, 7.0)?;
    wait::done(&lab.copy(&b, &x, &y)?)?;
    all("the reader", &y, 7.0)
}

fn read_after_write_over_three_queues(context: &Context) -> Verdict {
    let (lab, [a, b, c], [x, y, z]) = (context.lab(), context.lab().queues()?, tensors(context, 0.0)?);
    lab.delay(&a)?;
    lab.fill(&a, &x, 7.0)?;
    lab.delay(&b)?;
    lab.copy(&b, &x, &y)?;
    wait::done(&lab.copy(&c, &y, &z)?)?;
    all("the reader's reader", &z, 7.0)
}

fn two_readers_after_a_writer(context: &Context) -> Verdict {
    let (lab, [a, b, c], [x, y, z]) = (context.lab(), context.lab().queues()?, tensors(context, 0.0)?);
    lab.delay(&a)?;
    lab.fill(&a, &x, 7.0)?;
    let events = [lab.copy(&b, &x, &y)?, lab.copy(&c, &x, &z)?];
    events.iter().try_for_each(wait::done)?;
    all("one reader", &y, 7.0)?;
    all("the other", &z, 7.0)
}

fn write_after_read_over_two_queues(context: &Context) -> Verdict {
    let (lab, [a, b], [x, y]) = (context.lab(), context.lab().queues()?, tensors(context, 1.0)?);
    y.fill(&[0])?;
    lab.delay(&a)?;
    lab.copy(&a, &x, &y)?;
    wait::done(&lab.fill(&b, &x, 9.0)?)?;
    all("the reader", &y, 1.0)?;
    all("the writer", &x, 9.0)
}

fn write_after_read_over_three_queues(context: &Context) -> Verdict {
    let (lab, [a, b, c], [x, y, z]) = (context.lab(), context.lab().queues()?, tensors(context, 1.0)?);
    for (queue, copy) in [(&a, &y), (&b, &z)] {
        copy.fill(&[0])?;
        lab.delay(queue)?;
        lab.copy(queue, &x, copy)?;
    }
    wait::done(&lab.fill(&c, &x, 9.0)?)?;
    all("one reader", &y, 1.0)?;
    all("the other", &z, 1.0)?;
    all("the writer", &x, 9.0)
}

fn a_writer_after_six_readers(context: &Context) -> Verdict {
    let (lab, queues) = (context.lab(), context.lab().queues::<7>()?);
    let (x, copies) = (lab.full(N, 1.0)?, tensors::<6>(context, 0.0)?);
    for (queue, copy) in queues.iter().zip(&copies) {
        lab.delay(queue)?;
        lab.copy(queue, &x, copy)?;
    }
    wait::done(&lab.fill(&queues[6], &x, 9.0)?)?;
    copies.iter().try_for_each(|copy| all("a reader", copy, 1.0))
}

fn write_after_write_over_two_queues(context: &Context) -> Verdict {
    let (lab, [a, b], [x]) = (context.lab(), context.lab().queues()?, tensors(context, 0.0)?);
    lab.delay(&a)?;
    let first = lab.fill(&a, &x, 1.0)?;
    let second = lab.fill(&b, &x, 2.0)?;
    [first, second].iter().try_for_each(wait::done)?;
    all("the later one", &x, 2.0)
}

fn write_after_write_over_three_queues(context: &Context) -> Verdict {
    let (lab, [a, b, c], [x]) = (context.lab(), context.lab().queues()?, tensors(context, 0.0)?);
    for queue in [&a, &b] {
        lab.delay(queue)?;
    }
    let events = [lab.fill(&a, &x, 1.0)?, lab.fill(&b, &x, 2.0)?, lab.fill(&c, &x, 3.0)?];
    events.iter().try_for_each(wait::done)?;
    all("the last one", &x, 3.0)
}

fn read_write_is_both(context: &Context) -> Verdict {
    let (lab, [a, b, c], [x, y]) = (context.lab(), context.lab().queues()?, tensors(context, 1.0)?);
    lab.delay(&a)?;
    lab.fill(&a, &x, 3.0)?;
    lab.scale(&b, &x, 2.0)?;
    lab.delay(&b)?;
    lab.copy(&c, &x, &y)?;
    let last = lab.scale(&a, &x, 5.0)?;
    wait::done(&last)?;
    all("between the two", &y, 6.0)?;
    all("after both", &x, 30.0)
}

fn a_chain_over_two_queues(context: &Context) -> Verdict {
    let (lab, queues, [x, one]) = (context.lab(), context.lab().queues::<2>()?, tensors(context, 1.0)?);
    for round in 0..100 {
        let queue = &queues[round % 2];
        if round % 25 == 0 {
            lab.delay(queue)?;
        }
        // x = 1 - x, in two steps that must not change places.
        if round % 2 == 0 {
            drop(lab.scale(queue, &x, -1.0)?);
        } else {
            let args = [Arg::read(&one), Arg::read_write(&x), Arg::scalar(1.0f32)];
            drop(lab.launch(queue, "saxpy_f32", &args, N)?);
        }
    }
    queues.iter().try_for_each(wait::idle)?;
    all("fifty times", &x, 1.0)
}

fn views_of_one_buffer_alias(context: &Context) -> Verdict {
    let (lab, [a, b], [x, y]) = (context.lab(), context.lab().queues()?, tensors(context, 0.0)?);
    let part = x.slice(0, 1024..2048)?;
    lab.delay(&a)?;
    lab.fill(&a, &part, 7.0)?;
    wait::done(&lab.copy(&b, &x, &y)?)?;
    all("the part", &y.slice(0, 1024..2048)?, 7.0)?;
    all("before it", &y.slice(0, 0..1024)?, 0.0)
}

fn disjoint_views_are_ordered_too(context: &Context) -> Verdict {
    let (lab, [a, b], [x]) = (context.lab(), context.lab().queues()?, tensors(context, 0.0)?);
    let (low, high) = (x.slice(0, 0..2048)?, x.slice(0, 2048..4096)?);
    lab.delay(&a)?;
    let early = lab.fill(&a, &low, 1.0)?;
    wait::done(&lab.fill(&b, &high, 2.0)?)?;
    assert!(early.is_done()?, "whole buffers are tracked");
    all("low", &low, 1.0)?;
    all("high", &high, 2.0)
}

fn copies_and_fills_take_part(context: &Context) -> Verdict {
    let (lab, [a, b, c], [x, y]) = (context.lab(), context.lab().queues()?, tensors(context, 0.0)?);
    lab.delay(&a)?;
    a.fill(&x, &7.0f32.to_le_bytes())?;
    lab.delay(&b)?;
    b.copy(&y, &x)?;
    wait::done(&c.fill(&x, &9.0f32.to_le_bytes())?)?;
    all("copied between", &y, 7.0)?;
    all("filled after", &x, 9.0)
}

fn queue_reads_and_writes_take_part(context: &Context) -> Verdict {
    let (lab, [a, b], [x, y]) = (context.lab(), context.lab().queues()?, tensors(context, 1.0)?);
    lab.delay(&a)?;
    lab.copy(&a, &x, &y)?;
    b.write(&x, &5.0f32.to_le_bytes().repeat(N))?;
    all("read before the write", &y, 1.0)?;
    lab.delay(&a)?;
    lab.fill(&a, &x, 6.0)?;
    let mut bytes = vec![0; 4 * N];
    b.read(&x, &mut bytes)?;
    crate::data::same("read after the fill", &bytes, &6.0f32.to_le_bytes().repeat(N))
}

fn a_call_waits_for_another_queue(context: &Context) -> Verdict {
    let (lab, [a, b], [x, y]) = (context.lab(), context.lab().queues()?, tensors(context, 0.0)?);
    lab.delay(&a)?;
    lab.fill(&a, &x, 7.0)?;
    lab.call(&b, "copy_f32", &[Arg::read(&x), Arg::write(&y)], N)?;
    all("called", &y, 7.0)
}

fn frozen_tensors_are_read_beside_each_other(context: &Context) -> Verdict {
    let (lab, queues, [x]) = (context.lab(), context.lab().queues::<4>()?, tensors(context, 0.0)?);
    lab.delay(&queues[0])?;
    lab.fill(&queues[0], &x, 7.0)?;
    // Freezing waits for the writer.
    x.freeze()?;
    let copies = tensors::<4>(context, 0.0)?;
    for (queue, copy) in queues.iter().zip(&copies) {
        lab.copy(queue, &x, copy)?;
    }
    copies.iter().try_for_each(|copy| all("a reader", copy, 7.0))
}

fn two_openings_are_ordered(context: &Context) -> Verdict {
    let (lab, other) = (context.lab(), context.reopen(&runtime_core::Options::new())?);
    let (a, b) = (lab.queue()?, other.queue()?);
    let (x, y) = (lab.full(N, 0.0)?, other.full(N, 0.0)?);
    lab.delay(&a)?;
    lab.fill(&a, &x, 7.0)?;
    wait::done(&b.copy(&y, &x)?)?;
    all("over the border", &y, 7.0)
}

fn a_diamond_of_four_queues(context: &Context) -> Verdict {
    let (lab, [a, b, c, d]) = (context.lab(), context.lab().queues()?);
    let [x, left, right, out] = tensors(context, 0.0)?;
    for round in 1..=5u8 {
        lab.delay(&a)?;
        lab.fill(&a, &x, f32::from(round))?;
        lab.copy(&b, &x, &left)?;
        lab.delay(&c)?;
        lab.copy(&c, &x, &right)?;
        lab.launch(&d, "add_f32", &[Arg::read(&left), Arg::read(&right), Arg::write(&out)], N)?;
    }
    wait::idle(&d)?;
    all("five times round", &out, 10.0)
}

/// In both orders of the tensors: core sorts them by addresses that nobody sees here.
fn a_tensor_that_is_read_twice_is_read(context: &Context) -> Verdict {
    let (lab, [a, b], tensors) = (context.lab(), context.lab().queues()?, tensors::<2>(context, 1.0)?);
    for (x, y) in [(&tensors[0], &tensors[1]), (&tensors[1], &tensors[0])] {
        x.write(&[1.0f32; N])?;
        lab.delay(&a)?;
        lab.launch(&a, "add_f32", &[Arg::read(x), Arg::read(x), Arg::write(y)], N)?;
        wait::done(&lab.fill(&b, x, 9.0)?)?;
        all("read before it is written", y, 2.0)?;
    }
    Ok(())
}

fn a_tensor_in_the_first_and_last_place_is_one_use(context: &Context) -> Verdict {
    let (lab, queue, tensors) = (context.lab(), context.lab().queue()?, tensors::<2>(context, 1.0)?);
    if lab.kernels()?.portable {
        return Err(Failure::Unsupported("portable code refuses a tensor beside itself".to_owned()));
    }
    for (x, y) in [(&tensors[0], &tensors[1]), (&tensors[1], &tensors[0])] {
        x.write(&[1.0f32; N])?;
        y.write(&[2.0f32; N])?;
        lab.call(&queue, "add_f32", &[Arg::read(x), Arg::read(y), Arg::write(x)], N)?;
        all("the sum", x, 3.0)?;
    }
    Ok(())
}
