//! The spelling of names around the invocation that is printed.

use std::borrow::Cow;

use naga::{AddressSpace, Barrier, Span};
use runtime_core::Result;

use super::hoisted_checks::HoistedChecks;
use super::plan::Plan;
use crate::ir::{Global, Local, Value};
use crate::print::c::writer::Writer;
use crate::program::Dialect;

/// How to refer to a variable.
#[derive(Clone, Debug)]
pub(crate) struct VariableRef<'a> {
    /// An lvalue, or a pointer to the variable.
    pub(crate) text: Cow<'a, str>,
    /// Whether `text` is a pointer. For a runtime-sized array it points to its first element.
    pub(crate) pointer: bool,
}

/// How the names in a function are spelled at the place being printed.
pub(crate) trait Environment {
    /// Where a local variable is.
    fn local<'a>(&'a self, plan: &'a Plan, variable: Local) -> VariableRef<'a> {
        VariableRef { text: plan.local(variable).into(), pointer: false }
    }

    /// A module variable: a storage buffer by pointer, a workgroup, private or immediate variable either way.
    fn global<'a>(&'a self, writer: &'a Writer<'_>, variable: Global) -> VariableRef<'a>;

    /// The statement that defines the named value of `expression`, of type `type_name`, as `value`.
    fn define(&self, expression: Value, type_name: &str, name: &str, value: &str) -> String;

    /// The statement that ends this invocation.
    fn leave(&self, value: Option<&str>) -> String;

    /// The statement for a barrier of the work-group or subgroup.
    ///
    /// # Errors
    /// `Unsupported` where barriers are impossible.
    fn barrier(&self, writer: &mut Writer<'_>, barrier: Barrier, span: Span) -> Result<String>;

    /// The text of a condition whose value is known here.
    fn known(&self, _: Value) -> Option<&str> {
        None
    }

    /// The lvalue that replaces an access here.
    fn redirected(&self, _: Value) -> Option<&str> {
        None
    }

    /// Whether an expression is evaluated ahead of conditions that precede it in the program, so that what they
    /// imply about its operands must not be used.
    fn is_ahead(&self, _: Value) -> bool {
        false
    }

    /// The hoisted checks of the loop with this condition at its head, if it has any.
    fn hoisted(&self, _: Value) -> Option<HoistedChecks> {
        None
    }

    /// Records the index of an access as proven in range from here on, or withdraws that with `None`.
    fn prove(&mut self, _: Value, _: Option<String>) {}

    /// The index of an access (`Access` or `AccessIndex`) that is proven in range here.
    fn proven(&self, _: Value) -> Option<&str> {
        None
    }
}

/// The environment of a function that runs one invocation: everything has its own name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain {
    /// Whether it is an entry point, which declares module variables itself; other functions have pointers to
    /// them.
    pub(crate) entry: bool,
}

impl Environment for Plain {
    fn global<'a>(&'a self, writer: &'a Writer<'_>, variable: Global) -> VariableRef<'a> {
        let pointer = match writer.module().global_variables[variable].space {
            AddressSpace::Storage { .. } => true,
            AddressSpace::Immediate => false,
            _ => !self.entry,
        };
        VariableRef { text: writer.names.global(variable).into(), pointer }
    }

    fn define(&self, _: Value, type_name: &str, name: &str, value: &str) -> String {
        ["const ", type_name, " ", name, " = ", value, ";"].concat()
    }

    fn leave(&self, value: Option<&str>) -> String {
        value.map_or_else(|| "return;".to_owned(), |value| ["return ", value, ";"].concat())
    }

    fn barrier(&self, writer: &mut Writer<'_>, barrier: Barrier, span: Span) -> Result<String> {
        let subgroup = barrier.contains(Barrier::SUB_GROUP);
        Ok(match writer.dialect {
            _ if writer.has_loops => {
                return Err(writer.unsupported("a barrier in a function", span));
            }
            Dialect::Host => return Err(writer.unsupported("a barrier in a function", span)),
            Dialect::Cuda if subgroup => "__syncwarp();".to_owned(),
            Dialect::Cuda => "__syncthreads();".to_owned(),
            Dialect::OpenCl => {
                let fences = match (barrier.contains(Barrier::STORAGE), barrier.contains(Barrier::WORK_GROUP))
                {
                    (true, true) => "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE",
                    (true, false) => "CLK_GLOBAL_MEM_FENCE",
                    (false, _) => "CLK_LOCAL_MEM_FENCE",
                };
                if subgroup {
                    writer.extension("cl_khr_subgroups");
                }
                format!("{}barrier({fences});", if subgroup { "sub_group_" } else { "" })
            }
        })
    }
}
