//! Correct schedules pass, and each broken one is rejected by the rule that it breaks.

use naga::{Expression, Statement};
use runtime_core::ErrorKind;

use super::super::entry::verified;
use super::super::prepare;
use super::super::schedule::steps::{Condition, Numbered, Step};
use super::super::schedule::variable_storage::Storage;
use super::super::schedule::{Form, Schedule};
use super::{Rule, verify};
use crate::analysis::proof::FunctionContext;
use crate::analysis::proof::bounds::AllBounds;
use crate::ir::blocks::Skip;
use crate::ir::{Local, Value};
use crate::parse::specialise::Specialisation;
use crate::print::c::invocation::plan::Plan;
use crate::print::c::writer::Writer;
use crate::program::{Checks, Dialect, Program};
use crate::tests::programs;

fn parsed(code: &str) -> Program {
    Program::parse(code, "broken.wgsl", &Specialisation::default()).expect(code)
}

/// Schedules every entry point of a program.
fn each(program: &Program, form: Form, mut visit: impl FnMut(&str, Schedule, FunctionContext<'_>)) {
    let program = prepare(program).expect("a program");
    let bounds = AllBounds::of(&program);
    let writer = Writer::new(&program, &bounds, Dialect::Host, Checks::Bounded).expect("layouts");
    for (index, point) in program.module.entry_points.iter().enumerate() {
        let context = bounds.entry(&program, index);
        let plan = Plan::new(&writer, context);
        let named = |value: Value| plan.is_named(value);
        match Schedule::of(&program, index, context, (Checks::Bounded, point.workgroup_size[0]), &named, form)
        {
            Ok(schedule) => visit(&point.name, schedule, context),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}"),
        }
    }
}

#[test]
fn every_schedule_of_the_repository_verifies() {
    let mut count = 0;
    for (name, program) in programs() {
        for form in [Form::Full, Form::Plain] {
            each(&program, form, |entry, schedule, context| {
                count += 1;
                assert_eq!(verify(&schedule, context), Ok(()), "{entry} of {name}, {form:?}");
            });
        }
    }
    assert!(count >= 150, "{count}");
}

const HEAD: &str = "
struct S { k: u32, m: u32 }
var<immediate> s: S;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<u32>;
var<workgroup> w: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) l: u32) { _ = y[0]; _ = x[0]; ";

const AHEAD: &str =
    "var t: array<u32, 4>; if s.k >= 4u || id.x >= s.m { return; } t[s.k] = 5u; y[id.x] = t[1] + t[s.k];";
const RETURNS: &str = "for (var k = 0u; k < s.m; k++) { if l == k { return; } y[id.x] += 1u; }";
const ACROSS: &str = "let a = y[l] * 3u + l; var v = l * x[l]; w[l] = v; workgroupBarrier(); v += w[63u - l]; y[id.x] = a + v;";
const CARRIED: &str = "var sum = l; for (var j = 0u; j < s.k; j++) { sum += x[j * 64u + l]; } y[id.x] = sum;";
const LIMBS: &str = "var r: array<u32, 32>; var b = l; for (var i = 0u; i < 32u; i++) { r[i] = b + i;
    if b % 3u == 1u { r[i] += 7u; b = 1u; } else { b = 5u; } } y[id.x] = r[l % 32u];";
const SKIPS: &str =
    "switch s.k { case 1u: { workgroupBarrier(); y[id.x] = 7u; if l < 3u { break; } y[id.x] = 8u; }
    default: { y[id.x] = 6u; } } y[id.x] += 1u;";
const GROUPED: &str =
    "var k = 1u; let a = x[k] + l; y[id.x] = 1u; k = 5u; workgroupBarrier(); y[id.x] += a + x[k];";

