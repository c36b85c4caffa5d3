//! The optional device features that a module needs.

use std::collections::BTreeSet;

use naga::{Binding, Block, BuiltIn, Expression, Function, Module, Scalar, ScalarKind, Statement, TypeInner};

use crate::ir::{blocks, cooperative};
use crate::program::Feature;

/// The features that a module needs, sorted.
pub(crate) fn features(module: &Module) -> Vec<Feature> {
    let mut needed = BTreeSet::new();
    for (_, ty) in module.types.iter() {
        match ty.inner {
            TypeInner::Scalar(scalar)
            | TypeInner::Vector { scalar, .. }
            | TypeInner::Matrix { scalar, .. } => {
                needed.extend(of_scalar(scalar));
            }
            TypeInner::Atomic(Scalar { width: 8, .. }) => needed.extend([Feature::I64, Feature::I64Atomics]),
            TypeInner::Atomic(_) => needed.extend([Feature::Atomics]),
            _ => {}
        }
    }
    if cooperative::is_used(module) {
        // Their factors are halves.
        needed.extend([Feature::F16, Feature::Subgroups, Feature::MatrixUnits]);
    }
    for function in blocks::functions(module) {
        if has_subgroups(module, function) {
            needed.insert(Feature::Subgroups);
        }
        // A value that is only converted and compared may have no type in the module.
        needed.extend(
            function.expressions.iter().filter_map(|(_, value)| converted(value)).filter_map(of_scalar),
        );
    }
    needed.into_iter().collect()
}

/// The scalar type of a literal, or of the result of a conversion.
fn converted(expression: &Expression) -> Option<Scalar> {
    match *expression {
        Expression::Literal(literal) => Some(literal.scalar()),
        Expression::As { kind, convert: Some(width), .. } => Some(Scalar { kind, width }),
        _ => None,
    }
}

const fn of_scalar(scalar: Scalar) -> Option<Feature> {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Float, 2) => Some(Feature::F16),
        (ScalarKind::Float, 8) => Some(Feature::F64),
        (ScalarKind::Sint | ScalarKind::Uint, 8) => Some(Feature::I64),
        _ => None,
    }
}

/// Whether a binding is a built-in value of subgroups.
const fn is_of_subgroups(binding: Option<&Binding>) -> bool {
    use BuiltIn as B;
    matches!(
        binding,
        Some(Binding::BuiltIn(B::SubgroupId | B::SubgroupSize | B::SubgroupInvocationId | B::NumSubgroups))
    )
}

/// Whether a type is a structure with a built-in value of subgroups.
pub(crate) fn has_member_of_subgroups(inner: &TypeInner) -> bool {
    matches!(inner, TypeInner::Struct { members, .. }
        if members.iter().any(|member| is_of_subgroups(member.binding.as_ref())))
}

fn has_subgroups(module: &Module, function: &Function) -> bool {
    let built_in = function.arguments.iter().any(|argument| {
        is_of_subgroups(argument.binding.as_ref())
            || has_member_of_subgroups(&module.types[argument.ty].inner)
    });
    let result = |expression: &Expression| {
        matches!(expression, Expression::SubgroupBallotResult | Expression::SubgroupOperationResult { .. })
    };
    built_in
        || function.expressions.iter().any(|(_, expression)| result(expression))
        || has_subgroup_barrier(&function.body)
}

fn has_subgroup_barrier(block: &Block) -> bool {
    blocks::any(block, &mut |statement| match statement {
        Statement::ControlBarrier(flags) | Statement::MemoryBarrier(flags) => {
            flags.contains(naga::Barrier::SUB_GROUP)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Program, Specialisation};

    fn of(text: &str) -> Vec<Feature> {
        let code = format!(
            "enable f16; @group(0) @binding(0) var<storage, read_write> y: array<u32>;
             @compute @workgroup_size(1) fn main() {{ {text} }}"
        );
        Program::parse(&code, "", &Specialisation::default()).unwrap().features().to_vec()
    }

    #[test]
    fn values_without_a_variable_need_features_too() {
        assert_eq!(of("y[0] = 1u;"), []);
        assert_eq!(of("if f16(y[0]) != 0h { y[1] = 1u; }"), [Feature::F16]);
        assert_eq!(of("if i64(y[0]) != 0 { y[1] = 1u; }"), [Feature::I64]);
        assert_eq!(of("var a = 1h; y[0] = u32(a);"), [Feature::F16]);
    }
}
