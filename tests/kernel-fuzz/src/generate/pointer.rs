//! Pointers by name, to variables of functions, private ones and work-group memory.

use super::Author;
use super::expression::Want;
use super::scope::{Around, Mode, Space, Variable};
use crate::tree::{Expression, Statement, Type};

impl Author {
    /// A pointer to a variable or a part of it, and uses of it.
    pub(super) fn pointer(&mut self, around: Around, block: &mut Vec<Statement>) {
        let usable = |author: &Self, variable: &Variable| {
            let is_memory = match variable.space {
                Space::Function | Space::Private => true,
                Space::Shared(at) => matches!(author.modes[at], Mode::Own(_)),
                Space::Value | Space::Tensor => false,
            };
            is_memory && variable.writable && !variable.uniform && author.is_visible(variable)
        };
        let variables: Vec<_> =
            self.scope.iter().filter(|variable| usable(self, variable)).cloned().collect();
        if variables.is_empty() {
            return self.assign(around, block);
        }
        let variable = self.random.one(&variables).clone();
        self.note_use(&variable);
        let place = self.whole(&variable, Want { depth: 1, uniform: false }).place();
        if !matches!(variable.space, Space::Shared(_)) {
            return self.point(place, block);
        }
        // Behind the next barrier another work-item has the element.
        let kept = self.open();
        let mut inside = Vec::new();
        self.point(place, &mut inside);
        let around = around.divergent();
        self.assign(around, &mut inside);
        self.assign(around, &mut inside);
        self.close(kept);
        block.push(Statement(Vec::new()).block("", inside));
    }

    /// Declares a pointer to a place or a part of it, and writes through it.
    fn point(&mut self, whole: Expression, block: &mut Vec<Statement>) {
        let want = Want { depth: 1, uniform: false };
        let mut ty = whole.ty.clone();
        // There are no pointers to a component of a vector.
        while let Some((element, _)) = ty.element().filter(|_| matches!(ty, Type::Array(..))) {
            if self.random.once_in(3) {
                break;
            }
            ty = element;
        }
        let place = self.part_without_components(whole, &ty, want);
        let (name, ty) = (self.name(), place.ty.clone());
        block.push(Statement::new(&format!("let {name} = &@;"), vec![place]));
        let variable = Variable::value(&name, ty.clone(), false);
        self.scope.push(Variable { text: format!("(*{name})"), writable: true, ..variable });
        let value = self.expression(&ty, want);
        let value = self.bounded(value);
        block.push(Statement::new(&format!("*{name} = @;"), vec![value]));
    }

    /// A part by indices of arrays alone.
    fn part_without_components(&mut self, whole: Expression, ty: &Type, want: Want) -> Expression {
        if whole.ty == *ty {
            return whole;
        }
        let Some((element, count)) = whole.ty.element() else { return whole };
        let index = self.index(count, want);
        let part = Expression::new(element, "@[@]", vec![whole, index]).unknown().place();
        self.part_without_components(part, ty, want)
    }
}
