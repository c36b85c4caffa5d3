//! Views at unaligned offsets: kernels work on their elements and touch nothing beside them.

use runtime_core::{Arg, Element, Geometry, Placement, Result, Tensor};

use super::Case;
use super::fixture::{Fixture, assert_equal};

pub(crate) const CASES: &[Case] = &[
    ("bytes_at_every_offset", bytes_at_every_offset),
    ("integers_at_odd_offsets", integers_at_odd_offsets),
    ("two_views_of_one_buffer", two_views_of_one_buffer),
    ("every_memory_space", every_memory_space),
    ("copies_and_fills", copies_and_fills),
    ("pitched_copies_within_one_buffer", pitched_copies_within_one_buffer),
    ("more_sub_buffers_than_are_cached", more_sub_buffers_than_are_cached),
];

const N: usize = 100;

fn bytes_at_every_offset(fixture: &Fixture) -> Result<()> {
    let data: Vec<u8> = (0..200).collect();
    let from = fixture.tensor(&data)?;
    for (offset, target) in
        (0..20).map(|offset| (offset, (offset * 7) % 19)).chain([(64, 3), (1, 64), (99, 100)])
    {
        let to = fixture.tensor(&[0xa5u8; 200])?;
        let (source, out) = (from.slice(0, offset..offset + N)?, to.slice(0, target..target + N)?);
        let args = [Arg::read(&source), Arg::write(&out), Arg::scalar(100u32)];
        fixture.run("add_bytes", &Geometry::new(2, 16), &args)?;
        let mut right = [0xa5u8; 200];
        (0..N).for_each(|at| right[target + at] = data[offset + at] + 1);
        assert_equal(&to, &right)?;
    }
    Ok(())
}

fn integers_at_odd_offsets(fixture: &Fixture) -> Result<()> {
    let data: Vec<i32> = (0..500).collect();
    let from = fixture.tensor(&data)?;
    for (offset, target) in [(0, 0), (1, 0), (0, 1), (3, 5), (31, 33), (32, 64), (63, 1), (256, 255)] {
        let to = fixture.tensor(&[-7i32; 500])?;
        add(fixture, (&from, offset), (&to, target))?;
        let mut right = [-7i32; 500];
        (0..N).for_each(|at| right[target + at] = data[offset + at] + 1);
        assert_equal(&to, &right)?;
    }
    Ok(())
}

fn add(fixture: &Fixture, (from, offset): (&Tensor, usize), (to, target): (&Tensor, usize)) -> Result<()> {
    let (source, out) = (from.slice(0, offset..offset + N)?, to.slice(0, target..target + N)?);
    let args = [Arg::read(&source), Arg::write(&out), Arg::scalar(100u32)];
    fixture.run("add_ints", &Geometry::new(2, 16), &args)
}

/// Both views are in one buffer.
fn two_views_of_one_buffer(fixture: &Fixture) -> Result<()> {
    let mut data: Vec<i32> = (0..500).collect();
    let whole = fixture.tensor(&data)?;
    for (offset, target) in [(1, 201), (203, 102), (7, 399)] {
        add(fixture, (&whole, offset), (&whole, target))?;
        (0..N).for_each(|at| data[target + at] = data[offset + at] + 1);
        assert_equal(&whole, &data)?;
    }
    Ok(())
}

fn every_memory_space(fixture: &Fixture) -> Result<()> {
    for space in &fixture.device.info().spaces {
        if !space.kernel_visible {
            continue;
        }
        let place = Placement::space(&space.name);
        let whole = fixture.device.allocate(i32::DTYPE, &[500], &place)?;
        let mut data: Vec<i32> = (0..500).collect();
        whole.write(&data)?;
        for (offset, target) in [(0, 256), (1, 201), (203, 102)] {
            add(fixture, (&whole, offset), (&whole, target))?;
            (0..N).for_each(|at| data[target + at] = data[offset + at] + 1);
            assert_equal(&whole, &data)?;
        }
    }
    Ok(())
}

fn copies_and_fills(fixture: &Fixture) -> Result<()> {
    let data: Vec<u8> = (0..250).collect();
    let from = fixture.tensor(&data)?;
    for (offset, target, n) in [(1, 2, 13), (3, 3, 1), (17, 64, 99), (128, 1, 100), (0, 0, 250)] {
        let to = fixture.tensor(&[0xa5u8; 250])?;
        let (source, out) = (from.slice(0, offset..offset + n)?, to.slice(0, target..target + n)?);
        fixture.queue.copy(&out, &source)?.wait()?;
        let mut right = [0xa5u8; 250];
        right[target..target + n].copy_from_slice(&data[offset..offset + n]);
        assert_equal(&to, &right)?;
        fixture.queue.fill(&out, &[9])?.wait()?;
        right[target..target + n].fill(9);
        assert_equal(&to, &right)?;
        assert_eq!(out.to_vec::<u8>()?, vec![9; n]);
    }
    let ints = fixture.device.empty::<i32>([100])?;
    ints.write(&[0i32; 100])?;
    fixture.queue.fill(&ints.slice(0, 3..96)?, &(-3i32).to_ne_bytes())?.wait()?;
    let right: Vec<i32> = (0..100).map(|at| if (3..96).contains(&at) { -3 } else { 0 }).collect();
    assert_equal(&ints, &right)
}

/// Drivers accept pitched copies within one buffer only with equal pitches.
fn pitched_copies_within_one_buffer(fixture: &Fixture) -> Result<()> {
    for pitch in [10, 20] {
        let mut data: Vec<i32> = (0..200).collect();
        let whole = fixture.tensor(&data)?;
        let (source, out) = (whole.view(&[5, 4], &[10, 1], 3)?, whole.view(&[5, 4], &[pitch, 1], 100)?);
        fixture.queue.copy(&out, &source)?.wait()?;
        for (row, column) in (0..5).flat_map(|row| (0..4).map(move |column| (row, column))) {
            data[100 + row * usize::try_from(pitch).unwrap() + column] = data[3 + row * 10 + column];
        }
        assert_equal(&whole, &data)?;
    }
    Ok(())
}

/// Aligned views are sub-buffers where kernels cannot get pointers. More than the cache holds must work as well.
fn more_sub_buffers_than_are_cached(fixture: &Fixture) -> Result<()> {
    const STEP: usize = 1024;
    const ALL: i32 = 200 * 1024;
    let mut data: Vec<i32> = (0..ALL).collect();
    let whole = fixture.tensor(&data)?;
    for round in 0..2 {
        for at in (1..199).step_by(2) {
            add(fixture, (&whole, at * STEP), (&whole, (at + 1) * STEP + round * N))?;
            let (from, to) = (at * STEP, (at + 1) * STEP + round * N);
            (0..N).for_each(|index| data[to + index] = data[from + index] + 1);
        }
    }
    assert_equal(&whole, &data)
}
