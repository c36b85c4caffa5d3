//! Rejects barriers in non-uniform control flow, which naga lets pass.
//!
//! A barrier needs every invocation of the work-group, or none. So no condition that differs from one invocation to
//! another may decide whether it is reached: not the branch or the loop that it stands in, and not one by which some
//! invocations returned before.

use naga::valid::ModuleInfo;
use naga::{Block, Expression, Function, Handle, Module, Span, Statement};
use runtime_core::{Error, ErrorKind, Result};

use crate::analysis::uniformity::Uniformity;
use crate::ir::blocks::{self, Skip, has_barrier, is_barrier};
use crate::parse;
use crate::program::Program;
use crate::transform::inline::inline;

/// Checks every entry point of a program.
///
/// # Errors
/// `CompileFailed`, which names the line of the barrier and of the condition that varies.
pub(crate) fn check(program: &Program) -> Result<()> {
    let module = &program.module;
    let waits = waiting(module);
    let none = !waits.contains(&true) && !module.entry_points.iter().any(|p| has_barrier(&p.function.body));
    if none || functions_apart(module, &program.info, &waits) {
        return Ok(());
    }
    // A function may be right only for the arguments that it is called with.
    let inlined = inline(module, &program.info, false)?;
    let info = parse::validate_again(&inlined)?;
    check_entries(&inlined, &info, &[]).map_err(|found| error(&found, &|span| program.place(span)))
}

/// Whether every function is right whatever its arguments, and called where all invocations are if it has barriers:
/// most are, and then nothing needs to be taken apart.
fn functions_apart(module: &Module, info: &ModuleInfo, waits: &[bool]) -> bool {
    let functions = module.functions.iter().zip(waits).filter(|(_, waits)| **waits);
    functions.into_iter().all(|((handle, function), _)| {
        Walk::whole(&Uniformity::of_function(module, info, handle), function, waits).is_ok()
    }) && check_entries(module, info, waits).is_ok()
}

fn check_entries(module: &Module, info: &ModuleInfo, waits: &[bool]) -> std::result::Result<(), Found> {
    module.entry_points.iter().enumerate().try_for_each(|(index, point)| {
        Walk::whole(&Uniformity::of(module, info, index), &point.function, waits)
    })
}

/// For every function, whether it has a barrier, or calls one that does.
fn waiting(module: &Module) -> Vec<bool> {
    let mut known = Vec::with_capacity(module.functions.len());
    for (_, function) in module.functions.iter() {
        known.push(waits(&function.body, &known));
    }
    known
}

/// Whether a block has a barrier, or calls a function that does.
fn waits(block: &Block, functions: &[bool]) -> bool {
    blocks::any(block, &mut |statement| match statement {
        Statement::Call { function, .. } => functions.get(function.index()) == Some(&true),
        other => is_barrier(other),
    })
}

/// A barrier that not all reach: where it is, and where the condition.
struct Found {
    barrier: Span,
    condition: Span,
}

/// The condition by which invocations part, if any did.
type Parted = Option<Span>;

/// A loop or a switch: the conditions by which some have left it, and by which some skip the rest of the iteration.
#[derive(Clone, Default)]
struct Frame {
    is_loop: bool,
    left: Parted,
    skipped: Parted,
}

struct Walk<'a> {
    uniformity: &'a Uniformity,
    function: &'a Function,
    /// By function: whether a call of it is a barrier.
    waits: &'a [bool],
    /// Some invocations have returned, by this condition.
    gone: Parted,
    frames: Vec<Frame>,
}

impl<'a> Walk<'a> {
    /// Checks a body from its beginning, where all invocations are.
    fn whole(
        uniformity: &'a Uniformity,
        function: &'a Function,
        waits: &'a [bool],
    ) -> std::result::Result<(), Found> {
        Self { uniformity, function, waits, gone: None, frames: Vec::new() }.block(&function.body, None)
    }

    /// `parted` is the condition of a branch around the block.
    fn block(&mut self, block: &Block, parted: Parted) -> std::result::Result<(), Found> {
        for (statement, &span) in block.span_iter() {
            self.statement((statement, span), parted)?;
        }
        Ok(())
    }

