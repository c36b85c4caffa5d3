//! Evaluates expressions, for all active work-items.

use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{
    Arena, ArraySize, BinaryOperator, Expression, Handle, Literal, MathFunction, RelationalFunction, Scalar,
    ScalarKind, TypeInner, UnaryOperator,
};
use runtime_kernel::naga;

use super::memory::{Access, Accessor};
use super::scalar::{binary, convert, float_bits, integer, truncate};
use super::{Interpreter, Invalid, math, packing};

/// The target of a pointer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pointer {
    pub(super) memory: usize,
    pub(super) offset: usize,
    /// Whether an index was out of range: a load then returns zeros, and a store does nothing.
    pub(super) lost: bool,
}

/// The values of an expression.
#[derive(Clone, Debug)]
pub(super) enum Values {
    /// `width` words per work-item.
    Words(usize, Vec<u64>),
    /// The same words for all work-items.
    Same(Vec<u64>),
    Pointers(Vec<Pointer>),
}

/// Where the types of expressions are found.
#[derive(Clone, Copy)]
pub(super) enum Types<'a> {
    Module(&'a ModuleInfo),
    Function(&'a FunctionInfo),
}

/// A stack frame.
pub(super) struct Frame<'a> {
    pub(super) expressions: &'a Arena<Expression>,
    types: Types<'a>,
    pub(super) values: Vec<Option<Values>>,
    arguments: Vec<Values>,
    /// The memory of each local variable.
    pub(super) locals: Vec<usize>,
    pub(super) result: Option<Values>,
}

impl<'a> Frame<'a> {
    pub(super) fn new(expressions: &'a Arena<Expression>, types: Types<'a>, arguments: Vec<Values>) -> Self {
        let values = vec![None; expressions.len()];
        Self { expressions, types, values, arguments, locals: Vec::new(), result: None }
    }

    pub(super) fn words(&self, handle: Handle<Expression>, lane: usize) -> Result<&[u64], Invalid> {
        match &self.values[handle.index()] {
            Some(Values::Words(width, words)) => Ok(&words[lane * width..(lane + 1) * width]),
            Some(Values::Same(words)) => Ok(words),
            _ => Err(Invalid::unknown(&format!("value of {:?}", self.expressions[handle]))),
        }
    }

    pub(super) fn word(&self, handle: Handle<Expression>, lane: usize) -> Result<u64, Invalid> {
        self.words(handle, lane)?.first().copied().ok_or(Invalid::unknown("an empty value"))
    }

    pub(super) fn pointer(&self, handle: Handle<Expression>, lane: usize) -> Result<Pointer, Invalid> {
        match &self.values[handle.index()] {
            Some(Values::Pointers(pointers)) => Ok(pointers[lane]),
            _ => Err(Invalid::unknown(&format!("pointer {:?}", self.expressions[handle]))),
        }
    }

    /// The number of uses of an expression.
    pub(super) fn references(&self, handle: Handle<Expression>) -> usize {
        match self.types {
            Types::Module(_) => 0,
            Types::Function(info) => info[handle].ref_count,
        }
    }

    fn is_pointer(&self, handle: Handle<Expression>) -> bool {
        matches!(self.values[handle.index()], Some(Values::Pointers(_)))
    }
}

