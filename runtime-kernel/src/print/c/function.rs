//! Function definitions, and the extra parameters for the module's variables that a function uses.

use std::collections::BTreeSet;

use naga::valid::{FunctionInfo, GlobalUse};
use naga::{AddressSpace, ArraySize, Block, Function, GlobalVariable, Handle, Statement, TypeInner};
use runtime_core::Result;

use super::invocation::environment::{Environment, Plain};
use super::invocation::statement::Printer;
use super::invocation::unchecked_variant::UncheckedVariant;
use super::writer::Writer;
use crate::ir::{Global, blocks};
use crate::program::Dialect;

impl<'a> Writer<'a> {
    /// The module variables that a function uses, directly or through calls.
    pub(crate) fn used_by(&self, info: &FunctionInfo) -> Vec<Global> {
        let variables = self.module().global_variables.iter();
        variables.map(|(handle, _)| handle).filter(|handle| info[*handle] != GlobalUse::empty()).collect()
    }

    /// The runtime-sized array of a storage buffer: its offset and its stride, in bytes.
    pub(crate) fn runtime_array(&self, variable: Global) -> Option<(u32, u32)> {
        let types = &self.module().types;
        match &types[self.module().global_variables[variable].ty].inner {
            TypeInner::Array { size: ArraySize::Dynamic, stride, .. } => Some((0, *stride)),
            TypeInner::Struct { members, .. } => {
                let last = members.last()?;
                match types[last.ty].inner {
                    TypeInner::Array { size: ArraySize::Dynamic, stride, .. } => Some((last.offset, stride)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether a function needs the length of a buffer's runtime-sized array.
    pub(crate) fn takes_length(&self, info: &FunctionInfo, variable: Global) -> bool {
        let asked = self.checks.are_made() || info[variable].contains(GlobalUse::QUERY);
        asked && self.runtime_array(variable).is_some()
    }

    /// The parameter declaration for a module variable.
    pub(crate) fn parameter(&mut self, variable: Global) -> Result<String> {
        let GlobalVariable { space, ty, .. } = self.module().global_variables[variable];
        let type_name = self.type_name(ty)?;
        let name = self.names.global(variable);
        let before = self.dialect.space(space);
        Ok(match space {
            AddressSpace::Immediate => ["const ", &type_name, " ", name].concat(),
            AddressSpace::Storage { .. } => {
                [before, &type_name, " *", self.dialect.restrict(), name].concat()
            }
            _ => [before, &type_name, " *", name].concat(),
        })
    }

    /// Defines the functions that `entries` call, callees first.
    pub(crate) fn functions<'f>(&mut self, entries: impl Iterator<Item = &'f Function>) -> Result<()> {
        let mut called = BTreeSet::new();
        for entry in entries {
            self.reach(&entry.body, &mut called);
        }
        // In naga's arena a function precedes its callers.
        called.into_iter().try_for_each(|function| self.function(function))
    }

    fn reach(&self, block: &Block, called: &mut BTreeSet<Handle<Function>>) {
        blocks::each(block, &mut |statement| {
            if let Statement::Call { function, .. } = statement
                && called.insert(*function)
            {
                self.reach(&self.module().functions[*function].body, called);
            }
        });
    }

    fn function(&mut self, handle: Handle<Function>) -> Result<()> {
        let module = self.module();
        let (function, info) = (&module.functions[handle], &self.program.info[handle]);
        let result = match &function.result {
            Some(result) => self.type_name(result.ty)?,
            None => "void".to_owned(),
        };
        let globals = self.parameters(info)?;
        let context = self.bounds.function(self.program, handle);
        let mut printer = Printer::new(self, context, Plain { entry: false });
        printer.lines = printer.writer.lines_at(1, |lines| lines.of_function(handle));
        let directive = printer.lines.directive();
        let mut parameters = Vec::new();
        for (index, argument) in (0..).zip(&function.arguments) {
            let type_name = printer.writer.type_name(argument.ty)?;
            let space = if type_name.ends_with('*') { "" } else { " " };
            parameters.push([&type_name, space, printer.plan.argument(index)].concat());
        }
        parameters.extend(globals);
        printer.locals()?;
        printer.body(&function.body)?;
        let body = printer.lines.into_text();
        let unchecked_variant =
            printer.unchecked_variant.filter(|unchecked_variant| !unchecked_variant.preconditions.is_empty());
        if let Some(UncheckedVariant { flag, preconditions }) = unchecked_variant {
            parameters.push(format!("const bool {flag}"));
            self.preconditions.insert(handle, preconditions);
        }
        let name = self.names.function(handle).to_owned();
        let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
        let before = self.dialect.function();
        let of_group =
            |variable: &Global| module.global_variables[*variable].space == AddressSpace::WorkGroup;
        // PoCL gives a function that it does not inline its own copy of the work-group memory.
        let inlined = self.dialect == Dialect::OpenCl && self.used_by(info).iter().any(of_group);
        let inlined = if inlined { "__attribute__((always_inline)) " } else { "" };
        self.functions.extend([
            "\n",
            &directive,
            before,
            inlined,
            &result,
            " ",
            &name,
            "(",
            &parameters,
            ")\n{\n",
            &body,
            "}\n",
        ]);
        Ok(())
    }

    /// The parameters for the module variables that a function uses.
    fn parameters(&mut self, info: &FunctionInfo) -> Result<Vec<String>> {
        let mut parameters = Vec::new();
        for variable in self.used_by(info) {
            parameters.push(self.parameter(variable)?);
            if self.takes_length(info, variable) {
                parameters.push(["u32 ", self.names.length(variable)].concat());
            }
        }
        Ok(parameters)
    }
}

impl<E: Environment> Printer<'_, '_, E> {
    /// The matching arguments at a call.
    pub(super) fn passed(&mut self, function: Handle<Function>) -> Vec<String> {
        let mut arguments = Vec::new();
        let program = self.writer.program;
        let info = &program.info[function];
        for variable in self.writer.used_by(info) {
            let home = self.environment.global(self.writer, variable);
            let immediate = self.context.module.global_variables[variable].space == AddressSpace::Immediate;
            arguments.push(match (immediate, home.pointer) {
                (true, true) => ["*", &home.text].concat(),
                (false, false) => ["&", &home.text].concat(),
                _ => home.text.into_owned(),
            });
            if self.writer.takes_length(info, variable) {
                arguments.push(self.writer.names.length(variable).to_owned());
            }
        }
        arguments.extend(self.unchecked_flag_of(function));
        arguments
    }

    /// Declares the local variables with their initial values.
    pub(crate) fn locals(&mut self) -> Result<()> {
        for (handle, variable) in self.context.function.local_variables.iter() {
            if self.plan.is_flag(handle) {
                continue;
            }
            let type_name = self.writer.type_name(variable.ty)?;
            let value = match variable.init {
                Some(init) => self.value(init)?,
                None => {
                    let span = self.context.function.local_variables.get_span(handle);
                    self.writer.zero(&naga::proc::TypeResolution::Handle(variable.ty), span)?.0
                }
            };
            self.lines.line(&[&type_name, " ", self.plan.local(handle), " = ", &value, ";"]);
        }
        Ok(())
    }
}
