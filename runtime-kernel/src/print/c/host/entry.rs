//! The function of an entry point, and its code that runs once per work-group.

use std::fmt::Write as _;

use naga::{FastHashMap, Function, Module, Span, Statement, SwitchValue};
use runtime_core::{Error, ErrorKind, Result};

use super::environment::{HostEnvironment, LaneArrays, Level};
use super::preamble::{PREAMBLE, frame_limit};
use super::schedule::steps::{Condition, Step, Steps};
use super::schedule::variable_storage::{Storage, VariableStorage};
use super::schedule::{Form, Schedule};
use super::verify::{Rejected, verify};
use crate::analysis::private_memory::debug_frame_bytes;
use crate::analysis::proof::FunctionContext;
use crate::ir::{Global, Local, Value};
use crate::print::c::REJECTED;
use crate::print::c::invocation::plan::Plan;
use crate::print::c::invocation::statement::{Printer, case_label};
use crate::print::c::lines::Line;
use crate::print::c::writer::Writer;
use crate::program::{Checks, Program};
use crate::transform::zeroing::must_zero;

/// The printer of one entry point.
pub(super) struct Entry<'w, 'a, 'p> {
    pub(super) printer: Printer<'w, 'a, HostEnvironment>,
    pub(super) module: &'a Module,
    pub(super) function: &'a Function,
    /// Invocations that run in loops: those of a group, or of one of its work-items.
    pub(super) size: [u32; 3],
    /// The work-items of a group in OpenCL C.
    pub(super) work_items: Option<[u32; 3]>,
    pub(super) storage: &'p VariableStorage,
    pub(super) steps: &'p Steps,
    pub(super) schedule: &'p Schedule,
    /// By variable: its arrays over the invocations.
    pub(super) variables: FastHashMap<Local, LaneArrays>,
    /// Names of the uniform values that invocations compute for the group.
    pub(super) uniform_values: FastHashMap<Value, String>,
    /// By variable carried through the loops of the current row: its arrays.
    pub(super) carried: FastHashMap<Local, LaneArrays>,
    /// Width of the rows being printed, in invocations.
    pub(super) width: u32,
    /// The label at the end of a row.
    pub(super) row_end: String,
    /// Whether the arrays over the invocations are on the heap.
    pub(super) on_heap: bool,
    /// The index of the entry point in the module.
    pub(super) index: usize,
    /// Whether it has nontemporal stores.
    pub(super) nontemporal_stores: bool,
    /// Labels of the enclosing uniform loops.
    loops: Vec<String>,
}

/// Writes the function of an entry point and returns its symbol.
///
/// # Errors
/// `Unsupported` for what the host cannot do.
pub(in crate::print::c) fn entry(writer: &mut Writer<'_>, index: usize) -> Result<String> {
    let program = writer.program;
    let module = &program.module;
    let point = &module.entry_points[index];
    let function = &point.function;
    let context = writer.bounds.entry(program, index);
    let checks = writer.checks;
    let work_items = program.loops_in(writer.dialect).map(|loops| loops.work_items[index]);
    let counts = work_items.unwrap_or([1; 3]);
    let size = [0, 1, 2].map(|axis| point.workgroup_size[axis] / counts[axis]);
    let printer = Printer::new(writer, context, HostEnvironment::default());
    let (schedule, rejected) = scheduled(program, index, &printer.plan, context, (checks, size[0]))?;
    let mut entry = Entry {
        printer,
        module,
        function,
        size,
        work_items,
        storage: &schedule.storage,
        steps: &schedule.steps,
        schedule: &schedule,
        variables: FastHashMap::default(),
        uniform_values: FastHashMap::default(),
        carried: FastHashMap::default(),
        width: size[0],
        row_end: String::new(),
        on_heap: false,
        index,
        nontemporal_stores: false,
        loops: Vec::new(),
    };
    if let Some(why) = rejected {
        entry.printer.writer.functions.push_str(&format!("\n{REJECTED}{why} */\n"));
    }
    if work_items.is_some() { entry.write_kernel(index) } else { entry.write(index) }
}

