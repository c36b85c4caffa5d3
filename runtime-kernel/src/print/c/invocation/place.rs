//! Access chains: the place in memory, and the conditions under which it is in range.

use naga::proc::TypeResolution;
use naga::{AddressSpace, ArraySize, Expression, Handle, Scalar, Span, Type, TypeInner, VectorSize};
use runtime_core::Result;

use super::bounds_checks::{self, Checked};
use super::environment::Environment;
use super::statement::Printer;
use crate::analysis::proof::range::{self, Element};
use crate::ir::Value;
use crate::print::c::form::level;
use crate::print::c::library::vector::Shape;
use crate::print::c::library::vector_moves::Direction;
use crate::print::c::types::COMPONENTS;
use crate::program::Dialect;

/// A place in memory.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// An lvalue, or a pointer to one.
    text: String,
    pointer: bool,
    /// The conditions under which it is in range.
    pub(crate) conditions: Vec<String>,
    /// The component of the vector at this place, if its index is known only at run time.
    pub(crate) component: Option<Component>,
}

/// A component of a vector.
#[derive(Clone, Debug)]
pub(crate) struct Component {
    pub(crate) index: String,
    pub(crate) size: VectorSize,
    pub(crate) scalar: Scalar,
}

impl Place {
    /// The lvalue; for a component, that of the vector.
    pub(crate) fn lvalue(&self) -> String {
        if self.pointer { ["*", &self.text].concat() } else { self.text.clone() }
    }

    /// The same, from a place that is no longer needed.
    fn into_lvalue(mut self) -> String {
        if self.pointer {
            self.text.insert(0, '*');
        }
        self.text
    }

    /// A pointer to it.
    pub(crate) fn address(&self) -> String {
        if self.pointer { self.text.clone() } else { ["&", &self.text].concat() }
    }

    /// The precedence of the lvalue.
    pub(crate) const fn level(&self) -> u8 {
        if self.pointer { level::UNARY } else { level::PRIMARY }
    }

    /// The conjunction of all conditions.
    pub(crate) fn condition(&self) -> Option<String> {
        match &self.conditions[..] {
            [] => None,
            [condition] => Some(condition.clone()),
            several => {
                let tight = several.iter().map(|condition| match condition.contains("||") {
                    true => format!("({condition})"),
                    false => condition.clone(),
                });
                Some(tight.collect::<Vec<_>>().join(" && "))
            }
        }
    }

    fn member(&mut self, name: &str) {
        self.text.push_str(if self.pointer { "->" } else { "." });
        self.text.push_str(name);
        self.pointer = false;
    }

    fn element(&mut self, index: &str) {
        self.text.extend(["[", index, "]"]);
        self.pointer = false;
    }
}

impl<E: Environment> Printer<'_, '_, E> {
    /// The place that a pointer points to.
    pub(crate) fn place(&mut self, pointer: Value) -> Result<Place> {
        if let Some(element) = Element::of(self.context.function, pointer) {
            return self.accessed(element);
        }
        let home = match self.context.function.expressions[pointer] {
            Expression::LocalVariable(variable) => self.environment.local(&self.plan, variable),
            Expression::GlobalVariable(variable) => self.environment.global(self.writer, variable),
            Expression::FunctionArgument(index) => {
                super::environment::VariableRef { text: self.plan.argument(index).into(), pointer: true }
            }
            _ => return Err(self.unsupported("this kind of pointer", pointer)),
        };
        let (text, pointer) = (home.text.into_owned(), home.pointer);
        Ok(Place { text, pointer, conditions: Vec::new(), component: None })
    }

    fn accessed(&mut self, element: Element) -> Result<Place> {
        let Element { access, base, index, known } = element;
        if let Some(text) = self.environment.redirected(access) {
            let text = text.to_owned();
            return Ok(Place { text, pointer: false, conditions: Vec::new(), component: None });
        }
        let mut place = self.place(base)?;
        let pointee = self.context.pointee(base);
        if let TypeInner::Struct { .. } = pointee {
            let TypeInner::Pointer { base: structure, .. } = *self.context.inner(base) else {
                return Err(self.unsupported("this kind of pointer", base));
            };
            place.member(self.writer.names.member(structure, known));
            return Ok(place);
        }
        if let Some(Shape { scalar, size: Some(size) }) = Shape::of(pointee) {
            match index.map_or(Some(u64::from(known)), |index| self.constant_index(index)) {
                Some(known) if known < size as u64 => place.member(component_name(known)),
                _ => {
                    let index = index
                        .map_or_else(|| Ok(known.to_string()), |index| self.component_index(index, size))?;
                    place.component = Some(Component { index, size, scalar });
                }
            }
            return Ok(place);
        }
        if let Some(index) = self.environment.proven(access).map(str::to_owned) {
            let index = self.asserted(element, index)?;
            self.index(&mut place, pointee, &index)?;
            return Ok(place);
        }
        let conditions = place.conditions.len();
        let index = match (self.check(&mut place, element)?, index) {
            (_, None) => known.to_string(),
            (Checked::AsUnsigned, Some(index)) => ["(u32)", &self.operand(index, level::UNARY)?].concat(),
            (Checked::AsItIs, Some(index)) => self.index_text(access, index)?,
        };
        let index = if bounds_checks::is_checked(&place.conditions[conditions..]) {
            index
        } else {
            self.asserted(element, index)?
        };
        let index = match place.conditions.pop_if(|_| self.addressing) {
            // A pointer must point somewhere: to the first element if the index is out of range.
            Some(condition) => format!("{condition} ? {index} : 0"),
            None => index,
        };
        self.index(&mut place, pointee, &index)?;
        Ok(place)
    }

