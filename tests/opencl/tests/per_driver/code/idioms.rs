//! The kernels of `kernels/idioms.cl`, compared with the same computation in Rust.

use runtime_core::{Arg, Geometry, Result};

use super::Case;
use super::fixture::{Fixture, assert_close, assert_equal, random_floats};

pub(crate) const CASES: &[Case] = &[
    ("group_sums", group_sums),
    ("two_work_group_arrays", two_work_group_arrays),
    ("a_structure_by_value", a_structure_by_value),
    ("vectors_in_work_group_memory", vectors_in_work_group_memory),
    ("tiles_with_neighbours", tiles_with_neighbours),
    ("constant_memory", constant_memory),
    ("work_group_atomics", work_group_atomics),
    ("a_breadth_first_search", a_breadth_first_search),
];

fn group_sums(fixture: &Fixture) -> Result<()> {
    let data: Vec<f32> = (0..10_007u16).map(|value| f32::from(value % 7)).collect();
    let tensor = fixture.tensor(&data)?;
    // The size of the work-group memory changes from launch to launch.
    for (groups, size) in [(1, 1), (3, 64), (5, 32), (2, 128)] {
        let sums = fixture.zeros::<f32>(groups as usize)?;
        let args =
            [Arg::read(&tensor), Arg::write(&sums), Arg::local(4 * u64::from(size)), Arg::scalar(10_007u32)];
        fixture.run("sum", &Geometry::new(groups, size), &args)?;
        let mut right = vec![0.0f32; groups as usize];
        let (size, grid) = (size as usize, (groups * size) as usize);
        data.iter().enumerate().for_each(|(at, value)| right[at % grid / size] += value);
        assert_equal(&sums, &right)?;
    }
    Ok(())
}

fn two_work_group_arrays(fixture: &Fixture) -> Result<()> {
    let out = fixture.zeros::<u32>(96)?;
    let args = [Arg::local(4 * 32), Arg::write(&out), Arg::local(8 * 32), Arg::scalar(3u32)];
    fixture.run("two_locals", &Geometry::new(3, 32), &args)?;
    let right: Vec<u32> = (0..96).map(|at| (31 - at % 32) * 3 + 31 - at % 32).collect();
    assert_equal(&out, &right)
}

fn a_structure_by_value(fixture: &Fixture) -> Result<()> {
    let (count, points) = (100, random_floats(4 * 130, 1));
    let (centre, scale, weights) = ([0.5f32, 0.25, 0.125, 1.0], 2.0f32, [1.0f32, 2.0, 3.0]);
    // The vector aligns the structure to 16 bytes.
    let mut camera = [0u8; 32];
    centre
        .iter()
        .enumerate()
        .for_each(|(at, value)| camera[4 * at..][..4].copy_from_slice(&value.to_ne_bytes()));
    camera[16..20].copy_from_slice(&100i32.to_ne_bytes());
    camera[20..24].copy_from_slice(&scale.to_ne_bytes());
    let (places, out, taps) =
        (fixture.tensor(&points)?, fixture.zeros::<f32>(4 * 130)?, fixture.tensor(&weights)?);
    let args = [Arg::read(&places), Arg::write(&out), Arg::bytes(&camera), Arg::read(&taps)];
    fixture.run("look", &Geometry::cover(130, 64), &args)?;
    let look = |point: &[f32]| {
        let to: Vec<f32> = (0..3).map(|axis| point[axis] - centre[axis]).collect();
        let w: f32 = to.iter().zip(weights).map(|(to, weight)| to * weight).sum();
        [w * scale, to[0] * scale, to[1] * scale, to[2] * scale]
    };
    let mut right: Vec<f32> = points.chunks(4).take(count).flat_map(look).collect();
    right.resize(4 * 130, 0.0);
    assert_close(&out, &right)
}

fn vectors_in_work_group_memory(fixture: &Fixture) -> Result<()> {
    let (n, width) = (77u16, 16u32);
    let bodies = random_floats(4 * usize::from(n), 2);
    let (places, out) = (fixture.tensor(&bodies)?, fixture.zeros::<f32>(bodies.len())?);
    let args = [
        Arg::read(&places),
        Arg::write(&out),
        Arg::local(16 * u64::from(width)),
        Arg::scalar(i32::from(n)),
        Arg::scalar(0.1f32),
    ];
    fixture.run("forces", &Geometry::cover(u32::from(n), width), &args)?;
    let force = |own: &[f32]| {
        let mut sum = [0.0f32; 4];
        for body in bodies.chunks(4) {
            let away: Vec<f32> = (0..3).map(|axis| body[axis] - own[axis]).collect();
            let distance = away.iter().map(|value| value * value).sum::<f32>() + 0.1;
            (0..3).for_each(|axis| sum[axis] += away[axis] * (body[3] / (distance * distance.sqrt())));
        }
        sum
    };
    assert_close(&out, &bodies.chunks(4).flat_map(force).collect::<Vec<_>>())
}

