//! Proofs that accesses are in range: for every launch, or for launches that satisfy a precondition.
//!
//! | file | what is there |
//! | --- | --- |
//! | `bounds`, `facts` | bounds that conditions imply |
//! | `range`, `call`, `operation` | range analysis of indices |
//! | `launch_precondition`, `polynomial` | conditions on a launch under which an access is in range |
//! | `constant` | constant folding, variables of known value |
//! | `trip_count`, `unrolling` | trip counts of loops, and which loops to unroll |

pub(crate) mod bounds;
#[cfg(test)]
mod brute_force;
mod call;
pub(crate) mod constant;
mod facts;
pub(crate) mod launch_precondition;
mod operation;
pub(crate) mod polynomial;
pub(crate) mod range;
pub(crate) mod tile;
pub(crate) mod trip_count;
pub(crate) mod unrolling;

use naga::valid::FunctionInfo;
use naga::{Function, Module, TypeInner};

use self::bounds::Bounds;
use crate::ir::{Value, blocks};

/// A function under analysis, with its types and facts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionContext<'a> {
    pub(crate) module: &'a Module,
    pub(crate) function: &'a Function,
    pub(crate) info: &'a FunctionInfo,
    /// The work-group size, if it is an entry point.
    pub(crate) group_size: Option<[u32; 3]>,
    /// The facts that its conditions imply.
    pub(crate) bounds: &'a Bounds,
}

impl<'a> FunctionContext<'a> {
    /// The type of an expression.
    pub(crate) fn inner(&self, expression: Value) -> &'a TypeInner {
        self.info[expression].ty.inner_with(&self.module.types)
    }

    /// The pointee type, unless it is part of a vector or matrix.
    pub(crate) fn pointee(&self, pointer: Value) -> &'a TypeInner {
        match self.inner(pointer) {
            TypeInner::Pointer { base, .. } => &self.module.types[*base].inner,
            other => other,
        }
    }

    /// Whether it points to a vector, not to a component of one.
    pub(crate) fn is_vector_pointer(&self, pointer: Value) -> bool {
        match self.inner(pointer) {
            TypeInner::Pointer { base, .. } => {
                matches!(self.module.types[*base].inner, TypeInner::Vector { .. })
            }
            TypeInner::ValuePointer { size, .. } => size.is_some(),
            _ => false,
        }
    }

    /// Whether it is a pointer.
    pub(crate) fn is_pointer(&self, expression: Value) -> bool {
        self.inner(expression).pointer_space().is_some()
    }
}

/// Modules with more expressions get no unchecked variants.
const MAX_EXPRESSIONS: usize = 3000;

/// Whether a module is small enough for unchecked variants.
pub(crate) fn allows_unchecked_variants(module: &Module) -> bool {
    blocks::functions(module).map(|function| function.expressions.len()).sum::<usize>() <= MAX_EXPRESSIONS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Program, Specialisation};

    #[test]
    fn a_large_module_has_no_unchecked_variants() {
        let statements = |count: usize| {
            let code = "y[0] = y[1] + 1u; ".repeat(count);
            format!(
                "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
                 fn aside() {{ {code} }}
                 @compute @workgroup_size(1) fn main() {{ {code} aside(); }}"
            )
        };
        let small = |count| {
            allows_unchecked_variants(
                &Program::parse(&statements(count), "", &Specialisation::default()).unwrap().module,
            )
        };
        assert!(small(100) && !small(1000));
    }
}