    /// The value of a constant index.
    fn constant_index(&self, index: Value) -> Option<u64> {
        range::constant_of(self.context, index)
    }

    /// The index of a vector component, for functions that take a `u32`: a 64-bit index out of range becomes
    /// `size`.
    fn component_index(&mut self, index: Value, size: VectorSize) -> Result<String> {
        if self.context.inner(index).scalar().is_none_or(|scalar| scalar.width <= 4) {
            return self.operand(index, level::ADD);
        }
        self.writer.scalar(Scalar::U32)?;
        let (size, checked) = (size as u8, self.unsigned(index)?);
        Ok(format!("({checked} < {size}u ? (u32){} : {size}u)", self.operand(index, level::UNARY)?))
    }

    pub(super) fn index(&self, place: &mut Place, indexed: &TypeInner, index: &str) -> Result<()> {
        match *indexed {
            TypeInner::Matrix { rows, .. } => {
                place.member("c");
                place.element(index);
                if rows == VectorSize::Tri {
                    place.member("value");
                }
            }
            TypeInner::Array { base, size, stride } => {
                if !matches!(size, ArraySize::Dynamic) {
                    place.member("at");
                }
                place.element(index);
                if self.writer.is_padded(base, stride) {
                    place.member("value");
                }
            }
            _ => return Err(self.writer.unsupported("this kind of index", Span::UNDEFINED)),
        }
        Ok(())
    }

    /// The value that a load of the place reads, with its precedence.
    pub(crate) fn load(&mut self, pointer: Value, result: &TypeResolution) -> Result<(String, u8)> {
        let place = self.place(pointer)?;
        let condition = place.condition();
        if let (Some(condition), None) = (&condition, &place.component)
            && let Some(load) = self.conditional_vector_load(pointer)?
        {
            return Ok((format!("{load}({}, {condition})", place.address()), level::PRIMARY));
        }
        let (value, level) = match &place.component {
            Some(component) => {
                let form = self.writer.component(component.size, component.scalar)?;
                (form.join(&[place.lvalue(), component.index.clone()]), level::PRIMARY)
            }
            None if matches!(self.context.pointee(pointer), TypeInner::Atomic(_)) => {
                self.atomic_load(&place, pointer)?
            }
            None => match self.vector_move(Direction::Load, pointer)? {
                Some(load) => (format!("{load}({})", place.address()), level::PRIMARY),
                None => {
                    let level = place.level();
                    (place.into_lvalue(), level)
                }
            },
        };
        match condition {
            Some(condition) => {
                let zero = self.writer.zero(result, Span::UNDEFINED)?.0;
                Ok(([&condition, " ? ", &value, " : ", &zero].concat(), level::CONDITION))
            }
            None => Ok((value, level)),
        }
    }

    /// The statements that store a value in the place.
    pub(crate) fn store(&mut self, pointer: Value, value: Value) -> Result<()> {
        let place = self.place(pointer)?;
        if let Some(component) = &place.component {
            return self.store_component(&place, component, pointer, value);
        }
        let text = self.operand(value, level::ANY)?;
        let (function, value) = match self.storing(pointer)? {
            Some(function) => (Some(function), self.with_name_for_literal(value, text)?),
            None => (None, text),
        };
        let guard = match place.condition() {
            Some(condition) => ["if (", &condition, ") "].concat(),
            None => String::new(),
        };
        if matches!(self.context.pointee(pointer), TypeInner::Atomic(_)) {
            let store = self.atomic_store(&place, pointer, &value)?;
            self.lines.line(&[&guard[..], &store]);
        } else if let Some(store) = function {
            self.lines.line(&[&guard[..], &store, "(", &place.address(), ", ", &value, ");"]);
        } else {
            self.lines.line(&[&guard[..], &place.into_lvalue(), " = ", &value, ";"]);
        }
        Ok(())
    }

    /// The function that stores a value, where an assignment does not suffice: vectors as one word, in tensors without padding.
    fn storing(&mut self, pointer: Value) -> Result<Option<String>> {
        if let Some(store) = self.vector_move(Direction::Store, pointer)? {
            return Ok(Some(store));
        }
        match *self.context.inner(pointer) {
            TypeInner::Pointer { base, space: AddressSpace::Storage { .. } } => {
                self.writer.padded_store(base)
            }
            _ => Ok(None),
        }
    }