/// The schedule of an entry point. In builds that verify schedules, one that fails is replaced by the plain form,
/// and the reason is returned.
fn scheduled(
    program: &Program,
    index: usize,
    plan: &Plan,
    context: FunctionContext<'_>,
    (checks, width): (Checks, u32),
) -> Result<(Schedule, Option<Rejected>)> {
    let named = |value| plan.is_named(value);
    let make = |form| Schedule::of(program, index, context, (checks, width), &named, form);
    if program.is_plain() {
        let plain = make(Form::Plain)?;
        check_plain(&plain, context).map_err(|error| error.with_note(program.path()))?;
        return Ok((plain, None));
    }
    let schedule = make(Form::Full)?;
    if !cfg!(any(test, fuzzing, debug_assertions)) {
        return Ok((schedule, None));
    }
    verified(schedule, || make(Form::Plain), context).map_err(|error| error.with_note(program.path()))
}

/// The schedule if it verifies, otherwise the plain one with the reason.
///
/// # Errors
/// `Internal` if the plain one fails as well; errors of making it.
pub(super) fn verified(
    schedule: Schedule,
    plain: impl FnOnce() -> Result<Schedule>,
    context: FunctionContext<'_>,
) -> Result<(Schedule, Option<Rejected>)> {
    let Err(why) = verify(&schedule, context) else { return Ok((schedule, None)) };
    let plain = plain()?;
    check_plain(&plain, context)?;
    Ok((plain, Some(why)))
}

fn check_plain(plain: &Schedule, context: FunctionContext<'_>) -> Result<()> {
    verify(plain, context).map_err(|why| {
        Error::new(ErrorKind::Internal, format!("the plain schedule of an entry point is invalid: {why}"))
    })
}