/// The schedule of a kernel with one entry point.
fn schedule(code: &str, form: Form, visit: impl FnOnce(Schedule, FunctionContext<'_>)) {
    let mut visit = Some(visit);
    each(&parsed(code), form, |_, schedule, context| {
        visit.take().expect("one entry point")(schedule, context);
    });
    assert!(visit.is_none());
}

/// Breaks the schedule of a kernel, and expects it to be rejected and replaced by the plain one.
fn broken(body: &str, expected: Rule, break_it: impl Fn(&mut Schedule, FunctionContext<'_>)) {
    let code = format!("{HEAD}{body} }}");
    let mut plain = None;
    schedule(&code, Form::Plain, |schedule, _| plain = Some(schedule));
    schedule(&code, Form::Full, |mut schedule, context| {
        assert_eq!(verify(&schedule, context), Ok(()), "{body}");
        break_it(&mut schedule, context);
        let rule = verify(&schedule, context).map_err(|rejected| rejected.rule);
        assert_eq!(rule, Err(expected), "{body}");
        let (taken, why) = verified(schedule, || Ok(plain.expect("it was made")), context).expect(body);
        assert_eq!((verify(&taken, context), why.map(|why| why.rule)), (Ok(()), Some(expected)), "{body}");
    });
}

#[test]
fn a_correct_schedule_is_used_and_two_wrong_ones_are_an_error() {
    let code = format!("{HEAD}{AHEAD} }}");
    schedule(&code, Form::Full, |right, context| {
        let (_, why) = verified(right, || unreachable!("no other one is made"), context).expect("right");
        assert_eq!(why, None);
    });
    let wrong = || {
        let mut wrong = None;
        schedule(&code, Form::Full, |mut schedule, context| {
            unchecked_ahead(&mut schedule, context);
            wrong = Some(schedule);
        });
        wrong.expect("it was made")
    };
    schedule(&code, Form::Full, |_, context| {
        let error = verified(wrong(), || Ok(wrong()), context).expect_err("both are wrong");
        assert_eq!(error.kind(), ErrorKind::Internal);
    });
}

/// Moves an access ahead of the conditions around it.
fn unchecked_ahead(schedule: &mut Schedule, context: FunctionContext<'_>) {
    let mut all = context.function.expressions.iter();
    let access = all.find(|(_, expression)| matches!(expression, Expression::Access { .. }));
    schedule.guarded.insert(access.expect("an access").0);
}

/// Applies `change` to lists of steps, outer ones first, until one has changed.
fn edit(steps: &mut Vec<Step>, change: &mut dyn FnMut(&mut Vec<Step>) -> bool) -> bool {
    change(steps)
        || steps.iter_mut().any(|step| match step {
            Step::Rows(rows) => edit(&mut rows.steps, change),
            Step::If { accept, reject, .. } => edit(accept, change) || edit(reject, change),
            Step::Switch { cases, .. } => cases.iter_mut().any(|(_, _, steps)| edit(steps, change)),
            Step::Loop { body, continuing, .. } => edit(body, change) || edit(continuing, change),
            _ => false,
        })
}

fn edited(schedule: &mut Schedule, mut change: impl FnMut(&mut Vec<Step>) -> bool) {
    assert!(edit(&mut schedule.steps.steps, &mut change), "nothing to break");
}

/// The variable of this name.
fn variable(context: FunctionContext<'_>, name: &str) -> usize {
    let mut all = context.function.local_variables.iter();
    all.find(|(_, declared)| declared.name.as_deref() == Some(name)).expect(name).0.index()
}

#[test]
fn returned_invocations_execute_nothing() {
    broken(RETURNS, Rule::EarlyExit, |schedule, _| schedule.storage.masked = false);
    broken(RETURNS, Rule::EarlyExit, |schedule, _| {
        schedule.storage.needs.iter_mut().for_each(|needs| needs.returns = false);
    });
    broken(SKIPS, Rule::EarlyExit, |schedule, _| {
        schedule.steps.regions.iter_mut().for_each(|region| region.skips = Skip::No);
    });
    // The rest of a case, for invocations that have left it.
    broken(SKIPS, Rule::EarlyExit, |schedule, _| {
        let regions = &mut schedule.steps.regions;
        let at = regions.iter().position(|region| region.skips != Skip::No).expect("a region that skips");
        let mut rest = regions[at].clone();
        let from = rest.body.iter().position(|s| matches!(s, Statement::If { .. })).expect("its branch") + 1;
        rest.body.cull(..from);
        rest.numbers.drain(..from);
        rest.skips = Skip::No;
        regions[at].body.cull(from..);
        regions[at].numbers.truncate(from);
        let new = regions.len();
        regions.push(rest);
        let copy = |list: &mut Vec<super::super::schedule::uses::Needs>| list.push(list[at].clone());
        copy(&mut schedule.storage.needs);
        schedule.storage.recomputed.push(schedule.storage.recomputed[at].clone());
        schedule.storage.initialised.push(schedule.storage.initialised[at].clone());
        schedule.rows.push(schedule.rows[at].clone());
        edited(schedule, |steps| {
            match steps.iter().position(|s| matches!(s, Step::Lanes(region) if *region == at)) {
                Some(place) => {
                    steps.insert(place + 1, Step::Lanes(new));
                    true
                }
                None => false,
            }
        });
    });
}

#[test]
fn unchecked_accesses_stay_behind_their_conditions() {
    broken(AHEAD, Rule::Order, unchecked_ahead);
    // A group assignment ahead of invocations that read the old value.
    broken("var k = s.m; y[l] = k; k = s.k; y[l + 64u] = k;", Rule::Order, |schedule, _| {
        edited(schedule, |steps| {
            let store = |step: &Step| matches!(step, Step::Once(once) if once.body.iter().any(|s| matches!(s, Statement::Store { .. })));
            let late = steps.iter().rposition(store).filter(|at| *at > 0);
            let Some(at) = late.filter(|at| matches!(steps[at - 1], Step::Lanes(_))) else { return false };
            steps.swap(at - 1, at);
            true
        });
    });
}

#[test]
fn statements_stay_in_place() {
    let drop_step = |wanted: fn(&Step) -> bool| {
        move |schedule: &mut Schedule, _: FunctionContext<'_>| {
            edited(schedule, |steps| match steps.iter().position(wanted) {
                Some(at) => {
                    steps.remove(at);
                    true
                }
                None => false,
            });
        }
    };
    broken(ACROSS, Rule::Order, drop_step(|step| matches!(step, Step::Barrier)));
    broken(ACROSS, Rule::Order, drop_step(|step| matches!(step, Step::Lanes(_))));
    broken(CARRIED, Rule::Order, drop_step(|step| matches!(step, Step::Once(_))));
    broken(CARRIED, Rule::Order, drop_step(|step| matches!(step, Step::Break)));
    broken(ACROSS, Rule::Order, |schedule, _| {
        edited(schedule, |steps| {
            let found = steps.iter().find(|step| matches!(step, Step::Lanes(_))).cloned();
            found.map(|step| steps.push(step)).is_some()
        });
    });
    broken(ACROSS, Rule::Order, |schedule, _| {
        let region = &mut schedule.steps.regions[0];
        region.body.cull(region.numbers.len() - 1..);
        region.numbers.pop();
    });
    broken(ACROSS, Rule::Order, |schedule, _| {
        schedule.steps.regions.swap(0, 1);
        schedule.storage.needs.swap(0, 1);
    });
    broken(CARRIED, Rule::Order, |schedule, _| {
        edited(schedule, |steps| match steps.iter_mut().find(|step| matches!(step, Step::If { .. })) {
            Some(Step::If { accept, reject, .. }) => {
                std::mem::swap(accept, reject);
                true
            }
            _ => false,
        });
    });
}

#[test]
fn code_that_runs_once_is_uniform() {
    // A per-invocation store, executed once.
    broken(ACROSS, Rule::UniformCode, |schedule, _| {
        let region = &mut schedule.steps.regions[1];
        let last = region.body.len() - 1;
        let statement = region.body[last].clone();
        let (number, mut hoisted) = (region.numbers[last], Numbered::default());
        region.body.cull(last..);
        region.numbers.pop();
        hoisted.body.push(statement, naga::Span::UNDEFINED);
        hoisted.numbers.push(number);
        schedule.steps.steps.push(Step::Once(hoisted));
    });
    broken(CARRIED, Rule::UniformCode, |schedule, context| {
        schedule.storage.variables[variable(context, "j")] = Storage::Lanes;
    });
}

#[test]
fn values_and_variables_are_available_where_they_are_used() {
    broken(ACROSS, Rule::Values, |schedule, _| schedule.storage.stored.clear());
    broken(GROUPED, Rule::Values, |schedule, _| {
        let stored: Vec<_> = schedule.storage.stored.iter().copied().collect();
        assert!(!stored.is_empty());
        schedule.storage.stored.clear();
        schedule.storage.recomputed.last_mut().expect("a region").extend(stored);
    });
    broken("let c = s.k * 3u; y[id.x] = c + l * c;", Rule::Values, |schedule, _| {
        schedule.storage.uniform.clear();
    });
    broken(ACROSS, Rule::Variables, |schedule, context| {
        schedule.storage.variables[variable(context, "v")] = Storage::Body(0);
    });
    broken(ACROSS, Rule::Variables, |schedule, context| {
        schedule.storage.variables[variable(context, "v")] = Storage::Group;
    });
    broken(ACROSS, Rule::Variables, |schedule, _| {
        schedule.storage.initialised.iter_mut().for_each(std::collections::BTreeSet::clear);
        schedule.storage.early.clear();
    });
    broken(CARRIED, Rule::Variables, |schedule, context| {
        schedule.storage.variables[variable(context, "sum")] = Storage::Nowhere;
    });
    // Only the region of one loop uses it, but the next iteration reads what the last one left.
    let rounds = "for (var j = 0u; j < s.k; j++) { var t: u32; t += l; y[id.x] += t; }";
    each(&parsed(&format!("{HEAD}{rounds} }}")), Form::Full, |_, schedule, context| {
        assert_eq!(verify(&schedule, context), Ok(()));
    });
    broken(
        "var t = l; for (var j = 0u; j < s.k; j++) { y[j * 64u + l] = t; t += 3u; }",
        Rule::Variables,
        |schedule, context| {
            let at = schedule.steps.regions.iter().position(|region| region.repeats).expect("a loop");
            schedule.storage.variables[variable(context, "t")] = Storage::Body(at);
        },
    );
    broken(
        "let c = workgroupUniformLoad(&w[3]); let d = c + l; if y[0] == c { w[l] = d; }",
        Rule::Values,
        |schedule, _| {
            schedule.storage.uniform.clear();
        },
    );
}

#[test]
fn false_independence_is_rejected() {
    let unchecked_variant = |schedule: &mut Schedule, _: FunctionContext<'_>| {
        schedule.rows.iter_mut().for_each(|row| {
            row.general_is_independent = true;
            row.fast_is_independent = true;
        });
    };
    for body in [
        LIMBS,
        "y[id.x] = 1u; y[x[id.x] % 64u] = y[id.x] + 1u; y[id.x + 1u] = y[x[l] % 64u];",
        "var t: array<u32, 8>; t[l % 8u] = l; y[id.x] = t[(l * 3u) % 8u];",
        "let n = y[l]; let t = array<u32, 4>(n, n + 1u, n + 2u, n + 3u); y[id.x] = t[l % 4u];",
        "for (var i = l; i < s.k; i += 64u) { y[i] = y[i / 2u]; }",
    ] {
        broken(body, Rule::Independence, unchecked_variant);
    }
}

