//! The kernels of `kernels/` that are made to be fused, as they are.

use runtime_core::DType;
use runtime_core::lowering::FusionArg::{Scalar, Tensor};
use runtime_core::lowering::{FusionArg, FusionTensor, Promotion};

use super::{List, u32_arg};

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
