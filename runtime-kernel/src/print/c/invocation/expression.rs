//! Prints expressions.

use naga::{BinaryOperator, Expression, Literal, RelationalFunction, Scalar, Span, TypeInner};
use runtime_core::{Error, Result};

use super::environment::Environment;
use super::operator::Right;
use super::statement::Printer;
use crate::analysis::proof::bounds::Scope;
use crate::analysis::proof::range::{self, Element};
use crate::ir::Value;
use crate::ir::half_bits::{Direction, HalfBits};
use crate::print::c::form::{Form, level};
use crate::print::c::library::vector::Shape;
use crate::print::c::types::COMPONENTS;
use crate::print::c::writer::Writer;

/// The length of most expressions, in bytes.
pub(super) const USUAL_LENGTH: usize = 48;

impl<E: Environment> Printer<'_, '_, E> {
    /// An expression as an initialiser or argument.
    pub(crate) fn value(&mut self, expression: Value) -> Result<String> {
        self.operand(expression, level::ANY)
    }

    /// An expression, parenthesised unless its precedence is at least `at_least`.
    pub(crate) fn operand(&mut self, expression: Value, at_least: u8) -> Result<String> {
        let mut text = String::with_capacity(USUAL_LENGTH);
        self.put(&mut text, expression, at_least)?;
        Ok(text)
    }

    /// Appends an expression, by its name if it has one.
    fn put(&mut self, out: &mut String, expression: Value, at_least: u8) -> Result<()> {
        if let Some(text) = self.environment.known(expression) {
            out.push_str(text);
            return Ok(());
        }
        if let Some(name) = self.plan.value(expression) {
            out.push_str(name);
            return Ok(());
        }
        self.put_unnamed(out, expression, at_least)
    }

    /// Appends the computation of an expression.
    pub(crate) fn put_unnamed(&mut self, out: &mut String, expression: Value, at_least: u8) -> Result<()> {
        let (function, span) = (self.context.function, self.span(expression));
        if let Some(bits) = self.half_bits(expression) {
            let form = self.writer.half_bits_cast(bits.direction)?;
            return self.put_form(out, &form, &[bits.operand], at_least);
        }
        match function.expressions[expression] {
            Expression::Unary { op, expr } => {
                let form = self.writer.unary(op, self.context.inner(expr))?;
                self.put_form(out, &form, &[expr], at_least)
            }
            Expression::Binary { op, left, right } => {
                let known = self.known(op, right);
                let (left_type, right_type) = (self.context.inner(left), self.context.inner(right));
                let form = self.writer.operator(op, left_type, right_type, known)?;
                self.put_form(out, &form, &[left, right], at_least)
            }
            Expression::Math { fun, arg, arg1, arg2, arg3 } => {
                let operands: Vec<_> = [Some(arg), arg1, arg2, arg3].into_iter().flatten().collect();
                let types: Vec<_> = operands.iter().map(|operand| self.context.inner(*operand)).collect();
                let form = self.writer.math(fun, &types, &self.context.info[expression].ty, span)?;
                self.put_form(out, &form, &operands, at_least)
            }
            Expression::As { expr, kind, convert } => {
                let form = self.writer.cast(self.context.inner(expr), kind, convert, span)?;
                self.put_form(out, &form, &[expr], at_least)
            }
            Expression::Select { condition, accept, reject } => {
                self.put_select(out, [condition, accept, reject], at_least)
            }
            Expression::Relational { fun, argument } => self.put_relational(out, fun, argument, at_least),
            Expression::Splat { size, value } => {
                let Some(shape) = Shape::of(self.context.inner(value)) else {
                    return Err(self.unsupported("this vector", expression));
                };
                let form = self.writer.splat(size, shape.scalar)?;
                self.put_form(out, &form, &[value], at_least)
            }
            Expression::Swizzle { size, vector, pattern } => {
                let TypeInner::Vector { size: of, scalar } = *self.context.inner(vector) else {
                    return Err(self.unsupported("this swizzle", expression));
                };
                let form = self.writer.swizzle((of, scalar), &pattern[..size as usize])?;
                self.put_form(out, &form, &[vector], at_least)
            }
            _ => {
                let (text, level) = self.simple(expression)?;
                put_text(out, &text, level, at_least);
                Ok(())
            }
        }
    }

