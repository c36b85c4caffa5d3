//! The code of a launch, as the fuser sees it: its entry point with small functions inlined.

use std::iter;

use naga::valid::FunctionInfo;
use naga::{Binding, BuiltIn, EntryPoint, Expression, Function, Statement, TypeInner};
use runtime_core::lowering::PortableSource;
use runtime_core::{Error, ErrorKind, Result};

use crate::interface::Interface;
use crate::ir::blocks;
use crate::parse::specialise::Specialisation;
use crate::program::Program;
use crate::transform::inline::{self, Purpose};

/// An entry point of a program whose small functions, and those with barriers or private variables, are inlined.
pub(super) struct Kernel {
    pub(super) program: Program,
}

impl Kernel {
    /// Parses the code of a launch and inlines its functions.
    ///
    /// # Errors
    /// As [`Program::parse`].
    pub(super) fn parse(source: &PortableSource<'_>) -> Result<Self> {
        let program = Program::parse(source.code, source.path, &Specialisation::of_options(source.options)?)?;
        let module = inline::inline(&program.module, &program.info, Purpose::SpeedWithoutUnrolling)?;
        Ok(Self { program: program.with(module)? })
    }

    /// The index of an entry point.
    ///
    /// # Errors
    /// `NotFound`.
    pub(super) fn entry(&self, name: &str) -> Result<usize> {
        let at = self.program.interfaces.iter().position(|interface| interface.name == name);
        at.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no entry point \"{name}\"")))
    }
}

/// A launch's entry point.
#[derive(Clone, Copy)]
pub(super) struct Body<'a> {
    pub(super) program: &'a Program,
    pub(super) entry: usize,
}

impl<'a> Body<'a> {
    pub(super) fn point(self) -> &'a EntryPoint {
        &self.program.module.entry_points[self.entry]
    }

    pub(super) fn function(self) -> &'a Function {
        &self.point().function
    }

    pub(super) fn info(self) -> &'a FunctionInfo {
        self.program.info.get_entry_point(self.entry)
    }

    pub(super) fn interface(self) -> &'a Interface {
        &self.program.interfaces[self.entry]
    }

    /// The built-in values that it takes.
    pub(super) fn built_ins(self) -> Vec<BuiltIn> {
        let types = &self.program.module.types;
        let mut list = Vec::new();
        let mut add = |binding: &Option<Binding>| {
            if let Some(Binding::BuiltIn(built_in)) = binding {
                list.push(*built_in);
            }
        };
        for argument in &self.function().arguments {
            add(&argument.binding);
            if let TypeInner::Struct { members, .. } = &types[argument.ty].inner {
                members.iter().for_each(|member| add(&member.binding));
            }
        }
        list
    }

    /// The functions that it calls, directly or not, and itself.
    pub(super) fn functions(self) -> Vec<&'a Function> {
        let called = blocks::note_all_calls(&self.program.module, &self.function().body);
        let others = self.program.module.functions.iter().rev();
        let others = others.filter(|(handle, _)| called[handle.index()]).map(|(_, function)| function);
        iter::once(self.function()).chain(others).collect()
    }

    /// Whether each item does the same in groups of any other size: it knows no more than its global position.
    pub(super) fn ignores_groups(self) -> bool {
        let only_global = self.built_ins().iter().all(|built_in| *built_in == BuiltIn::GlobalInvocationId);
        only_global && self.interface().shared_bytes == 0 && !self.functions().into_iter().any(cooperates)
    }
}

/// Whether the items of a group work together in a function.
fn cooperates(function: &Function) -> bool {
    let subgroup = function.expressions.iter().any(|(_, expression)| {
        matches!(expression, Expression::SubgroupBallotResult | Expression::SubgroupOperationResult { .. })
    });
    subgroup
        || blocks::any(&function.body, &mut |statement| {
            blocks::is_barrier(statement) || matches!(statement, Statement::MemoryBarrier(_))
        })
}
