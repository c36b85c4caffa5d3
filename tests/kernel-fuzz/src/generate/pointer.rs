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
            return self.declare_pointer(&variable, place, block);
        }
        // In a block: after the next barrier the element belongs to another work-item.
        let kept = self.open();
        let mut inside = Vec::new();
        let variable = Variable { space: Space::Value, ..variable };
        self.declare_pointer(&variable, place, &mut inside);
        let context = context.divergent();
        self.assign(context, &mut inside);
        self.assign(context, &mut inside);
        self.close(kept);
        block.push(Statement(Vec::new()).block("", inside));
    }

    /// Declares a pointer to a variable or a part of it, and writes through it.
    fn declare_pointer(&mut self, to: &Variable, whole: Expression, block: &mut Vec<Statement>) {
        let constraints = Constraints { depth: 1, uniform: false };
        let ty = self.some_place(&whole.ty.clone());
        let place = self.place(whole, &ty, constraints);
        let name = self.name();
        block.push(Statement::new(&format!("let {name} = &@;"), vec![place]));
        let variable = Variable::value(&name, ty.clone(), false);
        let (text, root, space) = (format!("(*{name})"), to.root.clone(), to.space);
        self.scope.push(Variable { text, root, space, writable: true, ..variable });
        let value = self.expression(&ty, constraints);
        let value = self.bounded(value);
        block.push(Statement::new(&format!("*{name} = @;"), vec![value]));
    }

    /// The type of a random part to which pointers may lead, or of the whole.
    fn some_place(&mut self, ty: &Type) -> Type {
        if self.random.once_in(3) {
            return ty.clone();
        }
        match ty {
            Type::Struct(of) => {
                let member = self.random.one(&of.members).1.clone();
                self.some_place(&member)
            }
            Type::Array(..) | Type::Matrix(..) => {
                ty.element().map_or_else(|| ty.clone(), |(element, _)| self.some_place(&element))
            }
            _ => ty.clone(),
        }
    }

    /// A part to which pointers may lead: no component of a vector.
    pub(super) fn place(&mut self, whole: Expression, ty: &Type, constraints: Constraints) -> Expression {
        if whole.ty == *ty {
            return whole;
        }
        let part = if let Type::Struct(of) = &whole.ty {
            let members: Vec<_> =
                of.members.iter().filter(|(_, member)| member.has_place(ty)).cloned().collect();
            let (name, member) = self.random.one(&members).clone();
            Expression::new(member, &format!("@.{name}"), vec![whole])
        } else if let Some((element, count)) = whole.ty.element() {
            let index = self.index(count, constraints);
            Expression::new(element, "@[@]", vec![whole, index])
        } else {
            return whole;
        };
        self.place(part.runtime().lvalue(), ty, constraints)
    }
}
