//! Which expressions of a function get a name, and which are printed where they are used.
//!
//! An expression is named if the program names it (`let`), or if it is printed more than once. A load is printed
//! where its value is used only if nothing but `Emit`s stands between the two, so that no effect can change what it
//! reads.

use naga::{AddressSpace, AtomicFunction, Block, Expression, FastHashMap, FastHashSet, Statement, TypeInner};

use super::logical;
use crate::analysis::proof::FunctionContext;
use crate::analysis::proof::range::{self, Element};
use crate::analysis::proof::unrolling::{Unroll, unrolled_loops};
use crate::ir::operands::{is_result, operands, used_by};
use crate::ir::{Local, Value, blocks};
use crate::print::c::names::{LocalNames, Names};
use crate::print::c::writer::Writer;
use crate::program::{Checks, Dialect};

/// The names of one function.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// By expression.
    values: Vec<Option<String>>,
    used: Vec<bool>,
    arguments: Vec<String>,
    locals: Vec<String>,
    hoisted: FastHashSet<Value>,
    flags: FastHashSet<Local>,
    /// Loops to unroll, by the condition at their head, with their trip counts.
    unrolled: FastHashMap<Value, u32>,
    names: LocalNames,
}

impl Plan {
    /// Plans the names of a function.
    pub(crate) fn new(writer: &Writer<'_>, context: FunctionContext<'_>) -> Self {
        let (names, checks) = (&writer.names, writer.checks);
        let function = context.function;
        let mut plan = Self::default();
        let arguments =
            function.arguments.iter().map(|argument| argument.name.as_deref().unwrap_or("argument"));
        plan.arguments = arguments.map(|name| plan.names.named(names, name)).collect();
        let locals =
            function.local_variables.iter().map(|(_, local)| local.name.as_deref().unwrap_or("flag"));
        plan.locals = locals.map(|name| plan.names.named(names, name)).collect();
        let mut uses = Uses::new(context, checks, writer.dialect);
        uses.block(&function.body);
        let named = uses.decide();
        let mut number = 0;
        plan.values.reserve(named.len());
        plan.used.reserve(named.len());
        for (handle, _) in function.expressions.iter() {
            let name = named[handle.index()].then(|| match function.named_expressions.get(&handle) {
                Some(name) => plan.names.named(names, name),
                None => {
                    number += 1;
                    plan.names.fresh(names, &format!("t{number}"))
                }
            });
            plan.values.push(name);
            plan.used.push(uses.counts[handle.index()] > 0);
        }
        // For loops over invocations, `inline` has already restored the operators where possible.
        if !writer.has_loops {
            plan.flags = logical::flags(context, &|value| plan.is_named(value));
            if !writer.program.is_plain() {
                let unroll = if checks == Checks::BoundedOnce { Unroll::Innermost } else { Unroll::All };
                plan.unrolled = unrolled_loops((context.module, function), unroll);
            }
        }
        plan
    }

    /// Whether to unroll the loop with this condition at its head.
    pub(crate) fn is_unrolled(&self, condition: Value) -> bool {
        self.unrolled.contains_key(&condition)
    }

    /// Whether a variable is printed as the logical operator that it holds.
    pub(crate) fn is_flag(&self, variable: Local) -> bool {
        self.flags.contains(&variable)
    }

    /// The name of an expression's value, if it has one.
    pub(crate) fn value(&self, expression: Value) -> Option<&str> {
        self.values[expression.index()].as_deref()
    }

    /// Whether an expression's value has a name.
    pub(crate) fn is_named(&self, expression: Value) -> bool {
        self.value(expression).is_some()
    }

    /// Whether any printed expression uses it.
    pub(crate) fn is_used(&self, expression: Value) -> bool {
        self.used[expression.index()]
    }

    /// The name of an argument.
    pub(crate) fn argument(&self, index: u32) -> &str {
        &self.arguments[index as usize]
    }

    /// The name of a local variable.
    pub(crate) fn local(&self, variable: Local) -> &str {
        &self.locals[variable.index()]
    }

    /// A name in the function's scope for what the program calls `wanted`.
    pub(crate) fn named(&mut self, names: &Names, wanted: &str) -> String {
        self.names.named(names, wanted)
    }

    /// An additional name in the function's scope.
    pub(crate) fn fresh(&mut self, names: &Names, wanted: &str) -> String {
        self.names.fresh(names, wanted)
    }

