//! Kernel fusion: fused launches give the results of the same launches as they are, bit for bit. The numbers are small whole
//! ones, so that it does not matter which compiler contracts a product and a sum.

pub(super) mod graphs;
mod kernels;
pub(super) mod order;
pub(super) mod repeated;
mod scenario;

use runtime_core::{Geometry, Queue, abi, half};

use self::kernels::{ARRAYS, FUNCTIONS, GROUPED, HALVES, PLANE, STRUCTURES, TYPED};
use self::scenario::{COVER, GROUP, N, Scenario, WHOLE};
use crate::case::{Failure, Verdict, cases};
use crate::context::Context;

cases! {
    [] => two_kernels, three_kernels, a_diamond, a_diamond_with_group_memory, two_dimensions, larger_and_smaller_ranges,
        groups_of_another_size, one_kernel, no_kernel, a_list_in_a_loop, group_memory_of_a_kernel, a_barrier_between_kernels,
        structures, pointers_as_arguments, barriers_inside, halves, vectors, a_dropped_temporary, a_dropped_temporary_of_a_group,
        a_temporary_behind_functions, arrays_in_registers, a_reduction_at_the_end, neighbours_are_not_fused,
        a_reversed_index_is_not_fused, indices_from_data_are_not_fused, one_tensor_in_several_places, thirty_two_kernels,
        kernels_without_a_common_tensor, a_dropped_temporary_of_vectors, a_dropped_temporary_in_two_dimensions;
}

