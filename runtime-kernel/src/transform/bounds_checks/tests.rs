//! Which accesses are checked, and that the resulting modules are valid.

use std::path::Path;

use super::*;
use crate::Specialisation;
use crate::parse::validate;
use crate::program::Dialect;
use crate::tests::programs;

/// How each indexed access of a function is treated, in the order of the text: `c` checked, `o` unchecked under a
/// launch precondition, `p` proven in range.
fn outcomes(program: &Program, context: FunctionContext<'_>, checker: &BoundsChecker) -> String {
    let source = checker.source(program, context);
    let expressions = &context.function.expressions;
    let accesses = expressions.iter().filter_map(|(handle, expression)| {
        let Expression::Access { base, .. } = *expression else { return None };
        range::length(context, base)?;
        let outcome = match source.checks[handle.index()] {
            None => 'p',
            Some(Check { covered: true, .. }) => 'o',
            Some(_) => 'c',
        };
        Some((expressions.get_span(handle).to_range().map(|range| range.start), outcome))
    });
    let mut accesses: Vec<_> = accesses.collect();
    accesses.sort();
    accesses.into_iter().map(|(_, outcome)| outcome).collect()
}

/// By function of a program, how its accesses are treated.
fn outcomes_of(program: &Program) -> Vec<(String, String)> {
    let (bounds, module) = (AllBounds::of(program), &program.module);
    let checker = BoundsChecker {
        types: UniqueArena::new(),
        functions: Arena::new(),
        variants: Vec::new(),
        preconditions: vec![Preconditions::new(); module.functions.len()],
        unchecked_variants: allows_unchecked_variants(module),
        report: None,
    };
    let functions = module.functions.iter().map(|(handle, function)| {
        let outcomes = outcomes(program, bounds.function(program, handle), &checker);
        (function.name.clone().unwrap_or_default(), outcomes)
    });
    let entries = module.entry_points.iter().enumerate().map(|(index, entry)| {
        (entry.name.clone(), outcomes(program, bounds.entry(program, index), &checker))
    });
    functions.chain(entries).filter(|(_, outcomes)| !outcomes.is_empty()).collect()
}

/// The table in `tests/accesses.txt`.
fn accesses() -> String {
    let lines = programs().into_iter().flat_map(|(name, program)| {
        let outcomes = outcomes_of(&program).into_iter();
        outcomes
            .map(move |(function, outcomes)| format!("{name} {function} {outcomes}\n"))
            .collect::<Vec<_>>()
    });
    lines.collect()
}

