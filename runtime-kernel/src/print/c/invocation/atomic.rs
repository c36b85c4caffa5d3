//! Atomic operations, with relaxed ordering as in WGSL.

use naga::{AddressSpace, AtomicFunction, Scalar, ScalarKind, Span};
use runtime_core::Result;

use super::environment::Environment;
use super::statement::Printer;
use crate::ir::Value;
use crate::ir::declare::scalar_name;
use crate::print::c::form::level;
use crate::print::c::library::integer::unsigned;
use crate::print::c::library::vector::Shape;
use crate::print::c::writer::Writer;
use crate::program::Dialect;

/// The name of an operation in OpenCL C and CUDA C++.
const fn words(function: AtomicFunction) -> (&'static str, &'static str) {
    match function {
        AtomicFunction::Add => ("add", "Add"),
        AtomicFunction::Subtract => ("sub", "Sub"),
        AtomicFunction::And => ("and", "And"),
        AtomicFunction::ExclusiveOr => ("xor", "Xor"),
        AtomicFunction::InclusiveOr => ("or", "Or"),
        AtomicFunction::Min => ("min", "Min"),
        AtomicFunction::Max => ("max", "Max"),
        AtomicFunction::Exchange { compare: None } => ("xchg", "Exch"),
        AtomicFunction::Exchange { compare: Some(_) } => ("cmpxchg", "CAS"),
    }
}

/// The value that a host operation stores, from the old value `b` and the operand `a`.
const fn stored(function: AtomicFunction) -> &'static str {
    match function {
        AtomicFunction::Add => "($T)(($U)b + ($U)a)",
        AtomicFunction::Subtract => "($T)(($U)b - ($U)a)",
        AtomicFunction::And => "b & a",
        AtomicFunction::ExclusiveOr => "b ^ a",
        AtomicFunction::InclusiveOr => "b | a",
        AtomicFunction::Min => "a < b ? a : b",
        AtomicFunction::Max => "b < a ? a : b",
        AtomicFunction::Exchange { .. } => "a",
    }
}

impl<E: Environment> Printer<'_, '_, E> {
    /// A read-modify-write operation.
    pub(crate) fn atomic(
        &mut self,
        pointer: Value,
        (function, value): (AtomicFunction, Value),
        result: Option<Value>,
        span: Span,
    ) -> Result<()> {
        let place = self.place(pointer)?;
        let Some(Shape { scalar, .. }) = Shape::of(self.context.pointee(pointer)) else {
            return Err(self.writer.unsupported("this atomic operation", span));
        };
        if scalar.kind == ScalarKind::Float {
            return Err(self.writer.unsupported("a floating-point atomic operation", span));
        }
        let space = self.context.inner(pointer).pointer_space();
        let alone = space == Some(AddressSpace::WorkGroup);
        let operation = self.writer.atomic_form(function, scalar, alone)?;
        let mut operands = Vec::new();
        if let AtomicFunction::Exchange { compare: Some(compare) } = function {
            operands.push(self.operand(compare, level::ANY)?);
        }
        operands.push(self.operand(value, level::ANY)?);
        let call = operation.call(&place.address(), &operands);
        let condition = place.condition();
        let Some(result) = result.filter(|result| self.plan.is_used(*result)) else {
            let guard = condition.map(|condition| format!("if ({condition}) ")).unwrap_or_default();
            self.lines.line(&[&guard, &call, ";"]);
            return Ok(());
        };
        let zero = self.writer.literal_of(scalar, 0)?.0;
        let old =
            condition.map_or_else(|| call.clone(), |condition| format!("{condition} ? {call} : {zero}"));
        if let AtomicFunction::Exchange { compare: Some(_) } = function {
            return self.exchanged(result, scalar, &old, &operands[0]);
        }
        self.define(result, &old)
    }

    /// The result structure of a compare-exchange: the old value, and whether it was equal.
    fn exchanged(&mut self, result: Value, scalar: Scalar, old: &str, compare: &str) -> Result<()> {
        let name = self.plan.fresh(&self.writer.names, "old");
        self.lines.line(&["const ", scalar_name(scalar), " ", &name, " = ", old, ";"]);
        let type_name = self.writer.resolved_name(&self.context.info[result].ty, self.span(result))?;
        let Some(ty) = self.context.info[result].ty.handle() else {
            return Err(self.unsupported("this compare-exchange", result));
        };
        let parts = self.writer.composed(ty, vec![name.clone(), format!("{name} == {compare}")])?;
        let text = self.writer.dialect.compound(&type_name, &parts);
        self.define(result, &text)
    }
}

