//! The time to lower a kernel of 100 lines to each format, without the device's compiler.
#![allow(missing_docs, reason = "criterion's macros")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group};
use runtime_bench::{Samples, compare, measure, measure_by_default, time};
use runtime_kernel::{Checks, Dialect, Program, Specialisation};

const KERNEL: &str = include_str!("../kernels/attention.wgsl");
const AIM_NS: f64 = 1e6;

fn parse() -> Program {
    let specialisation = Specialisation::default().constant("GROUP", 128);
    Program::parse(black_box(KERNEL), "attention.wgsl", &specialisation).expect("the kernel is right")
}

fn lowering(criterion: &mut Criterion) {
    let mut of = |name: &str, lower: &dyn Fn(&Program) -> usize| {
        let ours = measure(criterion, &format!("lowering/{name}"), |calls| {
            time(calls, || {
                black_box(lower(&parse()));
            })
        });
        compare(&format!("lowering: 100 lines to {name}"), &ours, &Samples::default(), AIM_NS);
    };
    of("nothing", &|_| 0);
    of("spirv", &|program| program.spirv(Checks::Bounded).expect("it can be written").len());
    for (name, dialect) in [("opencl-c", Dialect::OpenCl), ("cuda-c", Dialect::Cuda), ("c", Dialect::Host)] {
        of(name, &|program| program.c(dialect, Checks::Bounded).expect("it can be written").text.len());
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(50);
    targets = lowering
}
fn main() {
    measure_by_default();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
