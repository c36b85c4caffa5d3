//! Rejects barriers, and operations on cooperative matrices, in non-uniform control flow, which naga accepts.
//!
//! Every invocation of a work-group must reach a barrier, or none. So no condition that varies within the group may
//! decide whether a barrier is reached: neither the branch or loop around it, nor one by which some invocations
//! returned earlier.

use naga::valid::ModuleInfo;
use naga::{Block, Function, Module, Span, Statement};
use runtime_core::{Error, ErrorKind, Result};

use super::unreached;
use crate::analysis::uniformity::Uniformity;
use crate::ir::Value;
use crate::ir::blocks::{self, Skip, is_collective};
use crate::parse;
use crate::parse::diagnostics::location;
use crate::program::Program;
use crate::transform::inline::{Purpose, inline};

/// Further messages are dropped.
const MAX_MESSAGES: usize = 20;

/// The rule of WGSL, and that of devices which emulate subgroups.
const STANDARD: (ErrorKind, &str) =
    (ErrorKind::CompileFailed, "a barrier must be reached by all invocations of a work-group");
const EMULATED: (ErrorKind, &str) = (
    ErrorKind::Unsupported,
    "on a device without subgroups, a subgroup operation must be reached by all invocations of a work-group",
);

/// Checks every entry point of a program.
///
/// # Errors
/// `CompileFailed`, naming the lines of all barriers that break the rule and of the conditions that vary.
pub(crate) fn check(program: &Program) -> Result<()> {
    check_with((&program.module, &program.info), (&program.source, &program.path), STANDARD)
}

/// Checks the functions of a text that no entry point reaches.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_unreached(module: &Module, code: &str, path: &str) -> Result<()> {
    let Some(module) = unreached::as_entry_points(module, &functions_with_barriers(module)) else {
        return Ok(());
    };
    let info = parse::validate_again(&module)?;
    check_with((&module, &info), (code, path), STANDARD)
}

/// Checks a program whose subgroup operations have become functions with barriers.
///
/// # Errors
/// `Unsupported`, naming the lines of the operations and of the conditions that vary.
pub(crate) fn check_emulated(program: &Program) -> Result<()> {
    check_with((&program.module, &program.info), (&program.source, &program.path), EMULATED)
}

fn check_with(
    (module, info): (&Module, &ModuleInfo),
    text: (&str, &str),
    (kind, rule): (ErrorKind, &str),
) -> Result<()> {
    let barrier_functions = functions_with_barriers(module);
    let none = !barrier_functions.contains(&true)
        && !module.entry_points.iter().any(|p| contains_barrier(&p.function, &[]));
    if none || functions_pass_alone(module, info, &barrier_functions) {
        return Ok(());
    }
    // A function may be correct only for the arguments of its actual calls.
    let inlined = inline(module, info, Purpose::SpeedWithoutUnrolling)?;
    let info = parse::validate_again(&inlined)?;
    let mut messages: Vec<_> =
        check_entries(&inlined, &info, &[]).iter().map(|found| found.message(text, rule)).collect();
    messages.dedup();
    messages.truncate(MAX_MESSAGES);
    if messages.is_empty() { Ok(()) } else { Err(Error::new(kind, messages.join("\n"))) }
}

/// Whether every function passes for any arguments, and every call of one with barriers is in uniform control
/// flow. Most kernels pass, and then nothing has to be inlined.
fn functions_pass_alone(module: &Module, info: &ModuleInfo, barrier_functions: &[bool]) -> bool {
    let functions =
        module.functions.iter().zip(barrier_functions).filter(|(_, barrier_functions)| **barrier_functions);
    functions.into_iter().all(|((handle, function), _)| {
        Walk::check_body(&Uniformity::of_function(module, info, handle), function, barrier_functions)
            .is_empty()
    }) && check_entries(module, info, barrier_functions).is_empty()
}

fn check_entries(module: &Module, info: &ModuleInfo, barrier_functions: &[bool]) -> Vec<DivergentBarrier> {
    let points = module.entry_points.iter().enumerate();
    let found = points.flat_map(|(index, point)| {
        Walk::check_body(&Uniformity::of(module, info, index), &point.function, barrier_functions)
    });
    found.collect()
}

/// For every function, whether it has a barrier or calls a function that has one.
fn functions_with_barriers(module: &Module) -> Vec<bool> {
    let mut known = Vec::with_capacity(module.functions.len());
    for (_, function) in module.functions.iter() {
        known.push(contains_barrier(function, &known));
    }
    known
}

