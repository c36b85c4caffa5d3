//! Random expressions.

use super::{Base, Group, Input, Operation, Tree, Type};
use crate::random::Random;

/// What random expressions are made of.
#[derive(Debug)]
pub struct Generator<'a> {
    /// The variables.
    pub inputs: &'a [Input],
    /// The variables that may be read.
    pub readable: &'a [usize],
    /// Whether to use vectors and floats, or only scalar integers and booleans.
    pub rich: bool,
}

const BASES: [Base; 4] = [Base::I32, Base::U32, Base::Bool, Base::F32];

const INTEGERS: &[Operation] = &[
    Operation::Add,
    Operation::Subtract,
    Operation::Multiply,
    Operation::Divide,
    Operation::Remainder,
    Operation::And,
    Operation::Or,
    Operation::Xor,
    Operation::ShiftLeft,
    Operation::ShiftRight,
    Operation::Complement,
    Operation::Min,
    Operation::Max,
    Operation::Clamp,
    Operation::Abs,
    Operation::CountOneBits,
    Operation::CountLeadingZeros,
    Operation::CountTrailingZeros,
    Operation::FirstLeadingBit,
    Operation::FirstTrailingBit,
    Operation::ReverseBits,
    Operation::ExtractBits,
    Operation::InsertBits,
];
const SIGNED: &[Operation] = &[Operation::Negate, Operation::Sign];
const BOOLEANS: &[Operation] = &[Operation::Not, Operation::And, Operation::Or];
const FLOATS: &[Operation] = &[
    Operation::Add,
    Operation::Subtract,
    Operation::Multiply,
    Operation::Negate,
    Operation::Min,
    Operation::Max,
    Operation::ClampFloat,
    Operation::Abs,
    Operation::Sign,
    Operation::Floor,
    Operation::Ceil,
    Operation::Round,
    Operation::Trunc,
    Operation::Fract,
];
const COMPARISONS: &[Operation] = &[
    Operation::Equal,
    Operation::Unequal,
    Operation::Less,
    Operation::LessEqual,
    Operation::Greater,
    Operation::GreaterEqual,
];

/// A random expression of a random type.
#[must_use]
pub fn tree(random: &mut Random, generator: &Generator<'_>, depth: usize) -> Tree {
    let width = 1 + random.below(4);
    let ty = Type::new(*random.one(&BASES), width);
    generator.tree(random, ty, depth)
}

