//! The kernels of `kernels/` that are made to be fused, as they are.

use naga::FastHashMap;
use runtime_core::DType;
use runtime_core::lowering::FusionArg::{Scalar, Tensor};
use runtime_core::lowering::{FusionArg, FusionTensor, Promotion};

use super::{List, u32_arg};
use crate::analysis::proof::unrolling::{Unroll, unrolled_loops};
use crate::{Program, Specialisation};

const ROWS: u32 = 100;
const COLUMNS: u32 = 300;

macro_rules! shipped {
    ($name:literal) => {
        include_str!(concat!("../../../../kernels/", $name, ".wgsl"))
    };
}

const FACTOR: FusionArg = Scalar { dtype: DType::F32, bits: 0x3e00_0000 };

/// Launches on tensors of `ROWS` × `COLUMNS` elements, a group per row: their code, tensors, and whether they take a factor.
fn chain(launches: &[(&str, &[usize], bool)]) -> List {
    let bytes = u64::from(ROWS * COLUMNS) * 4;
    let tensor = FusionTensor { bytes, overlaps: Vec::new(), promotion: Promotion::None };
    let mut list = List { launches: Vec::new(), tensors: vec![tensor; 10], constants: false };
    for (code, tensors, has_factor) in launches {
        let mut args: Vec<_> = tensors.iter().map(|tensor| Tensor(*tensor)).collect();
        args.extend([u32_arg(ROWS), u32_arg(COLUMNS)]);
        args.extend(has_factor.then_some(FACTOR));
        list = list.launch(code, [ROWS, 1, 1], &args);
    }
    list
}

#[test]
fn bias_gelu_and_residual_become_one_kernel() {
    let plan = chain(&[
        (shipped!("bias"), &[0, 1, 2], false),
        (shipped!("gelu"), &[2, 3], false),
        (shipped!("residual"), &[3, 0, 4], false),
    ])
    .fuses(0);
    // The width keeps rows apart.
    assert!(plan.relies_on.contains(&(0, 4)), "{:?}", plan.relies_on);
}

#[test]
fn residual_and_layer_norm_become_one_kernel() {
    chain(&[(shipped!("residual"), &[0, 1, 2], false), (shipped!("layer_norm"), &[2, 3, 4, 5], true)])
        .fuses(0);
}

#[test]
fn what_an_item_keeps_of_a_row_is_in_registers() {
    let mut list = chain(&[
        (shipped!("bias"), &[0, 1, 2], false),
        (shipped!("gelu"), &[2, 3], false),
        (shipped!("residual"), &[3, 0, 4], false),
        (shipped!("layer_norm"), &[4, 5, 6, 7], true),
    ]);
    [2, 3, 4].into_iter().for_each(|tensor| list.tensors[tensor].promotion = Promotion::Auto);
    let plan = list.fuses(0);
    let text = &plan.kernels[0].code.as_ref().unwrap().text;
    assert_eq!(text.matches("var<private> out").count(), 3, "{text}");
    // All indices count iterations of loops with constant bounds: unrolled, they are constants.
    let program = Program::parse(text, "", &Specialisation::default()).unwrap();
    let module = &program.module;
    let unrolled =
        module.functions.iter().map(|(_, function)| unrolled_loops((module, function), Unroll::All));
    assert_eq!(unrolled.flat_map(FastHashMap::into_values).filter(|trips| *trips == 2).count(), 6, "{text}");
    let indices = text.lines().filter_map(|line| Some(line.split_once("out")?.1.split_once('[')?.1));
    let of_rows = indices.filter(|index| !index.contains("(u32(")).collect::<Vec<_>>();
    assert_eq!(of_rows.len(), 1, "only the result: {of_rows:?}");
}

#[test]
fn scale_mask_and_softmax_become_one_kernel() {
    // All items read the first element of the row.
    chain(&[(shipped!("scale_mask"), &[0, 1, 2], true), (shipped!("softmax"), &[2, 3], false)]).fuses(1);
}

#[test]
fn the_elementwise_diamond_becomes_one_kernel() {
    let n = ROWS * COLUMNS;
    let groups = [n.div_ceil(256), 1, 1];
    let tensors = |list: &[usize]| list.iter().map(|tensor| Tensor(*tensor)).chain([u32_arg(n)]).collect();
    let mut scaled: Vec<_> = tensors(&[2, 4]);
    scaled.insert(2, FACTOR);
    chain(&[])
        .launch(shipped!("vector_add"), groups, &tensors(&[0, 1, 2]))
        .launch(shipped!("relu"), groups, &tensors(&[2, 3]))
        .launch(shipped!("scale"), groups, &scaled)
        .launch(shipped!("multiply_subtract"), groups, &tensors(&[3, 0, 4, 5]))
        .fuses(0);
}

#[test]
fn stencils_stay_apart() {
    let n = ROWS * COLUMNS;
    let groups = [n.div_ceil(256), 1, 1];
    chain(&[])
        .launch(shipped!("blur"), groups, &[Tensor(0), Tensor(1), u32_arg(n)])
        .launch(shipped!("sharpen"), groups, &[Tensor(1), Tensor(2), u32_arg(n)])
        .fails("sharpen reads \"x\" (argument 0), which blur writes (\"out\", argument 1), at indices of other items");
}