/// Whether a function has a barrier, or calls one that has.
fn contains_barrier(function: &Function, functions: &[bool]) -> bool {
    blocks::any(&function.body, &mut |statement| match statement {
        Statement::Call { function, .. } => functions.get(function.index()) == Some(&true),
        other => is_collective(function, other),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Barrier,
    /// An operation on cooperative matrices.
    Matrix,
    /// The address of a `workgroupUniformLoad`, which is the condition at the same time.
    Address,
}

/// A barrier that not all invocations reach, and the condition responsible.
struct DivergentBarrier {
    what: What,
    barrier: Span,
    condition: Span,
}

impl DivergentBarrier {
    fn message(&self, (code, path): (&str, &str), rule: &str) -> String {
        let rule = match self.what {
            What::Barrier => rule,
            What::Matrix => MATRIX_RULE,
            What::Address => return format!("{}: {ADDRESS_RULE}", location(code, path, self.barrier)),
        };
        format!(
            "{}: {rule}, but the condition at {} varies within it; move it out of that control flow, or make \
             the condition the same for all of them, as workgroupUniformLoad does",
            location(code, path, self.barrier),
            location(code, path, self.condition)
        )
    }
}

const MATRIX_RULE: &str =
    "an operation on cooperative matrices must be reached by all invocations of a work-group";

const ADDRESS_RULE: &str = "workgroupUniformLoad reads one address for all invocations of a work-group, but this one varies within it; \
     load without it, or use an index that is the same for all of them";

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

struct Walk<'a> {
    uniformity: &'a Uniformity,
    function: &'a Function,
    /// By function: whether a call of it is a barrier.
    barrier_functions: &'a [bool],
    /// The condition by which some invocations have returned.
    returned: Divergence,
    frames: Vec<Frame>,
    found: Vec<DivergentBarrier>,
}

impl<'a> Walk<'a> {
    /// Checks a body from its start, where control flow is uniform.
    fn check_body(
        uniformity: &'a Uniformity,
        function: &'a Function,
        barrier_functions: &'a [bool],
    ) -> Vec<DivergentBarrier> {
        let (frames, found) = (Vec::new(), Vec::new());
        let mut walk = Self { uniformity, function, barrier_functions, returned: None, frames, found };
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
            collective if is_collective(self.function, collective) => {
                if let Statement::WorkGroupUniformLoad { pointer, .. } = collective {
                    let varying = self.varying(*pointer, span);
                    self.note(What::Address, span, varying);
                }
                self.barrier(self.place(collective, span), divergence);
            }
            Statement::Call { function, .. }
                if self.barrier_functions.get(function.index()) == Some(&true) =>
            {
                self.barrier((What::Barrier, span), divergence);
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
            _ => (What::Barrier, span),
        }
    }

    fn barrier(&mut self, (what, barrier): (What, Span), divergence: Divergence) {
        self.note(what, barrier, self.current_divergence(divergence));
    }

    fn note(&mut self, what: What, barrier: Span, condition: Divergence) {
        // Loops are walked twice.
        let is_known = self.found.iter().any(|found| found.barrier == barrier && found.what == what);
        if let (Some(condition), false) = (condition, is_known) {
            self.found.push(DivergentBarrier { what, barrier, condition });
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
            self.frames[depth].skipped = None;
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
        let span = self.function.expressions.get_span(condition);
        Some(if span.is_defined() { span } else { statement })
    }
}

/// Whether a loop can iterate more than once; one that ends in `break` cannot, unless it continues.
fn may_repeat(body: &Block) -> bool {
    !matches!(body.last(), Some(Statement::Break | Statement::Return { .. }))
        || Skip::of_block(body) == Skip::Continue
}

#[cfg(test)]
mod tests {
    use crate::{Program, Specialisation};

    fn check(body: &str) -> Result<(), String> {
        let code = format!(
            "@group(0) @binding(0) var<storage, read> a: array<u32>;
             @group(0) @binding(1) var<storage, read_write> b: array<u32>;
             struct Scalars {{ n: u32 }}
             var<immediate> scalars: Scalars;
             var<workgroup> shared_one: u32;
             fn sync(x: u32) -> u32 {{ workgroupBarrier(); if (x == 3u) {{ return 4u; }} return x; }}
             fn late(x: u32) -> u32 {{ if (x == 3u) {{ return 4u; }} workgroupBarrier(); return x; }}
             fn sum(x: u32, y: u32) -> u32 {{ return x + y; }}
             @compute @workgroup_size(64)
             fn main(@builtin(local_invocation_id) l: vec3<u32>, @builtin(workgroup_id) g: vec3<u32>) {{
             b[l.x] = a[l.x] + scalars.n + shared_one;
{body}
}}"
        );
        Program::parse(&code, "k.wgsl", &Specialisation::default())
            .map(drop)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn uniform_control_flow_may_have_barriers() {
        for body in [
            "workgroupBarrier();",
            "if (g.x > 3u) { workgroupBarrier(); }",
            "if (l.y > 3u) { workgroupBarrier(); }",
            "for (var s = 32u; s > 0u; s >>= 1u) { if (l.x < s) { b[l.x] = s; } workgroupBarrier(); }",
            "for (var s = 0u; s < a[g.x]; s++) { storageBarrier(); }",
            "for (var s = 0u; s < workgroupUniformLoad(&shared_one); s++) { storageBarrier(); }",
            "var n = scalars.n; if (l.x == 0u) { b[0] = n; } if (n > 1u) { workgroupBarrier(); }",
            "if (g.x == 1u) { return; } workgroupBarrier();",
            "for (var s = 0u; s < 4u; s++) { workgroupBarrier(); if (l.x == s) { continue; } b[0] = s; }",
            "b[0] = sync(l.x); workgroupBarrier();",
            "b[0] = late(g.x); workgroupBarrier();",
            "if (sum(g.x, 1u) == 3u) { workgroupBarrier(); }",
            "if (l.x > 3u) { b[0] = 1u; } else { b[0] = 2u; } workgroupBarrier();",
            "if (g.x > 3u) { if (l.x > 2u) { return; } } else { workgroupBarrier(); }",
            "switch (g.x) { case 1u: { if (l.x == 1u) { break; } b[0] = 1u; } default: { workgroupBarrier(); } }",
            "switch (g.x) { case 1u: { workgroupBarrier(); } default: { if (l.x == 1u) { break; } b[0] = 1u; } }",
            "var m = l.x; m = 4u; if (m == g.x) { workgroupBarrier(); }",
            "workgroupBarrier(); if (l.x > 3u) { return; } b[0] = 1u;",
        ] {
            assert_eq!(check(body), Ok(()), "{body}");
        }
    }

    #[test]
    fn the_size_and_the_number_of_sub_groups_are_uniform() {
        let code = |condition: &str| {
            format!(
                "enable subgroups;
                 @group(0) @binding(0) var<storage, read_write> b: array<u32>;
                 @compute @workgroup_size(64) fn main(@builtin(subgroup_size) size: u32,
                     @builtin(num_subgroups) number: u32, @builtin(subgroup_id) id: u32) {{
                     if {condition} {{ workgroupBarrier(); }}
                     b[0] = size + number + id;
                 }}"
            )
        };
        let check = |condition| Program::parse(&code(condition), "", &Specialisation::default());
        assert!(check("size > 16u && number < 4u").is_ok());
        assert!(check("size > id").unwrap_err().to_string().contains("a barrier must be reached by all"));
    }

    #[test]
    fn all_barriers_that_break_the_rule_are_named() {
        let error = check(
            "if (l.x > 3u) {\nworkgroupBarrier();\n}\nfor (var s = 0u; s < l.x; s++) {\nstorageBarrier();\n}\n\
             if (g.x > 3u) { workgroupBarrier(); }",
        );
        let error = error.unwrap_err();
        let lines: Vec<_> = error.lines().collect();
        assert_eq!(lines.len(), 2, "{error}");
        let starts = ["k.wgsl:13: a barrier", "k.wgsl:16: a barrier"];
        assert!(lines.iter().zip(starts).all(|(line, start)| line.contains(start)), "{error}");
    }

    #[test]
    fn divergent_control_flow_must_not_have_barriers() {
        for body in [
            "if (l.x > 3u) {\nworkgroupBarrier(); }",
            "if (l.x > 3u) { return; }\nworkgroupBarrier();",
            "for (var s = 0u; s < l.x; s++) {\nworkgroupBarrier(); }",
            "if (b[0] == 1u) {\nworkgroupBarrier(); }",
            "if (shared_one == 1u) {\nworkgroupBarrier(); }",
            "for (var s = 0u; s < 4u; s++) { if (l.x == s) { continue; }\nworkgroupBarrier(); }",
            "loop { if (l.x == 2u) { break; }\nworkgroupBarrier(); }",
            "var m = 4u; if (l.x == 1u) { m = 5u; } if (m == 5u) {\nworkgroupBarrier(); }",
            "var m = 4u; for (var s = 0u; s < l.x; s++) { m++; } if (m == 5u) {\nworkgroupBarrier(); }",
            "if (l.x == 1u && g.x == 2u) {\nworkgroupBarrier(); }",
            "switch (l.x) { case 1u: {\nworkgroupBarrier(); } default: {} }",
            "if (sum(g.x, l.x) == 3u) {\nworkgroupBarrier(); }",
            "if (atomicOne() == 3u) {\nworkgroupBarrier(); }",
        ] {
            let body = body.replace("atomicOne()", "workgroupUniformLoad(&shared_one) + b[1]");
            let error = check(&body).expect_err(&body);
            assert!(error.contains("k.wgsl:13: a barrier must be reached by all"), "{body}: {error}");
            assert!(error.contains("the condition at k.wgsl:12 varies"), "{body}: {error}");
        }
    }

    #[test]
    fn a_uniform_load_has_one_address() {
        let load = |index: &str| {
            let code = format!(
                "var<workgroup> w: array<array<u32, 4>, 4>; @group(0) @binding(0) var<storage, read_write> b: array<u32>;
                 fn load(i: u32) -> u32 {{ return workgroupUniformLoad(&w[1][i]); }}
                 @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {{
                     let p = &w[{index}]; b[i] = workgroupUniformLoad(&p[2]) + load({index});
                 }}"
            );
            Program::parse(&code, "k.wgsl", &Specialisation::default())
                .map(drop)
                .map_err(|error| error.to_string())
        };
        assert_eq!(load("3u"), Ok(()));
        assert_eq!(load("workgroupUniformLoad(&w[0][1])"), Ok(()));
        for index in ["i", "b[0]"] {
            let error = load(index).expect_err(index);
            let lines: Vec<_> = error.lines().collect();
            assert_eq!(lines.len(), 2, "{error}");
            assert!(
                lines.iter().all(|line| line.contains("workgroupUniformLoad reads one address")),
                "{error}"
            );
        }
    }

    #[test]
    fn functions_that_nothing_calls_are_checked_too() {
        let unreached = |function: &str| {
            let code = format!(
                "var<workgroup> w: u32; struct S {{ a: u32 }} override o: u32;
                 fn sync() {{ workgroupBarrier(); }}
                 {function}
                 @compute @workgroup_size(1) fn main() {{}}"
            );
            Program::parse(&code, "k.wgsl", &Specialisation::default())
                .map(drop)
                .map_err(|error| error.to_string())
        };
        for function in [
            "fn f(x: u32, s: S) -> u32 { if x == s.a { workgroupBarrier(); return 1u; } return x; }",
            "fn f(x: ptr<function, u32>) { if *x == o { sync(); } }",
            "fn f(x: ptr<workgroup, u32>) { if workgroupUniformLoad(x) == 1u { sync(); } }",
            "fn f(x: u32) { if g(x) { sync(); } } fn g(x: u32) -> bool { return x == 1u; }",
        ] {
            assert_eq!(unreached(function), Ok(()), "{function}");
        }
        for function in [
            "fn f() { if w == 1u { workgroupBarrier(); } }",
            "fn f(x: ptr<function, u32>) -> u32 { *x = w; if *x == o { sync(); } return 1u; }",
            "fn f(x: u32) { if g(x) { sync(); } } fn g(x: u32) -> bool { return x == w; }",
            "fn f(x: u32) { if x == w { return; } sync(); } fn g() { f(1u); }",
        ] {
            let error = unreached(function).expect_err(function);
            assert!(
                error.contains("k.wgsl:3: a barrier must be reached by all")
                    || error.contains("k.wgsl:2: a barrier"),
                "{function}: {error}"
            );
        }
    }

    #[test]
    fn barriers_in_functions_are_reported_at_their_own_line() {
        let error = check("b[0] = late(l.x);").expect_err("late");
        assert!(error.contains("k.wgsl:7: a barrier"), "{error}");
        let error = check("if (l.x == 1u) { b[0] = sync(1u); }").expect_err("sync");
        assert!(error.contains("k.wgsl:6: a barrier") && error.contains("condition at k.wgsl:12"), "{error}");
    }
}
