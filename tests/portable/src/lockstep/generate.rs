//! Random kernels.
//!
//! Between two barriers each shared array has a mode: every invocation uses its own slot, or all invocations only
//! read. A block with barriers that may be repeated or skipped ends in the modes in which it began.

use super::{
    Array, Barrier, Block, COUNTERS, Form, Function, Kernel, LOOPS, Place, Slot, Statement, functions,
    variable, variables,
};
use crate::random::Random;
use crate::tree::{Base, Generator, Input, Tree, Type};

const ARRAYS: [Array; 3] = [Array::Signed, Array::Unsigned, Array::Storage];
const SIZES: [[u32; 3]; 10] = [
    [1, 1, 1],
    [3, 1, 1],
    [8, 1, 1],
    [16, 1, 1],
    [33, 1, 1],
    [64, 1, 1],
    [8, 4, 1],
    [4, 3, 2],
    [1, 17, 1],
    [128, 1, 1],
];
const SIGNED: Type = Type::scalar(Base::I32);
const UNSIGNED: Type = Type::scalar(Base::U32);

/// How invocations may use an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Own(Slot),
    Shared,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Modes {
    arrays: [Mode; 3],
    /// Whether counters are incremented, rather than read.
    counting: bool,
}

/// The target of a `break` or `continue`.
#[derive(Clone, Copy)]
struct JumpTarget {
    /// Whether all invocations must take it together, in the modes of the target.
    barriers: bool,
    modes: Modes,
}

/// The context of a statement.
#[derive(Clone, Copy)]
struct Context {
    uniform: bool,
    /// How much deeper statements may nest.
    depth: usize,
    loops: usize,
    /// For each enclosing loop, whether its counter is uniform.
    counters: [bool; LOOPS],
    breaks: Option<JumpTarget>,
    continues: Option<JumpTarget>,
    returns: bool,
}

struct KernelGenerator {
    random: Random,
    variables: Vec<Input>,
    modes: Modes,
    /// The number of statements that may still be generated.
    fuel: usize,
}

/// The kernel for a seed.
#[must_use]
pub fn kernel(entry: &str, seed: u64) -> Kernel {
    let mut random = Random::new(seed);
    let size = *random.one(&SIZES);
    let (groups, argument) = (1 + random.below(3) as u32, random.below(7) as i32 - 1);
    let own = Mode::Own(Slot::Rotated(0));
    let modes = Modes { arrays: [own; 3], counting: true };
    let mut generator = KernelGenerator { random, variables: variables(), modes, fuel: 60 };
    let top = Context {
        uniform: true,
        depth: 3,
        loops: 0,
        counters: [false; LOOPS],
        breaks: None,
        continues: None,
        returns: false,
    };
    let barriers = 2 + generator.random.below(4);
    let mut body = generator.block(top, 6 + barriers, barriers, false);
    if generator.random.once_in(3) {
        generator.fuel = 12;
        body.extend(generator.block(Context { uniform: false, returns: true, ..top }, 4, 0, false));
    }
    Kernel { entry: entry.to_owned(), size, groups, argument, body }
}

impl KernelGenerator {
    /// Statements with `barriers` barriers; with `restore`, the last one restores the modes.
    fn block(&mut self, context: Context, statements: usize, barriers: usize, restore: bool) -> Block {
        let (entry, mut block) = (self.modes, Vec::new());
        for left in (0..barriers).rev() {
            for _ in 0..statements / (barriers + 1) {
                block.extend(self.statement(context));
            }
            let to = if left == 0 && restore { entry } else { self.random_modes() };
            block.extend(self.with_barrier(context, to));
        }
        for _ in 0..(statements / (barriers + 1)).max(1) {
            block.extend(self.statement(context));
        }
        block
    }

    fn random_modes(&mut self) -> Modes {
        let random = &mut self.random;
        let mut mode = || match random.below(4) {
            0 => Mode::Own(Slot::Reversed),
            1 => Mode::Own(Slot::Rotated(random.below(3) as u32)),
            _ => Mode::Shared,
        };
        let arrays = [mode(), mode(), mode()];
        Modes { arrays, counting: self.random.once_in(2) }
    }

    /// A barrier, or a statement containing one, after which the arrays have the modes `to`.
    fn with_barrier(&mut self, context: Context, to: Modes) -> Block {
        let nested = context.depth > 0 && self.fuel > 10;
        let statement = match self.random.below(if nested { 7 } else { 3 }) {
            0 => Some(self.call(&[Function::Rotate, Function::Scan, Function::Pick], context)),
            3 => Some(self.uniform_if(context)),
            4 | 5 if context.loops < LOOPS => Some(self.uniform_loop(context)),
            6 => Some(self.uniform_switch(context)),
            _ => None,
        };
        let changed = |index: usize| self.modes.arrays[index] != to.arrays[index];
        let workgroup = changed(0) || changed(1) || self.modes.counting != to.counting;
        let barrier = match (workgroup, changed(2), self.random.once_in(3)) {
            (true, false, false) => Barrier::Workgroup,
            (false, true, false) => Barrier::Storage,
            _ => Barrier::Both,
        };
        self.modes = to;
        statement.into_iter().chain([Statement::Barrier(barrier)]).collect()
    }

