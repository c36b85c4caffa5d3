//! Prints a region, the code that every invocation of a work-group runs, as loops over z, y and x.

use std::collections::BTreeSet;

use runtime_core::Result;

use super::entry::Entry;
use super::environment::{LaneArrays, Level};
use super::schedule::row_facts::AssumedFacts;
use super::schedule::row_schedule::leaves;
use super::schedule::steps::{Rows, Step};
use super::schedule::variable_storage::Storage;
use crate::ir::blocks::Skip;
use crate::ir::{Local, Value};

impl Entry<'_, '_, '_> {
    /// Steps that run row by row: loops over z, y and blocks of x.
    pub(super) fn rows(&mut self, rows: &Rows) -> Result<()> {
        let [sx, sy, sz] = self.size;
        let steps = &rows.steps;
        self.width = rows.width;
        let blocks = sx / self.width;
        self.open("{");
        let returns = self.may_return(steps);
        let mut written = Vec::new();
        if sy * sz * blocks > 1 {
            for &variable in &rows.written {
                let type_name = self.printer.writer.type_name(self.function.local_variables[variable].ty)?;
                let name = self.printer.plan.local(variable).to_owned();
                let at = written.len();
                self.line(&format!("const {type_name} start_{at}_ = {name};"));
                if returns {
                    self.line(&format!("{type_name} end_{at}_ = {name};"));
                }
                written.push(name);
            }
        }
        for (axis, extent, step) in [("z_", sz, 1), ("y_", sy, 1), ("block_", sx, self.width)] {
            if extent > step {
                self.open(&format_args!("for (int {axis} = 0; {axis} < {extent}; {axis} += {step}) {{"));
            } else {
                self.line(&["const int ", axis, " = 0;"]);
            }
        }
        self.line(&format_args!("const int row_ = (z_ * {sy} + y_) * {sx} + block_;"));
        for (at, name) in written.iter().enumerate() {
            self.line(&format!("{name} = start_{at}_;"));
        }
        self.row_start();
        self.carry_in(&rows.carried)?;
        self.steps(steps)?;
        self.carry_out();
        if returns {
            // A row that all invocations have left stops halfway: what follows goes on with the values of another one.
            for (at, name) in written.iter().enumerate() {
                self.line(&format!("end_{at}_ = {name};"));
            }
            self.printer.lines.line(&[&self.row_end, ":;"]);
        }
        for extent in [sz, sy, blocks] {
            if extent > 1 {
                self.close("}");
            }
        }
        if returns {
            for (at, name) in written.iter().enumerate() {
                self.line(&format!("{name} = end_{at}_;"));
            }
        }
        self.close("}");
        if returns {
            let items: u32 = self.size.iter().product();
            self.line(&format_args!("if (returns_ == {items}u) goto next_group;"));
        }
        Ok(())
    }

    /// Whether an invocation may return in some steps while others go on.
    fn may_return(&self, steps: &[Step]) -> bool {
        let mut regions = Vec::new();
        leaves(steps, &mut regions);
        self.storage.masked && regions.iter().any(|&region| self.storage.needs[region].returns)
    }

    /// Declares the count of returned invocations of a row.
    fn row_start(&mut self) {
        if !self.storage.masked {
            return;
        }
        self.row_end = self.printer.plan.fresh(&self.printer.writer.names, "row_end");
        self.line("int gone_ = 0;");
        let count = format!("for (int x_ = 0; x_ < {}; x_++) gone_ += returned_[row_ + x_];", self.width);
        self.line(&["if (returns_) ", &count]);
    }

    /// Copies loop-carried variables into arrays of the row, which a compiler can keep in registers.
    fn carry_in(&mut self, carried: &BTreeSet<Local>) -> Result<()> {
        let width = self.width;
        let mut copies = Vec::new();
        for &variable in carried {
            let declared = &self.function.local_variables[variable];
            let type_name = self.printer.writer.type_name(declared.ty)?;
            let inner = &self.module.types[declared.ty].inner;
            let (writer, plan) = (&mut *self.printer.writer, &mut self.printer.plan);
            let name = format!("{}_row", plan.local(variable));
            let stored =
                LaneArrays::new(writer, (type_name, inner), &name, |w, wanted| plan.fresh(&w.names, wanted))?;
            self.line(&stored.declare(width));
            for ((to, _), (from, _)) in stored.arrays.iter().zip(&self.variables[&variable].arrays) {
                copies.push([to, "[x_] = ", from, "[row_ + x_];"].concat());
            }
            self.carried.insert(variable, stored);
        }
        self.copies(&copies);
        Ok(())
    }

    fn carry_out(&mut self) {
        let mut copies = Vec::new();
        for (variable, _) in self.function.local_variables.iter() {
            if let Some(stored) = self.carried.get(&variable) {
                for ((from, _), (to, _)) in stored.arrays.iter().zip(&self.variables[&variable].arrays) {
                    copies.push([to, "[row_ + x_] = ", from, "[x_];"].concat());
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
            self.open(&format_args!("if (from_ == 0 && to_ == {width}) {{"));
            self.whole_row(index, &full)?;
            self.printer.lines.reopen("} else {");
            self.copy(index, "for (int x_ = from_; x_ < to_; x_++) {")?;
            if row_facts.returns && self.storage.masked {
                let beyond = "if (x_ < from_ || x_ >= to_) returned_[row_ + x_] = 1;";
                self.line(&format_args!("for (int x_ = 0; x_ < {width}; x_++) {beyond}"));
                self.line(&format_args!("returns_ += {width} - (to_ - from_);"));
                self.line(&format_args!("gone_ += {width} - (to_ - from_);"));
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
        self.open(&format_args!("for (int x_ = 0; x_ < {width}; x_++) {{"));
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
        self.printer.environment.level = Level::Invocation { leave };
        self.printer.environment.lane = "lane_".to_owned();
        self.live_in(index)?;
        self.open(if region.skips == Skip::No { "{" } else { "do {" });
        self.printer.block(&region.body)?;
        for value in &region.uniform_values {
            let text = self.printer.value(*value)?;
            let name = self.uniform_values[value].clone();
            self.line(&[&name, " = ", &text, ";"]);
        }
        self.close(if region.skips == Skip::No { "}" } else { "} while (0);" });
        self.mark_entry();
        self.live_out(index);
        if needs.returns {
            self.line(&[&end, ":;"]);
        }
        Ok(())
    }

    /// Marks the next lines as coming from the declaration of the entry point: a breakpoint in the code of an invocation must
    /// not stop in the loops around it.
    pub(super) fn mark_entry(&mut self) {
        if let Some(lines) = &self.printer.writer.source_lines {
            self.printer.lines.mark(lines.of_entry(self.index));
        }
    }

    /// Loads the values stored for the invocation, and recomputes cheap ones.
    fn live_in(&mut self, index: usize) -> Result<()> {
        let storage = self.storage;
        let needs = &storage.needs[index];
        for (variable, _) in self.function.local_variables.iter() {
            let touched = needs.reads.contains(&variable) || needs.writes.contains(&variable);
            match storage.variable(variable) {
                Storage::Body(region) if region == index => self.start(variable)?,
                Storage::Lanes if storage.initialised[index].contains(&variable) => self.start(variable)?,
                Storage::Lanes if touched => {
                    self.fetch(variable, "", ["lane_", "x_"])?;
                }
                _ => {}
            }
        }
        for &value in &storage.stored {
            let wanted = needs.values.contains(&value) && !needs.defined.contains(&value);
            if wanted {
                self.fetch_value(value, "lane_");
            }
        }
        storage.recomputed[index].iter().try_for_each(|&value| self.printer.emit(value))
    }

    /// Declares a variable with an invocation's value: `lane` is its index in the group's arrays, `x` in the row's.
    pub(super) fn fetch(&mut self, variable: Local, qualifier: &str, [lane, x]: [&str; 2]) -> Result<()> {
        let type_name = self.printer.writer.type_name(self.function.local_variables[variable].ty)?;
        let arrays = self.carried.get(&variable);
        let value = arrays.map_or_else(|| self.variables[&variable].read(lane), |row| row.read(x));
        let name = self.printer.plan.local(variable);
        self.printer.lines.line(&[qualifier, &type_name, " ", name, " = ", &value, ";"]);
        Ok(())
    }

    /// Declares a stored value of the invocation `lane`, if it is stored.
    pub(super) fn fetch_value(&mut self, value: Value, lane: &str) {
        if let Some(stored) = self.printer.environment.stored.get(&value) {
            let name = self.printer.plan.value(value).unwrap_or_default();
            self.printer.lines.line(&[
                "const ",
                &stored.type_name,
                " ",
                name,
                " = ",
                &stored.read(lane),
                ";",
            ]);
        }
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
                    Some(stored) => stored.write("x_", name),
                    None => self.variables[&variable].write("lane_", name),
                };
                self.line(&text);
            }
        }
    }
}
