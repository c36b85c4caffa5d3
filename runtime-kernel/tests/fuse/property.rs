//! Random lists of kernels on the host, fused and not. `tests/kernel-fuzz` has many more of them, in an interpreter.

use crate::lists::{Case, Random, list};
use crate::support::Device;

/// Lists in a normal run; the variable `RUNTIME_FUSION_CASES` sets another number.
const CASES: u32 = 6;

/// Whether an item reads what another one writes in the same launch, so that its results depend on the order.
fn races(case: &Case, device: &Device) -> bool {
    let serial = case.unfused(device);
    (0..2).any(|_| case.unfused(device) != serial)
}

/// Random lists leave the same bits.
#[allow(clippy::print_stdout, reason = "prints the share that fused")]
pub(crate) fn random_lists(device: &Device) {
    let cases =
        std::env::var("RUNTIME_FUSION_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let (mut launches, mut seams, mut fused, mut barriers, mut promoted) = (0, 0, 0, 0, 0);
    for seed in 0..cases {
        let case = list(&mut Random(u64::from(seed) * 7919 + 1));
        if races(&case, device) {
            continue;
        }
        let plan = case.check(device);
        launches += case.launches.len();
        seams += plan.seams.len();
        fused += plan.seams.iter().filter(|seam| seam.fused).count();
        for code in plan.kernels.iter().filter_map(|kernel| kernel.code.as_ref()) {
            barriers += code.barriers;
            promoted += code.promoted.len();
        }
    }
    println!(
        "{cases} lists, {launches} launches: {fused} of {seams} seams closed, {barriers} barriers, {promoted} promotions"
    );
    assert!(fused > 0, "{fused} of {seams}");
}
