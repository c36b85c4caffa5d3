//! Data transfers on a queue: write, read, copy, fill.

use runtime_core::{ErrorKind, Options, abi};

use crate::case::{Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_equal, expect_error};
use crate::test_data::{Guarded, Random, SIZES};
use crate::wait;

cases! {
    [Requirement::Queues] => queue_writes_and_reads, fills_of_every_pattern, copies_between_tensors,
        copies_within_one_buffer, copies_of_strided_tensors, a_staged_copy_on_a_new_queue_ends,
        copies_between_spaces, copies_between_openings, a_pattern_that_does_not_fit_is_refused,
        a_wrong_length_is_refused, different_shapes_are_refused, a_copy_of_nothing_here_is_refused,
        transfers_are_in_order, strided_queue_transfers, backwards_and_broadcast_queue_transfers,
        copies_between_overlapping_views, blocks_of_columns_go_both_ways, blocks_of_columns_are_copied,
        blocks_of_columns_within_one_matrix;
    [Requirement::Capability(abi::CAP_COPY_2D)] => a_copy_of_rows_does_not_wait;
    [Requirement::Capability(abi::CAP_COPY_2D), Requirement::Kernel("fill_f32")] => a_copy_of_rows_is_ordered_by_what_it_touches;
}

/// Rows and columns of a matrix, and the columns of a block of it: narrow, odd, wide, and with large gaps.
const BLOCKS: [(usize, usize, usize, usize); 5] =
    [(2, 3, 1, 3), (5, 7, 2, 3), (33, 1000, 0, 1), (301, 257, 100, 257), (300, 4099, 17, 900)];

/// The columns `from..to` of a matrix with `columns` columns.
fn columns_of(data: &[f32], columns: usize, from: usize, to: usize) -> Vec<f32> {
    data.chunks_exact(columns).flat_map(|row| row[from..to].to_vec()).collect()
}

/// The matrix with its columns `from..to` replaced by `block`.
fn with_columns(data: &[f32], columns: usize, from: usize, to: usize, block: &[f32]) -> Vec<f32> {
    let mut data = data.to_vec();
    for (row, part) in data.chunks_exact_mut(columns).zip(block.chunks_exact(to - from)) {
        row[from..to].copy_from_slice(part);
    }
    data
}

fn blocks_of_columns_go_both_ways(context: &Context) -> Verdict {
    let (queue, mut random) = (context.fixture().queue()?, Random::new(7));
    for (rows, columns, from, to) in BLOCKS {
        let data = random.floats(rows * columns);
        let guarded = Guarded::new(context.fixture(), &data)?;
        let block = guarded.tensor().reshape(&[rows, columns])?.slice(1, from..to)?;
        expect_equal("read", &block.to_vec::<f32>()?, &columns_of(&data, columns, from, to))?;
        let other = random.floats(rows * (to - from));
        block.write(&other)?;
        guarded.check("written", &with_columns(&data, columns, from, to, &other))?;
        let (third, mut back) = (random.floats(other.len()), vec![0; other.len() * 4]);
        queue.write(&block, &bytes_of(&third))?;
        queue.read(&block, &mut back)?;
        expect_equal("by a queue", &back, &bytes_of(&third))?;
        guarded.check("written by a queue", &with_columns(&data, columns, from, to, &third))?;
    }
    Ok(())
}