impl<'a> Interpreter<'a> {
    pub(super) fn type_of<'b>(&self, frame: &Frame<'b>, handle: Handle<Expression>) -> &'b TypeInner
    where
        'a: 'b,
    {
        match frame.types {
            Types::Module(info) => info[handle].inner_with(&self.module.types),
            Types::Function(info) => info[handle].ty.inner_with(&self.module.types),
        }
    }

    fn scalar_of(&self, frame: &Frame<'_>, handle: Handle<Expression>) -> Result<Scalar, Invalid> {
        self.type_of(frame, handle).scalar().ok_or(Invalid::unknown("a scalar"))
    }

    /// Evaluates an expression for the work-items in `active`.
    pub(super) fn evaluate(
        &mut self,
        frame: &mut Frame<'_>,
        handle: Handle<Expression>,
        active: &[u32],
    ) -> Result<(), Invalid> {
        self.steps += active.len() as u64;
        if let Some(column) = self.constant_values(frame, handle)? {
            frame.values[handle.index()] = Some(column);
            return Ok(());
        }
        match &frame.expressions[handle] {
            Expression::Access { base, .. } | Expression::AccessIndex { base, .. }
                if frame.is_pointer(*base) =>
            {
                let mut pointers = match frame.values[handle.index()].take() {
                    Some(Values::Pointers(pointers)) => pointers,
                    _ => vec![Pointer::default(); self.lanes],
                };
                for lane in active.iter().map(|lane| *lane as usize) {
                    pointers[lane] = self.access(frame, handle, lane)?;
                }
                frame.values[handle.index()] = Some(Values::Pointers(pointers));
            }
            _ => {
                let width = self.width(self.type_of(frame, handle))?;
                let mut words = match frame.values[handle.index()].take() {
                    Some(Values::Words(_, words)) => words,
                    _ => vec![0; width * self.lanes],
                };
                for lane in active.iter().map(|lane| *lane as usize) {
                    let out = &mut words[lane * width..(lane + 1) * width];
                    self.value(frame, handle, lane, out)?;
                }
                frame.values[handle.index()] = Some(Values::Words(width, words));
            }
        }
        Ok(())
    }

    /// The values of expressions without a computation.
    fn constant_values(
        &mut self,
        frame: &Frame<'_>,
        handle: Handle<Expression>,
    ) -> Result<Option<Values>, Invalid> {
        let all = |memory| Values::Pointers(vec![Pointer { memory, ..Pointer::default() }; self.lanes]);
        Ok(Some(match &frame.expressions[handle] {
            Expression::Literal(literal) => Values::Same(vec![bits(literal)?]),
            Expression::ZeroValue(ty) => Values::Same(vec![0; self.width(self.inner(*ty))?]),
            Expression::Constant(constant) => {
                Values::Same(self.constant(self.module.constants[*constant].init)?)
            }
            Expression::Override(constant) => {
                Values::Same(self.overrides.get(constant).cloned().ok_or(Invalid::unknown("an override"))?)
            }
            Expression::FunctionArgument(index) => frame.arguments[*index as usize].clone(),
            Expression::GlobalVariable(global) => {
                // `usize::MAX` for variables used only by other entry points.
                all(self.globals.get(global).copied().unwrap_or(usize::MAX))
            }
            Expression::LocalVariable(local) => all(frame.locals[local.index()]),
            _ => return Ok(None),
        }))
    }

    /// A pointer to a part of a pointer's target.
    fn access(&self, frame: &Frame<'_>, handle: Handle<Expression>, lane: usize) -> Result<Pointer, Invalid> {
        let (base, index) = self.base_and_index(frame, handle, lane)?;
        let mut pointer = frame.pointer(base, lane)?;
        let (count, stride) = match self.type_of(frame, base) {
            TypeInner::Pointer { base, .. } => match (self.inner(*base), &frame.expressions[handle]) {
                (TypeInner::Struct { members, .. }, Expression::AccessIndex { index, .. }) => {
                    pointer.offset += self.member(members, *index as usize)?;
                    return Ok(pointer);
                }
                (TypeInner::Array { base, size: ArraySize::Dynamic, .. }, _) => {
                    let stride = self.width(self.inner(*base))?;
                    let words = self.memories[pointer.memory].extent();
                    (words.saturating_sub(pointer.offset) / stride.max(1), stride)
                }
                (inner, _) => self.parts(inner)?,
            },
            TypeInner::ValuePointer { size: Some(size), .. } => (*size as usize, 1),
            _ => return Err(Invalid::unknown("a part of this pointer type")),
        };
        match index {
            Some(index) if index < count => pointer.offset += index * stride,
            _ => pointer.lost = true,
        }
        Ok(pointer)
    }

    /// The number of parts of a value, and the slots of each.
    fn parts(&self, inner: &TypeInner) -> Result<(usize, usize), Invalid> {
        Ok(match inner {
            TypeInner::Vector { size, .. } => (*size as usize, 1),
            TypeInner::Matrix { columns, rows, .. } => (*columns as usize, *rows as usize),
            TypeInner::Array { base, size, .. } => {
                (self.count(*size)?.unwrap_or(0), self.width(self.inner(*base))?)
            }
            _ => return Err(Invalid::unknown("a part of this value type")),
        })
    }

    /// The base and the index of an access; `None` if the index is out of range for any array.
    fn base_and_index(
        &self,
        frame: &Frame<'_>,
        handle: Handle<Expression>,
        lane: usize,
    ) -> Result<(Handle<Expression>, Option<usize>), Invalid> {
        match &frame.expressions[handle] {
            Expression::AccessIndex { base, index } => Ok((*base, Some(*index as usize))),
            Expression::Access { base, index } => {
                let value = integer(self.scalar_of(frame, *index)?, frame.word(*index, lane)?);
                Ok((*base, usize::try_from(value).ok()))
            }
            _ => Err(Invalid::unknown("an access")),
        }
    }

    /// Loads through a pointer.
    pub(super) fn load(&mut self, pointer: Pointer, lane: usize, out: &mut [u64]) -> Result<(), Invalid> {
        if pointer.lost {
            out.fill(0);
            return self.out_of_range();
        }
        let accessor = self.accessor(lane, pointer.memory);
        let memory = &mut self.memories[pointer.memory];
        for (index, out) in out.iter_mut().enumerate() {
            let slot = memory.slot(lane, pointer.offset + index);
            memory.record(slot, accessor, Access::Read)?;
            *out = memory.words[slot];
        }
        Ok(())
    }

    pub(super) fn accessor(&self, lane: usize, memory: usize) -> Accessor {
        let epoch = self.epochs[usize::from(!self.is_workgroup.get(memory).copied().unwrap_or(false))];
        let item = self.group * self.lanes as u32 + lane as u32;
        Accessor { item, group: self.group, epoch }
    }

    fn value(
        &mut self,
        frame: &Frame<'_>,
        handle: Handle<Expression>,
        lane: usize,
        out: &mut [u64],
    ) -> Result<(), Invalid> {
        match &frame.expressions[handle] {
            Expression::Load { pointer } => self.load(frame.pointer(*pointer, lane)?, lane, out)?,
            Expression::Compose { components, .. } => {
                let mut at = 0;
                for component in components {
                    let words = frame.words(*component, lane)?;
                    out[at..at + words.len()].copy_from_slice(words);
                    at += words.len();
                }
            }
            Expression::Splat { value, .. } => out.fill(frame.word(*value, lane)?),
            Expression::Swizzle { vector, pattern, .. } => {
                let words = frame.words(*vector, lane)?;
                out.iter_mut().zip(pattern).for_each(|(out, from)| *out = words[*from as usize]);
            }
            Expression::Access { .. } | Expression::AccessIndex { .. } => {
                self.part(frame, handle, lane, out)?;
            }
            Expression::Select { condition, accept, reject } => {
                let condition = frame.words(*condition, lane)?;
                let (accept, reject) = (frame.words(*accept, lane)?, frame.words(*reject, lane)?);
                for (index, out) in out.iter_mut().enumerate() {
                    let holds = condition[index % condition.len()] != 0;
                    *out = if holds { accept[index] } else { reject[index] };
                }
            }
            Expression::ArrayLength(pointer) => out[0] = self.length(frame, *pointer, lane)?,
            Expression::Relational { fun, argument } => {
                let words = frame.words(*argument, lane)?;
                out[0] = match fun {
                    RelationalFunction::All => u64::from(words.iter().all(|word| *word != 0)),
                    RelationalFunction::Any => u64::from(words.iter().any(|word| *word != 0)),
                    _ => return Err(Invalid::unknown("a relational function")),
                };
            }
            Expression::Unary { op, expr } => {
                let scalar = self.scalar_of(frame, *expr)?;
                for (out, word) in out.iter_mut().zip(frame.words(*expr, lane)?) {
                    *out = unary(*op, scalar, *word)?;
                }
            }
            Expression::As { expr, kind, convert: width } => {
                let from = self.scalar_of(frame, *expr)?;
                let to = Scalar { kind: *kind, width: width.unwrap_or(from.width) };
                for (out, word) in out.iter_mut().zip(frame.words(*expr, lane)?) {
                    *out = convert(from, to, *word, width.is_none())?;
                }
            }
            Expression::Binary { op, left, right } => self.binary(frame, *op, *left, *right, lane, out)?,
            Expression::Math { .. } => self.math(frame, handle, lane, out)?,
            other => return Err(Invalid::unknown(&format!("expression {other:?}"))),
        }
        Ok(())
    }

    /// Extracts a part of a value.
    fn part(
        &self,
        frame: &Frame<'_>,
        handle: Handle<Expression>,
        lane: usize,
        out: &mut [u64],
    ) -> Result<(), Invalid> {
        let (base, index) = self.base_and_index(frame, handle, lane)?;
        let words = frame.words(base, lane)?;
        if let (TypeInner::Struct { members, .. }, Expression::AccessIndex { index, .. }) =
            (self.type_of(frame, base), &frame.expressions[handle])
        {
            let start = self.member(members, *index as usize)?;
            out.copy_from_slice(&words[start..start + out.len()]);
            return Ok(());
        }
        let (count, stride) = self.parts(self.type_of(frame, base))?;
        match index.filter(|index| *index < count) {
            Some(index) => out.copy_from_slice(&words[index * stride..(index + 1) * stride]),
            None => {
                out.fill(0);
                self.out_of_range()?;
            }
        }
        Ok(())
    }

    /// What follows from an access out of range: a read is zero, and a write does nothing.
    pub(super) fn out_of_range(&self) -> Result<(), Invalid> {
        if self.rules.in_range { Err(Invalid::OutOfRange) } else { Ok(()) }
    }

    /// The length of the run-time-sized array behind a pointer.
    fn length(&self, frame: &Frame<'_>, handle: Handle<Expression>, lane: usize) -> Result<u64, Invalid> {
        let pointer = frame.pointer(handle, lane)?;
        let TypeInner::Pointer { base, .. } = self.type_of(frame, handle) else {
            return Err(Invalid::unknown("a length"));
        };
        let TypeInner::Array { base, .. } = self.inner(*base) else {
            return Err(Invalid::unknown("a length"));
        };
        let stride = self.width(self.inner(*base))?.max(1);
        Ok((self.memories[pointer.memory].extent().saturating_sub(pointer.offset) / stride) as u64)
    }

    fn binary(
        &self,
        frame: &Frame<'_>,
        op: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
        lane: usize,
        out: &mut [u64],
    ) -> Result<(), Invalid> {
        let scalar = self.scalar_of(frame, left)?;
        let (x, y) = (frame.words(left, lane)?, frame.words(right, lane)?);
        let shape = |inner: &TypeInner| match inner {
            TypeInner::Matrix { columns, rows, .. } => Some((*columns as usize, *rows as usize)),
            _ => None,
        };
        let (a, b) = (shape(self.type_of(frame, left)), shape(self.type_of(frame, right)));
        if op == BinaryOperator::Multiply && (a.is_some() || b.is_some()) && x.len() > 1 && y.len() > 1 {
            // Columns of the left matrix times columns of the right one.
            let (inner, rows) = a.unwrap_or((x.len(), 1));
            let columns = b.map_or(1, |(columns, _)| columns);
            for column in 0..columns {
                for row in 0..rows {
                    let term = |at: usize| (x[at * rows + row], y[column * inner + at]);
                    out[column * rows + row] = sum(scalar, (0..inner).map(term))?;
                }
            }
            return Ok(());
        }
        for (index, out) in out.iter_mut().enumerate() {
            *out = binary(op, scalar, x[index % x.len()], y[index % y.len()])?;
        }
        Ok(())
    }

    fn math(
        &self,
        frame: &Frame<'_>,
        handle: Handle<Expression>,
        lane: usize,
        out: &mut [u64],
    ) -> Result<(), Invalid> {
        let Expression::Math { fun, arg, arg1, arg2, arg3 } = &frame.expressions[handle] else {
            return Err(Invalid::unknown("a function"));
        };
        let scalar = self.scalar_of(frame, *arg)?;
        let words = |handle: &Option<Handle<Expression>>| {
            handle.map_or(Ok(&[][..]), |handle| frame.words(handle, lane))
        };
        let (x, y, z, w) = (frame.words(*arg, lane)?, words(arg1)?, words(arg2)?, words(arg3)?);
        match fun {
            MathFunction::Dot => {
                out[0] = sum(scalar, x.iter().copied().zip(y.iter().copied()))?;
            }
            MathFunction::Dot4I8Packed | MathFunction::Dot4U8Packed => {
                out[0] = dot_of_bytes(*fun == MathFunction::Dot4I8Packed, x[0], y[0]);
            }
            MathFunction::Cross => {
                for (index, out) in out.iter_mut().enumerate() {
                    let (i, j) = ((index + 1) % 3, (index + 2) % 3);
                    let product = |a: u64, b: u64| binary(BinaryOperator::Multiply, scalar, a, b);
                    let (plus, minus) = (product(x[i], y[j])?, product(x[j], y[i])?);
                    *out = binary(BinaryOperator::Subtract, scalar, plus, minus)?;
                }
            }
            MathFunction::Transpose => {
                let TypeInner::Matrix { columns, rows, .. } = self.type_of(frame, *arg) else {
                    return Err(Invalid::unknown("transpose of this type"));
                };
                let (columns, rows) = (*columns as usize, *rows as usize);
                for (index, out) in out.iter_mut().enumerate() {
                    *out = x[(index % columns) * rows + index / columns];
                }
            }
            _ if packing::packs(*fun) => {
                for (index, out) in out.iter_mut().enumerate() {
                    *out = packing::component(*fun, x, index)?;
                }
            }
            MathFunction::Determinant => out[0] = determinant(scalar, x)?,
            MathFunction::Reflect | MathFunction::Refract | MathFunction::FaceForward => {
                math::of_vectors(*fun, scalar, (x, y, z), out)?;
            }
            MathFunction::Modf | MathFunction::Frexp => {
                let count = x.len();
                for (index, word) in x.iter().enumerate() {
                    [out[index], out[count + index]] = math::parts(*fun, scalar, *word)?;
                }
            }
            _ => {
                for (index, out) in out.iter_mut().enumerate() {
                    let at = |words: &[u64]| words.get(index % words.len().max(1)).copied().unwrap_or(0);
                    *out = math::component(*fun, scalar, &[at(x), at(y), at(z), at(w)])?;
                }
            }
        }
        Ok(())
    }
}