const PROVEN: &str = "struct Scalars { n: u32, m: u32, i: i32 }
var<immediate> s: Scalars;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> x_: array<u32>;
var<workgroup> tile: array<u32, 64>;
var<workgroup> few: array<u32, 1>;
fn change(p: ptr<function, u32>) { *p = y[0]; }
fn place(i: u32) -> u32 { return i + i / 32u; }
fn late(i: u32) -> u32 { if i > 3u { return 99u; } return i; }
fn signed(i: i32) -> i32 { return i; }
fn fixed() -> u32 { return 63u; }
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) l: u32,
    @builtin(local_invocation_id) lid: vec3u, @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u) { let v = y[0]; ";

/// The statements of `tests/proofs.txt`, with how their accesses are treated.
fn proofs(due: &str) -> String {
    let lines = due.lines().map(|line| {
        let (_, body) = line.split_once(' ').unwrap();
        let program = Program::parse(&format!("{PROVEN}{body} }}"), "", &Specialisation::default());
        let outcomes = outcomes_of(&program.unwrap_or_else(|error| panic!("{body}: {error}")));
        let main = outcomes.iter().find(|(function, _)| function == "main");
        format!("{} {body}\n", main.map_or("-", |(_, outcomes)| outcomes))
    });
    lines.collect()
}

fn matches_golden_file(file: &str, made: impl Fn(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
    let due = std::fs::read_to_string(&path).unwrap_or_default();
    let is = made(&due);
    if std::env::var_os("RUNTIME_WRITE_ACCESSES").is_some() {
        return std::fs::write(path, is).unwrap();
    }
    let other: Vec<_> = is.lines().filter(|line| !due.lines().any(|due| due == *line)).collect();
    assert!(is == due, "{}, or others are gone; RUNTIME_WRITE_ACCESSES=1 writes {file}", other.join("\n"));
}

/// A check that disappears must be proven unnecessary, and a new one costs time: after any change to the proofs,
/// review each difference.
#[test]
fn checked_accesses_match_the_tables() {
    matches_golden_file("accesses.txt", |_| accesses());
    matches_golden_file("proofs.txt", proofs);
}

#[test]
fn checked_modules_are_valid() {
    for (_, program) in programs() {
        for checks in [Checks::Bounded, Checks::BoundedOnce] {
            let module = with_checks(&program, checks).unwrap();
            if let Err(error) = validate(&module) {
                panic!("{}: {}", program.path(), error.emit_to_string(&program.source));
            }
        }
    }
}

#[test]
fn an_index_of_64_bits_is_compared_in_64_bits() {
    let code = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
        var<workgroup> t: array<u32, 4>;
        @compute @workgroup_size(1) fn main(@builtin(workgroup_id) g: vec3<u32>) {
            y[u64(g.x) << 32u] = t[i64(g.y) << 32u];
        }";
    let program = Program::parse(code, "", &Specialisation::default()).unwrap();
    let module = with_checks(&program, Checks::Bounded).unwrap();
    let wide = |ty: &naga::proc::TypeResolution| {
        ty.inner_with(&module.types).scalar().is_some_and(|scalar| scalar.width == 8)
    };
    let info = validate(&module).unwrap();
    let info = info.get_entry_point(0);
    let mut compared = 0;
    for (_, expression) in module.entry_points[0].function.expressions.iter() {
        if let &Expression::Binary { op: naga::BinaryOperator::Less, left, right } = expression {
            assert!(wide(&info[left].ty) && wide(&info[right].ty));
            compared += 1;
        }
    }
    assert_eq!(compared, 2);
}

const LAUNCHED: &str = "struct S { n: i32, m: u32 }
var<immediate> s: S;
struct Rows { count: u32, at: array<u32> }
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read> x: Rows;
struct In { @builtin(num_workgroups) groups: vec3u, @builtin(global_invocation_id) id: vec3u }
@compute @workgroup_size(64) fn main(in: In, @builtin(local_invocation_index) l: u32) {
    var own: array<u32, 64>;
    own[l] = 2u;
    switch s.m {
        case 1u: { own[l] = x.at[in.id.x]; }
        default: { y[in.id.x] = array<u32, 4>(1u, 2u, 3u, s.m)[x.count]; }
    }
    for (var k = 0u; k < s.m; k++) { y[2u * k] += own[x.count]; }
    for (var k = 0u; k < u32(s.n); k++) { y[k] = 1u; }
}";

/// The OpenCL C of a program without its library.
fn text(program: &Program) -> String {
    let text = program.c(Dialect::OpenCl, Checks::Unchecked).unwrap().text;
    text[text.find("__kernel").unwrap()..].to_owned()
}

fn launched() -> Program {
    Program::parse(LAUNCHED, "", &Specialisation::default()).unwrap()
}

fn guarded_text(checks: Checks) -> String {
    let program = launched();
    text(&program.with(with_checks(&program, checks).unwrap()).unwrap())
}

#[test]
fn a_launch_that_satisfies_its_preconditions_runs_the_unchecked_variant() {
    let whole = guarded_text(Checks::Bounded);
    let (accepted, rejected) = whole.split_once("    } else {\n        own.at").unwrap();
    let (condition, accepted) = accepted.split_once("{\n        own.at").unwrap();
    for part in [
        "t1 > 2147483647u ? 4294967295u : t1 * 2u;",
        "= 1u + y_length;",
        "in.groups.x > 67108863u ? 4294967295u : in.groups.x * 64u;",
        "<= x_length",
        "(u32)s.n;",
    ] {
        assert!(condition.contains(part), "{part}: {condition}");
    }
    // Reads of composite values are checked in both variants, those covered by the precondition in one.
    for (body, checks) in [(accepted, [1, 0, 0]), (rejected, [1, 1, 4])] {
        let found =
            [" < 4u) {", "in.id.x < x_length", " < y_length"].map(|check| body.matches(check).count());
        assert_eq!(found, checks, "{body}");
        assert_eq!(body.matches("switch (s.m)").count(), 1, "{body}");
    }
}

/// A launch of any size may have such scalars: what wraps may be below every limit.
#[test]
fn sums_and_products_that_wrap_fail_the_precondition() {
    let code = "struct S { m: u32, k: u32 }
        var<immediate> s: S;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(8, 8) fn main(@builtin(local_invocation_id) l: vec3u) {
            if l.y < s.m && l.x < s.k { y[l.y * s.k + l.x] = 1u; }
            if l.x < s.m { y[s.k + l.x] = 1u; }
        }";
    let program = Program::parse(code, "", &Specialisation::default()).unwrap();
    let text = text(&program.with(with_checks(&program, Checks::Bounded).unwrap()).unwrap());
    for part in
        ["t2 < t1 ? 4294967295u : t2;", "? t4 * t5 : 4294967295u;", "t3 < 4294967295u", "t6 < 4294967295u"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn every_index_of_a_chain_is_checked() {
    let code = "@group(0) @binding(0) var<storage, read_write> y: array<array<u32, 4>>;
        @group(0) @binding(1) var<storage, read> at: array<u32, 3>;
        @compute @workgroup_size(1) fn main() { y[at[0]][at[1]] = at[2]; }";
    let program = Program::parse(code, "", &Specialisation::default()).unwrap();
    let in_module = text(&program.with(with_checks(&program, Checks::BoundedOnce).unwrap()).unwrap());
    let printed = program.c(Dialect::OpenCl, Checks::BoundedOnce).unwrap().text;
    let (_, printed) = printed.split_once("__kernel").unwrap();
    for text in [&*in_module, printed] {
        for check in [" < y_length", " < 4u"] {
            assert!(text.contains(check), "{check}: {text}");
        }
    }
}

/// An index that wraps around passes its check, and a driver may compute its address in more bits.
#[test]
fn checked_indices_into_private_variables_are_also_clamped() {
    let code = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
        var<private> p: array<u32, 5>;
        @compute @workgroup_size(1) fn main(@builtin(workgroup_id) g: vec3u) {
            var f: array<u32, 7>;
            f[y[0] * 2u] = p[y[1] * 2u] + p[i64(y[2]) * 2li] + f[g.x & 3u];
        }";
    let program = Program::parse(code, "", &Specialisation::default()).unwrap();
    let text = text(&program.with(with_checks(&program, Checks::BoundedOnce).unwrap()).unwrap());
    for (least, count) in [(", 4u)", 1), (", 6u)", 1), (", 4UL)", 1)] {
        assert_eq!(text.matches(least).count(), count, "{least}: {text}");
    }
}

#[test]
fn a_program_with_bounded_once_has_one_variant() {
    let once = guarded_text(Checks::BoundedOnce);
    assert_eq!(once.matches("switch (s.m)").count(), 1, "{once}");
    assert!(!once.contains("4294967295u"), "{once}");
}

#[test]
fn failed_proofs_report_their_line_in_a_leading_tensor() {
    let program = with_reports(&launched(), Checks::BoundedOnce).unwrap();
    let text = text(&program);
    for line in [9, 11] {
        assert!(text.contains(&format!("atomic_max(report, {line}u);")), "{text}");
    }
    assert!(!text.contains("atomic_max(report, 14u);"), "checked: {text}");
    let variables = program.module.global_variables.iter().filter_map(|(_, variable)| variable.binding);
    let bindings: Vec<_> = variables.map(|binding| binding.binding).collect();
    assert_eq!(bindings, [1, 2, 0]);
    let tensors = program.interfaces[0].tensors.iter().map(|tensor| (tensor.name.as_str(), tensor.binding));
    assert_eq!(tensors.collect::<Vec<_>>(), [("report", 0), ("y", 1), ("x", 2)]);
}