/// How to call an operation.
#[derive(Debug)]
struct Operation {
    name: String,
    /// The type that its operands are cast to, and the type that its result is cast to.
    through: Option<(&'static str, &'static str)>,
    negated: bool,
}

impl Operation {
    fn call(&self, address: &str, operands: &[String]) -> String {
        let operands: Vec<_> = operands
            .iter()
            .map(|operand| match (self.through, self.negated) {
                (Some((through, _)), true) => format!("0 - ({through})({operand})"),
                (Some((through, _)), false) => format!("({through})({operand})"),
                (None, true) => format!("0 - ({operand})"),
                (None, false) => operand.clone(),
            })
            .collect();
        let operands = operands.join(", ");
        match self.through {
            Some((through, back)) => format!("({back}){}(({through} *){address}, {operands})", self.name),
            None => format!("{}({address}, {operands})", self.name),
        }
    }
}

impl Writer<'_> {
    /// The call for an operation; `alone` if the memory belongs to one work-group.
    fn atomic_form(&mut self, function: AtomicFunction, scalar: Scalar, alone: bool) -> Result<Operation> {
        let (lower, upper) = words(function);
        let wide = scalar.width == 8;
        Ok(match self.dialect {
            Dialect::OpenCl => {
                if wide {
                    self.extension("cl_khr_int64_base_atomics");
                    self.extension("cl_khr_int64_extended_atomics");
                }
                let name = format!("{}_{lower}", if wide { "atom" } else { "atomic" });
                Operation { name, through: None, negated: false }
            }
            Dialect::Cuda => {
                // 64-bit subtraction does not exist, and of the others only minimum and maximum are signed.
                let negated = wide && function == AtomicFunction::Subtract;
                let signed = matches!(function, AtomicFunction::Min | AtomicFunction::Max);
                let cast = wide && scalar.kind == ScalarKind::Sint && !signed;
                if cast {
                    self.scalar(Scalar::U64)?;
                }
                let name = format!("atomic{}", if negated { "Add" } else { upper });
                Operation { name, through: cast.then_some(("u64", "i64")), negated }
            }
            Dialect::Host => {
                Operation { name: self.host_atomic(function, scalar, alone)?, through: None, negated: false }
            }
        })
    }

    /// One host thread runs a work-group: its own memory needs no atomic instructions.
    fn host_atomic(&mut self, function: AtomicFunction, scalar: Scalar, alone: bool) -> Result<String> {
        let word = words(function).0;
        let name = format!("{}_{}_{word}", scalar_name(scalar), if alone { "group" } else { "atomic" });
        self.library(name, |writer, name| {
            writer.scalar(scalar)?;
            writer.scalar(unsigned(scalar))?;
            let text = host_text(function, alone);
            Ok(writer.expand(&text, name, scalar))
        })
    }
}

fn host_text(function: AtomicFunction, alone: bool) -> String {
    let compares = matches!(function, AtomicFunction::Exchange { compare: Some(_) });
    let parameters = if compares { "$T *p, $T c, $T a" } else { "$T *p, $T a" };
    let body = match function {
        _ if alone && compares => "const $T b = *p; if (b == c) *p = a; return b;".to_owned(),
        _ if alone => format!("const $T b = *p; *p = {}; return b;", stored(function)),
        _ if compares => {
            "__atomic_compare_exchange_n(p, &c, a, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED); return c;"
                .to_owned()
        }
        AtomicFunction::Min | AtomicFunction::Max => {
            let value = stored(function);
            let exchange = "__atomic_compare_exchange_n(p, &b, c, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)";
            format!(
                "$T b = __atomic_load_n(p, __ATOMIC_RELAXED); $T c; do c = {value}; while (!{exchange}); return b;"
            )
        }
        AtomicFunction::Exchange { .. } => "return __atomic_exchange_n(p, a, __ATOMIC_RELAXED);".to_owned(),
        _ => format!("return __atomic_fetch_{}(p, a, __ATOMIC_RELAXED);", words(function).0),
    };
    format!("$T $N({parameters}) {{ {body} }}")
}