/// The determinant of a square matrix.
fn determinant(scalar: Scalar, x: &[u64]) -> Result<u64, Invalid> {
    let size = x.len().isqrt();
    if size == 1 {
        return Ok(x[0]);
    }
    let mut total = 0;
    for column in 0..size {
        let minor: Vec<u64> =
            (0..x.len()).filter(|at| at / size != column && at % size != 0).map(|at| x[at]).collect();
        let term = binary(BinaryOperator::Multiply, scalar, x[column * size], determinant(scalar, &minor)?)?;
        let op = if column % 2 == 0 { BinaryOperator::Add } else { BinaryOperator::Subtract };
        total = binary(op, scalar, total, term)?;
    }
    Ok(total)
}

/// A sum of products.
fn sum(scalar: Scalar, terms: impl Iterator<Item = (u64, u64)>) -> Result<u64, Invalid> {
    let mut total = 0;
    for (x, y) in terms {
        let product = binary(BinaryOperator::Multiply, scalar, x, y)?;
        total = binary(BinaryOperator::Add, scalar, total, product)?;
    }
    Ok(total)
}

fn unary(op: UnaryOperator, scalar: Scalar, word: u64) -> Result<u64, Invalid> {
    Ok(match (op, scalar.kind) {
        (UnaryOperator::LogicalNot, _) | (UnaryOperator::BitwiseNot, ScalarKind::Bool) => {
            u64::from(word == 0)
        }
        (UnaryOperator::Negate, ScalarKind::Float) => {
            float_bits(scalar, -super::scalar::float(scalar, word))?
        }
        (UnaryOperator::Negate, _) => truncate(scalar, word.wrapping_neg()),
        (UnaryOperator::BitwiseNot, _) => truncate(scalar, !word),
    })
}

fn bits(literal: &Literal) -> Result<u64, Invalid> {
    Ok(match literal {
        Literal::F64(value) => value.to_bits(),
        Literal::F32(value) => u64::from(value.to_bits()),
        Literal::F16(value) => u64::from(value.to_bits()),
        Literal::U32(value) => u64::from(*value),
        Literal::I32(value) => u64::from(*value as u32),
        Literal::U64(value) => *value,
        Literal::I64(value) | Literal::AbstractInt(value) => *value as u64,
        Literal::Bool(value) => u64::from(*value),
        Literal::AbstractFloat(value) => value.to_bits(),
        other => return Err(Invalid::unknown(&format!("literal {other:?}"))),
    })
}

/// `dot4I8Packed` and `dot4U8Packed`.
fn dot_of_bytes(is_signed: bool, x: u64, y: u64) -> u64 {
    let byte = |word: u64, at: u32| {
        let byte = (word >> (8 * at)) as u8;
        if is_signed { i64::from(byte as i8) } else { i64::from(byte) }
    };
    let total: i64 = (0..4).map(|at| byte(x, at) * byte(y, at)).sum();
    u64::from(total as u32)
}
