//! Subgroup operations on the host against a reference, for subgroups of 4 to 64 items, full and partial.

#![allow(clippy::cast_possible_truncation, reason = "a few hundred items")]

use runtime_core::{Device, Error, ErrorKind, ModuleSource, Options, Result, Runtime};

use portable::random::Random;

/// An operation: what an item stores, given its value `x`, a random number `k` and its lane.
struct Operation {
    wgsl: &'static str,
    /// The result of one lane, given the values and numbers of the subgroup's items.
    reference: fn(&[u32], &[u32], usize) -> u32,
}

const OPERATIONS: &[Operation] = &[
    Operation { wgsl: "subgroupAdd(x)", reference: |x, _, _| fold(x, u32::wrapping_add) },
    Operation { wgsl: "subgroupMul(x)", reference: |x, _, _| fold(x, u32::wrapping_mul) },
    Operation { wgsl: "subgroupMin(x)", reference: |x, _, _| fold(x, u32::min) },
    Operation { wgsl: "subgroupMax(x)", reference: |x, _, _| fold(x, u32::max) },
    Operation { wgsl: "subgroupAnd(x | 7u)", reference: |x, _, _| fold(x, |a, b| a & b) | 7 },
    Operation { wgsl: "subgroupOr(x)", reference: |x, _, _| fold(x, |a, b| a | b) },
    Operation { wgsl: "subgroupXor(x)", reference: |x, _, _| fold(x, |a, b| a ^ b) },
    Operation { wgsl: "subgroupInclusiveAdd(x)", reference: |x, _, at| fold(&x[..=at], u32::wrapping_add) },
    Operation {
        wgsl: "subgroupExclusiveAdd(x)",
        reference: |x, _, at| x[..at].iter().fold(0, |a, b| a.wrapping_add(*b)),
    },
    Operation { wgsl: "subgroupInclusiveMul(x)", reference: |x, _, at| fold(&x[..=at], u32::wrapping_mul) },
    Operation {
        wgsl: "subgroupExclusiveMul(x)",
        reference: |x, _, at| x[..at].iter().fold(1, |a, b| a.wrapping_mul(*b)),
    },
    Operation { wgsl: "u32(subgroupAll(x != 3u))", reference: |x, _, _| x.iter().all(|x| *x != 3).into() },
    Operation { wgsl: "u32(subgroupAny(x == 3u))", reference: |x, _, _| x.contains(&3).into() },
    Operation { wgsl: "u32(subgroupElect())", reference: |_, _, at| (at == 0).into() },
    Operation {
        wgsl: "subgroupBallot(x % 2u == 1u)[lane / 32u]",
        reference: |x, _, at| ballot(x, at, |x| x % 2 == 1),
    },
    Operation { wgsl: "subgroupBroadcast(x, 2)", reference: |x, _, at| *x.get(2).unwrap_or(&x[at]) },
    Operation { wgsl: "subgroupBroadcastFirst(x)", reference: |x, _, _| x[0] },
    Operation {
        wgsl: "subgroupShuffle(x, k)",
        reference: |x, k, at| *x.get(k[at] as usize).unwrap_or(&x[at]),
    },
    Operation {
        wgsl: "subgroupShuffle(x, i32(k))",
        reference: |x, k, at| *x.get(k[at] as usize).unwrap_or(&x[at]),
    },
    Operation { wgsl: "subgroupShuffleUp(x, 3u)", reference: |x, _, at| x[at.checked_sub(3).unwrap_or(at)] },
    Operation { wgsl: "subgroupShuffleDown(x, 1u)", reference: |x, _, at| *x.get(at + 1).unwrap_or(&x[at]) },
    Operation { wgsl: "subgroupShuffleXor(x, 2u)", reference: |x, _, at| *x.get(at ^ 2).unwrap_or(&x[at]) },
    Operation { wgsl: "quadBroadcast(x, 1u)", reference: |x, _, at| *x.get(at & !3 | 1).unwrap_or(&x[at]) },
    Operation { wgsl: "quadSwapX(x)", reference: |x, _, at| *x.get(at ^ 1).unwrap_or(&x[at]) },
    Operation { wgsl: "quadSwapY(x)", reference: |x, _, at| *x.get(at ^ 2).unwrap_or(&x[at]) },
    Operation { wgsl: "quadSwapDiagonal(x)", reference: |x, _, at| *x.get(at ^ 3).unwrap_or(&x[at]) },
    Operation {
        wgsl: "bitcast<u32>(subgroupMax(-f32(x % 1000u)))",
        reference: |x, _, _| (-(x.iter().map(|x| x % 1000).min().unwrap_or(0) as f32)).to_bits(),
    },
    Operation {
        wgsl: "dot(subgroupAdd(vec3<u32>(x, 1u, lane)), vec3<u32>(1u, 100u, 10000u))",
        reference: |x, _, _| {
            let n = x.len() as u32;
            fold(x, u32::wrapping_add).wrapping_add(100 * n).wrapping_add(5000 * n * (n - 1))
        },
    },
    Operation { wgsl: "size", reference: |_, _, _| 0 },
    Operation { wgsl: "lane", reference: |_, _, at| at as u32 },
];

fn fold(values: &[u32], combine: impl Fn(u32, u32) -> u32) -> u32 {
    values.iter().copied().reduce(combine).unwrap_or(0)
}

