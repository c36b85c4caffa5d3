//! WGSL's names of vectors and matrices, under which C defines them.

use naga::{Scalar, ScalarKind, VectorSize};

const fn scalar_suffix(scalar: Scalar) -> &'static str {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Bool, _) => "b",
        (ScalarKind::Sint, 8) => "l",
        (ScalarKind::Uint, 8) => "ul",
        (ScalarKind::Sint | ScalarKind::AbstractInt, _) => "i",
        (ScalarKind::Uint, _) => "u",
        (_, 2) => "h",
        (_, 8) => "d",
        _ => "f",
    }
}

const fn digit(size: VectorSize) -> &'static str {
    ["2", "3", "4"][size as usize - 2]
}

/// WGSL's alias of a vector type, if it has one.
pub(crate) fn vector_name(size: VectorSize, scalar: Scalar) -> String {
    ["vec", digit(size), scalar_suffix(scalar)].concat()
}

/// WGSL's alias of a matrix type.
pub(crate) fn matrix_name(columns: VectorSize, rows: VectorSize, scalar: Scalar) -> String {
    ["mat", digit(columns), "x", digit(rows), scalar_suffix(scalar)].concat()
}
