//! Bounds checks as branches in the module: an access that is not proven in range is skipped if it is out of range.
//!
//! An entry point gets two variants if some accesses are in range under a launch precondition:
//!
//! ```text
//! if scalars.n <= arrayLength(&x) { … x[i] … } else { … if i < arrayLength(&x) { t = x[i]; } else { t = 0; } … }
//! ```
//!
//! A writer can then write every access without checks. `body` rewrites bodies, `launch` evaluates the precondition.
//!
//! SPIR-V gets its checks from here, and so does every module that reports disproved proofs. C has checks of its own:
//! `print/c/invocation/bounds_checks` says why. Both ask `analysis/proof` which accesses need one.

mod body;
mod launch;
#[cfg(test)]
mod tests;
mod tiles;

use naga::{
    AddressSpace, Arena, Expression, Function, GlobalVariable, Handle, Module, ResourceBinding, Scalar, Span,
    Statement, StorageAccess, Type, TypeInner, UniqueArena,
};
use runtime_core::{Access, DType, Error, Result};

use self::body::Body;
use crate::analysis::proof::bounds::AllBounds;
use crate::analysis::proof::launch_precondition::{self, Preconditions};
use crate::analysis::proof::range::{self, Element, Limit};
use crate::analysis::proof::{FunctionContext, allows_unchecked_variants};
use crate::interface::Tensor;
use crate::ir::blocks::note_calls;
use crate::ir::body_writer::WriteBody;
use crate::ir::rebuild::{with_function, with_functions};
use crate::ir::{Global, declare};
use crate::program::{Checks, Program};

/// The check of an element.
#[derive(Clone, Copy)]
struct Check {
    limit: Limit,
    /// Whether a launch precondition covers it, so that the unchecked variant omits it.
    covered: bool,
}

/// A function whose accesses have been analysed.
struct Source<'p> {
    program: &'p Program,
    context: FunctionContext<'p>,
    /// By expression.
    checks: Vec<Option<Check>>,
    /// The preconditions behind all covered checks, including those of called functions.
    preconditions: Preconditions,
}

/// The variants of a function: checked, and for launches that satisfy its preconditions.
#[derive(Clone, Copy)]
struct Variants {
    checked: Handle<Function>,
    unchecked: Handle<Function>,
}

struct BoundsChecker {
    types: UniqueArena<Type>,
    functions: Arena<Function>,
    /// By function of the program.
    variants: Vec<Variants>,
    /// By function of the program.
    preconditions: Vec<Preconditions>,
    /// Whether unchecked variants are generated.
    unchecked_variants: bool,
    /// The variable that receives the line number of a failed proof.
    report: Option<Global>,
}

/// The program's module with bounds checks that make out-of-range accesses harmless: a read returns zero, a write is
/// skipped. It must be validated again.
///
/// # Errors
/// `Unsupported` for expressions that kernels do not use.
pub(crate) fn with_checks(program: &Program, checks: Checks) -> Result<Module> {
    build(program, checks, None)
}

/// The program with bounds checks, and also with a check of each index that is proven in range. If such an index is
/// out of range, its line number is stored in a tensor that precedes each entry point's own.
///
/// # Errors
/// As [`with_checks`].
pub(crate) fn with_reports(program: &Program, checks: Checks) -> Result<Program> {
    let mut module = program.module.clone();
    for (_, variable) in module.global_variables.iter_mut() {
        variable.binding.iter_mut().for_each(|binding| binding.binding += 1);
    }
    let space = AddressSpace::Storage { access: StorageAccess::LOAD | StorageAccess::STORE };
    let ty = declare::ty(&mut module.types, TypeInner::Atomic(Scalar::U32));
    let binding = Some(ResourceBinding { group: 0, binding: 0 });
    let variable = GlobalVariable { binding, ..declare::variable("report", space, ty) };
    let report = module.global_variables.append(variable, Span::UNDEFINED);
    let program = program.with(module)?;
    let mut reporting = program.with(build(&program, checks, Some(report))?)?;
    for interface in &mut reporting.interfaces {
        interface.tensors.iter_mut().for_each(|tensor| tensor.binding += 1);
        let tensor = Tensor {
            name: "report".to_owned(),
            binding: 0,
            access: Access::ReadWrite,
            dtype: Some(DType::U32),
            min_bytes: 4,
            alignment_bytes: 4,
            variable: report,
        };
        interface.tensors.insert(0, tensor);
    }
    Ok(reporting)
}