fn tiles_with_neighbours(fixture: &Fixture) -> Result<()> {
    let (columns, rows) = (37usize, 21usize);
    let (power, before) = (random_floats(columns * rows, 3), random_floats(columns * rows, 4));
    let (p, b, after) =
        (fixture.tensor(&power)?, fixture.tensor(&before)?, fixture.zeros::<f32>(columns * rows)?);
    let args = [
        Arg::read(&p),
        Arg::read(&b),
        Arg::write(&after),
        Arg::scalar(37i32),
        Arg::scalar(21i32),
        Arg::scalar(0.1f32),
    ];
    fixture.run("heat", &Geometry::new([3, 2], [16, 16]), &args)?;
    let at = |x: usize, y: usize| before[y.min(rows - 1) * columns + x.min(columns - 1)];
    let cell = |index: usize| {
        let (x, y) = (index % columns, index / columns);
        let around = at(x, y.saturating_sub(1)) + at(x, y + 1) + at(x.saturating_sub(1), y) + at(x + 1, y);
        at(x, y) + 0.1 * (around - 4.0 * at(x, y) + power[index])
    };
    assert_close(&after, &(0..columns * rows).map(cell).collect::<Vec<_>>())
}

fn constant_memory(fixture: &Fixture) -> Result<()> {
    let (data, taps): (Vec<i32>, _) = ((0..1000).map(|value| value * value % 101).collect(), [1, -2, 3, -4]);
    let (tensor, out, table) = (fixture.tensor(&data)?, fixture.zeros::<i32>(1000)?, fixture.tensor(&taps)?);
    let args = [Arg::read(&tensor), Arg::write(&out), Arg::read(&table), Arg::scalar(1000i32)];
    fixture.run("filter", &Geometry::cover(1000, 64), &args)?;
    let near = |at: usize| [998, 999, 1, 2].map(|offset| data[(at + offset) % 1000]);
    let sum = |at| near(at).iter().zip(taps).map(|(value, tap)| value * tap).sum();
    assert_equal(&out, &(0..1000).map(sum).collect::<Vec<i32>>())
}

fn work_group_atomics(fixture: &Fixture) -> Result<()> {
    let data: Vec<u8> = (0..50_001u32).map(|value| u8::try_from(value * value % 251).unwrap_or(0)).collect();
    let (tensor, bins) = (fixture.tensor(&data)?, fixture.zeros::<u32>(256)?);
    let args = [Arg::read(&tensor), Arg::read_write(&bins), Arg::scalar(50_001u32)];
    fixture.run("count_bytes", &Geometry::new(4, 64), &args)?;
    let mut right = [0u32; 256];
    data.iter().for_each(|value| right[usize::from(*value)] += 1);
    assert_equal(&bins, &right)
}

/// A ring with shortcuts: one launch per level, with a flag that the host reads in between.
fn a_breadth_first_search(fixture: &Fixture) -> Result<()> {
    let nodes = 40i32;
    let edges: Vec<i32> = (0..nodes).flat_map(|node| [(node + 1) % nodes, (node * 7 + 3) % nodes]).collect();
    let first: Vec<i32> = (0..=nodes).map(|node| 2 * node).collect();
    let mut right = vec![-1; 40];
    right[0] = 0;
    let mut work = std::collections::VecDeque::from([0usize]);
    while let Some(node) = work.pop_front() {
        for next in [edges[2 * node], edges[2 * node + 1]].map(|next| usize::try_from(next).unwrap_or(0)) {
            if right[next] < 0 {
                right[next] = right[node] + 1;
                work.push_back(next);
            }
        }
    }
    let (starts, ends) = (fixture.tensor(&first)?, fixture.tensor(&edges)?);
    let mut start = vec![0i8; 40];
    start[0] = 1;
    let mut costs = vec![-1i32; 40];
    costs[0] = 0;
    let (mut frontier, mut next, cost) =
        (fixture.tensor(&start)?, fixture.zeros::<i8>(40)?, fixture.tensor(&costs)?);
    let is_more = fixture.zeros::<i8>(1)?;
    for depth in 1..40i32 {
        is_more.fill(&[0])?;
        let args = [
            Arg::read(&starts),
            Arg::read(&ends),
            Arg::read_write(&frontier),
            Arg::read_write(&next),
            Arg::read_write(&cost),
            Arg::read_write(&is_more),
            Arg::scalar(nodes),
            Arg::scalar(depth),
        ];
        fixture.run("level", &Geometry::cover(40, 16), &args)?;
        if is_more.to_vec::<i8>()? == [0] {
            break;
        }
        std::mem::swap(&mut frontier, &mut next);
    }
    assert_equal(&cost, &right)
}