    /// Marks a value's variable as declared already, so that its definition becomes an assignment.
    pub(crate) fn hoist(&mut self, expression: Value) {
        self.hoisted.insert(expression);
    }

    /// Whether a value's variable is declared already.
    pub(crate) fn is_hoisted(&self, expression: Value) -> bool {
        self.hoisted.contains(&expression)
    }
}

/// Where an expression is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Site {
    Nowhere,
    /// Block and statement.
    At(u32, u32),
    Several,
}

impl Site {
    fn and(self, other: Self) -> Self {
        match self {
            Self::Nowhere => other,
            site if site == other => site,
            _ => Self::Several,
        }
    }
}

/// The `Emit` that evaluates an expression.
#[derive(Clone, Copy, Debug)]
struct Emitted {
    block: u32,
    statement: u32,
    /// The next statement other than `Emit`.
    effect: u32,
}

/// How often and where expressions are printed.
struct Uses<'a> {
    context: FunctionContext<'a>,
    checks: Checks,
    dialect: Dialect,
    counts: Vec<u32>,
    sites: Vec<Site>,
    emitted: Vec<Option<Emitted>>,
    blocks: u32,
}

/// Counts as more than once, for operands that a statement prints repeatedly.
const REPEATED: u32 = 4;

impl<'a> Uses<'a> {
    fn new(context: FunctionContext<'a>, checks: Checks, dialect: Dialect) -> Self {
        let length = context.function.expressions.len();
        Self {
            context,
            checks,
            dialect,
            counts: vec![0; length],
            sites: vec![Site::Nowhere; length],
            emitted: vec![None; length],
            blocks: 0,
        }
    }

    fn count(&mut self, expression: Value, site: Site, times: u32) {
        let index = expression.index();
        self.counts[index] = self.counts[index].saturating_add(times);
        self.sites[index] = self.sites[index].and(site);
    }

    fn block(&mut self, block: &Block) -> u32 {
        let id = self.blocks;
        self.blocks += 1;
        let mut effects = vec![0; block.len()];
        let mut effect = block.len();
        for (index, statement) in block.iter().enumerate().rev() {
            if !matches!(statement, Statement::Emit(_)) {
                effect = index;
            }
            effects[index] = number(effect);
        }
        for (index, statement) in block.iter().enumerate() {
            let site = Site::At(id, number(index));
            if let Statement::Emit(range) = statement {
                let emitted = Emitted { block: id, statement: number(index), effect: effects[index] };
                for expression in range.clone() {
                    self.emitted[expression.index()] = Some(emitted);
                }
            } else {
                self.statement(statement, site);
            }
        }
        id
    }

    fn statement(&mut self, statement: &Statement, site: Site) {
        match statement {
            Statement::Store { pointer, value } => self.store(*pointer, *value, site),
            Statement::Loop { body, continuing, break_if } => {
                self.block(body);
                let block = self.block(continuing);
                if let Some(condition) = break_if {
                    self.count(*condition, Site::At(block, number(continuing.len())), 1);
                }
            }
            other => {
                let (site, times) = match other {
                    // The barriers precede the load.
                    Statement::WorkGroupUniformLoad { .. } => (Site::Several, 1),
                    Statement::SubgroupCollectiveOperation { .. } | Statement::SubgroupGather { .. } => {
                        (site, REPEATED)
                    }
                    _ => (site, 1),
                };
                used_by(other).0.into_iter().for_each(|value| self.count(value, site, times));
                if let Statement::Atomic {
                    fun: AtomicFunction::Exchange { compare: Some(compare) }, ..
                } = other
                {
                    self.count(*compare, site, REPEATED);
                }
                for block in blocks::inner(other) {
                    self.block(block);
                }
            }
        }
    }

    fn store(&mut self, pointer: Value, value: Value, site: Site) {
        self.count(pointer, site, 1);
        let mut times = 1;
        if let Expression::Access { base, index } = self.context.function.expressions[pointer]
            && self.context.is_vector_pointer(base)
        {
            self.count(index, site, REPEATED);
            let space = self.context.inner(base).pointer_space();
            if !matches!(space, Some(AddressSpace::Function | AddressSpace::Private)) {
                times = REPEATED;
            }
        }
        self.count(value, site, times);
    }