fn ballot(values: &[u32], at: usize, is: impl Fn(u32) -> bool) -> u32 {
    let word = values.chunks(32).nth(at / 32).unwrap_or_default();
    word.iter().zip(0..).map(|(x, bit)| u32::from(is(*x)) << bit).sum()
}

/// A kernel with work-groups of `items`, which runs all operations, half of them in a function and in a uniform loop.
fn code(items: u32) -> String {
    let count = OPERATIONS.len();
    let (first, second) = OPERATIONS.split_at(count / 2);
    let stores = |part: &[Operation], from: usize| -> String {
        let part = part.iter().zip(from..);
        part.map(|(operation, at)| format!("r[item * {count}u + {at}u] = {};\n", operation.wgsl)).collect()
    };
    format!(
        "enable subgroups;
         @group(0) @binding(0) var<storage, read> xs: array<u32>;
         @group(0) @binding(1) var<storage, read> ks: array<u32>;
         @group(0) @binding(2) var<storage, read_write> r: array<u32>;
         fn half(item: u32, lane: u32) {{ let x = xs[item]; let k = ks[item]; {} }}
         @compute @workgroup_size({items})
         fn main(@builtin(subgroup_invocation_id) lane: u32, @builtin(workgroup_id) group: vec3u,
                 @builtin(local_invocation_id) id: vec3u, @builtin(subgroup_size) size: u32) {{
             let item = group.x * {items}u + id.x;
             for (var turn = 0u; turn < 2u; turn++) {{ half(item, lane); }}
             let x = xs[item]; let k = ks[item];
             {}
         }}",
        stores(first, 0),
        stores(second, count / 2)
    )
}

fn host(options: &Options) -> Result<Device> {
    let runtime = Runtime::builder()
        .with_lowering(runtime_kernel::wgsl())
        .discover(false)
        .register(runtime_host::backend())
        .build();
    runtime.open_with("host", options)
}

fn check(device: &Device, items: u32, size: usize, random: &mut Random) -> Result<()> {
    const GROUPS: u32 = 2;
    let per_group = items as usize;
    let total = per_group * GROUPS as usize;
    let xs: Vec<u32> = (0..total).map(|_| random.below(9) as u32).collect();
    let ks: Vec<u32> = (0..total).map(|_| random.below(size + 2) as u32).collect();
    let source = ModuleSource::wgsl(&code(items)).option("subgroup_size", i64::try_from(size).unwrap_or(0));
    let kernel = device.kernel(source, "main")?;
    let (x, k) = (device.tensor([total], &xs)?, device.tensor([total], &ks)?);
    let r = device.zeros::<u32>([total * OPERATIONS.len()])?;
    device.queue()?.launch(&kernel, ([GROUPS, 1, 1], [items, 1, 1]), (&x, &k, &r))?.wait()?;
    let results = r.to_vec::<u32>()?;
    for (group, values) in results.chunks(per_group * OPERATIONS.len()).enumerate() {
        for (item, values) in values.chunks(OPERATIONS.len()).enumerate() {
            let start = item / size * size;
            let range = group * per_group + start..group * per_group + (start + size).min(per_group);
            for (operation, value) in OPERATIONS.iter().zip(values) {
                let mut expected =
                    (operation.reference)(&xs[range.clone()], &ks[range.clone()], item - start);
                if operation.wgsl == "size" {
                    expected = size as u32;
                }
                assert_eq!(
                    *value, expected,
                    "{} of item {item}, subgroups of {size}, {items}",
                    operation.wgsl
                );
            }
        }
    }
    Ok(())
}

#[test]
fn every_operation_agrees_with_the_reference() -> Result<()> {
    let mut random = Random::new(7);
    let device = host(&Options::new())?;
    let serial = host(&Options::new().with("serial_items", true))?;
    for (size, items) in [(4, 30), (8, 64), (16, 40), (32, 100), (64, 100)] {
        check(&device, items, size, &mut random)?;
    }
    check(&serial, 40, 16, &mut random)?;
    Ok(())
}

#[test]
fn a_size_that_does_not_exist_is_an_error() -> Result<()> {
    let device = host(&Options::new())?;
    for size in [3_i64, 2, 24] {
        let source = ModuleSource::wgsl(&code(8)).option("subgroup_size", size);
        let error = device.kernel(source, "main").expect_err("no such size");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.message().contains("a power of two from 4 to 128"), "{error}");
    }
    Ok(())
}

#[test]
fn an_operation_that_some_items_do_not_reach_is_refused_with_its_line() -> Result<()> {
    let device = host(&Options::new())?;
    let code = "enable subgroups; diagnostic(off, subgroup_uniformity); @group(0) @binding(0) var<storage, read_write> r: array<u32>;
        fn sum(x: u32) -> u32 { return subgroupAdd(x); }
        @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {
            r[i] = subgroupAdd(i);
            if i < 4u {
                r[i] = sum(i) + subgroupAdd(i); } }";
    let refused: Error = device.kernel(ModuleSource::wgsl(code), "main").expect_err("some items only");
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    let message = refused.message();
    assert!(
        message.contains("wgsl:2") && message.contains("wgsl:5") && message.contains("subgroup operation"),
        "{message}"
    );
    Ok(())
}