    fn uniform_if(&mut self, context: Context) -> Statement {
        let inner = Context { depth: context.depth - 1, ..context };
        let condition = self.condition(context, true);
        let yes = self.block(inner, 3, 1, true);
        let barriers = self.random.below(2);
        let no = self.block(inner, 2, barriers, true);
        Statement::If(condition, yes, no)
    }

    fn uniform_loop(&mut self, context: Context) -> Statement {
        let form = *self.random.one(&[Form::For, Form::While, Form::Continuing]);
        let bound = self.expression(context, SIGNED, true);
        let target = Some(JumpTarget { barriers: true, modes: self.modes });
        let mut inner = Context {
            depth: context.depth - 1,
            loops: context.loops + 1,
            breaks: target,
            continues: target,
            ..context
        };
        inner.counters[context.loops] = true;
        let barriers = 1 + self.random.below(2);
        let body = self.block(inner, 4, barriers, true);
        let mut continuing = Vec::new();
        if form == Form::Continuing && self.random.once_in(2) {
            let barriers = self.random.below(2);
            // No `break` or `continue`, except its own `break if`.
            continuing =
                self.block(Context { depth: 0, breaks: None, continues: None, ..inner }, 1, barriers, true);
        }
        Statement::Loop(form, context.loops, 1 + self.random.below(4) as i32, bound, body, continuing)
    }

    fn uniform_switch(&mut self, context: Context) -> Statement {
        let target = Some(JumpTarget { barriers: true, modes: self.modes });
        let inner = Context { depth: context.depth - 1, breaks: target, ..context };
        let selector = self.expression(context, UNSIGNED, true);
        let cases = std::array::from_fn(|case| {
            let barriers = if case == 0 { 1 } else { self.random.below(2) };
            self.block(inner, 2, barriers, true)
        });
        Statement::Switch(selector, cases)
    }

    /// A statement without barriers.
    fn statement(&mut self, context: Context) -> Block {
        if self.fuel == 0 {
            return Vec::new();
        }
        self.fuel -= 1;
        let statement = match self.random.below(16) {
            0..=2 => self.assign(context),
            3 if context.uniform => {
                let to = variable::UNIFORM + self.random.below(3);
                Statement::Assign(to, self.expression(context, SIGNED, true))
            }
            4 | 5 => self.read(context),
            6 | 7 => return self.write(context).into_iter().collect(),
            8 => {
                let index = self.expression(context, UNSIGNED, false);
                Statement::Input(self.random.below(5), index)
            }
            9 => self.count(context),
            10 if context.uniform => return self.cell(context),
            10 | 11 if context.depth > 0 => self.divergent_if(context),
            12 if context.depth > 0 && context.loops < LOOPS => self.divergent_loop(context),
            13 if context.depth > 0 => self.divergent_switch(context),
            14 => self.call(&[Function::Search, Function::Bump], context),
            15 => return self.leave(context).into_iter().collect(),
            _ => Statement::Output(self.random.below(2), self.expression(context, UNSIGNED, false)),
        };
        vec![statement]
    }

    fn divergent_if(&mut self, context: Context) -> Statement {
        let inner = self.divergent(context);
        let condition = self.condition(context, false);
        let yes = self.block(inner, 2, 0, false);
        let no = if self.random.once_in(2) { self.block(inner, 2, 0, false) } else { Vec::new() };
        Statement::If(condition, yes, no)
    }

    fn divergent_loop(&mut self, context: Context) -> Statement {
        let form = *self.random.one(&[Form::For, Form::While, Form::Continuing]);
        let bound = self.expression(context, SIGNED, false);
        let target = Some(JumpTarget { barriers: false, modes: self.modes });
        let mut inner = Context {
            loops: context.loops + 1,
            breaks: target,
            continues: target,
            ..self.divergent(context)
        };
        inner.counters[context.loops] = false;
        let body = self.block(inner, 3, 0, false);
        let continuing = if form == Form::Continuing { vec![self.assign(inner)] } else { Vec::new() };
        Statement::Loop(form, context.loops, 1 + self.random.below(4) as i32, bound, body, continuing)
    }

    fn divergent_switch(&mut self, context: Context) -> Statement {
        let target = Some(JumpTarget { barriers: false, modes: self.modes });
        let inner = Context { breaks: target, ..self.divergent(context) };
        let selector = self.expression(context, UNSIGNED, false);
        Statement::Switch(selector, std::array::from_fn(|_| self.block(inner, 2, 0, false)))
    }

    /// The context inside divergent control flow: no jumps out of constructs with barriers.
    fn divergent(&self, context: Context) -> Context {
        let kept = |target: Option<JumpTarget>| target.filter(|target| !target.barriers);
        Context {
            uniform: false,
            depth: context.depth - 1,
            breaks: kept(context.breaks),
            continues: kept(context.continues),
            ..context
        }
    }

