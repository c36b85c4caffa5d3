//! Random lists of kernels, fused and not, in the interpreter: it finds races, which a device may hide.
//!
//! `RUNTIME_FUSION_CASES` sets the number of lists.
#![allow(clippy::print_stdout, reason = "prints the share that fused")]

#[path = "../../../runtime-kernel/tests/fuse/lists.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod lists;

use kernel_fuzz::case::Launch;
use kernel_fuzz::interpret::{Invalid, Parsed, interpret_on};
use lists::{Case, Random, list};
use runtime_core::{CodeFormat, DeviceInfo, DeviceKind, FusionArg, PlannedKernel};

/// Lists in a normal run.
const CASES: u32 = 300;

fn device() -> DeviceInfo {
    let mut info = DeviceInfo::new(DeviceKind::Accelerator, 0, "Interpreter");
    info.formats = vec![CodeFormat::SPIRV_SHADER];
    info.limits.group_size = [1024; 3];
    info.limits.group_items = 1024;
    info.limits.shared_bytes = 64 << 10;
    info
}

/// Runs a kernel of a plan on tensors.
fn run(case: &Case, planned: &PlannedKernel, tensors: &mut [Vec<u8>]) -> Result<(), Invalid> {
    let (text, entry, groups, args) = case.resolved(planned);
    let parsed = Parsed::new(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut launch = Launch {
        entry: entry.to_owned(),
        groups,
        lengths: Vec::new(),
        scalars: Vec::new(),
        constants: Vec::new(),
        seed: 0,
    };
    let mut bound = Vec::new();
    for arg in &args {
        match *arg {
            FusionArg::Tensor(tensor) => {
                launch.lengths.push(tensors[tensor].len() / element_bytes(text));
                bound.push(tensor);
            }
            FusionArg::Scalar { bits, .. } => launch.scalars.push(bits.to_string()),
        }
    }
    let contents: Vec<_> = bound.iter().map(|tensor| tensors[*tensor].clone()).collect();
    let result = interpret_on(&parsed, &launch, &contents)?;
    for (bound, tensor) in bound.into_iter().zip(result.tensors).filter(|(_, tensor)| tensor.written) {
        tensors[bound][..tensor.after.len()].copy_from_slice(&tensor.after);
    }
    Ok(())
}

/// The size of the elements that all kernels of a list have.
fn element_bytes(text: &str) -> usize {
    if text.contains("array<vec4") { 16 } else { 4 }
}

/// Whether elements are the same bits, or both are no number.
fn is_same(text: &str, expected: &[u8], actual: &[u8]) -> bool {
    let is_nan = |word: &[u8]| word.try_into().is_ok_and(|word| f32::from_le_bytes(word).is_nan());
    let words = expected.chunks(4).zip(actual.chunks(4));
    expected == actual
        || text.contains("array<f32>") && words.into_iter().all(|(a, b)| a == b || (is_nan(a) && is_nan(b)))
}

fn bytes(tensors: &[Vec<u32>]) -> Vec<Vec<u8>> {
    tensors.iter().map(|data| data.iter().flat_map(|word| word.to_le_bytes()).collect()).collect()
}

/// Drops the launches without a unique result, and returns what the others leave.
fn unfused(case: &mut Case) -> Vec<Vec<u8>> {
    let mut tensors = bytes(&case.tensors);
    let mut at = 0;
    while at < case.launches.len() {
        match run(case, &PlannedKernel { launches: at..at + 1, code: None }, &mut tensors) {
            Ok(()) => at += 1,
            Err(Invalid::Unknown(what)) => panic!("the interpreter does not support {what}"),
            Err(_) => drop(case.launches.remove(at)),
        }
    }
    tensors
}

#[test]
fn random_lists_leave_the_same_bits() {
    let cases = std::env::var("RUNTIME_FUSION_CASES").ok().and_then(|cases| cases.parse().ok());
    let cases: u32 = cases.unwrap_or(CASES);
    let (mut launches, mut seams, mut fused, mut barriers, mut promoted) = (0, 0, 0, 0, 0);
    for seed in 0..cases {
        let mut case = list(&mut Random(u64::from(seed) * 7919 + 1));
        let expected = unfused(&mut case);
        let plan = case.plan(&device());
        let mut actual = bytes(&case.tensors);
        for kernel in &plan.kernels {
            let text = || case.resolved(kernel).0;
            run(&case, kernel, &mut actual)
                .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}\n{:#?}", text(), case.launches));
        }
        for tensor in (0..expected.len()).filter(|tensor| !case.temporary.contains(tensor)) {
            let texts = || {
                plan.kernels.iter().map(|kernel| case.resolved(kernel).0).collect::<Vec<_>>().join("\n----\n")
            };
            assert!(
                case.launches.is_empty()
                    || is_same(&case.launches[0].code, &expected[tensor], &actual[tensor]),
                "seed {seed}: tensor {tensor} differs\n{}\n{:#?}",
                texts(),
                case.launches
            );
        }
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
    assert!(fused * 4 > seams && promoted > 0 && barriers > 0, "{fused} of {seams}");
}
