//! Adds the types, variables and functions of another module to a module.

use naga::front::wgsl;
use naga::{
    Arena, Block, Expression, Function, GlobalVariable, Handle, Module, Span, Type, TypeInner, UniqueArena,
};
use runtime_core::{Error, ErrorKind, Result};

use super::arrays::{self, Arrays, Variable};
use super::library::{ITEM, ITEMS, Library};
use crate::ir::{Global, blocks};

/// What a module has got.
pub(super) struct Imported {
    functions: Vec<Handle<Function>>,
    /// By function that the module had before: the function now.
    originals: Vec<Handle<Function>>,
    /// The variable of the local invocation index.
    pub(super) item: Global,
    /// The variable of the number of invocations.
    pub(super) items: Global,
}

impl Imported {
    /// Adds a library to a module; the functions of the module are to be appended again.
    pub(super) fn into(module: &mut Module, library: &Library) -> Result<Self> {
        let internal = |what: String| Error::new(ErrorKind::Internal, format!("emulating subgroups: {what}"));
        let parsed = wgsl::parse_str(&library.text()).map_err(|error| internal(error.to_string()))?;
        let types = types(&mut module.types, &parsed.types);
        let mut variables = Vec::with_capacity(parsed.global_variables.len());
        for (_, variable) in parsed.global_variables.iter() {
            let array = arrays::array_of(variable).and_then(|array| library.arrays.get(array));
            variables.push(array.map_or_else(
                || {
                    let variable = GlobalVariable { ty: types[variable.ty.index()], ..variable.clone() };
                    Variable::Own(module.global_variables.append(variable, Span::UNDEFINED))
                },
                Variable::Array,
            ));
        }
        module.functions = Arena::new();
        let mut functions = Vec::with_capacity(parsed.functions.len());
        for ((_, function), span) in parsed.functions.iter().zip(library.spans()) {
            let mut function = Arrays::replace(function, &variables)?;
            renew(&mut function, &types);
            set_spans(&mut function.body, span);
            functions.push(module.functions.append(function, span));
        }
        let variable = |name: &str| {
            let found =
                parsed.global_variables.iter().find(|(_, variable)| variable.name.as_deref() == Some(name));
            let own = found.and_then(|(handle, _)| variables[handle.index()].own());
            own.ok_or_else(|| internal(format!("no {name}")))
        };
        Ok(Self { functions, originals: Vec::new(), item: variable(ITEM)?, items: variable(ITEMS)? })
    }

    /// Appends the next function that the module had.
    pub(super) fn append(&mut self, module: &mut Module, function: Function, span: Span) {
        self.originals.push(module.functions.append(function, span));
    }

    /// A function of the library.
    pub(super) fn function(&self, place: usize) -> Handle<Function> {
        self.functions[place]
    }

    /// A function that the module had, and that precedes the one being changed.
    pub(super) fn original(&self, before: Handle<Function>) -> Handle<Function> {
        self.originals[before.index()]
    }
}

/// Adds types; a type follows those that it consists of.
fn types(into: &mut UniqueArena<Type>, from: &UniqueArena<Type>) -> Vec<Handle<Type>> {
    let mut new: Vec<Handle<Type>> = Vec::with_capacity(from.len());
    for (_, ty) in from.iter() {
        let mut ty = ty.clone();
        if let TypeInner::Array { base, .. } | TypeInner::Pointer { base, .. } = &mut ty.inner {
            *base = new[base.index()];
        }
        new.push(into.insert(ty, Span::UNDEFINED));
    }
    new
}

fn renew(function: &mut Function, types: &[Handle<Type>]) {
    let renew = |ty: &mut Handle<Type>| *ty = types[ty.index()];
    function.arguments.iter_mut().for_each(|argument| renew(&mut argument.ty));
    function.result.iter_mut().for_each(|result| renew(&mut result.ty));
    function.local_variables.iter_mut().for_each(|(_, variable)| renew(&mut variable.ty));
    for (_, expression) in function.expressions.iter_mut() {
        match expression {
            Expression::ZeroValue(ty) | Expression::Compose { ty, .. } => renew(ty),
            _ => {}
        }
    }
}

/// Gives all statements of a block a place in the text.
fn set_spans(block: &mut Block, place: Span) {
    for (statement, span) in block.span_iter_mut() {
        if let Some(span) = span {
            *span = place;
        }
        blocks::inner_mut(statement).for_each(|inner| set_spans(inner, place));
    }
}