impl Generator<'_> {
    /// A random expression of a type, with at most `depth` levels.
    #[must_use]
    pub fn tree(&self, random: &mut Random, ty: Type, depth: usize) -> Tree {
        if depth == 0 || random.once_in(12) {
            return self.leaf(random, ty);
        }
        let mut tree = match random.below(if self.rich { 5 } else { 4 }) {
            0 | 1 => self.plain(random, ty, depth - 1),
            2 => self.select(random, ty, depth - 1),
            3 => self.converted(random, ty, depth - 1),
            _ => self.shaped(random, ty, depth - 1),
        };
        self.make_readable(random, &mut tree);
        tree
    }

    /// A variable if there is one, otherwise a literal.
    fn leaf(&self, random: &mut Random, ty: Type) -> Tree {
        let fitting: Vec<_> =
            self.readable.iter().copied().filter(|index| self.inputs[*index].ty == ty).collect();
        if fitting.is_empty() && ty.width > 1 {
            let scalar = self.leaf(random, Type::scalar(ty.base));
            return Tree { ty, operation: Operation::Splat, arguments: vec![scalar] };
        }
        if fitting.is_empty() || (ty.width == 1 && random.once_in(5)) {
            return Tree::literal([literal(random, ty.base); 4], ty);
        }
        Tree::input(*random.one(&fitting), ty)
    }

    /// An operation whose result and operands have this type.
    fn plain(&self, random: &mut Random, ty: Type, depth: usize) -> Tree {
        let operation = match ty.base {
            Base::I32 if random.once_in(8) => random.one(SIGNED),
            Base::I32 | Base::U32 => random.one(INTEGERS),
            Base::F32 => random.one(FLOATS),
            Base::Bool if random.once_in(2) => return self.comparison(random, ty, depth),
            Base::Bool if ty.width == 1 && random.once_in(3) => {
                random.one(&[Operation::Both, Operation::Either])
            }
            Base::Bool => random.one(BOOLEANS),
        }
        .clone();
        let mut argument = |ty: Type| self.tree(random, ty, depth);
        let unsigned = Type::new(Base::U32, ty.width);
        let arguments = match operation.group() {
            Group::Shift => vec![argument(ty), argument(unsigned)],
            Group::Bits(n) => {
                let scalar = Type::scalar(Base::U32);
                (0..n + 2).map(|index| argument(if index < n { ty } else { scalar })).collect()
            }
            Group::Mixed => {
                let (mut left, mut right) = (ty, ty);
                let multiplied = ty.base == Base::F32 && operation == Operation::Multiply;
                if ty.width > 1 && !multiplied {
                    match random.below(4) {
                        0 => left.width = 1,
                        1 => right.width = 1,
                        _ => {}
                    }
                }
                vec![self.tree(random, left, depth), self.tree(random, right, depth)]
            }
            Group::Same(n) => (0..n).map(|_| argument(ty)).collect(),
            Group::Special => unreachable!("not in a list"),
        };
        Tree { ty, operation, arguments }
    }

    fn comparison(&self, random: &mut Random, ty: Type, depth: usize) -> Tree {
        let base = *random.one(if self.rich { &BASES } else { &BASES[..3] });
        let operations = if base == Base::Bool { &COMPARISONS[..2] } else { COMPARISONS };
        let operation = random.one(operations).clone();
        let operands = Type::new(base, ty.width);
        let arguments = vec![self.tree(random, operands, depth), self.tree(random, operands, depth)];
        Tree { ty, operation, arguments }
    }

    fn select(&self, random: &mut Random, ty: Type, depth: usize) -> Tree {
        let width = if random.once_in(2) { 1 } else { ty.width };
        let arguments = vec![
            self.tree(random, ty, depth),
            self.tree(random, ty, depth),
            self.tree(random, Type::new(Base::Bool, width), depth),
        ];
        Tree { ty, operation: Operation::Select, arguments }
    }

    fn converted(&self, random: &mut Random, ty: Type, depth: usize) -> Tree {
        let base = match *random.one(if self.rich { &BASES } else { &BASES[..3] }) {
            // Nothing to convert; a float is not truncated to its low byte.
            Base::F32 if ty.base == Base::F32 => Base::I32,
            base => base,
        };
        let (from, integers) = (Type::new(base, ty.width), [Base::I32, Base::U32]);
        let argument = self.tree(random, from, depth);
        let both = integers.contains(&base) && integers.contains(&ty.base);
        let operation = if both && random.once_in(2) { Operation::Bitcast } else { Operation::Convert };
        Tree { ty, operation, arguments: vec![argument] }
    }

    /// Vectors decomposed and composed, and functions from vectors to scalars.
    fn shaped(&self, random: &mut Random, ty: Type, depth: usize) -> Tree {
        let wide = |random: &mut Random, base| Type::new(base, 2 + random.below(3));
        let vector = |operation, arguments| Tree { ty, operation, arguments };
        match (ty.base, ty.width, random.below(4)) {
            (_, 1, 0) => {
                let from = wide(random, ty.base);
                let index = self.tree(random, Type::scalar(Base::U32), depth);
                vector(Operation::Index, vec![self.tree(random, from, depth), index])
            }
            (Base::Bool, 1, _) => {
                let operation = random.one(&[Operation::All, Operation::Any]).clone();
                let from = wide(random, Base::Bool);
                vector(operation, vec![self.tree(random, from, depth)])
            }
            (Base::U32 | Base::I32, 1, 1) => self.packed(random, ty, depth),
            (_, 1, 2) => {
                let from = wide(random, ty.base);
                vector(Operation::Dot, vec![self.tree(random, from, depth), self.tree(random, from, depth)])
            }
            (Base::U32, 4, 1) => {
                vector(Operation::UnpackU8, vec![self.tree(random, Type::scalar(Base::U32), depth)])
            }
            (Base::I32, 4, 1) => {
                vector(Operation::UnpackI8, vec![self.tree(random, Type::scalar(Base::U32), depth)])
            }
            (_, width, 2 | 3) if width > 1 => self.constructed(random, ty, depth),
            (_, width, _) => {
                let from = wide(random, ty.base);
                let components = (0..width).map(|_| random.below(from.width)).collect();
                vector(Operation::Swizzle(components), vec![self.tree(random, from, depth)])
            }
        }
    }

    fn packed(&self, random: &mut Random, ty: Type, depth: usize) -> Tree {
        let (word, signed) = (Type::scalar(Base::U32), ty.base == Base::I32);
        if signed || random.once_in(3) {
            let operation = if signed { Operation::DotI8 } else { Operation::DotU8 };
            let arguments = vec![self.tree(random, word, depth), self.tree(random, word, depth)];
            return Tree { ty, operation, arguments };
        }
        let (operation, base) = random
            .one(&[
                (Operation::PackU8, Base::U32),
                (Operation::PackU8Clamp, Base::U32),
                (Operation::PackI8, Base::I32),
                (Operation::PackI8Clamp, Base::I32),
            ])
            .clone();
        Tree { ty, operation, arguments: vec![self.tree(random, Type::new(base, 4), depth)] }
    }

    fn constructed(&self, random: &mut Random, ty: Type, depth: usize) -> Tree {
        if random.once_in(4) {
            let scalar = self.tree(random, Type::scalar(ty.base), depth);
            return Tree { ty, operation: Operation::Splat, arguments: vec![scalar] };
        }
        let (mut left, mut arguments) = (ty.width, Vec::new());
        while left > 0 {
            let width = 1 + random.below(left.min(ty.width - 1));
            arguments.push(self.tree(random, Type::new(ty.base, width), depth));
            left -= width;
        }
        Tree { ty, operation: Operation::Construct, arguments }
    }

    /// Prevents naga from evaluating a node, which it rejects on overflow, and from seeing a constant divisor or
    /// shift that it rejects.
    fn make_readable(&self, random: &mut Random, tree: &mut Tree) {
        match tree.operation {
            Operation::Divide | Operation::Remainder | Operation::ShiftLeft | Operation::ShiftRight => {
                small(random, &mut tree.arguments[1]);
            }
            Operation::Clamp | Operation::ExtractBits | Operation::InsertBits => {
                for argument in &mut tree.arguments {
                    if argument.is_constant() {
                        *argument = self.variable(random, argument.ty);
                    }
                }
            }
            _ => {}
        }
        if tree.is_constant() {
            tree.arguments[0] = self.variable(random, tree.arguments[0].ty);
        }
    }

    /// An expression of a type that reads a variable.
    fn variable(&self, random: &mut Random, ty: Type) -> Tree {
        let fits = |index: &usize| self.inputs[*index].ty.base == ty.base;
        let fitting: Vec<_> = self.readable.iter().copied().filter(fits).collect();
        if let Some(same) = fitting.iter().find(|index| self.inputs[**index].ty == ty) {
            return Tree::input(*same, ty);
        }
        let any = if fitting.is_empty() { *random.one(self.readable) } else { fitting[0] };
        let (from, scalar) = (self.inputs[any].ty, Type::scalar(ty.base));
        let mut tree = Tree::input(any, from);
        if from.width > 1 {
            let ty = Type::scalar(from.base);
            tree = Tree { ty, operation: Operation::Swizzle(vec![0]), arguments: vec![tree] };
        }
        if from.base != ty.base {
            tree = Tree { ty: scalar, operation: Operation::Convert, arguments: vec![tree] };
        }
        if ty.width > 1 {
            tree = Tree { ty, operation: Operation::Splat, arguments: vec![tree] };
        }
        tree
    }
}

/// Replaces constants in a divisor or shift with small literals.
fn small(random: &mut Random, tree: &mut Tree) {
    match tree.operation {
        _ if tree.is_constant() && tree.ty.width == 1 => {
            *tree = Tree::literal([1 + random.below(31) as u32; 4], tree.ty);
        }
        Operation::Construct | Operation::Splat | Operation::Swizzle(_) => {
            tree.arguments.iter_mut().for_each(|argument| small(random, argument));
        }
        _ => {}
    }
}

fn literal(random: &mut Random, base: Base) -> u32 {
    match base {
        Base::Bool => random.below(2) as u32,
        Base::I32 | Base::U32 => random.bits(),
        Base::F32 => ((random.below(129) as f32 - 64.0) * 0.5).to_bits(),
    }
}
