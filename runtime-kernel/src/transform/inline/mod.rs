//! Inlines calls into the bodies of entry points.
//!
//! Two kinds of functions are inlined: those with barriers or private variables (the host writer splits a body at its
//! barriers and stores private variables per invocation), and small ones that return only at their end. In the process,
//! private variables become local ones, and `a && b`, which the front end lowers to a branch, becomes an operation
//! again if its right side may be evaluated speculatively.

mod body;
mod control;
mod opaque_operands;
pub(crate) mod return_elimination;
mod scalar_replacement;
mod unroll;

use naga::valid::ModuleInfo;
use naga::{
    AddressSpace, Arena, Block, EntryPoint, Expression, Function, Module, Scalar, Span, Statement, Type,
    TypeInner,
};
use runtime_core::{Error, Result};

use crate::ir::blocks::{self, is_barrier, note_calls, note_inner_calls};
use crate::ir::rebuild::{with_function, with_functions};
use crate::parse::diagnostics::failed;

pub(crate) use body::without_body;

/// Functions with up to this many expressions are inlined for speed alone.
const SMALL: usize = 60;

/// From this many expressions of an entry point on, only required calls are inlined.
const LARGE: usize = 4000;

/// Maximum number of statements and expressions of all entry points after inlining: each function may call the
/// previous one twice, so a text of a few lines can expand to millions.
const MAX_SIZE: usize = 400_000;

/// What inlining is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Speed: calls are also inlined where that is cheap, and short loops of constant trip count are unrolled.
    Speed,
    /// The same without unrolling.
    SpeedWithoutUnrolling,
    /// Only the calls are inlined that the writer cannot express.
    Required,
    /// The same, and loops whose counter selects cooperative matrices of an array are unrolled, so that drivers keep the
    /// array in registers.
    MatricesInRegisters,
    /// Rules of WGSL about control flow: all calls are inlined, and nothing else changes. What is constant is still computed,
    /// and private variables stay.
    AsWritten,
}

/// Whether a function is inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inlining {
    /// The writer requires it.
    Must,
    /// It is small.
    May,
    /// It stays a function.
    No,
}

/// The module with its entry points' calls inlined where that is required or, for speed, cheap. Handles of types, constants,
/// global variables and functions stay the same.
///
/// Where loops are unrolled, constants replace variables of the program, and naga may reject the result, such as a division
/// by zero in a branch that is never taken: the caller must then retry without it.
///
/// # Errors
/// `Unsupported` for expressions that kernels do not use; `CompileFailed` if required inlining makes an entry point
/// too long.
pub(crate) fn inline(module: &Module, info: &ModuleInfo, purpose: Purpose) -> Result<Module> {
    let mut spent = 0;
    let mut types = module.types.clone();
    let bool_type =
        types.insert(Type { name: None, inner: TypeInner::Scalar(Scalar::BOOL) }, Span::UNDEFINED);
    let choices = choices(module, purpose);
    let mut called = vec![false; module.functions.len()];
    let mut entry_points = Vec::with_capacity(module.entry_points.len());
    for (index, point) in module.entry_points.iter().enumerate() {
        let function =
            body::rebuild((module, info), &choices, (&types, bool_type, purpose), (index, &mut spent))?;
        note_calls(&function.body, &mut called);
        entry_points.push(with_function(point, function));
    }
    Ok(with_functions(module, types, remaining(module, called), entry_points))
}

fn too_long(point: &EntryPoint) -> Error {
    failed(format!(
        "entry point \"{}\" has more than {MAX_SIZE} statements and expressions after inlining the functions \
         that use barriers or private variables; call these less often, or from a loop",
        point.name
    ))
}

/// The functions, emptied if nothing calls them any more.
fn remaining(module: &Module, mut called: Vec<bool>) -> Arena<Function> {
    note_inner_calls(module, &mut called);
    let mut functions = Arena::new();
    for (handle, function) in module.functions.iter() {
        let function = match called[handle.index()] {
            true => function.clone(),
            false => Function { name: function.name.clone(), ..Function::default() },
        };
        functions.append(function, module.functions.get_span(handle));
    }
    functions
}

fn choices(module: &Module, purpose: Purpose) -> Vec<Inlining> {
    let mut choices = Vec::with_capacity(module.functions.len());
    for (_, function) in module.functions.iter() {
        let private = function.expressions.iter().any(|(_, expression)| match *expression {
            Expression::GlobalVariable(variable) => {
                module.global_variables[variable].space == AddressSpace::Private
            }
            _ => false,
        });
        let small = matches!(purpose, Purpose::Speed | Purpose::SpeedWithoutUnrolling)
            && function.expressions.len() <= SMALL
            && (return_elimination::returns_at_end(&function.body)
                || return_elimination::structured(function.body.clone()).is_some());
        let must = private || purpose == Purpose::AsWritten;
        choices.push(match must || needs(&function.body, &choices) {
            true => Inlining::Must,
            false if small => Inlining::May,
            false => Inlining::No,
        });
    }
    choices
}

/// Whether a body has a barrier, or a call that must be inlined.
fn needs(body: &Block, choices: &[Inlining]) -> bool {
    blocks::any(body, &mut |statement| match statement {
        Statement::Call { function, .. } => choices.get(function.index()) == Some(&Inlining::Must),
        other => is_barrier(other),
    })
}
