//! Rejects barriers, operations on cooperative matrices and operations of subgroups in non-uniform control flow, which naga
//! accepts.
//!
//! Every invocation of a work-group must reach a barrier, or none. So no condition that varies within the group may
//! decide whether a barrier is reached: neither the branch or loop around it, nor one by which some invocations
//! returned earlier. The same holds of a subgroup and its operations, where the text does not turn the diagnostic
//! `subgroup_uniformity` off.

use naga::Module;
use naga::valid::ModuleInfo;
use runtime_core::{Error, ErrorKind, Result};

use super::divergence::{Divergent, Operations, Walk, What};
use super::unreached;
use crate::analysis::uniformity::Uniformity;
use crate::parse;
use crate::parse::diagnostic_filters::Filters;
use crate::parse::diagnostics::location;
use crate::program::Program;
use crate::transform::inline::{Purpose, inline};

/// Further messages are dropped.
const MAX_MESSAGES: usize = 20;

/// What the invocations of a work-group must do together.
const BARRIER: &str = "a barrier must be reached by all invocations of a work-group";
const EMULATED: &str =
    "on a device without subgroups, a subgroup operation must be reached by all invocations of a work-group";

/// Checks every entry point of a program.
///
/// # Errors
/// `CompileFailed`, naming the lines of all operations that break the rule and of the conditions that vary.
pub(crate) fn check(program: &Program) -> Result<()> {
    let text = (program.source.as_str(), program.path.as_str());
    check_standard((&program.module, &program.info), text, Filters::of_subgroups(text.0).as_ref())
}

/// Checks the functions of a text that no entry point reaches.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_unreached(module: &Module, code: &str, path: &str) -> Result<()> {
    let filters = Filters::of_subgroups(code);
    let mut wanted = Operations::OfGroups.in_functions(module);
    if let Some(filters) = &filters {
        let others = Operations::OfSubgroups(filters).in_functions(module);
        wanted.iter_mut().zip(others).for_each(|(wanted, other)| *wanted |= other);
    }
    let Some(module) = unreached::as_entry_points(module, &wanted) else {
        return Ok(());
    };
    let info = parse::validate_again(&module)?;
    check_standard((&module, &info), (code, path), filters.as_ref())
}

/// Checks a program whose subgroup operations have become functions with barriers.
///
/// # Errors
/// `Unsupported`, naming the lines of the operations and of the conditions that vary.
pub(crate) fn check_emulated(program: &Program) -> Result<()> {
    let found = divergent((&program.module, &program.info), Operations::Emulated)?;
    report(&found, (&program.source, &program.path), (ErrorKind::Unsupported, EMULATED))
}

/// The rules of WGSL. Without `filters`, nothing is to be said of subgroups.
fn check_standard(
    module: (&Module, &ModuleInfo),
    text: (&str, &str),
    filters: Option<&Filters>,
) -> Result<()> {
    let mut found = divergent(module, Operations::OfGroups)?;
    if let Some(filters) = filters {
        found.extend(divergent(module, Operations::OfSubgroups(filters))?);
    }
    report(&found, text, (ErrorKind::CompileFailed, BARRIER))
}

fn report(found: &[Divergent], text: (&str, &str), (kind, barrier_rule): (ErrorKind, &str)) -> Result<()> {
    let mut messages: Vec<_> = found.iter().map(|found| found.message(text, barrier_rule)).collect();
    messages.dedup();
    messages.truncate(MAX_MESSAGES);
    if messages.is_empty() { Ok(()) } else { Err(Error::new(kind, messages.join("\n"))) }
}

/// The operations in non-uniform control flow.
fn divergent((module, info): (&Module, &ModuleInfo), operations: Operations<'_>) -> Result<Vec<Divergent>> {
    let functions = operations.in_functions(module);
    let none = !functions.contains(&true)
        && !module.entry_points.iter().any(|point| operations.are_in(&point.function, &[]));
    if none || functions_pass_alone(module, info, (operations, &functions)) {
        return Ok(Vec::new());
    }
    // A function may be correct only for the arguments of its actual calls.
    let purpose = match operations {
        Operations::OfGroups | Operations::OfSubgroups(_) => Purpose::AsWritten,
        Operations::Emulated => Purpose::SpeedWithoutUnrolling,
    };
    let inlined = inline(module, info, purpose)?;
    let info = parse::validate_again(&inlined)?;
    Ok(in_entries(&inlined, &info, (operations, &[])))
}