    /// A private vector is rewritten as a whole; in shared memory only the component may be written.
    fn store_component(
        &mut self,
        place: &Place,
        component: &Component,
        pointer: Value,
        value: Value,
    ) -> Result<()> {
        let value = self.operand(value, level::ANY)?;
        let condition = place.condition();
        let space = self.context.inner(pointer).pointer_space();
        if matches!(space, Some(AddressSpace::Function | AddressSpace::Private)) {
            let form = self.writer.replacement(component.size, component.scalar)?;
            let vector = place.lvalue();
            let value = form.join(&[vector.clone(), component.index.clone(), value]);
            let guard = condition.map(|condition| format!("if ({condition}) ")).unwrap_or_default();
            self.lines.line(&[&guard, &vector, " = ", &value, ";"]);
            return Ok(());
        }
        let mut chain = String::new();
        for (number, name) in COMPONENTS[..component.size as usize].iter().enumerate() {
            let mut member = place.clone();
            member.member(name);
            let word = if number == 0 { "if" } else { " else if" };
            let index = &component.index;
            chain.push_str(&format!("{word} ({index} == {number}) {} = {value};", member.lvalue()));
        }
        match condition {
            Some(condition) => {
                self.lines.open(&["if (", &condition, ") {"]);
                self.lines.line(&chain);
                self.lines.close("}");
            }
            None => self.lines.line(&chain),
        }
        Ok(())
    }

    /// An element of a value rather than of memory.
    pub(crate) fn element_of_value(
        &mut self,
        element: Element,
        result: &TypeResolution,
    ) -> Result<(String, u8)> {
        let Element { base, index, known, .. } = element;
        if let Expression::ZeroValue(_) = self.context.function.expressions[base] {
            return self.writer.zero(result, self.span(base));
        }
        let inner = self.context.inner(base);
        if let (Some(Shape { scalar, size: Some(size) }), Some(index)) = (Shape::of(inner), index) {
            let Some(known) = self.constant_index(index).filter(|known| *known < size as u64) else {
                let form = self.writer.component(size, scalar)?;
                let operands = [self.operand(base, level::ANY)?, self.component_index(index, size)?];
                return Ok((form.join(&operands), level::PRIMARY));
            };
            return Ok((
                format!("{}.{}", self.operand(base, level::PRIMARY)?, component_name(known)),
                level::PRIMARY,
            ));
        }
        let text = self.operand(base, level::PRIMARY)?;
        let mut place = Place { text, pointer: false, conditions: Vec::new(), component: None };
        match inner {
            TypeInner::Struct { .. } => {
                let structure = self.structure_of(base)?;
                place.member(self.writer.names.member(structure, known));
            }
            TypeInner::Vector { .. } => place.member(component_name(u64::from(known))),
            _ => {
                self.check(&mut place, element)?;
                let index =
                    index.map_or_else(|| Ok(known.to_string()), |index| self.operand(index, level::ANY))?;
                let index = if bounds_checks::is_checked(&place.conditions) {
                    index
                } else {
                    self.asserted(element, index)?
                };
                self.index(&mut place, inner, &index)?;
            }
        }
        match place.condition() {
            Some(condition) => {
                let zero = self.writer.zero(result, Span::UNDEFINED)?.0;
                Ok((format!("{condition} ? {} : {zero}", place.lvalue()), level::CONDITION))
            }
            None => Ok((place.into_lvalue(), level::PRIMARY)),
        }
    }

    fn structure_of(&self, expression: Value) -> Result<Handle<Type>> {
        let handle = self.context.info[expression].ty.handle();
        handle.ok_or_else(|| self.unsupported("a structure without a type", expression))
    }

    /// The value of a place that holds an atomic.
    fn atomic_load(&mut self, place: &Place, pointer: Value) -> Result<(String, u8)> {
        Ok(match self.writer.dialect {
            Dialect::Host => {
                (format!("__atomic_load_n({}, __ATOMIC_RELAXED)", place.address()), level::PRIMARY)
            }
            _ => (format!("*{}", self.volatile(place, pointer)?), level::UNARY),
        })
    }

    fn atomic_store(&mut self, place: &Place, pointer: Value, value: &str) -> Result<String> {
        Ok(match self.writer.dialect {
            Dialect::Host => format!("__atomic_store_n({}, {value}, __ATOMIC_RELAXED);", place.address()),
            _ => format!("*{} = {value};", self.volatile(place, pointer)?),
        })
    }

    /// A pointer whose accesses the compiler must not merge or omit.
    fn volatile(&mut self, place: &Place, pointer: Value) -> Result<String> {
        let space = self.context.inner(pointer).pointer_space();
        let space = space.map_or("", |space| self.writer.dialect.space(space));
        let scalar = Shape::of(self.context.pointee(pointer)).map_or(Scalar::U32, |shape| shape.scalar);
        Ok(format!("(volatile {space}{} *){}", self.writer.scalar(scalar)?, place.address()))
    }
}

fn component_name(index: u64) -> &'static str {
    usize::try_from(index).ok().and_then(|index| COMPONENTS.get(index)).copied().unwrap_or("x")
}
