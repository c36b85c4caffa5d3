//! The spelling of names in a host entry point: at group level, or inside a loop over the invocations.

use std::collections::{BTreeMap, BTreeSet};

use naga::{Barrier, FastHashMap, Scalar, Span, TypeInner};
use runtime_core::Result;

use super::schedule::row_facts::AssumedFacts;
use crate::ir::{Global, Local, Value};
use crate::print::c::invocation::environment::{self, Environment};
use crate::print::c::invocation::hoisted_checks::HoistedChecks;
use crate::print::c::invocation::plan::Plan;
use crate::print::c::types::COMPONENTS;
use crate::print::c::writer::Writer;

/// The code of an entry point that is being printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Level {
    /// Code that runs once per group.
    #[default]
    Group,
    /// Code in front of a row of invocations, with the values of its first invocation.
    Row,
    /// The code of one invocation, in loops over all of them, with the statement that ends it.
    Invocation { leave: String },
}

/// The arrays over the invocations that hold a value: one for the whole value, or one per vector component.
#[derive(Clone, Debug)]
pub(super) struct LaneArrays {
    pub(super) type_name: String,
    pub(super) element: &'static str,
    /// Array names, with the component that each holds.
    pub(super) arrays: Vec<(String, Option<&'static str>)>,
}

/// The spelling of names.
#[derive(Debug, Default)]
pub(super) struct HostEnvironment {
    pub(super) level: Level,
    /// The index of the current invocation in the arrays.
    pub(super) lane: String,
    /// Values that are computed once per group.
    pub(super) uniform: BTreeSet<Value>,
    /// Values stored per invocation, with their arrays.
    pub(super) stored: FastHashMap<Value, LaneArrays>,
    /// Large variables that are used in place in their arrays.
    pub(super) in_place: FastHashMap<Local, String>,
    /// Expressions that the conditions before them keep in range, so that they need no check.
    pub(super) guarded: BTreeSet<Value>,
    /// Loops whose range checks are hoisted, by the condition at their head.
    pub(super) hoisted: BTreeMap<Value, HoistedChecks>,
    /// The facts that the current copy of the loop relies on.
    pub(super) assumed: AssumedFacts,
}

impl LaneArrays {
    /// The expression that reads one invocation's value.
    pub(super) fn read(&self, lane: &str) -> String {
        match &self.arrays[..] {
            [(array, None)] => [array, "[", lane, "]"].concat(),
            arrays => {
                let parts: Vec<_> = arrays
                    .iter()
                    .map(|(array, part)| {
                        [".", part.unwrap_or_default(), " = ", array, "[", lane, "]"].concat()
                    })
                    .collect();
                ["(", &self.type_name, "){", &parts.join(", "), "}"].concat()
            }
        }
    }

    /// The statements that store one invocation's value, which is in the variable `value`.
    pub(super) fn write(&self, lane: &str, value: &str) -> String {
        let parts = self.arrays.iter().map(|(array, part)| match part {
            None => [array, "[", lane, "] = ", value, ";"].concat(),
            Some(part) => [array, "[", lane, "] = ", value, ".", part, ";"].concat(),
        });
        parts.collect::<Vec<_>>().join(" ")
    }

    /// Creates the arrays for a type; `fresh` provides names.
    pub(super) fn new(
        writer: &mut Writer<'_>,
        (type_name, inner): (String, &TypeInner),
        name: &str,
        mut fresh: impl FnMut(&Writer<'_>, &str) -> String,
    ) -> Result<Self> {
        let scalar = |scalar: Scalar, writer: &mut Writer<'_>| writer.scalar(scalar);
        Ok(match *inner {
            TypeInner::Vector { size, scalar: of } => {
                let element = scalar(of, writer)?;
                let arrays = COMPONENTS[..size as usize]
                    .iter()
                    .map(|part| (fresh(writer, &[name, "_", part].concat()), Some(*part)))
                    .collect();
                Self { type_name, element, arrays }
            }
            _ => Self { type_name, element: "", arrays: vec![(fresh(writer, &format!("{name}_of")), None)] },
        })
    }

    /// The type of the arrays' elements.
    pub(super) fn element_name(&self) -> &str {
        if self.element.is_empty() { &self.type_name } else { self.element }
    }

    /// The declarations of the arrays.
    pub(super) fn declare(&self, items: u32) -> String {
        let element = self.element_name();
        let arrays = self.arrays.iter();
        arrays
            .map(|(array, _)| format!("{element} {array}[{items}] __attribute__((aligned(64)));"))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

impl Environment for HostEnvironment {
    fn local<'a>(&'a self, plan: &'a Plan, variable: Local) -> environment::VariableRef<'a> {
        let text = match self.in_place.get(&variable) {
            Some(array) => [array, "[", &self.lane, "]"].concat().into(),
            None => plan.local(variable).into(),
        };
        environment::VariableRef { text, pointer: false }
    }

    fn global<'a>(&'a self, writer: &'a Writer<'_>, variable: Global) -> environment::VariableRef<'a> {
        let pointer =
            matches!(writer.module().global_variables[variable].space, naga::AddressSpace::Storage { .. });
        environment::VariableRef { text: writer.names.global(variable).into(), pointer }
    }

    fn define(&self, expression: Value, type_name: &str, name: &str, value: &str) -> String {
        if self.uniform.contains(&expression) && self.level == Level::Group {
            return [name, " = ", value, ";"].concat();
        }
        let mut text = ["const ", type_name, " ", name, " = ", value, ";"].concat();
        if let (Some(stored), Level::Invocation { .. }) = (self.stored.get(&expression), &self.level) {
            text.push(' ');
            text.push_str(&stored.write(&self.lane, name));
        }
        text
    }

    fn leave(&self, _: Option<&str>) -> String {
        match &self.level {
            Level::Invocation { leave } => leave.clone(),
            Level::Group | Level::Row => "goto next_group;".to_owned(),
        }
    }

    fn barrier(&self, _: &mut Writer<'_>, _: Barrier, _: Span) -> Result<String> {
        Ok(String::new())
    }

    fn known(&self, expression: Value) -> Option<&str> {
        self.assumed.conditions.get(&expression).copied()
    }

    fn redirected(&self, access: Value) -> Option<&str> {
        self.assumed.redirected.get(&access).map(String::as_str)
    }

    fn is_ahead(&self, expression: Value) -> bool {
        self.level == Level::Row || !self.guarded.contains(&expression)
    }

    fn hoisted(&self, condition: Value) -> Option<HoistedChecks> {
        self.hoisted.get(&condition).cloned()
    }

    fn prove(&mut self, access: Value, index: Option<String>) {
        match index {
            Some(index) => self.assumed.indices.insert(access, index),
            None => self.assumed.indices.remove(&access),
        };
    }

    fn proven(&self, access: Value) -> Option<&str> {
        self.assumed.indices.get(&access).map(String::as_str)
    }
}