    /// A conditional `break`, `continue` or `return`, if one is allowed.
    fn leave(&mut self, context: Context) -> Option<Statement> {
        let open = |target: Option<JumpTarget>| {
            target.is_some_and(|target| !target.barriers || (context.uniform && target.modes == self.modes))
        };
        let mut jumps = Vec::new();
        jumps.extend(open(context.breaks).then_some(Statement::Break));
        jumps.extend(open(context.continues).then_some(Statement::Continue));
        let outermost = context.uniform && context.loops == 0 && context.depth == 3 && self.random.once_in(3);
        jumps.extend((context.returns || outermost).then_some(Statement::Return));
        let jump = (!jumps.is_empty()).then(|| self.random.one(&jumps).clone())?;
        let uniform = match jump {
            Statement::Break => context.breaks.is_some_and(|target| target.barriers),
            Statement::Continue => context.continues.is_some_and(|target| target.barriers),
            _ => !context.returns,
        };
        let (condition, before) = (self.condition(context, uniform), self.assign(context));
        Some(Statement::If(condition, vec![before, jump], Vec::new()))
    }

    fn assign(&mut self, context: Context) -> Statement {
        let to = self.random.below(variable::UNIFORM);
        let ty = self.variables[to].ty;
        Statement::Assign(to, self.expression(context, ty, false))
    }

    fn read(&mut self, context: Context) -> Statement {
        let index = self.random.below(3);
        let place = match self.modes.arrays[index] {
            Mode::Own(slot) => Place::Own(slot),
            Mode::Shared => Place::Any(self.expression(context, UNSIGNED, false)),
        };
        let to = self.variable_of(ARRAYS[index]);
        Statement::Read(to, ARRAYS[index], place)
    }

    fn variable_of(&mut self, array: Array) -> usize {
        match array {
            Array::Unsigned => variable::UNSIGNED + self.random.below(2),
            _ => variable::SIGNED + self.random.below(5),
        }
    }

    fn write(&mut self, context: Context) -> Option<Statement> {
        let index = self.random.below(3);
        let ty = if ARRAYS[index] == Array::Unsigned { UNSIGNED } else { SIGNED };
        match self.modes.arrays[index] {
            Mode::Own(slot) => {
                Some(Statement::Write(ARRAYS[index], slot, self.expression(context, ty, false)))
            }
            Mode::Shared => None,
        }
    }

    fn count(&mut self, context: Context) -> Statement {
        let (slot, global) = (self.random.below(COUNTERS), self.random.once_in(3));
        if !global && !self.modes.counting {
            return Statement::Counter(variable::UNSIGNED + self.random.below(2), slot);
        }
        Statement::Count(global, slot, self.expression(context, UNSIGNED, false))
    }

    fn cell(&mut self, context: Context) -> Block {
        let value = self.expression(context, SIGNED, false);
        vec![Statement::SetCell(value), Statement::LoadCell(variable::UNIFORM + self.random.below(3))]
    }

    fn call(&mut self, functions: &[Function], context: Context) -> Statement {
        let function = *self.random.one(functions);
        let uniform = functions::has_barrier(function);
        let first = self.expression(context, SIGNED, uniform);
        let second = self.expression(context, SIGNED, false);
        Statement::Call(function, self.random.below(5), first, second)
    }

    fn condition(&mut self, context: Context, uniform: bool) -> Tree {
        self.expression(context, Type::scalar(Base::Bool), uniform)
    }

    /// An expression over the variables that may be read here.
    fn expression(&mut self, context: Context, ty: Type, uniform: bool) -> Tree {
        let mut readable = vec![variable::ARGUMENT, variable::WID];
        readable.extend(variable::UNIFORM..variable::LID);
        if !uniform {
            readable.extend(variable::SIGNED..variable::UNIFORM);
            readable.extend([variable::LID, variable::GID]);
        }
        let counters = (0..context.loops).filter(|depth| !uniform || context.counters[*depth]);
        readable.extend(counters.map(|depth| variable::COUNTER + depth));
        let generator = Generator { inputs: &self.variables, readable: &readable, rich: false };
        let depth = 1 + self.random.below(2);
        generator.tree(&mut self.random, ty, depth)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{program, text};
    use super::*;

    #[test]
    fn random_kernels_are_valid() {
        for seed in 0..500 {
            let kernel = kernel("k", seed);
            if let Err(invalid) = program(&kernel) {
                panic!("seed {seed}: {}\n{}", invalid.0, text(&kernel));
            }
        }
    }

    #[test]
    fn naga_takes_random_kernels() {
        for seed in 0..200 {
            let text = text(&kernel("k", seed));
            let module = runtime_kernel::naga::front::wgsl::parse_str(&text);
            let module = module.unwrap_or_else(|error| panic!("{}\n{text}", error.emit_to_string(&text)));
            assert_eq!(module.entry_points.len(), 1);
        }
    }
}