fn two_kernels(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (add, scale) = (scenario.elements("add")?, scenario.elements("scale")?);
    let (a, b, sum, out) = scenario.four()?;
    let work = |queue: &Queue| {
        queue.launch(&add, COVER, (&a, &b, &sum))?;
        queue.launch(&scale, COVER, (&sum, &out, 3.0f32))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn three_kernels(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (add, relu, scale) =
        (scenario.elements("add")?, scenario.elements("relu")?, scenario.elements("scale")?);
    let (a, b, sum, out) = scenario.four()?;
    let work = |queue: &Queue| {
        queue.launch(&add, COVER, (&a, &b, &sum))?;
        queue.launch(&relu, COVER, (&sum,))?;
        queue.launch(&scale, COVER, (&sum, &out, 0.5f32))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn a_diamond(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (add, scale) = (scenario.elements("add")?, scenario.elements("scale")?);
    let (a, b, sum, out) = scenario.four()?;
    let (left, right) = (scenario.numbers(0.0)?, scenario.numbers(0.0)?);
    let work = |queue: &Queue| {
        queue.launch(&add, COVER, (&a, &b, &sum))?;
        queue.launch(&scale, COVER, (&sum, &left, 2.0f32))?;
        queue.launch(&scale, COVER, (&sum, &right, 3.0f32))?;
        queue.launch(&add, COVER, (&left, &right, &out))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn a_diamond_with_group_memory(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (rotate, mirror) = (scenario.kernel(GROUPED, "rotate")?, scenario.kernel(GROUPED, "mirror")?);
    let add = scenario.elements("add")?;
    let [a, left, right, out] = scenario.whole()?;
    let work = |queue: &Queue| {
        queue.launch(&rotate, COVER, (&a, &left))?;
        queue.launch(&mirror, COVER, (&a, &right))?;
        queue.launch(&add, COVER, (&left, &right, &out))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn two_dimensions(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (raise, twice) = (scenario.kernel(PLANE, "raise")?, scenario.kernel(PLANE, "twice")?);
    let plane = |scenario: &mut Scenario<'_>| scenario.tensor(&[30, 50], |index| (index % 23) as f32);
    let (x, y, z) = (plane(&mut scenario)?, plane(&mut scenario)?, plane(&mut scenario)?);
    let geometry = Geometry::new([7, 4, 1], [8, 8, 1]);
    let work = |queue: &Queue| {
        queue.launch(&raise, geometry, (&x, &y, 50u32, 30u32))?;
        queue.launch(&twice, geometry, (&y, &z, 50u32, 30u32))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn larger_and_smaller_ranges(context: &Context) -> Verdict {
    for (first, second) in [(16, 8), (8, 16), (3, 16), (16, 16)] {
        let mut scenario = Scenario::new(context)?;
        let (add, scale) = (scenario.elements("add")?, scenario.elements("scale")?);
        let (a, b, sum, out) = scenario.four()?;
        let work = |queue: &Queue| {
            queue.launch(&add, (first, GROUP), (&a, &b, &sum))?;
            queue.launch(&scale, (second, GROUP), (&sum, &out, 3.0f32))?;
            Ok(())
        };
        scenario.fuses_to(1, work)?;
    }
    Ok(())
}

fn groups_of_another_size(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (add, negate) = (scenario.elements("add")?, scenario.elements("negate")?);
    let (a, b, sum, out) = scenario.four()?;
    let work = |queue: &Queue| {
        queue.launch(&add, COVER, (&a, &b, &sum))?;
        queue.launch(&negate, (32, 32), (&sum, &out))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn one_kernel(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let add = scenario.elements("add")?;
    let (a, b, sum, _) = scenario.four()?;
    let report = scenario.fuses_to(1, |queue| {
        queue.launch(&add, COVER, (&a, &b, &sum))?;
        Ok(())
    })?;
    assert!(!report.kernels[0].is_fused, "{report}");
    Ok(())
}

fn no_kernel(context: &Context) -> Verdict {
    Scenario::new(context)?.fuses_to(0, |_| Ok(())).map(drop)
}

fn a_list_in_a_loop(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (add, scale) = (scenario.elements("add")?, scenario.elements("scale")?);
    let (a, b, sum, out) = scenario.four()?;
    for round in 0..10u8 {
        let report = scenario.fuses_to(1, |queue| {
            queue.launch(&add, COVER, (&a, &b, &sum))?;
            queue.launch(&scale, COVER, (&sum, &out, f32::from(round)))?;
            Ok(())
        })?;
        assert!(report.is_cached || round == 0, "round {round}");
    }
    Ok(())
}

fn group_memory_of_a_kernel(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (rotate, scale) = (scenario.kernel(GROUPED, "rotate")?, scenario.elements("scale")?);
    let [a, b, c, _] = scenario.whole()?;
    let work = |queue: &Queue| {
        queue.launch(&scale, COVER, (&a, &b, 2.0f32))?;
        queue.launch(&rotate, COVER, (&b, &c))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn a_barrier_between_kernels(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (mirror, scale) = (scenario.kernel(GROUPED, "mirror")?, scenario.elements("scale")?);
    let [a, b, c, d] = scenario.whole()?;
    let work = |queue: &Queue| {
        queue.launch(&scale, COVER, (&a, &b, 2.0f32))?;
        queue.launch(&mirror, COVER, (&b, &c))?;
        queue.launch(&mirror, COVER, (&c, &d))?;
        Ok(())
    };
    let report = scenario.fuses_to(1, work)?;
    assert_eq!(report.kernels[0].barriers, 2, "{report}");
    Ok(())
}

fn structures(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (swap, sum) = (scenario.kernel(STRUCTURES, "swap")?, scenario.kernel(STRUCTURES, "sum")?);
    let [a, b, c, _] = scenario.whole()?;
    let work = |queue: &Queue| {
        queue.launch(&swap, COVER, (&a, &b))?;
        queue.launch(&sum, COVER, (&b, &c))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn pointers_as_arguments(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let step = scenario.kernel(FUNCTIONS, "step")?;
    let (a, b, c, _) = scenario.four()?;
    let work = |queue: &Queue| {
        queue.launch(&step, COVER, (&a, &b))?;
        queue.launch(&step, COVER, (&b, &c))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn barriers_inside(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let rotate = scenario.kernel(GROUPED, "rotate")?;
    let [a, b, c, d] = scenario.whole()?;
    let work = |queue: &Queue| {
        queue.launch(&rotate, COVER, (&a, &b))?;
        queue.launch(&rotate, COVER, (&b, &c))?;
        queue.launch(&rotate, COVER, (&c, &d))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn halves(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    if !context.info().capabilities.has(abi::CAP_F16) {
        return Err(Failure::Unsupported("the device has no f16".to_owned()));
    }
    let scale = scenario.kernel(HALVES, "scale")?;
    let half =
        |scenario: &mut Scenario<'_>| scenario.tensor(&[N], |index| half::f16::from_f32((index % 13) as f32));
    let (a, b, c) = (half(&mut scenario)?, half(&mut scenario)?, half(&mut scenario)?);
    let factor = half::f16::from_f32(2.0);
    let work = |queue: &Queue| {
        queue.launch(&scale, COVER, (&a, &b, factor))?;
        queue.launch(&scale, COVER, (&b, &c, factor))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn vectors(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (twice, swizzle) = (scenario.kernel(TYPED, "twice")?, scenario.kernel(TYPED, "swizzle")?);
    let [a, b, c, _] = scenario.whole()?;
    let work = |queue: &Queue| {
        queue.launch(&twice, (4, GROUP), (&a, &b))?;
        queue.launch(&swizzle, (4, GROUP), (&b, &c))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

/// Nobody can read a dropped tensor, so that its elements stay in registers.
fn a_dropped_temporary(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (add, scale) = (scenario.elements("add")?, scenario.elements("scale")?);
    let (a, b, out, _) = scenario.four()?;
    let report = scenario.fuses_to(1, |queue| {
        let sum = scenario.temporary(N)?;
        queue.launch(&add, COVER, (&a, &b, &sum))?;
        queue.launch(&scale, COVER, (&sum, &out, 3.0f32))?;
        Ok(())
    })?;
    assert_eq!(report.kernels[0].promoted, 1, "{report}");
    Ok(())
}

fn a_dropped_temporary_of_a_group(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (mirror, scale) = (scenario.kernel(GROUPED, "mirror")?, scenario.elements("scale")?);
    let [a, out, ..] = scenario.whole()?;
    scenario
        .fuses_to(1, |queue| {
            let twice = scenario.temporary(WHOLE)?;
            queue.launch(&scale, COVER, (&a, &twice, 2.0f32))?;
            queue.launch(&mirror, COVER, (&twice, &out))?;
            Ok(())
        })
        .map(drop)
}

fn a_temporary_behind_functions(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let step = scenario.kernel(FUNCTIONS, "step")?;
    let (a, out, ..) = scenario.four()?;
    scenario
        .fuses_to(1, |queue| {
            let (first, second) = (scenario.temporary(N)?, scenario.temporary(N)?);
            queue.launch(&step, COVER, (&a, &first))?;
            queue.launch(&step, COVER, (&first, &second))?;
            queue.launch(&step, COVER, (&second, &out))?;
            Ok(())
        })
        .map(drop)
}

fn arrays_in_registers(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (prefix, backwards) = (scenario.kernel(ARRAYS, "prefix")?, scenario.kernel(ARRAYS, "backwards")?);
    let [a, out, ..] = scenario.whole()?;
    scenario
        .fuses_to(1, |queue| {
            let sums = scenario.temporary(WHOLE)?;
            queue.launch(&prefix, (4, GROUP), (&a, &sums))?;
            queue.launch(&backwards, (4, GROUP), (&sums, &out))?;
            Ok(())
        })
        .map(drop)
}

fn a_reduction_at_the_end(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (total, scale) = (scenario.kernel(GROUPED, "total")?, scenario.elements("scale")?);
    let [a, b, ..] = scenario.whole()?;
    let sums = scenario.tensor(&[16], |_| 0.0f32)?;
    let work = |queue: &Queue| {
        queue.launch(&scale, COVER, (&a, &b, 2.0f32))?;
        queue.launch(&total, COVER, (&b, &sums))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

/// The second kernel reads what other items of the first one write.
fn stays_two(context: &Context, entry: &str) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (scale, reader) = (scenario.elements("scale")?, scenario.elements(entry)?);
    let (a, b, out, _) = scenario.four()?;
    let report = scenario.fuses_to(2, |queue| {
        queue.launch(&scale, COVER, (&a, &b, 2.0f32))?;
        queue.launch(&reader, COVER, (&b, &out))?;
        Ok(())
    })?;
    let text = report.to_string();
    for word in ["scale", entry, "argument"] {
        assert!(text.contains(word), "{text}");
    }
    Ok(())
}

fn neighbours_are_not_fused(context: &Context) -> Verdict {
    stays_two(context, "neighbour")
}

fn a_reversed_index_is_not_fused(context: &Context) -> Verdict {
    stays_two(context, "reversed")
}

fn indices_from_data_are_not_fused(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (scale, gather) = (scenario.elements("scale")?, scenario.elements("gather")?);
    let (a, b, out, indices) = scenario.four()?;
    let work = |queue: &Queue| {
        queue.launch(&scale, COVER, (&a, &b, 2.0f32))?;
        queue.launch(&gather, COVER, (&b, &indices, &out))?;
        Ok(())
    };
    scenario.fuses_to(2, work).map(drop)
}

fn one_tensor_in_several_places(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (add, multiply) = (scenario.elements("add")?, scenario.elements("multiply")?);
    let (a, b, out, _) = scenario.four()?;
    let work = |queue: &Queue| {
        queue.launch(&add, COVER, (&a, &a, &b))?;
        queue.launch(&multiply, COVER, (&b, &b, &out))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn thirty_two_kernels(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (relu, scale) = (scenario.elements("relu")?, scenario.elements("scale")?);
    let (a, b, ..) = scenario.four()?;
    let work = |queue: &Queue| {
        for _ in 0..8 {
            queue.launch(&scale, COVER, (&a, &b, 2.0f32))?;
            queue.launch(&relu, COVER, (&b,))?;
            queue.launch(&scale, COVER, (&b, &a, 0.5f32))?;
            queue.launch(&relu, COVER, (&a,))?;
        }
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn kernels_without_a_common_tensor(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let scale = scenario.elements("scale")?;
    let (a, b, c, d) = scenario.four()?;
    let work = |queue: &Queue| {
        queue.launch(&scale, COVER, (&a, &c, 2.0f32))?;
        queue.launch(&scale, COVER, (&b, &d, 3.0f32))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn a_dropped_temporary_of_vectors(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (twice, swizzle) = (scenario.kernel(TYPED, "twice")?, scenario.kernel(TYPED, "swizzle")?);
    let (a, out, ..) = scenario.four()?;
    let report = scenario.fuses_to(1, |queue| {
        let between = scenario.temporary(N)?;
        queue.launch(&twice, (4, GROUP), (&a, &between))?;
        queue.launch(&swizzle, (4, GROUP), (&between, &out))?;
        Ok(())
    })?;
    assert_eq!(report.kernels[0].promoted, 1, "{report}");
    Ok(())
}

fn a_dropped_temporary_in_two_dimensions(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (raise, twice) = (scenario.kernel(PLANE, "raise")?, scenario.kernel(PLANE, "twice")?);
    let (a, out, ..) = scenario.four()?;
    let geometry = Geometry::new([5, 4, 1], [8, 8, 1]);
    let report = scenario.fuses_to(1, |queue| {
        let between = scenario.temporary(N)?;
        queue.launch(&raise, geometry, (&a, &between, 40u32, 25u32))?;
        queue.launch(&twice, geometry, (&between, &out, 40u32, 25u32))?;
        Ok(())
    })?;
    assert_eq!(report.kernels[0].promoted, 1, "{report}");
    Ok(())
}