    /// Visits users before their operands: operands precede users in the arena.
    fn decide(&mut self) -> Vec<bool> {
        let expressions = &self.context.function.expressions;
        let mut named = vec![false; expressions.len()];
        for (handle, expression) in expressions.iter().rev() {
            let index = handle.index();
            if self.counts[index] == 0 {
                continue;
            }
            named[index] = is_result(expression) || self.is_named(handle, expression);
            let (site, times) = match self.emitted[index] {
                Some(emitted) if named[index] => (Site::At(emitted.block, emitted.statement), 1),
                _ => (self.sites[index], self.counts[index]),
            };
            self.operands(handle, |uses, operand, weight| {
                uses.count(operand, site, times.saturating_mul(weight));
            });
        }
        named
    }

    fn is_named(&self, handle: Value, expression: &Expression) -> bool {
        let Some(emitted) = self.emitted[handle.index()] else { return false };
        if self.context.is_pointer(handle) {
            return false;
        }
        let name = self.context.function.named_expressions.get(&handle);
        if name.is_some_and(|name| !is_generated(name)) {
            return true;
        }
        let count = self.counts[handle.index()];
        match expression {
            Expression::Load { pointer } => {
                let variable =
                    matches!(self.context.function.expressions[*pointer], Expression::LocalVariable(_));
                let here = match self.sites[handle.index()] {
                    Site::At(block, statement) => block == emitted.block && statement <= emitted.effect,
                    _ => false,
                };
                !(here && (count == 1 || variable))
            }
            Expression::AccessIndex { .. } => false,
            // It reads memory, and all lanes of a subgroup take part.
            Expression::CooperativeLoad { .. } | Expression::CooperativeMultiplyAdd { .. } => true,
            _ => count > 1,
        }
    }

    /// Calls `each` with the operands and how often they are printed.
    fn operands(&mut self, handle: Value, mut each: impl FnMut(&mut Self, Value, u32)) {
        let expression = &self.context.function.expressions[handle];
        match *expression {
            Expression::Compose { ref components, .. } => {
                for component in components {
                    let times = match self.context.inner(*component) {
                        TypeInner::Vector { .. } if self.is_flattened(expression) => REPEATED,
                        _ => 1,
                    };
                    each(self, *component, times);
                }
            }
            Expression::Access { base, index } => {
                let element = Element { access: handle, base, index: Some(index), known: 0 };
                let checked = self.checks.are_made()
                    && !self.context.is_vector_pointer(base)
                    && range::limit(self.context, element).is_some();
                // A 64-bit component index is compared before it is narrowed.
                let wide = self.context.inner(index).scalar().is_some_and(|scalar| scalar.width > 4);
                each(self, base, self.times_of_base(base));
                each(self, index, if checked || wide { 2 } else { 1 });
            }
            Expression::AccessIndex { base, .. } => each(self, base, self.times_of_base(base)),
            Expression::ArrayLength(_) => {}
            ref other => operands(other).for_each(|operand| each(self, operand, 1)),
        }
    }

    /// How often the base of an access is printed. In OpenCL C a literal gets a name: NVIDIA's compiler (580.159)
    /// moves array and matrix literals to constant memory, and reads another address, or an illegal one, if an
    /// index is not constant.
    fn times_of_base(&self, base: Value) -> u32 {
        let expression = &self.context.function.expressions[base];
        let is_literal = matches!(expression, Expression::Compose { .. }) && !self.is_flattened(expression);
        if is_literal && self.dialect == Dialect::OpenCl { REPEATED } else { 1 }
    }

    /// Whether a `Compose` builds a vector from scalars and vectors.
    fn is_flattened(&self, expression: &Expression) -> bool {
        match expression {
            Expression::Compose { ty, .. } => {
                matches!(self.context.module.types[*ty].inner, TypeInner::Vector { .. })
            }
            _ => false,
        }
    }
}

/// Blocks are smaller than the text that they come from.
#[expect(clippy::cast_possible_truncation, reason = "texts are smaller than 4 GiB")]
const fn number(index: usize) -> u32 {
    index as u32
}

/// Whether naga's WGSL writer made up a name, as in the text of fused kernels (`let _e12 = column;`).
fn is_generated(name: &str) -> bool {
    let number = name.strip_prefix("_e");
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}
