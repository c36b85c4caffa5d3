//! Finds operations that not all invocations of a work-group or subgroup reach, in a walk over a body.

use naga::{Block, Expression, Function, GatherMode, Module, Span, Statement};

use crate::analysis::uniformity::{Rules, Uniformity};
use crate::ir::Value;
use crate::ir::blocks::{self, Skip, is_barrier, is_collective, is_of_subgroup};
use crate::parse::diagnostic_filters::Filters;

/// The operations that are looked for.
#[derive(Clone, Copy)]
pub(super) enum Operations<'a> {
    /// Barriers, and operations on cooperative matrices.
    OfGroups,
    /// Those of subgroups, except where the text turns the diagnostic off.
    OfSubgroups(&'a Filters),
    /// Barriers that emulate subgroup operations. WGSL has no rules for them.
    Emulated,
}

impl Operations<'_> {
    /// The rules by which invocations reach them together.
    pub(super) const fn rules(self) -> Rules {
        match self {
            Self::OfGroups => Rules::WorkGroup,
            Self::OfSubgroups(_) => Rules::Subgroup,
            Self::Emulated => Rules::Sharp,
        }
    }

    /// For every function, whether it has such an operation or calls a function that has one.
    pub(super) fn in_functions(self, module: &Module) -> Vec<bool> {
        let mut known = Vec::with_capacity(module.functions.len());
        for (_, function) in module.functions.iter() {
            known.push(self.are_in(function, &known));
        }
        known
    }

    /// Whether a function has such an operation, also where the diagnostic is off, or calls one that has.
    pub(super) fn are_in(self, function: &Function, functions: &[bool]) -> bool {
        blocks::any(&function.body, &mut |statement| match statement {
            Statement::Call { function, .. } => functions.get(function.index()) == Some(&true),
            other => self.include(function, other),
        })
    }

    fn include(self, function: &Function, statement: &Statement) -> bool {
        match self {
            Self::OfGroups | Self::Emulated => is_collective(function, statement),
            Self::OfSubgroups(_) => is_of_subgroup(statement),
        }
    }

    fn are_off_at(self, place: Span) -> bool {
        match self {
            Self::OfGroups | Self::Emulated => false,
            Self::OfSubgroups(filters) => filters.are_off_at(place),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Barrier,
    /// An operation on cooperative matrices.
    Matrix,
    /// An operation of a subgroup.
    Subgroup,
    /// The address of a `workgroupUniformLoad`, which is the condition at the same time.
    Address,
    /// The second argument of `subgroupShuffleUp` and its like, which is the condition at the same time.
    Distance,
}

/// An operation that not all invocations reach, and the condition responsible.
pub(super) struct Divergent {
    pub(super) what: What,
    pub(super) operation: Span,
    pub(super) condition: Span,
}

/// The condition by which invocations diverge, if they do.
type Divergence = Option<Span>;

/// A loop or a switch, with the conditions by which some invocations have left it or skip the rest of the
/// iteration.
#[derive(Clone, Default)]
struct Frame {
    is_loop: bool,
    left: Divergence,
    skipped: Divergence,
}

pub(super) struct Walk<'a> {
    uniformity: &'a Uniformity,
    function: &'a Function,
    operations: Operations<'a>,
    /// By function: whether a call of it is such an operation.
    operating_functions: &'a [bool],
    /// The condition by which some invocations have returned.
    returned: Divergence,
    frames: Vec<Frame>,
    found: Vec<Divergent>,
}

impl<'a> Walk<'a> {
    /// Checks a body from its start, where control flow is uniform.
    pub(super) fn check_body(
        uniformity: &'a Uniformity,
        function: &'a Function,
        (operations, operating_functions): (Operations<'a>, &'a [bool]),
    ) -> Vec<Divergent> {
        let (frames, found) = (Vec::new(), Vec::new());
        let mut walk =
            Self { uniformity, function, operations, operating_functions, returned: None, frames, found };
        walk.block(&function.body, None);
        walk.found
    }

    /// `divergence` is the condition of a divergent branch around the block.
    fn block(&mut self, block: &Block, divergence: Divergence) {
        for (statement, &span) in block.span_iter() {
            self.statement((statement, span), divergence);
        }
    }

    fn statement(&mut self, (statement, span): (&Statement, Span), divergence: Divergence) {
        match statement {
            operation if self.is_checked(operation, span) => {
                self.uniform_argument(operation, span);
                let (what, place) = self.place(operation, span);
                self.note(what, place, self.current_divergence(divergence));
            }
            Statement::Call { function, .. }
                if self.operating_functions.get(function.index()) == Some(&true) =>
            {
                self.note(What::Barrier, span, self.current_divergence(divergence));
            }
            Statement::Block(block) => self.block(block, divergence),
            Statement::If { condition, accept, reject } => {
                let divergence = divergence.or_else(|| self.varying(*condition, span));
                self.branches(&[accept, reject], divergence);
            }
            Statement::Switch { selector, cases } => {
                let divergence = divergence.or_else(|| self.varying(*selector, span));
                let bodies: Vec<&Block> = cases.iter().map(|case| &case.body).collect();
                self.frames.push(Frame::default());
                self.branches(&bodies, divergence);
                self.frames.pop();
            }
            Statement::Loop { body, continuing, break_if } => self.check_loop(
                body,
                continuing,
                break_if.and_then(|condition| self.varying(condition, span)),
                divergence,
            ),
            Statement::Break => {
                let current_divergence = self.current_divergence(divergence);
                if let Some(frame) = self.frames.last_mut() {
                    frame.left = frame.left.or(current_divergence);
                }
            }
            Statement::Continue => self.skip(divergence),
            Statement::Return { .. } | Statement::Kill => {
                self.returned = self.returned.or_else(|| self.current_divergence(divergence));
            }
            _ => {}
        }
    }