/// Whether every function passes for any arguments, and every call of one with such operations is in uniform control
/// flow. Most kernels pass, and then nothing has to be inlined.
fn functions_pass_alone(
    module: &Module,
    info: &ModuleInfo,
    (operations, functions): (Operations<'_>, &[bool]),
) -> bool {
    let concerned = module.functions.iter().zip(functions).filter(|(_, concerned)| **concerned);
    concerned.into_iter().all(|((handle, function), _)| {
        let uniformity = Uniformity::of_function(module, info, handle, operations.rules());
        Walk::check_body(&uniformity, function, (operations, functions)).is_empty()
    }) && in_entries(module, info, (operations, functions)).is_empty()
}

fn in_entries(
    module: &Module,
    info: &ModuleInfo,
    (operations, functions): (Operations<'_>, &[bool]),
) -> Vec<Divergent> {
    let points = module.entry_points.iter().enumerate();
    let found = points.flat_map(|(index, point)| {
        let uniformity = Uniformity::of_entry(module, info, index, operations.rules());
        Walk::check_body(&uniformity, &point.function, (operations, functions))
    });
    found.collect()
}

impl Divergent {
    fn message(&self, (code, path): (&str, &str), barrier_rule: &str) -> String {
        let (rule, remedy) = match self.what {
            What::Barrier => (barrier_rule, GROUP_REMEDY),
            What::Matrix => (MATRIX_RULE, GROUP_REMEDY),
            What::Subgroup => (SUBGROUP_RULE, SUBGROUP_REMEDY),
            What::Address => return format!("{}: {ADDRESS_RULE}", location(code, path, self.operation)),
            What::Distance => return format!("{}: {DISTANCE_RULE}", location(code, path, self.operation)),
        };
        format!(
            "{}: {rule}, but the condition at {} varies within it; move it out of that control flow, or {remedy}",
            location(code, path, self.operation),
            location(code, path, self.condition)
        )
    }
}

const GROUP_REMEDY: &str = "make the condition the same for all of them, as workgroupUniformLoad does";

const MATRIX_RULE: &str =
    "an operation on cooperative matrices must be reached by all invocations of a work-group";

const ADDRESS_RULE: &str = "workgroupUniformLoad reads one address for all invocations of a work-group, but this one varies within it; \
     load without it, or use an index that is the same for all of them";

const SUBGROUP_RULE: &str = "a subgroup operation must be reached by all invocations of a subgroup";

const SUBGROUP_REMEDY: &str =
    "write `diagnostic(off, subgroup_uniformity);` before all declarations if the program knows better";

const DISTANCE_RULE: &str = "subgroupShuffleUp, subgroupShuffleDown and subgroupShuffleXor have one second argument for all \
     invocations of a subgroup, but this one varies within it; use subgroupShuffle, or write \
     `diagnostic(off, subgroup_uniformity);` before all declarations if the program knows better";

#[cfg(test)]
mod tests {
    use crate::{Program, Specialisation};

    fn check(body: &str) -> Result<(), String> {
        let code = format!(
            "@group(0) @binding(0) var<storage, read> a: array<u32>;
             @group(0) @binding(1) var<storage, read_write> b: array<u32>;
             struct Scalars {{ n: u32 }}
             var<immediate> scalars: Scalars;
             var<workgroup> shared_one: u32; var<private> private_one: u32;
             struct Mixed {{ @builtin(local_invocation_index) l: u32, @builtin(num_workgroups) g: vec3<u32> }}
             fn sync(x: u32) -> u32 {{ workgroupBarrier(); if (x == 3u) {{ return 4u; }} return x; }}
             fn late(x: u32) -> u32 {{ if (x == 3u) {{ return 4u; }} workgroupBarrier(); return x; }}
             fn sum(x: u32, y: u32) -> u32 {{ return x + y; }}
             @compute @workgroup_size(64)
             fn main(@builtin(local_invocation_id) l: vec3<u32>, @builtin(workgroup_id) g: vec3<u32>, mixed: Mixed) {{
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
            "for (var s = 32u; s > 0u; s >>= 1u) { if (l.x < s) { b[l.x] = s; } workgroupBarrier(); }",
            "for (var s = 0u; s < a[g.x]; s++) { storageBarrier(); }",
            "for (var s = 0u; s < workgroupUniformLoad(&shared_one); s++) { storageBarrier(); }",
            "var n = scalars.n; if (l.x == 0u) { b[0] = n; } if (n > 1u) { workgroupBarrier(); }",
            "if (g.x == 1u) { return; } workgroupBarrier();",
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
        let starts = ["k.wgsl:14: a barrier", "k.wgsl:17: a barrier"];
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
            "var m = 4u; switch g.x { case 1u: { if l.x == 1u { break; } m = 5u; } default: {} } if m == 5u {\nworkgroupBarrier(); }",
            "switch (l.x) { case 1u: {\nworkgroupBarrier(); } default: {} }",
            "if (l.y > 3u) {\nworkgroupBarrier(); }",
            "if (vec2(g.x, l.x).x > 3u) {\nworkgroupBarrier(); }",
            "if (mixed.g.x > 3u) {\nworkgroupBarrier(); }",
            "var v = g; v.y = l.x; if (v.x > 3u) {\nworkgroupBarrier(); }",
            "private_one = 1u; if (private_one == 1u) {\nworkgroupBarrier(); }",
            "var m = array<u32, 2>(); let p = &m[l.y]; if (*p == 1u) {\nworkgroupBarrier(); }",
            "if (sum(g.x, l.x) == 3u) {\nworkgroupBarrier(); }",
            "if (atomicOne() == 3u) {\nworkgroupBarrier(); }",
        ] {
            let body = body.replace("atomicOne()", "workgroupUniformLoad(&shared_one) + b[1]");
            let error = check(&body).expect_err(&body);
            assert!(error.contains("k.wgsl:14: a barrier must be reached by all"), "{body}: {error}");
            assert!(error.contains("the condition at k.wgsl:13 varies"), "{body}: {error}");
        }
    }

    #[test]
    fn those_who_continue_are_apart_in_the_next_iteration() {
        let error =
            check("loop {\nstorageBarrier();\nif (l.x == 1u) { continue; } if (g.x == 1u) { break; } }");
        let error = error.expect_err("continue");
        assert!(error.contains("k.wgsl:14: a barrier"), "{error}");
        assert!(error.contains("the condition at k.wgsl:15 varies"), "{error}");
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
        assert!(error.contains("k.wgsl:8: a barrier"), "{error}");
        let error = check("if (l.x == 1u) { b[0] = sync(1u); }").expect_err("sync");
        assert!(error.contains("k.wgsl:7: a barrier") && error.contains("condition at k.wgsl:13"), "{error}");
    }
}
