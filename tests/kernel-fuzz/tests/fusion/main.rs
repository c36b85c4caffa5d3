//! Random lists of kernels, fused and not: in the interpreter, which finds races that a device may hide, and on the host.
//!
//! `RUNTIME_FUSION_CASES` sets the number of lists, `RUNTIME_FUZZ_SEED` the first of them; `cargo xtask test --all` runs 10,000.
#![allow(clippy::print_stdout, reason = "prints the share that fused")]

mod interpreted;
#[path = "../../../../runtime-kernel/tests/trials/fuse/lists.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod lists;
mod on_host;

use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use interpreted::{Interpreter, initial, is_same};
use lists::{Random, list};
use runtime_core::lowering::FusionPlan;
use runtime_core::{CodeFormat, DeviceInfo, DeviceKind};
use test_process::is_complete;

/// Lists in the interpreter: of a complete run, and otherwise.
const ALL_CASES: u32 = 10_000;
const CASES: u32 = 1_000;

fn number<T: FromStr>(variable: &str) -> Option<T> {
    std::env::var(variable).ok()?.parse().ok()
}

fn cases() -> u32 {
    number("RUNTIME_FUSION_CASES").unwrap_or(if is_complete() { ALL_CASES } else { CASES })
}

/// The first seed; a complete run repeats the same lists.
fn first_seed() -> u64 {
    number("RUNTIME_FUZZ_SEED").filter(|_| !is_complete()).unwrap_or(0)
}

fn device() -> DeviceInfo {
    let mut info = DeviceInfo::new(DeviceKind::Accelerator, 0, "Interpreter");
    info.formats = vec![CodeFormat::SPIRV_SHADER];
    info.limits.group_size = [1024; 3];
    info.limits.group_items = 1024;
    info.limits.shared_bytes = 64 << 10;
    info
}

/// What became of lists.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    lists: usize,
    launches: usize,
    seams: usize,
    closed: usize,
    barriers: usize,
    promoted: usize,
}

impl Counts {
    fn of(plan: &FusionPlan) -> Self {
        let codes = || plan.kernels.iter().filter_map(|kernel| kernel.code.as_ref());
        Self {
            lists: 1,
            launches: plan.kernels.iter().map(|kernel| kernel.launches.len()).sum(),
            seams: plan.seams.len(),
            closed: plan.seams.iter().filter(|seam| seam.fused).count(),
            barriers: codes().map(|code| code.barriers).sum(),
            promoted: codes().map(|code| code.promoted.len()).sum(),
        }
    }

    fn add(self, other: Self) -> Self {
        Self {
            lists: self.lists + other.lists,
            launches: self.launches + other.launches,
            seams: self.seams + other.seams,
            closed: self.closed + other.closed,
            barriers: self.barriers + other.barriers,
            promoted: self.promoted + other.promoted,
        }
    }
}

/// Runs a list as it is and fused, and compares what both leave.
fn check(seed: u64) -> Counts {
    let mut case = list(&mut Random(seed.wrapping_mul(7919).wrapping_add(1)));
    let mut interpreter = Interpreter::default();
    let expected = interpreter.unfused(&mut case).pop().unwrap_or_default();
    let plan = case.plan(&device());
    let mut actual = initial(&case);
    for kernel in &plan.kernels {
        let run = interpreter.run(&case, kernel, &mut actual);
        run.unwrap_or_else(|error| {
            panic!("seed {seed}: {error}\n{}\n{:#?}", case.resolved(kernel).0, case.launches)
        });
    }
    for tensor in (0..expected.len()).filter(|tensor| !case.temporary.contains(tensor)) {
        let texts =
            || plan.kernels.iter().map(|kernel| case.resolved(kernel).0).collect::<Vec<_>>().join("\n----\n");
        assert!(
            is_same(&case, &expected[tensor], &actual[tensor]),
            "seed {seed}: tensor {tensor} differs\n{}\n{:#?}",
            texts(),
            case.launches
        );
    }
    Counts::of(&plan)
}

#[test]
fn random_lists_leave_the_same_bits() {
    let (cases, first, next) = (cases(), first_seed(), AtomicU32::new(0));
    let work = || {
        let mut counts = Counts::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= cases {
                return counts;
            }
            counts = counts.add(check(first.wrapping_add(u64::from(seed))));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let counts = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(|thread| thread.join().expect("its panic was printed"));
        joined.fold(Counts::default(), Counts::add)
    });
    let Counts { lists, launches, seams, closed, barriers, promoted } = counts;
    println!(
        "RUNTIME_FUZZ_SEED={first}: {lists} lists, {launches} launches: {closed} of {seams} seams closed, {barriers} barriers, {promoted} promotions"
    );
    assert!(lists == cases as usize && closed * 4 > seams && promoted > 0 && barriers > 0, "{counts:?}");
}
