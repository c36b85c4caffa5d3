//! f16 immediates as halves of u32 words, for SPIR-V: naga writes none itself, and few drivers take 16-bit push constants.
//!
//! The bytes stay where they are: only how the kernel reads them changes.

use naga::{
    AddressSpace, Arena, Block, Expression, Function, GlobalVariable, Handle, MathFunction, Module, Range,
    Scalar, ScalarKind, Span, Statement, StructMember, Type, TypeInner,
};
use runtime_core::{Error, Result};

use crate::inline::{each_operand, each_use, result_of};

/// Where a member of the struct is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A member of its own type.
    Whole(u32),
    /// A half of a word: 0 is the low one.
    Half { word: u32, half: u32 },
}

/// An immediate variable with f16 members.
struct Packed {
    variable: Handle<GlobalVariable>,
    /// The struct as the text has it.
    ty: Handle<Type>,
    places: Vec<Place>,
}

/// The module with its f16 immediates packed; it must be validated anew.
///
/// # Errors
/// `Unsupported` for an expression that no kernel has.
pub(crate) fn pack(module: &Module) -> Result<Module> {
    let mut packed = module.clone();
    for (variable, global) in module.global_variables.iter() {
        if global.space != AddressSpace::Immediate {
            continue;
        }
        let TypeInner::Struct { members, span } = &module.types[global.ty].inner else { continue };
        let word = Type { name: None, inner: TypeInner::Scalar(Scalar::U32) };
        let word = packed.types.insert(word, Span::UNDEFINED);
        let (places, members) = places(module, members, word);
        let inner = TypeInner::Struct { members, span: span.next_multiple_of(4) };
        let ty = packed.types.insert(Type { name: None, inner }, Span::UNDEFINED);
        packed.global_variables.get_mut(variable).ty = ty;
        let packing = Packed { variable, ty: global.ty, places };
        for (_, function) in packed.functions.iter_mut() {
            *function = Rebuild::new(&packing, function).function()?;
        }
        for entry in &mut packed.entry_points {
            entry.function = Rebuild::new(&packing, &entry.function).function()?;
        }
    }
    Ok(packed)
}

fn places(module: &Module, members: &[StructMember], word: Handle<Type>) -> (Vec<Place>, Vec<StructMember>) {
    let mut packed: Vec<StructMember> = Vec::new();
    let place = members.iter().map(|member| {
        let is_half = module.types[member.ty].inner == TypeInner::Scalar(Scalar::F16);
        let offset = if is_half { member.offset & !3 } else { member.offset };
        if packed.last().is_none_or(|last| last.offset != offset) {
            let ty = if is_half { word } else { member.ty };
            packed.push(StructMember { name: member.name.clone(), ty, binding: None, offset });
        }
        let at = u32::try_from(packed.len() - 1).unwrap_or(u32::MAX);
        match is_half {
            true => Place::Half { word: at, half: member.offset / 2 % 2 },
            false => Place::Whole(at),
        }
    });
    (place.collect(), packed)
}

/// Writes a function anew, with other reads of the packed variable.
struct Rebuild<'a> {
    packed: &'a Packed,
    source: &'a Function,
    expressions: Arena<Expression>,
    /// What each expression has become: the first of the new ones, and the one with its value.
    places: Vec<(Handle<Expression>, Handle<Expression>)>,
    span: Span,
}

impl<'a> Rebuild<'a> {
    fn new(packed: &'a Packed, source: &'a Function) -> Self {
        Self { packed, source, expressions: Arena::new(), places: Vec::new(), span: Span::UNDEFINED }
    }

    fn function(mut self) -> Result<Function> {
        for (old, expression) in self.source.expressions.iter() {
            self.span = self.source.expressions.get_span(old);
            let before = self.expressions.len();
            let value = self.expression(expression)?;
            let first = self.expressions.iter().nth(before).map_or(value, |(first, _)| first);
            self.places.push((first, value));
        }
        let mut function = self.source.clone();
        for (_, local) in function.local_variables.iter_mut() {
            local.init.iter_mut().for_each(|init| self.renew(init));
        }
        function.named_expressions = std::mem::take(&mut function.named_expressions)
            .into_iter()
            .map(|(handle, name)| (self.value(handle), name))
            .collect();
        self.block(&mut function.body);
        function.expressions = self.expressions;
        Ok(function)
    }

