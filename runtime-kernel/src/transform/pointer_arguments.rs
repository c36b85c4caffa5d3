//! Copies arguments that point to part of a variable: the function gets a pointer to a copy, which is stored back
//! afterwards.
//!
//! SPIR-V accepts only pointers to whole variables as arguments, and an out-of-range pointer must not be dereferenced.
//! The load and the store are checked as usual: out of range the function works on zero, and nothing is stored.
//!
//! No valid kernel can tell a copy from the part itself. Such pointers are to memory of one invocation, so only the called
//! function can access the part during the call; and where it does so in another way, `parse/pointer_aliases` has proven that it
//! writes the variable in neither way: the copy, the part and what is stored back are then equal throughout.

use naga::{
    AddressSpace, Block, Expression, Function, Handle, LocalVariable, Module, Range, Span, Statement, Type,
    TypeInner,
};
use runtime_core::Result;

use crate::ir::{Value, blocks, declare, variables};
use crate::program::Program;

/// Which pointers are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// All pointers to part of a variable.
    All,
    /// Those with a computed index.
    Computed,
}

/// The program without such arguments; `None` if it has none.
///
/// # Errors
/// `Internal` if the new module is not valid.
pub(crate) fn by_value(program: &Program, parts: Parts) -> Result<Option<Program>> {
    let module = &program.module;
    if !blocks::functions(module).any(|function| has_call(module, function, parts)) {
        return Ok(None);
    }
    let writes = writes(module);
    let mut new = module.clone();
    for (handle, function) in module.functions.iter() {
        let copied = Copies::of(&mut new, function, parts, &writes);
        *new.functions.get_mut(handle) = copied;
    }
    for (index, entry) in module.entry_points.iter().enumerate() {
        new.entry_points[index].function = Copies::of(&mut new, &entry.function, parts, &writes);
    }
    program.with(new).map(Some)
}

fn has_call(module: &Module, function: &Function, parts: Parts) -> bool {
    blocks::any(&function.body, &mut |statement| match statement {
        Statement::Call { function: called, arguments, .. } => {
            let mut taken = module.functions[*called].arguments.iter().zip(arguments);
            taken.any(|(declared, &argument)| {
                module.types[declared.ty].inner.pointer_space().is_some() && parts.contain(function, argument)
            })
        }
        _ => false,
    })
}

impl Parts {
    /// Whether a pointer may be of this kind.
    fn contain(self, function: &Function, argument: Value) -> bool {
        match function.expressions[argument] {
            Expression::Access { .. } => true,
            Expression::AccessIndex { base, .. } => self == Self::All || self.contain(function, base),
            _ => false,
        }
    }
}

/// By function and argument: whether the function may write through the argument.
fn writes(module: &Module) -> Vec<Vec<bool>> {
    let mut known: Vec<Vec<bool>> = Vec::with_capacity(module.functions.len());
    for (_, function) in module.functions.iter() {
        let mut writes = vec![false; function.arguments.len()];
        let mut note = |pointer| {
            if let Some(argument) = variables::argument(function, pointer) {
                writes[argument] = true;
            }
        };
        blocks::each(&function.body, &mut |statement| match statement {
            Statement::Store { pointer, .. } | Statement::Atomic { pointer, .. } => note(*pointer),
            Statement::Call { function, arguments, .. } => {
                let changed = arguments.iter().zip(&known[function.index()]).filter(|(_, writes)| **writes);
                changed.for_each(|(pointer, _)| note(*pointer));
            }
            _ => {}
        });
        known.push(writes);
    }
    known
}

/// A function whose arguments are being replaced by copies.
struct Copies<'a> {
    module: &'a mut Module,
    function: Function,
    parts: Parts,
    writes: &'a [Vec<bool>],
}

impl<'a> Copies<'a> {
    fn of(module: &'a mut Module, function: &Function, parts: Parts, writes: &'a [Vec<bool>]) -> Function {
        if !has_call(module, function, parts) {
            return function.clone();
        }
        let mut copies = Self { module, function: function.clone(), parts, writes };
        let mut body = std::mem::take(&mut copies.function.body);
        copies.body(&mut body);
        copies.function.body = body;
        copies.function
    }

    fn body(&mut self, body: &mut Block) {
        blocks::rewrite(body, &mut |mut statement, span, out| {
            let stores = match &mut statement {
                Statement::Call { function, arguments, .. } => self.arguments(*function, arguments, out),
                _ => Vec::new(),
            };
            out.push(statement, span);
            stores.into_iter().for_each(|[from, to]| self.assign(from, to, out));
        });
    }

    /// Replaces arguments by copies; returns the pairs of copy and original that must be stored back.
    fn arguments(
        &mut self,
        function: Handle<Function>,
        arguments: &mut [Value],
        out: &mut Block,
    ) -> Vec<[Value; 2]> {
        let mut stores = Vec::new();
        for (place, argument) in arguments.iter_mut().enumerate() {
            let original = *argument;
            // The type of the argument expression may not be in the module, so use the declared one.
            let declared = self.module.functions[function].arguments[place].ty;
            let TypeInner::Pointer { base, space } = self.module.types[declared].inner else { continue };
            if self.parts.contain(&self.function, original) {
                let variable = self.variable(base, space);
                *argument = self.function.expressions.append(variable, Span::UNDEFINED);
                self.assign(original, *argument, out);
                if self.writes[function.index()][place] {
                    stores.push([*argument, original]);
                }
            }
        }
        stores
    }

    /// A variable of the given type in the same address space.
    fn variable(&mut self, ty: Handle<Type>, space: AddressSpace) -> Expression {
        if space == AddressSpace::Function {
            let local = LocalVariable { name: Some("copy".to_owned()), ty, init: None };
            return Expression::LocalVariable(self.function.local_variables.append(local, Span::UNDEFINED));
        }
        let global = declare::variable("copy", space, ty);
        Expression::GlobalVariable(self.module.global_variables.append(global, Span::UNDEFINED))
    }

    /// `*to = *from;`
    fn assign(&mut self, from: Value, to: Value, out: &mut Block) {
        let load = Expression::Load { pointer: from };
        let value = self.function.expressions.append(load, Span::UNDEFINED);
        out.push(Statement::Emit(Range::new_from_bounds(value, value)), Span::UNDEFINED);
        out.push(Statement::Store { pointer: to, value }, Span::UNDEFINED);
    }
}
