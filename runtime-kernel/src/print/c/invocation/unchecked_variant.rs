//! The unchecked variant of an entry point: for launches whose scalars and sizes keep accesses in range.
//!
//! ```text
//! auto body = [&](const bool in_range) { … (in_range || i < x_length) ? x[i] : 0.0f … };
//! if ((u64)scalars.n <= (u64)x_length) body(true); else body(false);
//! ```
//!
//! Where `in_range` is true no check is left, and loads can be issued before earlier ones have arrived. OpenCL C has
//! no nested functions, so the text contains the body twice.

use naga::{Function, Handle, Scalar, TypeInner};

use super::environment::{Environment, Plain};
use super::statement::Printer;
use crate::analysis::proof::launch_precondition::{self, Preconditions};
use crate::analysis::proof::polynomial::LaunchParameter;
use crate::analysis::proof::range::{Element, Limit};
use crate::program::Dialect;

/// The flag that selects the unchecked variant, and the preconditions behind it.
#[derive(Debug)]
pub(crate) struct UncheckedVariant {
    /// The name of the flag.
    pub(crate) flag: String,
    /// The preconditions on a launch.
    pub(crate) preconditions: Preconditions,
}

impl<E: Environment> Printer<'_, '_, E> {
    /// The flag that makes an element's check unnecessary, if a launch precondition can imply that it is in range.
    pub(crate) fn unchecked_flag(&mut self, element: Element, limit: Limit) -> Option<String> {
        let unchecked_variant = self.unchecked_variant.as_mut()?;
        let precondition = launch_precondition::of(self.context, element, limit)?;
        launch_precondition::add(&mut unchecked_variant.preconditions, precondition)
            .then(|| unchecked_variant.flag.clone())
    }

    /// The flag as an argument for a function whose accesses depend on it.
    pub(crate) fn unchecked_flag_of(&mut self, function: Handle<Function>) -> Option<String> {
        let theirs = self.writer.preconditions.get(&function)?;
        let unchecked_variant = self.unchecked_variant.as_mut()?;
        unchecked_variant.preconditions.extend(theirs.iter().cloned());
        Some(unchecked_variant.flag.clone())
    }
}

impl Printer<'_, '_, Plain> {
    /// The printed lines, twice if an unchecked variant is worthwhile.
    pub(crate) fn body_with_unchecked_variant(mut self) -> String {
        let body = std::mem::take(&mut self.lines).into_text();
        let Some(UncheckedVariant { flag, preconditions }) = self.unchecked_variant.take() else {
            return body;
        };
        if preconditions.is_empty() {
            return body;
        }
        let conditions = preconditions
            .iter()
            .filter_map(|precondition| precondition.at_most_zero(|parameter| self.parameter(parameter)));
        let conditions = conditions.collect::<Vec<_>>().join("\n        && ");
        let body = body.trim_end().replace('\n', "\n    ");
        if self.writer.dialect == Dialect::OpenCl {
            let second = self.with_other_labels(&body);
            return format!(
                "    if ({conditions}) {{\n        const bool {flag} = true;\n    {body}\n    }} else {{\n        \
                 const bool {flag} = false;\n    {second}\n    }}\n"
            );
        }
        let name = self.plan.fresh(&self.writer.names, "body");
        format!(
            "    auto {name} = [&](const bool {flag}) __attribute__((always_inline)) {{\n    {body}\n    }};\n    \
             if ({conditions})\n        {name}(true);\n    else\n        {name}(false);\n"
        )
    }

    /// A second copy of a body in the same function, with its labels renamed.
    fn with_other_labels(&mut self, body: &str) -> String {
        let mut text = body.to_owned();
        for label in std::mem::take(&mut self.targets) {
            let other = self.plan.fresh(&self.writer.names, &label);
            let jump = |label: &str| format!("goto {label};");
            text = text.replace(&jump(&label), &jump(&other));
            text = text.replace(&format!("{label}:;"), &format!("{other}:;"));
        }
        text
    }

    /// A launch parameter as an unsigned number.
    fn parameter(&self, parameter: LaunchParameter) -> String {
        let (module, names) = (self.context.module, &self.writer.names);
        match parameter {
            LaunchParameter::Length(variable) => names.length(variable).to_owned(),
            LaunchParameter::Groups(axis) if self.writer.dialect == Dialect::OpenCl => {
                format!("(u32)get_num_groups({})", axis % 3)
            }
            LaunchParameter::Groups(axis) => format!("gridDim.{}", ["x", "y", "z"][axis as usize % 3]),
            LaunchParameter::Scalar(variable, index) => {
                let ty = module.global_variables[variable].ty;
                let member = match &module.types[ty].inner {
                    TypeInner::Struct { members, .. } => &module.types[members[index as usize].ty].inner,
                    other => other,
                };
                let cast = if *member == TypeInner::Scalar(Scalar::U32) { "" } else { "(u32)" };
                format!("{cast}{}.{}", names.global(variable), names.member(ty, index))
            }
        }
    }
}