    fn value(&self, old: Handle<Expression>) -> Handle<Expression> {
        self.places[old.index()].1
    }

    fn renew(&self, handle: &mut Handle<Expression>) {
        *handle = self.value(*handle);
    }

    fn append(&mut self, expression: Expression) -> Handle<Expression> {
        self.expressions.append(expression, self.span)
    }

    fn expression(&mut self, old: &Expression) -> Result<Handle<Expression>> {
        match *old {
            Expression::AccessIndex { base, index } if self.is_variable(base) => {
                let (Place::Whole(index) | Place::Half { word: index, .. }) =
                    self.packed.places[index as usize];
                let base = self.value(base);
                Ok(self.append(Expression::AccessIndex { base, index }))
            }
            Expression::Load { pointer } if self.is_variable(pointer) => Ok(self.whole(pointer)),
            Expression::Load { pointer } => {
                let half = self.half(pointer);
                let pointer = self.value(pointer);
                let value = self.append(Expression::Load { pointer });
                Ok(half.map_or(value, |half| self.unpack(value, half)))
            }
            _ => {
                let mut expression = old.clone();
                match each_operand(&mut expression, |operand| self.renew(operand)) {
                    true => Ok(self.append(expression)),
                    false => Err(Error::unsupported(format!("{old:?} in a compute kernel"))),
                }
            }
        }
    }

    fn is_variable(&self, handle: Handle<Expression>) -> bool {
        matches!(self.source.expressions[handle], Expression::GlobalVariable(global) if global == self.packed.variable)
    }

    /// Which half of a word `pointer` leads to, if it leads to one.
    fn half(&self, pointer: Handle<Expression>) -> Option<u32> {
        match self.source.expressions[pointer] {
            Expression::AccessIndex { base, index } if self.is_variable(base) => {
                match self.packed.places[index as usize] {
                    Place::Half { half, .. } => Some(half),
                    Place::Whole(_) => None,
                }
            }
            _ => None,
        }
    }

    /// The whole struct, read at once.
    fn whole(&mut self, pointer: Handle<Expression>) -> Handle<Expression> {
        let pointer = self.value(pointer);
        let base = self.append(Expression::Load { pointer });
        let mut components = Vec::with_capacity(self.packed.places.len());
        for &place in &self.packed.places {
            components.push(match place {
                Place::Whole(index) => self.append(Expression::AccessIndex { base, index }),
                Place::Half { word, half } => {
                    let word = self.append(Expression::AccessIndex { base, index: word });
                    self.unpack(word, half)
                }
            });
        }
        self.append(Expression::Compose { ty: self.packed.ty, components })
    }

    fn unpack(&mut self, word: Handle<Expression>, half: u32) -> Handle<Expression> {
        let fun = MathFunction::Unpack2x16float;
        let base = self.append(Expression::Math { fun, arg: word, arg1: None, arg2: None, arg3: None });
        let expr = self.append(Expression::AccessIndex { base, index: half });
        self.append(Expression::As { expr, kind: ScalarKind::Float, convert: Some(2) })
    }

    fn block(&self, block: &mut Block) {
        for statement in block.iter_mut() {
            match statement {
                Statement::Emit(range) => {
                    if let Some((first, last)) = range.first_and_last() {
                        *range = Range::new_from_bounds(self.places[first.index()].0, self.value(last));
                    }
                }
                Statement::Block(inner) => self.block(inner),
                Statement::If { condition, accept, reject } => {
                    self.renew(condition);
                    self.block(accept);
                    self.block(reject);
                }
                Statement::Switch { selector, cases } => {
                    self.renew(selector);
                    cases.iter_mut().for_each(|case| self.block(&mut case.body));
                }
                Statement::Loop { body, continuing, break_if } => {
                    self.block(body);
                    self.block(continuing);
                    break_if.iter_mut().for_each(|condition| self.renew(condition));
                }
                simple => {
                    each_use(simple, |operand| self.renew(operand));
                    result_of(simple).into_iter().for_each(|result| self.renew(result));
                }
            }
        }
    }
}