fn bytes_of(data: &[f32]) -> Vec<u8> {
    data.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn blocks_of_columns_are_copied(context: &Context) -> Verdict {
    let (fixture, queue, mut random) = (context.fixture(), context.fixture().queue()?, Random::new(8));
    for (rows, columns, from, to) in BLOCKS {
        let (data, other) = (random.floats(rows * columns), random.floats(rows * (columns + 3)));
        let (one, two) = (Guarded::new(fixture, &data)?, Guarded::new(fixture, &other)?);
        let block = one.tensor().reshape(&[rows, columns])?.slice(1, from..to)?;
        let place = two.tensor().reshape(&[rows, columns + 3])?.slice(1, from + 3..to + 3)?;
        wait::event(&queue.copy(&place, &block)?)?;
        let cut_out = columns_of(&data, columns, from, to);
        two.check("rows to rows", &with_columns(&other, columns + 3, from + 3, to + 3, &cut_out))?;
        let dense = fixture.tensor(&vec![0.0f32; rows * (to - from)])?.reshape(&[rows, to - from])?;
        wait::event(&queue.copy(&dense, &block)?)?;
        expect_equal("rows to dense", &dense.to_vec::<f32>()?, &cut_out)?;
        dense.write(&random.floats(cut_out.len()))?;
        wait::event(&queue.copy(&block, &dense)?)?;
        one.check("dense to rows", &with_columns(&data, columns, from, to, &dense.to_vec::<f32>()?))?;
    }
    Ok(())
}

/// Disjoint, adjacent, and overlapping blocks.
fn blocks_of_columns_within_one_matrix(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (rows, columns, width) = (50, 40, 15);
    let data = Random::new(9).floats(rows * columns);
    for (from, to) in [(0, 25), (25, 0), (3, 18), (18, 3), (3, 10), (10, 3)] {
        let matrix = fixture.tensor(&data)?.reshape(&[rows, columns])?;
        let block = |at: usize| matrix.slice(1, at..at + width);
        wait::event(&queue.copy(&block(to)?, &block(from)?)?)?;
        let expected =
            with_columns(&data, columns, to, to + width, &columns_of(&data, columns, from, from + width));
        expect_equal(&format!("{from} to {to}"), &matrix.to_vec::<f32>()?, &expected)?;
    }
    Ok(())
}

fn a_copy_of_rows_does_not_wait(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let matrix = fixture.full(600, 3.0)?.reshape(&[20, 30])?;
    let dense = fixture.full(100, 0.0)?.reshape(&[20, 5])?;
    let event = queue.copy(&dense, &matrix.slice(1, 7..12)?)?;
    assert_eq!(queue.submitted(), 1, "one submission");
    wait::event(&event)?;
    expect_all("copied", &dense, 3.0)
}

fn a_copy_of_rows_is_ordered_by_what_it_touches(context: &Context) -> Verdict {
    let (fixture, [first, second]) = (context.fixture(), context.fixture().queues()?);
    let matrix = fixture.full(600, 0.0)?;
    let dense = fixture.full(100, 0.0)?.reshape(&[20, 5])?;
    for round in 1..=5u8 {
        let value = f32::from(round);
        fixture.delay(&first)?;
        drop(fixture.fill(&first, &matrix, value)?);
        drop(second.copy(&dense, &matrix.reshape(&[20, 30])?.slice(1, 7..12)?)?);
        drop(fixture.fill(&first, &matrix, -1.0)?);
        expect_all("after the fill and before the next", &dense, value)?;
    }
    Ok(())
}

fn queue_writes_and_reads(context: &Context) -> Verdict {
    let (fixture, queue, mut random) = (context.fixture(), context.fixture().queue()?, Random::new(3));
    for n in SIZES {
        let data = random.bytes(n);
        let guarded = Guarded::new(fixture, &vec![0u8; n])?;
        queue.write(guarded.tensor(), &data)?;
        let mut back = vec![0; n];
        queue.read(guarded.tensor(), &mut back)?;
        expect_equal("read", &back, &data)?;
        guarded.check("written", &data)?;
    }
    Ok(())
}

fn fills_of_every_pattern(context: &Context) -> Verdict {
    let queue = context.fixture().queue()?;
    let pattern: Vec<u8> = (1..=16).collect();
    for unit in [1, 2, 4, 8, 16] {
        for units in [0, 1, 33, 65_537] {
            let guarded = Guarded::new(context.fixture(), &vec![0u8; units * unit])?;
            wait::event(&queue.fill(guarded.tensor(), &pattern[..unit])?)?;
            guarded.check(&format!("a pattern of {unit} bytes"), &pattern[..unit].repeat(units))?;
        }
    }
    Ok(())
}

fn copies_between_tensors(context: &Context) -> Verdict {
    let (queue, mut random) = (context.fixture().queue()?, Random::new(4));
    for n in SIZES {
        let data = random.floats(n);
        let (from, to) =
            (Guarded::new(context.fixture(), &data)?, Guarded::new(context.fixture(), &vec![0.0f32; n])?);
        wait::event(&queue.copy(to.tensor(), from.tensor())?)?;
        to.check("destination", &data)?;
        from.check("source", &data)?;
    }
    Ok(())
}

fn copies_within_one_buffer(context: &Context) -> Verdict {
    let queue = context.fixture().queue()?;
    let data = Random::new(5).floats(300);
    for (from, to) in [(0, 150), (150, 0), (0, 10), (10, 0)] {
        let tensor = context.fixture().tensor(&data)?;
        wait::event(&queue.copy(&tensor.slice(0, to..to + 150)?, &tensor.slice(0, from..from + 150)?)?)?;
        let mut expected = data.clone();
        expected.copy_within(from..from + 150, to);
        expect_equal(&format!("{from} to {to}"), &tensor.to_vec::<f32>()?, &expected)?;
    }
    Ok(())
}

fn copies_of_strided_tensors(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let data = Random::new(6).floats(12);
    let from = fixture.device().tensor([3, 4], &data)?.permute(&[1, 0])?;
    let to = fixture.device().tensor([4, 3], &[0.0f32; 12])?;
    wait::event(&queue.copy(&to, &from)?)?;
    let transposed: Vec<_> = (0..12).map(|i| data[(i % 3) * 4 + i / 3]).collect();
    expect_equal("transposed", &to.to_vec::<f32>()?, &transposed)?;
    wait::event(&queue.copy(&from, &to)?)?;
    expect_equal("and back", &from.to_vec::<f32>()?, &transposed)
}

fn a_staged_copy_on_a_new_queue_ends(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let strided = fixture.full(20, 1.0)?.view(&[10], &[2], 0)?;
    let dense = fixture.full(10, 0.0)?;
    let queue = fixture.queue()?;
    let event = queue.copy(&dense, &strided)?;
    wait::event(&event)?;
    assert!(event.is_done()?);
    expect_all("copied", &dense, 1.0)?;
    // It has already ended, so its ticket comes before any later one.
    let later = queue.copy(&fixture.full(10, 0.0)?, &dense)?;
    wait::event(&later)?;
    assert!(event.ticket() <= later.ticket());
    Ok(())
}

fn copies_between_spaces(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let spaces = &context.info().spaces;
    for (from, to) in spaces.iter().flat_map(|from| spaces.iter().map(move |to| (from, to))) {
        let place = |name: &str| runtime_core::Placement::space(name);
        let source = fixture.full(1000, 5.0)?.to_device(fixture.device(), &place(&from.name))?;
        let destination = fixture.full(1000, 0.0)?.to_device(fixture.device(), &place(&to.name))?;
        wait::event(&queue.copy(&destination, &source)?)?;
        expect_all(&format!("{} to {}", from.name, to.name), &destination, 5.0)?;
    }
    Ok(())
}

fn copies_between_openings(context: &Context) -> Verdict {
    let other = context.reopen(&Options::new())?;
    let (here, there) = (context.fixture().full(1000, 6.0)?, other.full(1000, 0.0)?);
    wait::event(&context.fixture().queue()?.copy(&there, &here)?)?;
    expect_all("sent", &there, 6.0)?;
    there.fill(&7.0f32.to_le_bytes())?;
    wait::event(&context.fixture().queue()?.copy(&here, &there)?)?;
    expect_all("fetched", &here, 7.0)
}

fn a_pattern_that_does_not_fit_is_refused(context: &Context) -> Verdict {
    let (queue, tensor) = (context.fixture().queue()?, context.fixture().tensor(&[0u8; 10])?);
    for pattern in [&[][..], &[1; 3], &[1; 4], &[1; 17]] {
        expect_error(
            "pattern",
            queue.fill(&tensor, pattern),
            ErrorKind::InvalidArgument,
            &["pattern", "10"],
        )?;
    }
    assert_eq!(queue.submitted(), 0, "a refused fill takes no ticket");
    expect_error("pattern", tensor.fill(&[1; 3]), ErrorKind::InvalidArgument, &["pattern", "10"]).map(drop)
}

fn a_wrong_length_is_refused(context: &Context) -> Verdict {
    let (queue, tensor) = (context.fixture().queue()?, context.fixture().full(10, 1.0)?);
    expect_error("write", queue.write(&tensor, &[0; 39]), ErrorKind::InvalidArgument, &["39", "40"])?;
    expect_error("read", queue.read(&tensor, &mut [0; 41]), ErrorKind::InvalidArgument, &["41", "40"])?;
    expect_error("tensor write", tensor.write(&[0.0f32; 9]), ErrorKind::InvalidArgument, &["36", "40"])?;
    expect_error("tensor read", tensor.read_bytes(&mut [0; 4]), ErrorKind::InvalidArgument, &["4", "40"])?;
    assert_eq!(queue.submitted(), 0, "a refused transfer takes no ticket");
    expect_all("untouched", &tensor, 1.0)
}

fn different_shapes_are_refused(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (floats, ints) = (fixture.full(10, 1.0)?, fixture.tensor(&[1i32; 10])?);
    expect_error("types", queue.copy(&floats, &ints), ErrorKind::InvalidArgument, &["f32", "i32"])?;
    expect_error(
        "shapes",
        queue.copy(&floats, &fixture.full(11, 1.0)?),
        ErrorKind::InvalidArgument,
        &["10", "11"],
    )
    .map(drop)
}

fn a_copy_of_nothing_here_is_refused(context: &Context) -> Verdict {
    let other = context.reopen(&Options::new())?;
    let (a, b) = (other.full(10, 1.0)?, other.full(10, 2.0)?);
    let queue = context.fixture().queue()?;
    expect_error("copy", queue.copy(&a, &b), ErrorKind::InvalidArgument, &["queue's device"])?;
    expect_error("write", queue.write(&a, &[0; 40]), ErrorKind::InvalidArgument, &[context.name()]).map(drop)
}

fn transfers_are_in_order(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let (a, b) = (fixture.full(50_000, 0.0)?, fixture.full(50_000, 0.0)?);
    for round in 1..=20u8 {
        let value = f32::from(round).to_le_bytes();
        drop(queue.fill(&a, &value)?);
        drop(queue.copy(&b, &a)?);
        drop(queue.fill(&a, &[0])?);
        let mut bytes = vec![0; 200_000];
        queue.read(&b, &mut bytes)?;
        expect_equal("round", &bytes, &value.repeat(50_000))?;
    }
    Ok(())
}

fn strided_queue_transfers(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let whole = fixture.tensor(&[0u8; 20])?;
    let odd = whole.view(&[10], &[2], 1)?;
    drop(queue.fill(&whole, &[9])?);
    queue.write(&odd, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10])?;
    let mut back = [0; 10];
    queue.read(&odd, &mut back)?;
    expect_equal("odd", &back, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10])?;
    expect_equal("even", &whole.view(&[10], &[2], 0)?.to_vec::<u8>()?, &[9; 10])?;
    expect_error("fill", queue.fill(&odd, &[1]), ErrorKind::Unsupported, &["gaps"]).map(drop)
}

