//! Prints a region, the code that every invocation of a work-group runs, as loops over z, y and x.

use std::collections::BTreeSet;

use naga::proc::IndexableLength;
use naga::{
    BinaryOperator as Op, Expression, FastHashMap, Handle, LocalVariable, Range, Span, Statement, TypeInner,
};
use runtime_core::Result;

use super::entry::Entry;
use super::environment::{LaneArrays, Part};
use super::schedule::regions::{Rows, Step};
use super::schedule::row_facts::{AssumedFacts, Comparison, Linear, RowFacts};
use super::schedule::row_schedule::leaves;
use super::schedule::variable_storage::Storage;
use crate::analysis::proof::range;
use crate::ir::blocks::Skip;
use crate::print::c::form::level;

/// By text of a value: its name at the first invocation of the row.
type Firsts = FastHashMap<String, String>;

impl Entry<'_, '_, '_> {
    /// Steps that run row by row: loops over z, y and blocks of x.
    pub(super) fn rows(&mut self, rows: &Rows) -> Result<()> {
        let [sx, sy, sz] = self.size;
        let steps = &rows.steps;
        self.width = rows.width;
        let blocks = sx / self.width;
        self.open("{");
        let mut starts = Vec::new();
        if sy * sz * blocks > 1 {
            for &variable in &rows.written {
                let type_name = self.printer.writer.type_name(self.function.local_variables[variable].ty)?;
                let name = self.printer.plan.local(variable).to_owned();
                self.line(&format!("const {type_name} start_{}_ = {name};", starts.len()));
                starts.push(format!("{name} = start_{}_;", starts.len()));
            }
        }
        for (axis, extent, step) in [("z_", sz, 1), ("y_", sy, 1), ("block_", sx, self.width)] {
            if extent > step {
                self.open(&format!("for (int {axis} = 0; {axis} < {extent}; {axis} += {step}) {{"));
            } else {
                self.line(&format!("const int {axis} = 0;"));
            }
        }
        self.line(&format!("const int row_ = (z_ * {sy} + y_) * {sx} + block_;"));
        for start in starts {
            self.line(&start);
        }
        let returns = self.row_start(steps);
        self.carry_in(&rows.carried)?;
        self.steps(steps)?;
        self.carry_out(steps);
        if returns {
            self.line(&format!("{}:;", self.row_end));
        }
        for extent in [sz, sy, blocks] {
            if extent > 1 {
                self.close("}");
            }
        }
        self.close("}");
        if returns {
            let items: u32 = self.size.iter().product();
            self.line(&format!("if (returns_ == {items}u) goto next_group;"));
        }
        Ok(())
    }

    /// Declares the count of returned invocations of a row; returns whether any may return.
    fn row_start(&mut self, steps: &[Step]) -> bool {
        if !self.storage.masked {
            return false;
        }
        self.row_end = self.printer.plan.fresh(&self.printer.writer.names, "row_end");
        self.line("int gone_ = 0;");
        let count = format!("for (int x_ = 0; x_ < {}; x_++) gone_ += returned_[row_ + x_];", self.width);
        self.line(&format!("if (returns_) {count}"));
        let mut regions = Vec::new();
        leaves(steps, &mut regions);
        regions.iter().any(|&region| self.storage.needs[region].returns)
    }

    /// Copies loop-carried variables into arrays of the row, which a compiler can keep in registers.
    fn carry_in(&mut self, carried: &BTreeSet<Handle<LocalVariable>>) -> Result<()> {
        let width = self.width;
        let mut copies = Vec::new();
        for &variable in carried {
            let declared = &self.function.local_variables[variable];
            let type_name = self.printer.writer.type_name(declared.ty)?;
            let inner = &self.module.types[declared.ty].inner;
            let (writer, plan) = (&mut *self.printer.writer, &mut self.printer.plan);
            let name = format!("{}_row", plan.local(variable));
            let kept =
                LaneArrays::new(writer, (type_name, inner), &name, |w, wanted| plan.fresh(&w.names, wanted))?;
            self.line(&kept.declare(width));
            for ((to, _), (from, _)) in kept.arrays.iter().zip(&self.variables[&variable].arrays) {
                copies.push(format!("{to}[x_] = {from}[row_ + x_];"));
            }
            self.carried.insert(variable, kept);
        }
        self.copies(&copies);
        Ok(())
    }

    fn carry_out(&mut self, _: &[Step]) {
        let mut copies = Vec::new();
        for (variable, _) in self.function.local_variables.iter() {
            if let Some(kept) = self.carried.get(&variable) {
                for ((from, _), (to, _)) in kept.arrays.iter().zip(&self.variables[&variable].arrays) {
                    copies.push(format!("{to}[row_ + x_] = {from}[x_];"));
                }
            }
        }
        self.carried.clear();
        self.copies(&copies);
    }

    fn copies(&mut self, copies: &[String]) {
        if !copies.is_empty() {
            self.open(&format!("for (int x_ = 0; x_ < {}; x_++) {{", self.width));
            copies.iter().for_each(|copy| self.line(copy));
            self.close("}");
        }
    }

    /// Reads an invocation's variable: `lane` is its index in the group's arrays, `x` in the row's.
    fn read(&self, variable: Handle<LocalVariable>, lane: &str, x: &str) -> String {
        match self.carried.get(&variable) {
            Some(kept) => kept.read(x),
            None => self.variables[&variable].read(lane),
        }
    }

    /// One row of invocations: copies of its loop for different facts about the row.
    pub(super) fn lanes(&mut self, index: usize) -> Result<()> {
        self.open("{");
        self.row(index)?;
        self.close("}");
        if self.storage.masked && self.storage.needs[index].returns {
            let text = format!("if (gone_ == {}) goto {};", self.width, self.row_end);
            self.line(&text);
        }
        Ok(())
    }

    fn row(&mut self, index: usize) -> Result<()> {
        let width = self.width;
        let row_facts = &self.schedule.rows[index].row_facts;
        if row_facts.is_empty() {
            return self.general(index);
        }
        let assumed = self.decide(row_facts)?;
        self.open("if (fast_) {");
        self.printer.environment.assumed = assumed;
        let full = format!("for (int x_ = 0; x_ < {width}; x_++) {{");
        if row_facts.bounds.is_empty() {
            self.whole_row(index, &full)?;
        } else {
            self.open(&format!("if (from_ == 0 && to_ == {width}) {{"));
            self.whole_row(index, &full)?;
            self.printer.lines.reopen("} else {");
            self.copy(index, "for (int x_ = from_; x_ < to_; x_++) {")?;
            if row_facts.returns && self.storage.masked {
                let beyond = "if (x_ < from_ || x_ >= to_) returned_[row_ + x_] = 1;";
                self.line(&format!("for (int x_ = 0; x_ < {width}; x_++) {beyond}"));
                self.line(&format!("returns_ += {width} - (to_ - from_);"));
                self.line(&format!("gone_ += {width} - (to_ - from_);"));
            }
            self.close("}");
        }
        self.printer.environment.assumed = AssumedFacts::default();
        self.printer.lines.reopen("} else {");
        self.general(index)?;
        self.close("}");
        Ok(())
    }

    /// The copy that relies on no facts.
    fn general(&mut self, index: usize) -> Result<()> {
        let width = self.width;
        if self.schedule.rows[index].general_is_independent {
            self.line("UNORDERED");
        }
        self.open(&format!("for (int x_ = 0; x_ < {width}; x_++) {{"));
        if self.storage.masked {
            self.line("if (returned_[row_ + x_]) continue;");
        }
        self.body(index)?;
        self.close("}");
        Ok(())
    }

    /// A loop over a row, or a part of one.
    pub(super) fn copy(&mut self, index: usize, open: &str) -> Result<()> {
        if self.schedule.rows[index].fast_is_independent {
            self.line("UNORDERED");
        }
        self.open(open);
        self.body(index)?;
        self.close("}");
        Ok(())
    }

    /// Prints the decisions for a row: `fast_`, and with bounds the interval from `from_` to before `to_`.
    fn decide(&mut self, row_facts: &RowFacts) -> Result<AssumedFacts> {
        let storage = self.storage;
        self.printer.environment.part = Part::Row;
        self.printer.environment.lane = "row_".to_owned();
        for &argument in &row_facts.known.arguments {
            self.argument(argument, ["block_", "y_", "z_"])?;
        }
        for &variable in &row_facts.known.variables {
            let type_name = self.printer.writer.type_name(self.function.local_variables[variable].ty)?;
            let name = self.printer.plan.local(variable);
            let text = format!("const {type_name} {name} = {};", self.read(variable, "row_", "0"));
            self.line(&text);
        }
        for &value in &row_facts.known.kept {
            if let Some(kept) = self.printer.environment.kept.get(&value) {
                let name = self.printer.plan.value(value).unwrap_or_default();
                let text = format!("const {} {name} = {};", kept.type_name, kept.read("row_"));
                self.line(&text);
            }
        }
        for &value in &row_facts.known.values {
            let emit = Statement::Emit(Range::new_from_bounds(value, value));
            self.printer.statement(&emit, Span::UNDEFINED)?;
        }
        self.line(if storage.masked { "int fast_ = gone_ == 0;" } else { "int fast_ = 1;" });
        let mut firsts = FastHashMap::default();
        let mut assumed = AssumedFacts::default();
        let (from, last) = self.bounds(row_facts, &mut firsts, &mut assumed)?;
        let mut conditions = Vec::new();
        for fact in &row_facts.facts {
            let text = self.fact(fact, &mut firsts, (&from, &last))?;
            conditions.extend(text);
            assumed.conditions.insert(fact.handle, if fact.expected { "1" } else { "0" });
        }
        for (&access, &index) in &row_facts.accesses {
            let first = self.first(index, &mut firsts)?;
            let length = self.length(access)?;
            conditions.extend(in_range(index, &first, &length, (&from, &last)));
            assumed.indices.insert(access, along(&first, index.slope, "x_"));
            assumed.firsts.insert(access, first);
        }
        conditions.sort();
        conditions.dedup();
        if !conditions.is_empty() {
            let all = conditions.join(" && ");
            let none = if row_facts.bounds.is_empty() { "" } else { "from_ >= to_ || " };
            self.line(&format!("fast_ = fast_ && ({none}({all}));"));
        }
        Ok(assumed)
    }

    /// Prints the interval of x that the bounds allow; returns its first and last x.
    fn bounds(
        &mut self,
        row_facts: &RowFacts,
        firsts: &mut Firsts,
        assumed: &mut AssumedFacts,
    ) -> Result<(String, String)> {
        let sx = self.width;
        if row_facts.bounds.is_empty() {
            return Ok(("0".to_owned(), (sx - 1).to_string()));
        }
        self.line(&format!("long long low_ = 0, high_ = {sx};"));
        for bound in &row_facts.bounds {
            let (left, right) = (self.first(bound.left, firsts)?, self.first(bound.right, firsts)?);
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
                self.line(&format!("if (!({left} {sign} {right})) high_ = 0;"));
                return;
            }
            (1, _) => (left, right, op),
            _ => (right, left, mirrored(op)),
        };
        let (sx, greatest) = (self.width, greatest(bound.left.signed));
        self.line(&format!("fast_ = fast_ && {growing} + {} <= {greatest};", sx - 1));
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
        firsts: &mut Firsts,
        (from, last): (&str, &str),
    ) -> Result<Vec<String>> {
        let (left, right) = (self.first(fact.left, firsts)?, self.first(fact.right, firsts)?);
        let mut conditions = Vec::new();
        for (side, linear) in [(&left, fact.left), (&right, fact.right)] {
            // A growing side is greatest at the end; a falling one is least there.
            match linear.slope {
                0 => {}
                1.. => conditions.push(format!(
                    "{} <= {}",
                    along(side, linear.slope, last),
                    greatest(linear.signed)
                )),
                _ => conditions.push(format!(
                    "{} >= {}",
                    along(side, linear.slope, last),
                    least(linear.signed)
                )),
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
            let (a, b) = (along(&left, fact.left.slope, x), along(&right, fact.right.slope, x));
            conditions.push(format!("{a} {} {b}", sign(op)));
        }
        Ok(conditions)
    }

    /// The name of a value at the first invocation of the row, in 64 bits.
    fn first(&mut self, linear: Linear, firsts: &mut Firsts) -> Result<String> {
        let text = self.printer.operand(linear.value, level::UNARY)?;
        if let Some(name) = firsts.get(&text) {
            return Ok(name.clone());
        }
        let name = format!("first_{}_", firsts.len());
        self.line(&format!("const long long {name} = (long long){text};"));
        firsts.insert(text, name.clone());
        Ok(name)
    }

    /// The length of the array that an access indexes.
    fn length(&self, access: Handle<Expression>) -> Result<String> {
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
            Some(variable) => format!("(long long){}", self.printer.writer.names.length(variable)),
            None => "0".to_owned(),
        })
    }

    /// The code of one invocation.
    pub(super) fn body(&mut self, index: usize) -> Result<()> {
        let (storage, steps) = (self.storage, self.steps);
        let (needs, region) = (&storage.needs[index], &steps.regions[index]);
        let end = self.printer.plan.fresh(&self.printer.writer.names, "done");
        let leave = if storage.masked {
            format!("{{ returned_[lane_] = 1; returns_++; gone_++; goto {end}; }}")
        } else {
            format!("goto {end};")
        };
        self.line("const int lane_ = row_ + x_;");
        self.line("(void)lane_;");
        for &argument in &needs.arguments.iter().copied().collect::<BTreeSet<_>>() {
            self.argument(argument, ["block_ + x_", "y_", "z_"])?;
        }
        self.printer.environment.part = Part::Body { leave };
        self.printer.environment.lane = "lane_".to_owned();
        self.live_in(index)?;
        self.open(if region.skips == Skip::No { "{" } else { "do {" });
        self.printer.block(&region.body)?;
        for value in &region.agreed {
            let text = self.printer.value(*value)?;
            let name = self.agreed[value].clone();
            self.line(&format!("{name} = {text};"));
        }
        self.close(if region.skips == Skip::No { "}" } else { "} while (0);" });
        self.live_out(index);
        if needs.returns {
            self.line(&format!("{end}:;"));
        }
        Ok(())
    }

    /// Loads the values stored for the invocation, and recomputes cheap ones.
    fn live_in(&mut self, index: usize) -> Result<()> {
        let storage = self.storage;
        let needs = &storage.needs[index];
        for (variable, declared) in self.function.local_variables.iter() {
            let touched = needs.reads.contains(&variable) || needs.writes.contains(&variable);
            match storage.variable(variable) {
                Storage::Body(region) if region == index => self.start(variable)?,
                Storage::Lanes if storage.initialised[index].contains(&variable) => self.start(variable)?,
                Storage::Lanes if touched => {
                    let type_name = self.printer.writer.type_name(declared.ty)?;
                    let name = self.printer.plan.local(variable);
                    let text = format!("{type_name} {name} = {};", self.read(variable, "lane_", "x_"));
                    self.line(&text);
                }
                _ => {}
            }
        }
        for &value in &storage.kept {
            let wanted = needs.values.contains(&value) && !needs.defined.contains(&value);
            if wanted && let Some(kept) = self.printer.environment.kept.get(&value) {
                let name = self.printer.plan.value(value).unwrap_or_default();
                let text = format!("const {} {name} = {};", kept.type_name, kept.read("lane_"));
                self.line(&text);
            }
        }
        for &value in &storage.recomputed[index] {
            let emit = Statement::Emit(Range::new_from_bounds(value, value));
            self.printer.statement(&emit, Span::UNDEFINED)?;
        }
        Ok(())
    }

    /// Stores what the region changed.
    fn live_out(&mut self, index: usize) {
        let storage = self.storage;
        for (variable, _) in self.function.local_variables.iter() {
            let changed = storage.needs[index].writes.contains(&variable)
                || storage.initialised[index].contains(&variable);
            if storage.variable(variable) == Storage::Lanes && changed {
                let name = self.printer.plan.local(variable);
                let text = match self.carried.get(&variable) {
                    Some(kept) => kept.write("x_", name),
                    None => self.variables[&variable].write("lane_", name),
                };
                self.line(&text);
            }
        }
    }
}

/// The value at `x` of a linear value that is `first` at zero.
fn along(first: &str, slope: i32, x: &str) -> String {
    match slope {
        _ if x == "0" => first.to_owned(),
        0 => first.to_owned(),
        1 => format!("({first} + {x})"),
        _ => format!("({first} + {slope}LL * {x})"),
    }
}

/// The conditions under which an index is in range from the first to the last x.
fn in_range(index: Linear, first: &str, length: &str, (from, last): (&str, &str)) -> Vec<String> {
    let (low, high) = if index.slope < 0 { (last, from) } else { (from, last) };
    let (low, high) = (along(first, index.slope, low), along(first, index.slope, high));
    let mut conditions = vec![format!("{high} < {length}")];
    // An unsigned value that does not fall cannot be negative.
    if index.signed || index.slope < 0 {
        conditions.push(format!("{low} >= 0"));
    }
    if index.signed && index.slope != 0 {
        conditions.push(format!("{high} <= {}", greatest(true)));
    }
    conditions
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
    if signed { "2147483647LL" } else { "4294967295LL" }
}

/// The least 32-bit integer.
const fn least(signed: bool) -> &'static str {
    if signed { "(-2147483647LL - 1)" } else { "0" }
}
