//! What a module needs that not every device has.

use std::collections::BTreeSet;
use std::fmt;

use naga::{Block, BuiltIn, Expression, Function, Module, Scalar, ScalarKind, Statement, TypeInner};

use crate::blocks;

/// Something that not every device can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Feature {
    /// Half precision.
    F16,
    /// Double precision.
    F64,
    /// 64-bit integers.
    I64,
    /// Subgroup operations.
    Subgroups,
    /// Atomic operations on 32 bits.
    Atomics,
    /// Atomic operations on 64 bits.
    I64Atomics,
}

impl Feature {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::F64 => "f64",
            Self::I64 => "i64",
            Self::Subgroups => "subgroups",
            Self::Atomics => "atomics",
            Self::I64Atomics => "i64_atomics",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The features that a module needs, in order.
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
    let functions = module.functions.iter().map(|(_, function)| function);
    let all = functions.chain(module.entry_points.iter().map(|entry| &entry.function));
    if all.into_iter().any(|function| has_subgroups(module, function)) {
        needed.insert(Feature::Subgroups);
    }
    needed.into_iter().collect()
}

const fn of_scalar(scalar: Scalar) -> Option<Feature> {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Float, 2) => Some(Feature::F16),
        (ScalarKind::Float, 8) => Some(Feature::F64),
        (ScalarKind::Sint | ScalarKind::Uint, 8) => Some(Feature::I64),
        _ => None,
    }
}

fn has_subgroups(module: &Module, function: &Function) -> bool {
    let is_subgroup = |binding: &Option<naga::Binding>| {
        matches!(
            binding,
            Some(naga::Binding::BuiltIn(
                BuiltIn::SubgroupId
                    | BuiltIn::SubgroupSize
                    | BuiltIn::SubgroupInvocationId
                    | BuiltIn::NumSubgroups
            ))
        )
    };
    let built_in = function.arguments.iter().any(|argument| {
        is_subgroup(&argument.binding)
            || matches!(&module.types[argument.ty].inner, TypeInner::Struct { members, .. }
                if members.iter().any(|member| is_subgroup(&member.binding)))
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
