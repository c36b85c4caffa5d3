//! Loops with hoisted range checks: printed once without checks and once with them.

use std::collections::{BTreeMap, BTreeSet};

use naga::{Block, Expression, MathFunction, Scalar, ScalarKind};
use runtime_core::Result;

use super::environment::Environment;
use super::statement::Printer;
use crate::analysis::proof::range;
use crate::ir::{Local, Value};
use crate::print::c::form::level;
use crate::program::Dialect;

/// Why a loop `for (; counter < limit; counter++)` needs no checks inside.
///
/// The index of each access grows by one with the counter, so it is in range in all iterations if it is in the first
/// and in the last. In 64 bits neither wraps.
#[derive(Clone, Debug)]
pub(crate) struct HoistedChecks {
    pub(crate) counter: Local,
    pub(crate) limit: Value,
    /// By access: its index.
    pub(crate) accesses: BTreeMap<Value, Value>,
    /// Named values in the loop that the indices depend on.
    pub(crate) values: BTreeSet<Value>,
    /// Set if the loop computes only this.
    pub(crate) packed: Option<PackedSum>,
}

/// `variable += dot4I8Packed(a[…], b[…])`, or `dot4U8Packed`: a dot product of contiguous bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedSum {
    pub(crate) variable: Local,
    pub(crate) function: MathFunction,
    /// The accesses.
    pub(crate) operands: [Value; 2],
}

impl<E: Environment> Printer<'_, '_, E> {
    /// Prints a loop without checks if all its accesses are in range, and with checks otherwise.
    pub(crate) fn hoisted(
        &mut self,
        checks: &HoistedChecks,
        (body, continuing): (&Block, &Block),
    ) -> Result<()> {
        self.lines.open("{");
        for &value in &checks.values {
            self.emit(value)?;
        }
        let counter = self.environment.local(&self.plan, checks.counter).text.into_owned();
        let limit = self.operand(checks.limit, level::UNARY)?;
        let (long, suffix) = (self.writer.dialect.long(), self.writer.dialect.long_suffix());
        let rounds = format!("{counter} < {limit} ? ({long}){limit} - ({long}){counter} : 0");
        self.lines.line(&["const ", long, " rounds_ = ", &rounds, ";"]);
        let (mut firsts, mut conditions) = (Vec::new(), Vec::new());
        for (&access, &index) in &checks.accesses {
            let first = format!("at_{}_", firsts.len());
            let text = format!("const {long} {first} = ({long}){};", self.operand(index, level::UNARY)?);
            self.lines.line(&text);
            let Expression::Access { base, .. } = self.context.function.expressions[access] else { continue };
            let Some(length) = range::length(self.context, base) else { continue };
            let length = self.limit_text(length, base)?;
            let last = format!("{first} + rounds_");
            conditions.push(format!("{last} <= ({long}){length}"));
            if self.context.inner(index).scalar_kind() == Some(ScalarKind::Sint) {
                conditions.push(format!("{first} >= 0 && {last} <= 2147483648{suffix}"));
            }
            firsts.push((access, first));
        }
        self.lines.open(&["if (", &conditions.join(" && "), ") {"]);
        match &checks.packed {
            // Assertions are evaluated in each iteration.
            Some(sum) if !self.writer.program.asserts && self.writer.dialect == Dialect::Host => {
                for (access, first) in firsts {
                    self.environment.prove(access, Some(first));
                }
                self.packed_sum(sum)?;
                self.lines.line(&["if (", &counter, " < ", &limit, ") ", &counter, " = ", &limit, ";"]);
            }
            _ => {
                self.lines.line(&["const ", long, " before_ = (", long, ")", &counter, ";"]);
                for (access, first) in firsts {
                    self.environment.prove(access, Some(format!("({first} - before_ + {counter})")));
                }
                self.plain_loop(body, continuing, None)?;
            }
        }
        checks.accesses.keys().for_each(|&access| self.environment.prove(access, None));
        self.lines.reopen("} else {");
        self.plain_loop(body, continuing, None)?;
        self.lines.close("}");
        self.lines.close("}");
        Ok(())
    }

    /// The whole sum over bytes, starting from the first words of its operands.
    fn packed_sum(&mut self, sum: &PackedSum) -> Result<()> {
        let rows = self.writer.packed_dot_of_rows(sum.function)?;
        let scalar = if sum.function == MathFunction::Dot4I8Packed { Scalar::I32 } else { Scalar::U32 };
        let scalar = self.writer.scalar(scalar)?;
        let [a, b] = sum.operands;
        let (a, b) = (self.place(a)?.lvalue(), self.place(b)?.lvalue());
        let variable = self.environment.local(&self.plan, sum.variable).text.into_owned();
        let line = format!("{variable} = ({scalar})((u32){variable} + {rows}(&{a}, &{b}, rounds_));");
        self.lines.line(&line);
        Ok(())
    }
}