fn build(program: &Program, checks: Checks, report: Option<Global>) -> Result<Module> {
    if !checks.are_made() {
        return Ok(program.module.clone());
    }
    let module = &program.module;
    let bounds = AllBounds::of(program);
    let mut checker = BoundsChecker {
        types: module.types.clone(),
        functions: Arena::new(),
        variants: Vec::with_capacity(module.functions.len()),
        preconditions: Vec::with_capacity(module.functions.len()),
        unchecked_variants: checks == Checks::Bounded && allows_unchecked_variants(module),
        report,
    };
    for (handle, _) in module.functions.iter() {
        checker.function(program, bounds.function(program, handle))?;
    }
    let mut entry_points = Vec::with_capacity(module.entry_points.len());
    for (index, entry) in module.entry_points.iter().enumerate() {
        let function = checker.entry(program, bounds.entry(program, index))?;
        entry_points.push(with_function(entry, function));
    }
    Ok(with_functions(module, checker.types, checker.functions, entry_points))
}

impl BoundsChecker {
    /// Finds the accesses of a function that must be checked.
    fn source<'p>(&self, program: &'p Program, context: FunctionContext<'p>) -> Source<'p> {
        let expressions = &context.function.expressions;
        let mut source = Source {
            program,
            context,
            checks: vec![None; expressions.len()],
            preconditions: Preconditions::new(),
        };
        let tiles = tiles::pointers(context.function);
        for (handle, expression) in expressions.iter() {
            if let Expression::Access { .. } | Expression::AccessIndex { .. } = expression
                && !tiles.contains(&handle)
                && let Some(element) = Element::of(context.function, handle)
                && let Some(limit) = range::limit(context, element)
            {
                let covered = self.unchecked_variants
                    && launch_precondition::of(context, element, limit)
                        .is_some_and(|needed| launch_precondition::add(&mut source.preconditions, needed));
                source.checks[handle.index()] = Some(Check { limit, covered });
            }
        }
        let mut called = vec![false; self.preconditions.len()];
        note_calls(&context.function.body, &mut called);
        for (preconditions, _) in self.preconditions.iter().zip(called).filter(|(_, called)| *called) {
            source.preconditions.extend(preconditions.iter().cloned());
        }
        source
    }

    fn function(&mut self, program: &Program, context: FunctionContext<'_>) -> Result<()> {
        let source = self.source(program, context);
        let span = Span::UNDEFINED;
        let variant = |checker: &mut Self, unchecked| {
            let mut body = Body::new(checker, &source);
            let block = body.copy_body(unchecked)?;
            let function = body.finish(block);
            Ok::<_, Error>(checker.functions.append(function, span))
        };
        let checked = variant(self, false)?;
        let unchecked = if source.preconditions.is_empty() { checked } else { variant(self, true)? };
        self.variants.push(Variants { checked, unchecked });
        self.preconditions.push(source.preconditions);
        Ok(())
    }

    fn entry(&mut self, program: &Program, context: FunctionContext<'_>) -> Result<Function> {
        let source = self.source(program, context);
        let mut body = Body::new(self, &source);
        let block = match source.preconditions.is_empty() {
            true => body.copy_body(false)?,
            false => body.nested(|body| {
                let condition = body.preconditions_hold(&source.preconditions);
                let accept = body.copy_body(true)?;
                let reject = body.copy_body(false)?;
                body.push(Statement::If { condition, accept, reject });
                Ok(())
            })?,
        };
        let block = body.with_report_named(block)?;
        Ok(body.finish(block))
    }
}
