//! Atomics are reached by atomic operations alone, in memory that can be written (§atomic-types). naga's IR has one load and
//! one store for both kinds of access: the text tells them apart.

use naga::front::Typifier;
use naga::proc::ResolveContext;
use naga::{AddressSpace, Block, Expression, Function, Handle, Module, Span, Statement, Type, TypeInner};

use super::Violation;
use crate::ir::variables::is_read_only;
use crate::ir::{Value, blocks, declare};
use crate::parse::templates::shortened;

/// The accesses of atomics that are no atomic operations, and the variables that cannot have atomics.
pub(super) fn misused(module: &Module, code: &str) -> Vec<Violation> {
    if !module.types.iter().any(|(_, ty)| matches!(ty.inner, TypeInner::Atomic(_))) {
        return Vec::new();
    }
    let mut found = read_only(module);
    for function in blocks::functions(module) {
        let mut accesses = Accesses { module, code, function, types: Typifier::new(), found: Vec::new() };
        accesses.loads();
        accesses.stores(&function.body);
        for violation in accesses.found {
            // A compound assignment is a load and a store of one place.
            if !found.contains(&violation) {
                found.push(violation);
            }
        }
    }
    found
}

fn read_only(module: &Module) -> Vec<Violation> {
    let variables = module.global_variables.iter();
    let wrong = variables.filter(|(_, variable)| {
        matches!(variable.space, AddressSpace::Storage { .. })
            && is_read_only(variable.space)
            && declare::has_atomics(module, variable.ty)
    });
    wrong
        .map(|(handle, variable)| {
            let name = variable.name.as_deref().unwrap_or_default();
            Violation {
                place: module.global_variables.get_span(handle),
                text: format!(
                    "\"{name}\" contains atomics, but is `var<storage, read>`; declare `var<storage, read_write> {name}`"
                ),
            }
        })
        .collect()
}

struct Accesses<'a> {
    module: &'a Module,
    code: &'a str,
    function: &'a Function,
    types: Typifier,
    found: Vec<Violation>,
}

impl<'a> Accesses<'a> {
    fn loads(&mut self) {
        let function = self.function;
        for (handle, expression) in function.expressions.iter() {
            if let Expression::Load { pointer } = expression {
                self.access(*pointer, function.expressions.get_span(handle), "atomicLoad");
            }
        }
    }

    fn stores(&mut self, block: &Block) {
        for (statement, span) in block.span_iter() {
            if let Statement::Store { pointer, .. } = statement {
                self.access(*pointer, *span, "atomicStore");
            }
            blocks::inner(statement).for_each(|inner| self.stores(inner));
        }
    }

    /// Notes an access that is not a call of `operation`, if it is one of atomics.
    fn access(&mut self, pointer: Value, place: Span, operation: &str) {
        let Some(ty) = self.pointee(pointer) else { return };
        let text = self.text(place);
        if text.starts_with(operation) || !declare::has_atomics(self.module, ty) {
            return;
        }
        // Of an assignment, its left side.
        let accessed = text.split(['=', '\n', ';']).next().unwrap_or_default();
        let accessed =
            shortened(accessed.trim_end_matches(|c: char| c.is_whitespace() || "+-*/%&|^<>".contains(c)));
        let text = if matches!(self.module.types[ty].inner, TypeInner::Atomic(_)) {
            format!(
                "`{accessed}` is an atomic, which only atomic operations access; write `atomicLoad`, `atomicStore`, `atomicAdd` \
                 and so on, with its address"
            )
        } else {
            format!(
                "`{accessed}` contains atomics, so it is no value; access its atomics one by one, by `atomicLoad`"
            )
        };
        let place = place.to_range().map_or(place, |range| start_of(range.start));
        self.found.push(Violation { place, text });
    }

    fn pointee(&mut self, pointer: Value) -> Option<Handle<Type>> {
        let context = ResolveContext::with_locals(
            self.module,
            &self.function.local_variables,
            &self.function.arguments,
        );
        self.types.grow(pointer, &self.function.expressions, &context).ok()?;
        match self.types[pointer].inner_with(&self.module.types) {
            TypeInner::Pointer { base, .. } => Some(*base),
            _ => None,
        }
    }

    fn text(&self, place: Span) -> &'a str {
        place.to_range().and_then(|range| self.code.get(range)).unwrap_or_default()
    }
}

/// The place of one byte.
fn start_of(byte: usize) -> Span {
    let start = u32::try_from(byte).unwrap_or(u32::MAX - 1);
    Span::new(start, start + 1)
}