    /// A conversion between a word and two `f16` whose value in between is printed nowhere else.
    fn half_bits(&self, expression: Value) -> Option<HalfBits> {
        let bits = HalfBits::of(self.context.function, expression)?;
        let pair = if bits.direction == Direction::FromWord { expression } else { bits.operand };
        let is_f16 = self.context.inner(pair).scalar() == Some(Scalar::F16);
        let is_named = self.environment.known(bits.between).is_some() || self.plan.is_named(bits.between);
        (is_f16 && !is_named).then_some(bits)
    }

    /// Expressions other than operations on operands, with their precedence.
    fn simple(&mut self, expression: Value) -> Result<(String, u8)> {
        let resolution = &self.context.info[expression].ty;
        if !self.context.is_pointer(expression)
            && let Some(element) = Element::of(self.context.function, expression)
        {
            return self.element_of_value(element, resolution);
        }
        match self.context.function.expressions[expression] {
            Expression::Literal(literal) => self.writer.literal(literal),
            Expression::Constant(constant) => Ok((self.writer.constant(constant)?, level::PRIMARY)),
            Expression::ZeroValue(_) => self.writer.zero(resolution, self.span(expression)),
            Expression::Compose { .. } => Ok((self.compose(expression)?, level::PRIMARY)),
            Expression::Access { .. }
            | Expression::AccessIndex { .. }
            | Expression::GlobalVariable(_)
            | Expression::LocalVariable(_) => self.address(expression),
            Expression::FunctionArgument(index) => Ok((self.plan.argument(index).to_owned(), level::PRIMARY)),
            Expression::Load { pointer } => match self.context.function.expressions[pointer] {
                Expression::LocalVariable(variable) if self.flags.contains_key(&variable) => {
                    Ok(self.flags[&variable].clone())
                }
                _ => self.load(pointer, resolution),
            },
            Expression::ArrayLength(array) => match range::root(self.context, array) {
                Some(variable) => Ok((self.writer.names.length(variable).to_owned(), level::PRIMARY)),
                None => Err(self.unsupported("the length of this array", expression)),
            },
            Expression::CooperativeLoad { data, .. } => {
                Ok((self.cooperative_load(expression, data)?, level::PRIMARY))
            }
            Expression::CooperativeMultiplyAdd { a, b, c } => {
                Ok((self.cooperative_multiply_add([a, b, c])?, level::PRIMARY))
            }
            _ => Err(self.unsupported("this kind of expression", expression)),
        }
    }

    /// A pointer as a function argument.
    fn address(&mut self, pointer: Value) -> Result<(String, u8)> {
        let outer = std::mem::replace(&mut self.addressing, true);
        let place = self.place(pointer);
        self.addressing = outer;
        let place = place?;
        if place.component.is_some() || !place.conditions.is_empty() {
            return Err(self.unsupported("a pointer to a component, as an argument", pointer));
        }
        Ok((place.address(), level::UNARY))
    }

    /// Appends an operation on operands.
    fn put_form(&mut self, out: &mut String, form: &Form, operands: &[Value], at_least: u8) -> Result<()> {
        if *form == Form::Same {
            return self.put(out, operands[0], at_least);
        }
        let open = form.level(0) < at_least;
        out.push_str(if open { "(" } else { "" });
        match form {
            Form::Prefix(sign) => out.push_str(sign),
            Form::Call(name) => out.extend([name, "("]),
            Form::Same | Form::Infix(_) => {}
        }
        for (index, operand) in operands.iter().enumerate() {
            match form {
                Form::Infix(infix) if index > 0 => out.extend([" ", infix.sign, " "]),
                _ if index > 0 => out.push_str(", "),
                _ => {}
            }
            self.put(out, *operand, form.operand_level(index))?;
        }
        out.push_str(if matches!(form, Form::Call(_)) { ")" } else { "" });
        out.push_str(if open { ")" } else { "" });
        Ok(())
    }

    fn put_select(
        &mut self,
        out: &mut String,
        [condition, accept, reject]: [Value; 3],
        at_least: u8,
    ) -> Result<()> {
        if let Some(Shape { size: Some(size), .. }) = Shape::of(self.context.inner(condition)) {
            let Some(shape) = Shape::of(self.context.inner(accept)) else {
                return Err(self.unsupported("this selection", condition));
            };
            let shape = Shape { size: Some(size), ..shape };
            let form = self.writer.choice(shape)?;
            return self.put_form(out, &form, &[condition, accept, reject], at_least);
        }
        let open = level::CONDITION < at_least;
        out.push_str(if open { "(" } else { "" });
        self.put(out, condition, level::OR)?;
        out.push_str(" ? ");
        self.put(out, accept, level::OR)?;
        out.push_str(" : ");
        self.put(out, reject, level::OR)?;
        out.push_str(if open { ")" } else { "" });
        Ok(())
    }