    fn statement(
        &mut self,
        (statement, span): (&Statement, Span),
        parted: Parted,
    ) -> std::result::Result<(), Found> {
        match statement {
            Statement::ControlBarrier(_) | Statement::WorkGroupUniformLoad { .. } => {
                self.barrier(span, parted)
            }
            Statement::Call { function, .. } if self.waits.get(function.index()) == Some(&true) => {
                self.barrier(span, parted)
            }
            Statement::Block(block) => self.block(block, parted),
            Statement::If { condition, accept, reject } => {
                let parted = parted.or_else(|| self.varies(*condition, span));
                self.branches(&[accept, reject], parted)
            }
            Statement::Switch { selector, cases } => {
                let parted = parted.or_else(|| self.varies(*selector, span));
                let bodies: Vec<&Block> = cases.iter().map(|case| &case.body).collect();
                self.frames.push(Frame::default());
                let checked = self.branches(&bodies, parted);
                self.frames.pop();
                checked
            }
            Statement::Loop { body, continuing, break_if } => self.cycle(
                body,
                continuing,
                break_if.and_then(|condition| self.varies(condition, span)),
                parted,
            ),
            Statement::Break => {
                let reason = self.reason(parted);
                if let Some(frame) = self.frames.last_mut() {
                    frame.left = frame.left.or(reason);
                }
                Ok(())
            }
            Statement::Continue => {
                self.skip(parted);
                Ok(())
            }
            Statement::Return { .. } | Statement::Kill => {
                self.gone = self.gone.or_else(|| self.reason(parted));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Each branch begins as control flow is before all; after them, what happened in any may have happened.
    fn branches(&mut self, blocks: &[&Block], parted: Parted) -> std::result::Result<(), Found> {
        let before = (self.gone, self.frames.clone());
        let (mut gone, mut frames) = before.clone();
        for block in blocks {
            (self.gone, self.frames) = before.clone();
            self.block(block, parted)?;
            gone = gone.or(self.gone);
            for (frame, after) in frames.iter_mut().zip(&self.frames) {
                frame.left = frame.left.or(after.left);
                frame.skipped = frame.skipped.or(after.skipped);
            }
        }
        (self.gone, self.frames) = (gone, frames);
        Ok(())
    }

    fn barrier(&self, barrier: Span, parted: Parted) -> std::result::Result<(), Found> {
        match self.reason(parted) {
            Some(condition) => Err(Found { barrier, condition }),
            None => Ok(()),
        }
    }

    /// Why control flow is not uniform here.
    fn reason(&self, parted: Parted) -> Parted {
        parted
            .or(self.gone)
            .or_else(|| self.frames.iter().rev().find_map(|frame| frame.left.or(frame.skipped)))
    }

    /// Some invocations go on with the `continuing` block, out of the switches in the loop.
    fn skip(&mut self, parted: Parted) {
        let reason = self.reason(parted);
        for frame in self.frames.iter_mut().rev() {
            frame.skipped = frame.skipped.or(reason);
            if frame.is_loop {
                break;
            }
        }
    }

    /// A loop is walked twice: what parts the invocations late in one iteration is there early in the next.
    fn cycle(
        &mut self,
        body: &Block,
        continuing: &Block,
        break_if: Parted,
        parted: Parted,
    ) -> std::result::Result<(), Found> {
        let repeats = repeats(body);
        let depth = self.frames.len();
        self.frames.push(Frame { is_loop: true, ..Frame::default() });
        let mut checked = Ok(());
        for _ in 0..=u8::from(repeats) {
            checked = checked.and_then(|()| self.block(body, parted));
            self.frames[depth].skipped = None;
            checked = checked.and_then(|()| self.block(continuing, parted));
            self.frames[depth].left = self.frames[depth].left.or(break_if);
        }
        self.frames.truncate(depth);
        checked
    }

    /// Where a condition stands, if it varies; where its statement does, if it has no place of its own.
    fn varies(&self, condition: Handle<Expression>, statement: Span) -> Parted {
        if self.uniformity.is_uniform(condition) {
            return None;
        }
        let span = self.function.expressions.get_span(condition);
        Some(if span.is_defined() { span } else { statement })
    }
}

/// Whether control may come to the end of a loop's body, or continue it: a loop that ends in `break` has one iteration.
fn repeats(body: &Block) -> bool {
    !matches!(body.last(), Some(Statement::Break | Statement::Return { .. }))
        || Skip::of_block(body) == Skip::Continue
}

fn error(found: &Found, place: &dyn Fn(Span) -> String) -> Error {
    Error::new(
        ErrorKind::CompileFailed,
        format!(
            "{}: a barrier must be reached by all invocations of a work-group, but the condition at {} varies \
             within it; move the barrier out of that control flow",
            place(found.barrier),
            place(found.condition)
        ),
    )
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
    fn other_control_flow_may_not() {
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
    fn barriers_of_functions_are_found_where_they_are() {
        let error = check("b[0] = late(l.x);").expect_err("late");
        assert!(error.contains("k.wgsl:7: a barrier"), "{error}");
        let error = check("if (l.x == 1u) { b[0] = sync(1u); }").expect_err("sync");
        assert!(error.contains("k.wgsl:6: a barrier") && error.contains("condition at k.wgsl:12"), "{error}");
    }
}
