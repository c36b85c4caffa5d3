//! WGSL's names of scalars, vectors and matrices, under which C defines them.

use naga::{Scalar, ScalarKind, VectorSize};

/// WGSL's name of a scalar type.
pub(crate) const fn scalar_name(scalar: Scalar) -> &'static str {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Bool, _) => "bool",
        (ScalarKind::Sint, 2) => "i16",
        (ScalarKind::Uint, 2) => "u16",
        (ScalarKind::Sint, 8) => "i64",
        (ScalarKind::Uint, 8) => "u64",
        (ScalarKind::Sint | ScalarKind::AbstractInt, _) => "i32",
        (ScalarKind::Uint, _) => "u32",
        (_, 2) => "f16",
        (_, 8) => "f64",
        _ => "f32",
    }
}

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
    match size {
        VectorSize::Bi => "2",
        VectorSize::Tri => "3",
        VectorSize::Quad => "4",
    }
}

/// WGSL's alias of a vector type, if it has one.
pub(crate) fn vector_name(size: VectorSize, scalar: Scalar) -> String {
    ["vec", digit(size), scalar_suffix(scalar)].concat()
}

/// WGSL's alias of a matrix type.
pub(crate) fn matrix_name(columns: VectorSize, rows: VectorSize, scalar: Scalar) -> String {
    ["mat", digit(columns), "x", digit(rows), scalar_suffix(scalar)].concat()
}