#[test]
fn row_facts_are_recomputed() {
    let with_access =
        |schedule: &mut Schedule, change: &mut dyn FnMut(&mut super::super::schedule::row_facts::Linear)| {
            let row =
                schedule.rows.iter_mut().find(|row| !row.row_facts.accesses.is_empty()).expect("an access");
            row.row_facts.accesses.values_mut().for_each(change);
        };
    let body = "y[l * 2u + 1u] = x[63u - l] + x[s.k + l];";
    broken(body, Rule::RowFacts, |schedule, _| with_access(schedule, &mut |index| index.slope = 1));
    broken(body, Rule::RowFacts, |schedule, _| with_access(schedule, &mut |index| index.slope = 0));
    broken(body, Rule::RowFacts, |schedule, context| {
        let other = context.function.expressions.iter().next().expect("an expression").0;
        with_access(schedule, &mut |index| index.value = other);
    });
    broken(
        "var v = l; w[l] = 1u; workgroupBarrier(); y[v] = w[63u - l]; v = 7u; workgroupBarrier(); y[v] += 1u;",
        Rule::Variables,
        |schedule, context| {
            schedule.storage.variables[variable(context, "v")] = Storage::Body(1);
        },
    );
}

#[test]
fn hoisted_checks_are_verified() {
    let body = "var sum = 0u; let at = id.x * s.k; for (var k = 0u; k < s.k; k++) { sum += x[at + k] * x[k + id.x * 3u]; }
        y[id.x] = sum;";
    type Change = fn(&mut crate::print::c::invocation::hoisted_checks::HoistedChecks, FunctionContext<'_>);
    let changes: [Change; 5] = [
        |checks, context| {
            let (counter, _) = context.function.local_variables.iter().next().expect("a variable");
            assert_ne!(checks.counter, counter);
            checks.counter = counter;
        },
        |checks, _| checks.limit = *checks.accesses.values().next().expect("an index"),
        |checks, context| {
            let first = context.function.expressions.iter().next().expect("an expression").0;
            checks.accesses.values_mut().for_each(|index| *index = first);
        },
        |checks, _| checks.values.clear(),
        |checks, context| {
            let sum = |value: &Expression| {
                matches!(value, Expression::Load { pointer }
                if matches!(context.function.expressions[*pointer], Expression::LocalVariable(v) if v != checks.counter))
            };
            let mut all = context.function.expressions.iter();
            checks.limit = all.find(|(_, value)| sum(value)).expect("the sum").0;
        },
    ];
    for change in changes {
        broken(body, Rule::HoistedChecks, |schedule, context| {
            assert_eq!(schedule.hoisted.len(), 1);
            schedule.hoisted.values_mut().for_each(|checks| change(checks, context));
        });
    }
    broken(body, Rule::HoistedChecks, |schedule, context| {
        let mut all = context.function.expressions.iter();
        let read = all.find(|(_, value)| {
            matches!(value, Expression::Load { pointer }
            if matches!(context.function.expressions[*pointer], Expression::Access { .. }))
        });
        schedule.hoisted.values_mut().for_each(|checks| checks.values.extend(read.map(|(value, _)| value)));
    });
    // The loop of another region, or none that the invocations execute.
    broken(CARRIED, Rule::HoistedChecks, |schedule, context| {
        let mut found = None;
        each(&parsed(&format!("{HEAD}{body} }}")), Form::Full, |_, other, _| {
            found = other.hoisted.into_values().next();
        });
        let first = context.function.expressions.iter().next().expect("an expression").0;
        schedule.hoisted.insert(first, found.expect("a loop"));
    });
}

#[test]
fn a_packed_sum_must_be_all_that_a_loop_does() {
    use crate::print::c::invocation::hoisted_checks::PackedSum;
    let rows = |sum: &str| {
        format!(
            "var sum = 0u; var last = 0u; let at = id.x * s.k;
            for (var k = 0u; k < s.k; k++) {{ {sum} }} y[id.x] = sum + last;"
        )
    };
    let body = rows("sum += dot4U8Packed(x[at + k], x[id.x * 3u + k]);");
    type Change = fn(&mut PackedSum, Local);
    let changes: [Change; 4] = [
        |sum, counter| sum.variable = counter,
        |sum, _| sum.function = naga::MathFunction::Dot4I8Packed,
        |sum, _| sum.operands.swap(0, 1),
        |sum, _| sum.operands[0] = sum.operands[1],
    ];
    for change in changes {
        broken(&body, Rule::HoistedChecks, |schedule, _| {
            let checks = schedule.hoisted.values_mut().next().expect("a loop");
            change(checks.packed.as_mut().expect("a sum over packed bytes"), checks.counter);
        });
    }
    // Anything else that the loop does would be lost.
    for other in [
        "sum += dot4U8Packed(x[at + k], x[id.x * 3u + k]); last += x[at + k];",
        "sum += 1u + dot4U8Packed(x[at + k], x[id.x * 3u + k]);",
        "sum ^= dot4U8Packed(x[at + k], x[id.x * 3u + k]);",
    ] {
        broken(&rows(other), Rule::HoistedChecks, |schedule, context| {
            let checks = schedule.hoisted.values_mut().next().expect("a loop");
            assert!(checks.packed.is_none(), "{other}");
            let (variable, _) = context.function.local_variables.iter().next().expect("the sum");
            let operands: Vec<_> = checks.accesses.keys().copied().collect();
            let function = naga::MathFunction::Dot4U8Packed;
            checks.packed = Some(PackedSum { variable, function, operands: [operands[0], operands[1]] });
        });
    }
}

#[test]
fn uniform_conditions_must_be_computed() {
    broken(
        "for (var j = 0u; j < workgroupUniformLoad(&w[0]); j++) { workgroupBarrier(); y[id.x] += j; }",
        Rule::Order,
        |schedule, context| {
            let other = context.function.expressions.iter().next().expect("an expression").0;
            edited(schedule, |steps| match steps.iter_mut().find(|step| matches!(step, Step::If { .. })) {
                Some(Step::If { condition, .. }) => {
                    *condition = Condition::Once(other);
                    true
                }
                _ => false,
            });
        },
    );
}

#[test]
fn the_work_of_analysis_and_verification_is_bounded() {
    // Every sum is used twice by the next one; hundreds of accesses with different indices.
    let mut body = "var q = l; let a0 = s.k + l;".to_owned();
    for step in 1..64 {
        body.push_str(&format!("let a{step} = a{} + a{};", step - 1, step - 1));
    }
    for step in 0..300 {
        body.push_str(&format!(
            "y[a{} * {}u + l * {step}u] = y[a{} ^ {step}u];",
            step % 64,
            step + 3,
            step % 61
        ));
    }
    let start = std::time::Instant::now();
    each(&parsed(&format!("{HEAD}{body} }}")), Form::Full, |_, schedule, context| {
        assert_eq!(verify(&schedule, context), Ok(()));
    });
    assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
}
