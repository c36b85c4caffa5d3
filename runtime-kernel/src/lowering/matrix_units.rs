//! Matrix units: which devices have them, and the option to emulate them by subgroups.

use std::collections::BTreeSet;

use naga::{CooperativeRole, TypeInner};
use runtime_core::DeviceInfo;
use runtime_core::backend::OptionSpec;

use super::Writer;
use crate::ir::cooperative;
use crate::program::{Dialect, Program};

/// The option to emulate them.
pub(super) const OPTION: &str = "emulate_matrix_units";

pub(super) fn option() -> OptionSpec {
    OptionSpec::module(
        OPTION,
        false,
        "Emulate matrix units, and the subgroups of kernels that use them, where a device lacks these units for the kernel's matrices. The \
         host always does.",
    )
}

/// Whether a device multiplies matrices of 16 × 16 `f16`, with the sums that the program has.
pub(super) fn are_in(device: &DeviceInfo, program: &Program, writer: Writer) -> bool {
    match writer {
        Writer::Spirv => sums(program).into_iter().all(|width| {
            let shape = format!("16x16x16 float16 * float16 + float{}", 8 * width);
            device.properties.texts("cooperative_matrix").any(|known| known.starts_with(&shape))
        }),
        // `mma.sync.m16n8k16`.
        Writer::C(Dialect::Cuda) => {
            device.arch.as_deref().and_then(architecture).is_some_and(|number| number >= 80)
        }
        Writer::C(_) => false,
    }
}

/// The bytes of a number in the sums of a program; those of `f32` if it has none.
fn sums(program: &Program) -> BTreeSet<u8> {
    let functions = program.functions();
    let matrices = functions.flat_map(|(function, info)| cooperative::types(&program.module, function, info));
    let sums = matrices.filter_map(|(matrix, _)| match *matrix {
        TypeInner::CooperativeMatrix { role: CooperativeRole::C, scalar, .. } => Some(scalar.width),
        _ => None,
    });
    let sums: BTreeSet<_> = sums.collect();
    if sums.is_empty() { BTreeSet::from([4]) } else { sums }
}

/// The number of an architecture such as `sm_90a`.
fn architecture(name: &str) -> Option<u32> {
    let number = name.split_once('_')?.1;
    number.trim_end_matches(|end: char| end.is_ascii_alphabetic()).parse().ok()
}
