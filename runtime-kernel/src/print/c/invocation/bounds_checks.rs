//! Bounds checks of the C dialects: the condition under which an index is in range, and the index itself.
//!
//! For SPIR-V, `transform/bounds_checks` inserts the checks into the module. It does not serve C, which would lose three
//! things that a module cannot say:
//!
//! - a checked load is an expression, `i < n ? x[i] : 0`, or on CUDA one predicated instruction; in a module it is a
//!   branch around a load into a variable, which ends the loads that a compiler issues together;
//! - the unchecked variant is the same body with a flag, `in_range || i < n` (`unchecked_variant`); in a module the body
//!   is there twice;
//! - on the host, a row of invocations or a loop drops its checks where its first and last index are in range
//!   (`hoisted_checks`, `host/row_decisions`), so that it becomes vector instructions. The schedule decides that from
//!   accesses; branches that are already there would be control flow of each invocation.
//!
//! Of the 23 kernels in `kernels/`, the text printed from checked modules is half as long again for CUDA and twice as long for
//! the host, with twice as many branches (209 for 102) and two and a half times as many (1393 for 566).

use naga::{Scalar, ScalarKind, TypeInner};
use runtime_core::Result;

use super::environment::Environment;
use super::place::Place;
use super::statement::Printer;
use crate::analysis::proof::range::{self, Element, Limit};
use crate::ir::Value;
use crate::print::c::form::level;
use crate::print::c::library::integer::unsigned;
use crate::print::c::source_lines::quoted;
use crate::program::Checks;

/// How a checked index is written.
#[derive(Clone, Copy)]
pub(super) enum Checked {
    AsItIs,
    AsUnsigned,
}

impl<E: Environment> Printer<'_, '_, E> {
    /// Adds the condition that an index is in range.
    pub(super) fn check(&mut self, place: &mut Place, element: Element) -> Result<Checked> {
        let Element { access, base, index, known } = element;
        let ahead = self.environment.is_ahead(access);
        if self.writer.checks == Checks::Unchecked && !ahead {
            return Ok(Checked::AsItIs);
        }
        let limit = if ahead { range::limit_anywhere } else { range::limit };
        let Some(limit) = limit(self.context, element) else { return Ok(Checked::AsItIs) };
        let runtime = matches!(limit, Limit::Runtime(_));
        let promise = self.unchecked_flag(element, limit);
        let limit = self.limit_text(limit, base)?;
        let narrow = index.is_some_and(|index| *self.context.inner(index) == TypeInner::Scalar(Scalar::I32));
        let index = match index {
            None => format!("{known}u"),
            Some(index) => self.unsigned(index)?,
        };
        place.conditions.push(match promise {
            Some(flag) => [&flag, " || ", &index, " < ", &limit].concat(),
            None => [&index, " < ", &limit].concat(),
        });
        // An array may have more than 2³¹ elements; a negative number then passes the check, and must not index
        // backwards.
        Ok(if narrow && runtime { Checked::AsUnsigned } else { Checked::AsItIs })
    }

    pub(crate) fn limit_text(&self, limit: Limit, base: Value) -> Result<String> {
        match limit {
            Limit::Constant(length) => Ok(format!("{length}u")),
            Limit::Runtime(Some(variable)) => Ok(self.writer.names.length(variable).to_owned()),
            Limit::Runtime(None) => Err(self.unsupported("a pointer to a runtime-sized array", base)),
        }
    }

    /// The index of an unchecked access; with `assert_proofs`, wrapped in the reporting function.
    pub(super) fn asserted(&mut self, element: Element, index: String) -> Result<String> {
        let asserts = self.writer.program.asserts && self.writer.checks.are_made() && element.index.is_some();
        let Some(limit) = range::length(self.context, element.base).filter(|_| asserts) else {
            return Ok(index);
        };
        let limit = self.limit_text(limit, element.base)?;
        let place = self.writer.program.location(self.span(element.access));
        let function = self.writer.assertion()?;
        Ok(format!("{function}({index}, {limit}, {})", quoted(&place)))
    }

    /// An index as an unsigned number of its own width, so that one comparison also rejects negative numbers.
    pub(super) fn unsigned(&mut self, index: Value) -> Result<String> {
        match *self.context.inner(index) {
            TypeInner::Scalar(signed @ Scalar { kind: ScalarKind::Sint, .. }) => {
                let cast = self.writer.scalar(unsigned(signed))?;
                Ok(["(", cast, ")", &self.operand(index, level::UNARY)?].concat())
            }
            _ => self.operand(index, level::ADD),
        }
    }
}

/// Whether an access has conditions of its own, apart from those that the unchecked variant drops.
pub(super) fn is_checked(conditions: &[String]) -> bool {
    conditions.iter().any(|condition| !condition.contains("||"))
}