    fn put_relational(
        &mut self,
        out: &mut String,
        function: RelationalFunction,
        argument: Value,
        at_least: u8,
    ) -> Result<()> {
        let word = match function {
            RelationalFunction::All => "all",
            RelationalFunction::Any => "any",
            RelationalFunction::IsNan | RelationalFunction::IsInf => {
                return Err(self.unsupported("isNan or isInf", argument));
            }
        };
        let form = match Shape::of(self.context.inner(argument)) {
            Some(Shape { size: Some(size), .. }) => self.writer.folded(word, size)?,
            _ => Form::Same,
        };
        self.put_form(out, &form, &[argument], at_least)
    }

    /// A composite; vectors inside a vector constructor are expanded into components.
    fn compose(&mut self, expression: Value) -> Result<String> {
        let Expression::Compose { ty, ref components } = self.context.function.expressions[expression] else {
            return Err(self.unsupported("this kind of expression", expression));
        };
        let vector = matches!(self.context.module.types[ty].inner, TypeInner::Vector { .. });
        let mut values = Vec::with_capacity(components.len());
        for component in components {
            match *self.context.inner(*component) {
                TypeInner::Vector { size, .. } if vector => {
                    let part = self.operand(*component, level::PRIMARY)?;
                    values.extend(COMPONENTS[..size as usize].iter().map(|name| format!("{part}.{name}")));
                }
                _ => values.push(self.operand(*component, level::ANY)?),
            }
        }
        let type_name = self.writer.type_name(ty)?;
        let parts = self.writer.composed(ty, values)?;
        Ok(self.writer.dialect.compound(&type_name, &parts))
    }

    /// What is known about the right operand of a division or shift.
    fn known(&self, operator: BinaryOperator, right: Value) -> Right {
        match operator {
            BinaryOperator::Divide | BinaryOperator::Modulo => {
                let literal = self.literal_behind(right);
                let divides = match literal {
                    Some(Literal::I32(value)) => value != 0 && value != -1,
                    Some(Literal::I64(value)) => value != 0 && value != -1,
                    Some(Literal::U32(value)) => value != 0,
                    Some(Literal::U64(value)) => value != 0,
                    _ => false,
                };
                Right { divides, shifts: false }
            }
            BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight => {
                let ahead = self.environment.is_ahead(right);
                let scope = if ahead { Scope::default() } else { self.context.bounds.scope(right) };
                let bits = range::upper(self.context, scope, right, 0);
                Right { divides: false, shifts: bits.is_some_and(|bits| bits < 32) }
            }
            _ => Right::default(),
        }
    }

    fn literal_behind(&self, expression: Value) -> Option<Literal> {
        let module = self.context.module;
        match self.context.function.expressions[expression] {
            Expression::Literal(literal) => Some(literal),
            Expression::Constant(constant) => {
                match module.global_expressions[module.constants[constant].init] {
                    Expression::Literal(literal) => Some(literal),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The source location of an expression.
    pub(crate) fn span(&self, expression: Value) -> Span {
        self.context.function.expressions.get_span(expression)
    }

    /// The error for an expression that this language cannot express.
    pub(crate) fn unsupported(&self, what: &str, expression: Value) -> Error {
        self.writer.unsupported(what, self.span(expression))
    }
}

/// Appends a text, parenthesised unless its precedence is at least `at_least`.
fn put_text(out: &mut String, text: &str, level: u8, at_least: u8) {
    if level < at_least {
        out.extend(["(", text, ")"]);
    } else {
        out.push_str(text);
    }
}

impl Writer<'_> {
    /// Component-wise `select` with a vector of booleans.
    fn choice(&mut self, shape: Shape) -> Result<Form> {
        let define = |writer: &mut Self, name: &str| {
            let (vector, condition) = (writer.shape(shape)?, writer.shape(shape.with(Scalar::BOOL))?);
            let size = shape.size.map_or(0, |size| size as usize);
            let values: Vec<_> =
                COMPONENTS[..size].iter().map(|part| format!("a.{part} ? b.{part} : c.{part}")).collect();
            let value = writer.dialect.made_of(&vector, &values);
            Ok(format!("{vector} {name}({condition} a, {vector} b, {vector} c) {{ return {value}; }}"))
        };
        self.library(format!("{}_select", shape.name()), define).map(Form::call)
    }
}
