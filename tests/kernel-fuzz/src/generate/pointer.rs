//! Named pointers to function-scope, private and work-group variables.

use super::Generator;
use super::context::{Context, SharedUse, Space, Variable};
use super::expression::Constraints;
use crate::tree::{Expression, Statement, Type};

impl Generator {
    /// Declares a pointer to a variable or a part of it, and uses it.
    pub(super) fn pointer(&mut self, context: Context, block: &mut Vec<Statement>) {
        let usable = |generator: &Self, variable: &Variable| {
            let is_memory = match variable.space {
                Space::Function | Space::Private => true,
                Space::Shared(at) => matches!(generator.shared_uses[at], SharedUse::Own(_)),
                Space::Value | Space::Tensor => false,
            };
            is_memory && variable.writable && !variable.uniform && generator.is_visible(variable)
        };
        let variables: Vec<_> =
            self.scope.iter().filter(|variable| usable(self, variable)).cloned().collect();
        if variables.is_empty() {
            return self.assign(context, block);
        }
        let variable = self.random.one(&variables).clone();
        self.note_use(&variable);
        let place = self.whole(&variable, Constraints { depth: 1, uniform: false }).lvalue();
        if !matches!(variable.space, Space::Shared(_)) {
            return self.declare_pointer(place, block);
        }
        // In a block: after the next barrier the element belongs to another work-item.
        let kept = self.open();
        let mut inside = Vec::new();
        self.declare_pointer(place, &mut inside);
        let context = context.divergent();
        self.assign(context, &mut inside);
        self.assign(context, &mut inside);
        self.close(kept);
        block.push(Statement(Vec::new()).block("", inside));
    }

    /// Declares a pointer to a variable or a part of it, and writes through it.
    fn declare_pointer(&mut self, whole: Expression, block: &mut Vec<Statement>) {
        let constraints = Constraints { depth: 1, uniform: false };
        let mut ty = whole.ty.clone();
        // WGSL has no pointers to vector components.
        while let Some((element, _)) = ty.element().filter(|_| matches!(ty, Type::Array(..))) {
            if self.random.once_in(3) {
                break;
            }
            ty = element;
        }
        let place = self.part_without_components(whole, &ty, constraints);
        let (name, ty) = (self.name(), place.ty.clone());
        block.push(Statement::new(&format!("let {name} = &@;"), vec![place]));
        let variable = Variable::value(&name, ty.clone(), false);
        self.scope.push(Variable { text: format!("(*{name})"), writable: true, ..variable });
        let value = self.expression(&ty, constraints);
        let value = self.bounded(value);
        block.push(Statement::new(&format!("*{name} = @;"), vec![value]));
    }

    /// A part, selected by array indices only.
    fn part_without_components(
        &mut self,
        whole: Expression,
        ty: &Type,
        constraints: Constraints,
    ) -> Expression {
        if whole.ty == *ty {
            return whole;
        }
        let Some((element, count)) = whole.ty.element() else { return whole };
        let index = self.index(count, constraints);
        let part = Expression::new(element, "@[@]", vec![whole, index]).runtime().lvalue();
        self.part_without_components(part, ty, constraints)
    }
}
