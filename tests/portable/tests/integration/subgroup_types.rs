//! Subgroup operations on the host on values of every type, against a reference: scalars and vectors, small numbers that every
//! type represents exactly.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use runtime_core::{Device, ModuleSource, Result, Runtime};

use portable::random::Random;

/// An operation of an item with the number `x`, and with a factor `s` of products, and its result for one lane, given those of
/// the items of its subgroup.
type Operation = (&'static str, fn(&[i64], &[i64], usize) -> i64);

const OPERATIONS: &[Operation] = &[
    ("subgroupAdd(x)", |x, _, _| x.iter().sum()),
    ("subgroupMul(s)", |_, s, _| s.iter().product()),
    ("subgroupMin(x)", |x, _, _| x.iter().copied().min().unwrap_or(0)),
    ("subgroupMax(x)", |x, _, _| x.iter().copied().max().unwrap_or(0)),
    ("subgroupInclusiveAdd(x)", |x, _, at| x[..=at].iter().sum()),
    ("subgroupExclusiveAdd(x)", |x, _, at| x[..at].iter().sum()),
    ("subgroupInclusiveMul(s)", |_, s, at| s[..=at].iter().product()),
    ("subgroupExclusiveMul(s)", |_, s, at| s[..at].iter().product()),
    ("subgroupBroadcast(x, 3u)", |x, _, at| of_lane(x, 3, at)),
    ("subgroupBroadcastFirst(x)", |x, _, _| x[0]),
    ("subgroupShuffle(x, (5u * lane + 1u) % 8u)", |x, _, at| of_lane(x, (5 * at + 1) % 8, at)),
    ("subgroupShuffleUp(x, 2u)", |x, _, at| x[at.checked_sub(2).unwrap_or(at)]),
    ("subgroupShuffleDown(x, 3u)", |x, _, at| of_lane(x, at + 3, at)),
    ("subgroupShuffleXor(x, 1u)", |x, _, at| of_lane(x, at ^ 1, at)),
    ("quadBroadcast(x, 2u)", |x, _, at| of_lane(x, at & !3 | 2, at)),
    ("quadSwapX(x)", |x, _, at| of_lane(x, at ^ 1, at)),
    ("quadSwapY(x)", |x, _, at| of_lane(x, at ^ 2, at)),
    ("quadSwapDiagonal(x)", |x, _, at| of_lane(x, at ^ 3, at)),
];

const OF_INTEGERS: &[Operation] = &[
    ("subgroupAnd(x)", |x, _, _| x.iter().fold(-1, |a, b| a & b)),
    ("subgroupOr(x)", |x, _, _| x.iter().fold(0, |a, b| a | b)),
    ("subgroupXor(x)", |x, _, _| x.iter().fold(0, |a, b| a ^ b)),
];

/// The value of a lane; that of the lane itself if there is no such lane.
fn of_lane(values: &[i64], lane: usize, own: usize) -> i64 {
    *values.get(lane).unwrap_or(&values[own])
}

struct Case {
    scalar: &'static str,
    width: usize,
    /// The items of a subgroup and of a work-group.
    size: usize,
    items: usize,
}

impl Case {
    fn operations(&self) -> Vec<Operation> {
        let integers = if self.scalar.starts_with('f') { &[] } else { OF_INTEGERS };
        OPERATIONS.iter().chain(integers).copied().collect()
    }

    fn code(&self) -> String {
        let Self { scalar, width, items, .. } = self;
        let vector = |component: &dyn Fn(usize) -> String| match width {
            1 => component(0),
            _ => {
                let components: Vec<_> = (0..*width).map(component).collect();
                format!("vec{width}<{scalar}>({})", components.join(", "))
            }
        };
        let x = vector(&|at| format!("{scalar}(xs[item] + {at})"));
        let s =
            vector(&|at| if at % 2 == 0 { format!("{scalar}(ss[item])") } else { format!("{scalar}(1)") });
        let operations = self.operations();
        let count = operations.len();
        let mut stores = String::new();
        for (index, (wgsl, _)) in operations.iter().enumerate() {
            stores += &format!("let v{index} = {wgsl};\n");
            for at in 0..*width {
                let part = if *width == 1 { String::new() } else { format!("[{at}]") };
                stores +=
                    &format!("r[(item * {count}u + {index}u) * {width}u + {at}u] = i32(v{index}{part});\n");
            }
        }
        format!(
            "enable subgroups; enable f16;
             @group(0) @binding(0) var<storage, read> xs: array<i32>;
             @group(0) @binding(1) var<storage, read> ss: array<i32>;
             @group(0) @binding(2) var<storage, read_write> r: array<i32>;
             @compute @workgroup_size({items})
             fn main(@builtin(subgroup_invocation_id) lane: u32, @builtin(local_invocation_index) item: u32) {{
                 let x = {x};
                 let s = {s};
                 {stores}
             }}"
        )
    }

    fn check(&self, device: &Device, random: &mut Random) -> Result<()> {
        let Self { scalar, width, size, items } = *self;
        let least = if scalar == "u32" || scalar == "u64" { 0 } else { -4 };
        let xs: Vec<i32> = (0..items).map(|_| random.below(8) as i32 + least).collect();
        let factor = |chosen: usize| match chosen {
            0 => 2,
            1..4 if least < 0 => -1,
            _ => 1,
        };
        let ss: Vec<i32> = (0..items).map(|_| factor(random.below(12))).collect();
        let source = ModuleSource::wgsl(&self.code())
            .option("subgroup_size", i64::try_from(size).unwrap_or(0))
            // Compiles ten times as fast, without optimisation.
            .option("debug", true);
        let kernel = device.kernel(source, "main")?;
        let operations = self.operations();
        let (x, s) = (device.tensor([items], &xs)?, device.tensor([items], &ss)?);
        let r = device.zeros::<i32>([items * operations.len() * width])?;
        device.queue()?.launch(&kernel, (1, items as u32), (&x, &s, &r))?.wait()?;
        let results = r.to_vec::<i32>()?;
        for (place, value) in results.iter().enumerate() {
            let (component, operation) = (place % width, place / width % operations.len());
            let item = place / width / operations.len();
            let start = item / size * size;
            let range = start..(start + size).min(items);
            let x: Vec<_> = xs[range.clone()].iter().map(|&x| i64::from(x) + component as i64).collect();
            let s: Vec<_> =
                ss[range].iter().map(|&s| if component % 2 == 0 { s.into() } else { 1 }).collect();
            let (wgsl, reference) = operations[operation];
            let expected = reference(&x, &s, item - start);
            assert_eq!(
                i64::from(*value),
                expected,
                "{wgsl} of item {item}, component {component} of {width} of {scalar}, subgroups of {size}"
            );
        }
        Ok(())
    }
}

#[test]
fn operations_on_every_type_agree_with_the_reference() -> Result<()> {
    let builder = Runtime::builder().with_lowering(runtime_kernel::wgsl()).discover(false);
    let device = builder.register(runtime_host::backend()).build().open("host")?;
    let mut random = Random::new(11);
    for (scalar, width, size, items) in [
        ("i32", 1, 4, 14),
        ("u32", 2, 8, 24),
        ("f32", 3, 16, 40),
        ("f16", 1, 32, 64),
        ("f16", 4, 64, 80),
        ("i64", 1, 32, 40),
        ("u64", 3, 8, 20),
        ("f64", 2, 16, 16),
        ("i32", 4, 64, 64),
    ] {
        Case { scalar, width, size, items }.check(&device, &mut random)?;
    }
    Ok(())
}