    /// Every branch starts from the same state; after them, whatever happened in any of them may have happened.
    fn branches(&mut self, blocks: &[&Block], divergence: Divergence) {
        // Nothing happens in an empty block, and what has happened before stays so.
        let mut filled = blocks.iter().filter(|block| !block.is_empty());
        if let (Some(block), None) = (filled.next(), filled.next()) {
            self.block(block, divergence);
            return;
        }
        let before = (self.returned, self.frames.clone());
        let (mut returned, mut frames) = before.clone();
        for block in blocks {
            (self.returned, self.frames) = before.clone();
            self.block(block, divergence);
            returned = returned.or(self.returned);
            for (frame, after) in frames.iter_mut().zip(&self.frames) {
                frame.left = frame.left.or(after.left);
                frame.skipped = frame.skipped.or(after.skipped);
            }
        }
        (self.returned, self.frames) = (returned, frames);
    }

    /// What a collective operation is, and where it is in the text.
    fn place(&self, statement: &Statement, span: Span) -> (What, Span) {
        let expressions = &self.function.expressions;
        match statement {
            Statement::Emit(range) => {
                let mut spans = range.clone().map(|value| expressions.get_span(value));
                (What::Matrix, spans.find(Span::is_defined).unwrap_or(span))
            }
            Statement::CooperativeStore { data, .. } => (What::Matrix, expressions.get_span(data.pointer)),
            other if is_barrier(other) => (What::Barrier, span),
            _ => (What::Subgroup, span),
        }
    }

    fn is_checked(&self, statement: &Statement, span: Span) -> bool {
        self.operations.include(self.function, statement)
            && !self.operations.are_off_at(span)
            && self.is_reached(statement)
    }

    /// Whether control may reach a statement, as far as its result tells.
    fn is_reached(&self, statement: &Statement) -> bool {
        match *statement {
            Statement::WorkGroupUniformLoad { result, .. }
            | Statement::SubgroupBallot { result, .. }
            | Statement::SubgroupGather { result, .. }
            | Statement::SubgroupCollectiveOperation { result, .. } => self.uniformity.is_reached(result),
            _ => true,
        }
    }

    /// Notes an argument that must not vary.
    fn uniform_argument(&mut self, operation: &Statement, span: Span) {
        let (what, argument) = match *operation {
            Statement::WorkGroupUniformLoad { pointer, .. } => (What::Address, pointer),
            Statement::SubgroupGather {
                mode:
                    GatherMode::ShuffleUp(distance)
                    | GatherMode::ShuffleDown(distance)
                    | GatherMode::ShuffleXor(distance),
                ..
            } => (What::Distance, distance),
            _ => return,
        };
        self.note(what, span, self.varying(argument, span));
    }

    fn note(&mut self, what: What, operation: Span, condition: Divergence) {
        // Loops are walked twice.
        let is_known = self.found.iter().any(|found| found.operation == operation && found.what == what);
        if let (Some(condition), false) = (condition, is_known) {
            self.found.push(Divergent { what, operation, condition });
        }
    }

    /// Why control flow is not uniform here.
    fn current_divergence(&self, divergence: Divergence) -> Divergence {
        divergence
            .or(self.returned)
            .or_else(|| self.frames.iter().rev().find_map(|frame| frame.left.or(frame.skipped)))
    }

    /// Some invocations jump to the `continuing` block, out of all switches inside the loop.
    fn skip(&mut self, divergence: Divergence) {
        let current_divergence = self.current_divergence(divergence);
        for frame in self.frames.iter_mut().rev() {
            frame.skipped = frame.skipped.or(current_divergence);
            if frame.is_loop {
                break;
            }
        }
    }

    /// A loop is walked twice: divergence late in one iteration affects the start of the next.
    fn check_loop(&mut self, body: &Block, continuing: &Block, break_if: Divergence, divergence: Divergence) {
        let may_repeat = may_repeat(body);
        let depth = self.frames.len();
        self.frames.push(Frame { is_loop: true, ..Frame::default() });
        for _ in 0..=u8::from(may_repeat) {
            self.block(body, divergence);
            // By WGSL, those who skip the rest of an iteration are apart until the loop ends. For a device it is enough that all
            // reach a barrier equally often.
            if self.operations.rules() == Rules::Sharp {
                self.frames[depth].skipped = None;
            }
            self.block(continuing, divergence);
            self.frames[depth].left = self.frames[depth].left.or(break_if);
        }
        self.frames.truncate(depth);
    }

    /// The location of a condition if it varies; that of its statement if the condition has none.
    fn varying(&self, condition: Value, statement: Span) -> Divergence {
        if self.uniformity.is_uniform(condition) {
            return None;
        }
        let expressions = &self.function.expressions;
        // The span of an argument is its declaration.
        let is_argument = matches!(expressions[condition], Expression::FunctionArgument(_));
        let span = expressions.get_span(condition);
        Some(if span.is_defined() && !is_argument { span } else { statement })
    }
}

/// Whether a loop can iterate more than once; one that ends in `break` cannot, unless it continues.
fn may_repeat(body: &Block) -> bool {
    !matches!(body.last(), Some(Statement::Break | Statement::Return { .. }))
        || Skip::of_block(body) == Skip::Continue
}
