//! Prints the code in front of a row's loops that decides whether the facts of its schedule hold in this row.

use naga::proc::IndexableLength;
use naga::{BinaryOperator as Op, Expression, FastHashMap, TypeInner};
use runtime_core::Result;

use super::entry::Entry;
use super::environment::Level;
use super::schedule::row_facts::{AssumedFacts, Comparison, Linear, RowFacts};
use crate::analysis::proof::range;
use crate::ir::Value;
use crate::print::c::form::level;

/// By text of a value: its name at the first invocation of the row.
type Firsts = FastHashMap<String, String>;

impl Entry<'_, '_, '_> {
    /// Prints the decisions for a row: `fast_`, and with bounds the interval from `from_` to before `to_`.
    pub(super) fn decide(&mut self, row_facts: &RowFacts) -> Result<AssumedFacts> {
        let storage = self.storage;
        self.printer.environment.level = Level::Row;
        self.printer.environment.lane = "row_".to_owned();
        for &argument in &row_facts.known.arguments {
            self.argument(argument, ["block_", "y_", "z_"])?;
        }
        for &variable in &row_facts.known.variables {
            self.fetch(variable, "const ", ["row_", "0"])?;
        }
        for &value in &row_facts.known.stored {
            self.fetch_value(value, "row_");
        }
        for &value in &row_facts.known.values {
            self.printer.emit(value)?;
        }
        self.line(if storage.masked { "int fast_ = gone_ == 0;" } else { "int fast_ = 1;" });
        let mut first_indices = FastHashMap::default();
        let mut assumed = AssumedFacts::default();
        let (from, last) = self.bounds(row_facts, &mut first_indices, &mut assumed)?;
        let mut conditions = Vec::new();
        for fact in &row_facts.facts {
            let text = self.fact(fact, &mut first_indices, (&from, &last))?;
            conditions.extend(text);
            assumed.conditions.insert(fact.handle, if fact.expected { "1" } else { "0" });
        }
        for (&access, &index) in &row_facts.accesses {
            let first = self.first(index, &mut first_indices)?;
            let length = self.length(access)?;
            conditions.extend(self.in_range(index, &first, &length, (&from, &last)));
            assumed.indices.insert(access, self.along(&first, index.slope, "x_"));
            assumed.first_indices.insert(access, first);
        }
        conditions.sort();
        conditions.dedup();
        if !conditions.is_empty() {
            let all = conditions.join(" && ");
            let none = if row_facts.bounds.is_empty() { "" } else { "from_ >= to_ || " };
            self.line(&["fast_ = fast_ && (", none, "(", &all, "));"]);
        }
        Ok(assumed)
    }

    /// Prints the interval of x that the bounds allow; returns its first and last x.
    fn bounds(
        &mut self,
        row_facts: &RowFacts,
        first_indices: &mut Firsts,
        assumed: &mut AssumedFacts,
    ) -> Result<(String, String)> {
        let sx = self.width;
        if row_facts.bounds.is_empty() {
            return Ok(("0".to_owned(), (sx - 1).to_string()));
        }
        self.line(&format_args!("{} low_ = 0, high_ = {sx};", self.long()));
        for bound in &row_facts.bounds {
            let (left, right) =
                (self.first(bound.left, first_indices)?, self.first(bound.right, first_indices)?);
            self.bound(bound, &left, &right);
            assumed.conditions.insert(bound.handle, if bound.expected { "1" } else { "0" });
        }
        self.line("const int from_ = (int)low_, to_ = high_ < low_ ? (int)low_ : (int)high_;");
        Ok(("from_".to_owned(), "(to_ - 1)".to_owned()))
    }

    /// Prints how a condition bounds x.
    fn bound(&mut self, bound: &Comparison, left: &str, right: &str) {
        let op = bound.holding();
        // The side that grows by one with x, and the other: `growing op other`.
        let (growing, other, op) = match (bound.left.slope, bound.right.slope) {
            (0, 0) => {
                let sign = sign(op);
                self.line(&["if (!(", left, " ", sign, " ", right, ")) high_ = 0;"]);
                return;
            }
            (1, _) => (left, right, op),
            _ => (right, left, mirrored(op)),
        };
        let (sx, greatest) = (self.width, greatest(bound.left.signed));
        self.line(&format_args!("fast_ = fast_ && {growing} + {} <= {greatest};", sx - 1));
        let at_most = |limit: String| format!("if ({limit} < high_) high_ = {limit} < 0 ? 0 : {limit};");
        let at_least = |limit: String| format!("if ({limit} > low_) low_ = {limit} > {sx} ? {sx} : {limit};");
        let (limit, next) = (format!("({other} - {growing})"), format!("({other} - {growing} + 1)"));
        let lines = match op {
            Op::Less => vec![at_most(limit)],
            Op::LessEqual => vec![at_most(next)],
            Op::Greater => vec![at_least(next)],
            Op::GreaterEqual => vec![at_least(limit)],
            _ => vec![at_least(limit), at_most(next)],
        };
        for line in lines {
            self.line(&line);
        }
    }

    /// The conditions under which a comparison has the expected result from the first to the last x.
    fn fact(
        &mut self,
        fact: &Comparison,
        first_indices: &mut Firsts,
        (from, last): (&str, &str),
    ) -> Result<Vec<String>> {
        let (left, right) = (self.first(fact.left, first_indices)?, self.first(fact.right, first_indices)?);
        let mut conditions = Vec::new();
        for (side, linear) in [(&left, fact.left), (&right, fact.right)] {
            // A growing side is greatest at the end; a falling one is least there.
            match linear.slope {
                0 => {}
                1.. => {
                    conditions.push(
                        [&self.along(side, linear.slope, last), " <= ", greatest(linear.signed)].concat(),
                    );
                }
                _ => {
                    conditions
                        .push([&self.along(side, linear.slope, last), " >= ", least(linear.signed)].concat());
                }
            }
        }
        let op = fact.holding();
        let difference = i64::from(fact.left.slope) - i64::from(fact.right.slope);
        // `a < b` is critical where `a - b` is greatest, `a > b` where it is least.
        let ends = match (difference, op) {
            (0, _) => vec![from],
            (1.., Op::Less | Op::LessEqual) | (..0, Op::Greater | Op::GreaterEqual) => vec![last],
            (1.., Op::Greater | Op::GreaterEqual) | (..0, Op::Less | Op::LessEqual) => vec![from],
            _ => vec![from, last],
        };
        for x in ends {
            let (a, b) = (self.along(&left, fact.left.slope, x), self.along(&right, fact.right.slope, x));
            conditions.push([&a, " ", sign(op), " ", &b].concat());
        }
        Ok(conditions)
    }

    /// The name of a value at the first invocation of the row, in 64 bits.
    fn first(&mut self, linear: Linear, first_indices: &mut Firsts) -> Result<String> {
        let text = self.printer.operand(linear.value, level::UNARY)?;
        if let Some(name) = first_indices.get(&text) {
            return Ok(name.clone());
        }
        let name = format!("first_{}_", first_indices.len());
        self.line(&["const ", self.long(), " ", &name, " = (", self.long(), ")", &text, ";"]);
        first_indices.insert(text, name.clone());
        Ok(name)
    }

    /// The length of the array that an access indexes.
    fn length(&self, access: Value) -> Result<String> {
        let context = self.printer.context;
        let Expression::Access { base, .. } = self.function.expressions[access] else {
            return Ok("0".to_owned());
        };
        if let TypeInner::Array { size, .. } = *context.pointee(base)
            && let Ok(IndexableLength::Known(length)) = size.resolve(self.module.to_ctx())
        {
            return Ok(length.to_string());
        }
        Ok(match range::root(context, base) {
            Some(variable) => ["(", self.long(), ")", self.printer.writer.names.length(variable)].concat(),
            None => "0".to_owned(),
        })
    }

    /// The value at `x` of a linear value that is `first` at zero.
    fn along(&self, first: &str, slope: i32, x: &str) -> String {
        match slope {
            _ if x == "0" => first.to_owned(),
            0 => first.to_owned(),
            1 => ["(", first, " + ", x, ")"].concat(),
            _ => format!("({first} + {slope}{} * {x})", self.printer.writer.dialect.long_suffix()),
        }
    }

    /// The conditions under which an index is in range from the first to the last x.
    fn in_range(&self, index: Linear, first: &str, length: &str, (from, last): (&str, &str)) -> Vec<String> {
        let (low, high) = if index.slope < 0 { (last, from) } else { (from, last) };
        let (low, high) = (self.along(first, index.slope, low), self.along(first, index.slope, high));
        let mut conditions = vec![[&high, " < ", length].concat()];
        // An unsigned value that does not fall cannot be negative.
        if index.signed || index.slope < 0 {
            conditions.push(low + " >= 0");
        }
        if index.signed && index.slope != 0 {
            conditions.push([&high, " <= ", greatest(true)].concat());
        }
        conditions
    }

    /// The signed type of 64 bits.
    fn long(&self) -> &'static str {
        self.printer.writer.dialect.long()
    }
}

/// The C operator.
const fn sign(op: Op) -> &'static str {
    match op {
        Op::Less => "<",
        Op::LessEqual => "<=",
        Op::Greater => ">",
        Op::GreaterEqual => ">=",
        Op::Equal => "==",
        _ => "!=",
    }
}

/// The operator with its operands swapped.
const fn mirrored(op: Op) -> Op {
    match op {
        Op::Less => Op::Greater,
        Op::LessEqual => Op::GreaterEqual,
        Op::Greater => Op::Less,
        Op::GreaterEqual => Op::LessEqual,
        other => other,
    }
}

/// The greatest 32-bit integer.
const fn greatest(signed: bool) -> &'static str {
    if signed { "2147483647" } else { "4294967295" }
}

/// The least 32-bit integer.
const fn least(signed: bool) -> &'static str {
    if signed { "(-2147483647 - 1)" } else { "0" }
}