fn backwards_and_broadcast_queue_transfers(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let whole = fixture.tensor(&(0..10u8).collect::<Vec<_>>())?;
    let mut back = [0; 10];
    queue.read(&whole.view(&[10], &[-1], 9)?, &mut back)?;
    expect_equal("backwards", &back, &[9, 8, 7, 6, 5, 4, 3, 2, 1, 0])?;
    queue.write(&whole.view(&[5], &[-2], 9)?, &[50, 51, 52, 53, 54])?;
    expect_equal("written backwards", &whole.to_vec::<u8>()?, &[0, 54, 2, 53, 4, 52, 6, 51, 8, 50])?;
    let mut repeated = [0; 6];
    queue.read(&whole.view(&[2, 3], &[0, 1], 4)?, &mut repeated)?;
    expect_equal("one row twice", &repeated, &[4, 52, 6, 4, 52, 6])?;
    let dense = fixture.device().tensor([3, 2], &[0u8; 6])?;
    wait::event(&queue.copy(&dense, &whole.view(&[3, 2], &[-1, 0], 3)?)?)?;
    expect_equal("copied", &dense.to_vec::<u8>()?, &[53, 53, 2, 2, 54, 54])
}

fn copies_between_overlapping_views(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let data: Vec<i32> = (0..100).collect();
    let views: [(&[i64], usize, &[i64], usize); 3] =
        [(&[1], 0, &[-1], 99), (&[-1], 79, &[1], 5), (&[1], 10, &[2], 1)];
    for (to, to_offset, from, from_offset) in views {
        let whole = fixture.tensor(&data)?;
        let count = if to_offset == 0 { 100 } else { 45 };
        let (to, from) = (whole.view(&[count], to, to_offset)?, whole.view(&[count], from, from_offset)?);
        let expected = from.to_vec::<i32>()?;
        wait::event(&queue.copy(&to, &from)?)?;
        expect_equal("as if read before it is written", &to.to_vec::<i32>()?, &expected)?;
    }
    Ok(())
}