impl Entry<'_, '_, '_> {
    fn write(&mut self, index: usize) -> Result<String> {
        let symbol = self.printer.writer.names.entry(index).to_owned();
        let globals = self.globals();
        let (parameters, arguments, unpack) = self.parameters(index, &globals)?;
        self.printer.lines = self.printer.writer.lines_at(0, |lines| lines.of_entry(index));
        self.preamble();
        let range = "const unsigned int *groups_, long long begin_, long long end_";
        self.line("");
        self.open(&["static void ", &symbol, "_range(", &parameters, range, ") {"]);
        self.lengths(index)?;
        self.memory(&globals)?;
        self.open("for (long long group_ = begin_; group_ < end_; group_++) {");
        self.group()?;
        self.line("next_group:;");
        self.close("}");
        if self.nontemporal_stores {
            self.line("stream_end_();");
        }
        self.free();
        self.close("}");
        self.line("");
        self.open(&["void ", &symbol, "(const unsigned long long *args_, ", range, ") {"]);
        for line in unpack {
            self.line(&line);
        }
        self.line(&[&symbol, "_range(", &arguments, "groups_, begin_, end_);"]);
        self.close("}");
        let text = std::mem::take(&mut self.printer.lines).into_text();
        self.printer.writer.functions.push_str(&text);
        Ok(symbol)
    }

    fn preamble(&mut self) {
        let writer = &mut *self.printer.writer;
        if writer.program.has_debug_info && writer.first("frame_limit") {
            writer.types.push_str(&frame_limit(debug_frame_bytes(self.module)));
        } else if !writer.program.is_plain() && writer.first("UNORDERED") {
            writer.types.push_str(PREAMBLE);
        }
    }

    pub(super) fn line(&mut self, line: &(impl Line + ?Sized)) {
        self.printer.lines.line(line);
    }

    pub(super) fn open(&mut self, line: &(impl Line + ?Sized)) {
        self.printer.lines.open(line);
    }

    pub(super) fn close(&mut self, line: &(impl Line + ?Sized)) {
        self.printer.lines.close(line);
    }

    /// The module variables that the entry point uses.
    pub(super) fn globals(&self) -> Vec<Global> {
        let info = self.printer.context.info;
        let used = self.module.global_variables.iter().filter(|(variable, _)| !info[*variable].is_empty());
        used.map(|(variable, _)| variable).collect()
    }

    /// The parameters of the inner function, its arguments, and the code that unpacks them from the argument
    /// words.
    fn parameters(&mut self, index: usize, globals: &[Global]) -> Result<(String, String, Vec<String>)> {
        let interface = self.printer.writer.program.interfaces[index].clone();
        let (mut parameters, mut arguments, mut unpack) = (String::new(), String::new(), Vec::new());
        let writer = &mut *self.printer.writer;
        for (word, tensor) in interface.tensors.iter().enumerate() {
            let declared = &self.module.global_variables[tensor.variable];
            let (space, type_name) = (writer.dialect.space(declared.space), writer.type_name(declared.ty)?);
            let name = writer.names.global(tensor.variable);
            let restrict = writer.dialect.restrict();
            parameters.extend([space, &type_name, " *", restrict, name, ", "]);
            let _ = write!(arguments, "({space}{type_name} *)(__UINTPTR_TYPE__)args_[{word}], ");
        }
        let mut word = interface.tensors.len();
        if let Some(immediate) = interface.immediate {
            let ty = self.module.global_variables[immediate].ty;
            let (type_name, name) = (writer.type_name(ty)?, writer.names.global(immediate).to_owned());
            unpack.push(format!("{type_name} {name};"));
            let mut places = Vec::with_capacity(interface.scalars.len());
            writer.scalar_places(ty, name.clone(), &mut places);
            for (place, at) in places.iter().zip(word..) {
                unpack.push(format!("__builtin_memcpy(&{place}, &args_[{at}], sizeof {place});"));
            }
            if globals.contains(&immediate) {
                parameters.extend([&type_name, " ", &name, ", "]);
                arguments.extend([&name, ", "]);
            }
        }
        word += interface.scalars.len();
        for (number, tensor) in interface.tensors.iter().enumerate() {
            let size = writer.names.size(tensor.variable);
            parameters.extend(["unsigned long long ", size, ", "]);
            let _ = write!(arguments, "args_[{}], ", word + number);
        }
        Ok((parameters, arguments, unpack))
    }

    /// Declares the lengths of runtime-sized arrays.
    pub(super) fn lengths(&mut self, index: usize) -> Result<()> {
        for tensor in &self.printer.writer.program.interfaces[index].tensors {
            let size = self.printer.writer.names.size(tensor.variable).to_owned();
            if let Some(text) = self.printer.writer.length_of(tensor.variable, &size)? {
                self.line(&text);
            }
        }
        Ok(())
    }

    /// Prints the work of one work-group.
    fn group(&mut self) -> Result<()> {
        self.line("const unsigned int group_x_ = (unsigned int)(group_ % groups_[0]);");
        self.line("const unsigned int group_y_ = (unsigned int)(group_ / groups_[0] % groups_[1]);");
        self.line("const unsigned int group_z_ = (unsigned int)(group_ / groups_[0] / groups_[1]);");
        self.line("(void)group_x_, (void)group_y_, (void)group_z_;");
        if self.storage.masked {
            self.line("if (returns_) __builtin_memset(returned_, 0, sizeof returned_);");
            self.line("returns_ = 0;");
        }
        for variable in must_zero(self.printer.writer.program, self.index) {
            let name = self.printer.writer.names.global(variable).to_owned();
            self.line(&["__builtin_memset(&", &name, ", 0, sizeof ", &name, ");"]);
        }
        self.work()
    }

    /// Prints the steps of a work-group.
    pub(super) fn work(&mut self) -> Result<()> {
        for argument in self.storage.arguments.clone() {
            self.argument(argument, ["0u", "0u", "0u"])?;
        }
        self.declare()?;
        let steps = self.steps;
        self.steps(&steps.steps)
    }

    /// Declares the values that the group computes once, and sets the initial values that must precede all
    /// regions.
    fn declare(&mut self) -> Result<()> {
        let info = self.printer.context.info;
        for &value in &self.storage.uniform {
            let type_name = self.printer.writer.resolved_name(&info[value].ty, Span::UNDEFINED)?;
            if let Some(name) = self.printer.plan.value(value) {
                self.printer.lines.line(&[&type_name, " ", name, ";"]);
            }
        }
        for &value in &self.storage.from_regions {
            let type_name = self.printer.writer.resolved_name(&info[value].ty, Span::UNDEFINED)?;
            let name = self.printer.plan.fresh(&self.printer.writer.names, "agreed");
            self.line(&[&type_name, " ", &name, " = 0;"]);
            self.uniform_values.insert(value, name);
        }
        for (variable, _) in self.function.local_variables.iter() {
            if self.storage.variable(variable) == Storage::Group {
                self.start(variable)?;
            }
        }
        if self.storage.early.is_empty() {
            return Ok(());
        }
        let items: u32 = self.size.iter().product();
        self.open(&format_args!("for (int lane_ = 0; lane_ < {items}; lane_++) {{"));
        self.printer.environment.lane = "lane_".to_owned();
        for variable in self.storage.early.clone() {
            let name = self.printer.plan.local(variable).to_owned();
            self.start(variable)?;
            let text = self.variables[&variable].write("lane_", &name);
            self.line(&text);
        }
        self.close("}");
        Ok(())
    }

    /// Declares a local variable with its initial value.
    pub(super) fn start(&mut self, variable: Local) -> Result<()> {
        let declared = &self.function.local_variables[variable];
        let type_name = self.printer.writer.type_name(declared.ty)?;
        let name = self.printer.plan.local(variable).to_owned();
        let value = declared.init.map(|init| self.printer.value(init)).transpose()?;
        self.line(&[&type_name, " ", &name, " = ", value.as_deref().unwrap_or("{0}"), ";"]);
        Ok(())
    }

    pub(super) fn steps(&mut self, steps: &[Step]) -> Result<()> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        self.printer.environment.level = Level::Group;
        match step {
            Step::Once(shared) => {
                shared.body.span_iter().try_for_each(|(statement, span)| self.once(statement, *span))
            }
            Step::Lanes(region) => self.lanes(*region),
            Step::Rows(rows) => self.rows(rows),
            Step::Barrier => {
                self.barrier();
                Ok(())
            }
            Step::If { condition, accept, reject } => {
                let condition = self.condition(*condition)?;
                self.open(&["if (", &condition, ") {"]);
                self.steps(accept)?;
                if !reject.is_empty() {
                    self.printer.lines.reopen("} else {");
                    self.steps(reject)?;
                }
                self.close("}");
                Ok(())
            }
            Step::Switch { selector, cases } => self.switch(*selector, cases),
            Step::Loop { body, continuing, break_if } => self.cycle(body, continuing, *break_if),
            Step::Break => {
                self.line("break;");
                Ok(())
            }
            Step::Continue => {
                let label = self.loops.last().cloned().unwrap_or_default();
                self.line(&["goto ", &label, ";"]);
                Ok(())
            }
            Step::Return => {
                self.line("goto next_group;");
                Ok(())
            }
        }
    }

    fn once(&mut self, statement: &Statement, span: Span) -> Result<()> {
        match statement {
            Statement::WorkGroupUniformLoad { pointer, result } => {
                let info = self.printer.context.info;
                let value = self.printer.load(*pointer, &info[*result].ty)?.0;
                self.printer.define(*result, &value)
            }
            other => self.printer.statement(other, span),
        }
    }

    fn condition(&mut self, condition: Condition) -> Result<String> {
        match condition {
            Condition::Once(value) => self.printer.value(value),
            Condition::FromRegion(value) => Ok(self.uniform_values[&value].clone()),
        }
    }

    fn switch(&mut self, selector: Condition, cases: &[(SwitchValue, bool, Vec<Step>)]) -> Result<()> {
        let selector = self.condition(selector)?;
        self.open(&["switch (", &selector, ") {"]);
        for (value, fall_through, steps) in cases {
            self.open(&[&case_label(*value), " {"]);
            self.steps(steps)?;
            if !fall_through {
                self.line("break;");
            }
            self.close("}");
        }
        self.close("}");
        Ok(())
    }

    fn cycle(&mut self, body: &[Step], continuing: &[Step], break_if: Option<Condition>) -> Result<()> {
        let label = self.printer.plan.fresh(&self.printer.writer.names, "next");
        self.open("for (;;) {");
        self.loops.push(label.clone());
        self.steps(body)?;
        self.loops.pop();
        if body.iter().any(Step::continues) {
            self.line(&[&label, ":;"]);
        }
        self.steps(continuing)?;
        self.printer.environment.level = Level::Group;
        if let Some(condition) = break_if {
            let condition = self.condition(condition)?;
            self.line(&["if (", &condition, ") break;"]);
        }
        self.close("}");
        Ok(())
    }
}
