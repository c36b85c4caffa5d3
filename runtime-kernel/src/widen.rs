//! 64-bit integers of 32-bit ones that have a sign where the others have none: naga's SPIR-V extends them as what they
//! become, and their value is that of what they are. Here each conversion becomes two.

use naga::valid::FunctionInfo;
use naga::{Expression, Handle, Module, ScalarKind};
use runtime_core::Result;

use crate::program::Program;
use crate::rebuild::{Change, Rebuild};

/// Bytes of a wide integer.
const WIDE: u8 = 8;

struct Widening<'a> {
    module: &'a Module,
    info: &'a FunctionInfo,
}

impl Widening<'_> {
    /// The kind of the integer that `expression` makes wider and of another sign, if it does that.
    fn from(&self, expression: &Expression) -> Option<(Handle<Expression>, ScalarKind)> {
        let Expression::As { expr, kind, convert: Some(WIDE) } = *expression else { return None };
        let scalar = self.info[expr].ty.inner_with(&self.module.types).scalar()?;
        let other = matches!(
            (scalar.kind, kind),
            (ScalarKind::Uint, ScalarKind::Sint) | (ScalarKind::Sint, ScalarKind::Uint)
        );
        (other && scalar.width < WIDE).then_some((expr, scalar.kind))
    }
}

impl Change for Widening<'_> {
    fn instead(&self, new: &mut Rebuild<'_>, old: Handle<Expression>) -> Option<Handle<Expression>> {
        let expression = &new.source.expressions[old];
        let (from, own) = self.from(expression)?;
        let Expression::As { kind, convert, .. } = *expression else { return None };
        let expr = new.value(from);
        let expr = new.append(Expression::As { expr, kind: own, convert });
        Some(new.append(Expression::As { expr, kind, convert }))
    }
}

/// The module with its conversions in two steps, which must be validated anew; `None` where it has none of them.
///
/// # Errors
/// `Unsupported` for an expression that no kernel has.
pub(crate) fn in_two_steps(program: &Program) -> Result<Option<Module>> {
    let module = &program.module;
    let mut new = None;
    for (handle, function) in module.functions.iter() {
        let change = Widening { module, info: &program.info[handle] };
        if function.expressions.iter().any(|(_, expression)| change.from(expression).is_some()) {
            let new = new.get_or_insert_with(|| module.clone());
            *new.functions.get_mut(handle) = Rebuild::function(function, &change)?;
        }
    }
    for (index, entry) in module.entry_points.iter().enumerate() {
        let change = Widening { module, info: program.info.get_entry_point(index) };
        if entry.function.expressions.iter().any(|(_, expression)| change.from(expression).is_some()) {
            let new = new.get_or_insert_with(|| module.clone());
            new.entry_points[index].function = Rebuild::function(&entry.function, &change)?;
        }
    }
    Ok(new)
}
