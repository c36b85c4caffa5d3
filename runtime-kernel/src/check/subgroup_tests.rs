//! Tests of the rule about operations of subgroups. Tint accepts and refuses the same texts.

use crate::{Program, Specialisation};

/// Parses a kernel whose body begins on line 14.
fn check(directives: &str, body: &str) -> Result<(), String> {
    let code = format!(
        "enable subgroups; {directives}
         @group(0) @binding(0) var<storage, read> a: array<u32>;
         @group(0) @binding(1) var<storage, read_write> b: array<u32>;
         var<workgroup> shared_one: u32; var<private> p: u32 = 1u; override o: u32 = 3u;
         struct Mixed {{ @builtin(workgroup_id) g: vec3u, @builtin(local_invocation_index) l: u32 }}
         struct Same {{ @builtin(workgroup_id) g: vec3u, @builtin(subgroup_size) size: u32 }}
         fn sum(x: u32) -> u32 {{ if x == 3u {{ return 4u; }} return subgroupAdd(x); }}
         fn late(x: u32) -> u32 {{ if x == 3u {{ return 4u; }} _ = a[x] + a[x + 1u] + a[x + 2u] + a[x + 3u]; return x; }}
         @diagnostic(off, subgroup_uniformity) fn known(x: u32) -> u32 {{ return subgroupAdd(x); }}
         fn up(x: u32) -> u32 {{ return subgroupShuffleUp(1u, x); }}
         fn only(c: bool) {{ if c {{ b[0] = subgroupAdd(1u); }} }}
         @compute @workgroup_size(16) fn main(mixed: Mixed, @builtin(subgroup_invocation_id) i: u32,
             @builtin(subgroup_id) id: u32, @builtin(num_subgroups) n: u32, @builtin(local_invocation_id) l: vec3u) {{
{body}
}}
         @compute @workgroup_size(16) fn other(same: Same) {{
             if same.g.x > same.size {{ b[0] = subgroupAdd(1u) + late(1u); }}
         }}"
    );
    Program::parse(&code, "k.wgsl", &Specialisation::default()).map(drop).map_err(|error| error.to_string())
}

const UNIFORM: [&str; 25] = [
    "b[i] = subgroupAdd(i) + subgroupShuffle(i, i) + quadSwapX(i);",
    "if id > 3u { b[i] = subgroupAdd(1u); }",
    "if n > o { b[i] = subgroupAdd(1u); }",
    "if a[id] > 3u { b[i] = subgroupAdd(1u); }",
    "if arrayLength(&b) > 3u { b[i] = subgroupAdd(1u); }",
    "if subgroupAdd(1u) > 3u { b[i] = subgroupAdd(1u); }",
    "if subgroupBroadcastFirst(id) > 3u { b[i] = subgroupAdd(1u); }",
    "if subgroupBallot(id > 1u).x > 3u { b[i] = subgroupAdd(1u); }",
    "if subgroupAny(subgroupBroadcast(n, 1u) > 3u) { b[i] = quadSwapX(i); }",
    "let x = workgroupUniformLoad(&shared_one); if x > 3u { b[i] = subgroupAdd(1u); }",
    "for (var k = subgroupAdd(1u); k > 0u; k--) { b[i] = subgroupAdd(1u); }",
    "var x = 0u; if i > 3u { x = 1u; } x = 2u; if x > 1u { b[i] = subgroupAdd(1u); }",
    "if i > 3u { b[i] = 1u; } b[i] = subgroupAdd(1u);",
    "var x = 0u; switch id { case 1u: { x = 1u; if i > 3u { break; } p = 1u; } default: { } } if x > 0u { b[i] = subgroupAdd(1u); }",
    "if late(id) > 3u { b[i] = sum(id); }",
    "b[i] = late(i) + up(id) + sum(4u);",
    "if i > 3u { return; } else { return; } b[i] = subgroupAdd(1u);",
    "b[i] = subgroupShuffleXor(i, subgroupMax(id)) + subgroupShuffleDown(i, id);",
    "if i > 3u { b[i] = known(1u); }",
    "if i > 3u @diagnostic(off, subgroup_uniformity) { b[i] = subgroupAdd(1u); } else { }",
    "@diagnostic(info, subgroup_uniformity) if i > 3u { } else if l.x > 3u { b[i] = subgroupAdd(1u); }",
    "@diagnostic(warning, subgroup_uniformity) { b[i] = subgroupShuffleXor(i, i); }",
    "@diagnostic(off, subgroup_uniformity) for (var k = 0u; subgroupAdd(k) < i; k++) { }",
    "@diagnostic(off, subgroup_uniformity) while subgroupAdd(i) > l.x { if p > 1u { b[0] = subgroupAdd(1u); } }",
    "if i > 3u { } loop { if id > 3u { break; } b[0] = subgroupAdd(1u); continuing { b[1] = subgroupAdd(2u); } }",
];

const DIVERGENT: [&str; 29] = [
    "if i > 3u {\nb[i] = subgroupAdd(1u); }",
    "if l.y > 3u {\nb[i] = subgroupAdd(1u); }",
    "if mixed.g.x > 3u {\nb[i] = subgroupAdd(1u); }",
    "if vec2u(i, 1u).y > 3u {\nb[i] = subgroupAdd(1u); }",
    "if subgroupAdd(i) > 3u {\nb[i] = subgroupAdd(1u); }",
    "if subgroupBallot(i > 1u).x > 3u {\nb[i] = subgroupAdd(1u); }",
    "if subgroupElect() {\nb[i] = subgroupAdd(1u); }",
    "if subgroupInclusiveAdd(1u) > 3u {\nb[i] = subgroupAdd(1u); }",
    "if subgroupShuffle(1u, 1u) > 3u {\nb[i] = subgroupAdd(1u); }",
    "if quadBroadcast(1u, 1u) > 3u {\nb[i] = quadSwapX(1u); }",
    "if b[id] > 3u {\nb[i] = subgroupAdd(1u); }",
    "if p > 3u {\nb[i] = subgroupAdd(1u); }",
    "if shared_one > 3u {\nb[i] = subgroupAdd(1u); }",
    "if i > 3u { return; }\nb[i] = subgroupAdd(1u);",
    "for (var k = 0u; k < i; k++) {\nb[i] = subgroupAdd(1u); }",
    "loop { if i > 3u { continue; }\nb[i] = subgroupAdd(1u); if id > 3u { break; } }",
    "loop { if id > 3u { break; } if i > 3u { continue; } continuing {\nb[i] = subgroupAdd(1u); } }",
    "switch i { case 1u: {\nb[i] = subgroupAdd(1u); } default: { } }",
    "let q = i > 3u &&\nsubgroupAny(true);",
    "var x = 0u; if i > 3u { x = 1u; } if x > 0u {\nb[i] = subgroupAdd(1u); }",
    "var v = vec2u(i, 1u); v.y = 1u; if v.y > 0u {\nb[i] = subgroupAdd(1u); }",
    "var x = 0u; switch id { case 1u: { if i > 3u { break; } x = 1u; } default: { } } if x > 0u {\nb[i] = subgroupAdd(1u); }",
    "if late(i) > 3u {\nb[i] = subgroupAdd(1u); }",
    "@diagnostic(off, subgroup_uniformity) if i > 3u {\n@diagnostic(error, subgroup_uniformity) { b[i] = subgroupAdd(1u); } }",
    "@diagnostic(off, subgroup_uniformity) { } if i > 3u {\nb[i] = subgroupAdd(1u); }",
    "if i > 3u @diagnostic(off, subgroup_uniformity) { } else {\nb[i] = subgroupAdd(1u); }",
    "@diagnostic(off, derivative_uniformity) if i > 3u {\nb[i] = subgroupAdd(1u); }",
    "while i > 3u {\nb[i] = subgroupAdd(1u); }",
    "if i > 3u { /* @diagnostic(off, subgroup_uniformity) */\nb[i] = subgroupAdd(1u); }",
];

#[test]
fn all_of_a_subgroup_reach_its_operations() {
    for body in UNIFORM {
        assert_eq!(check("", body), Ok(()), "{body}");
    }
    for body in DIVERGENT {
        let error = check("", body).expect_err(body);
        assert!(error.contains("k.wgsl:15: a subgroup operation must be reached by all"), "{body}: {error}");
        assert!(error.contains("the condition at k.wgsl:14 varies"), "{body}: {error}");
        assert!(error.contains("`diagnostic(off, subgroup_uniformity);`"), "{body}: {error}");
    }
}

#[test]
fn the_diagnostic_is_turned_off_by_a_directive() {
    for body in DIVERGENT.iter().filter(|body| !body.contains("error")) {
        assert_eq!(check("diagnostic(off, subgroup_uniformity);", body), Ok(()), "{body}");
        assert!(check("diagnostic(error, subgroup_uniformity);", body).is_err(), "{body}");
        assert!(check("diagnostic(off, derivative_uniformity);", body).is_err(), "{body}");
    }
    let error = check(
        "diagnostic(info, subgroup_uniformity);",
        "@diagnostic(error, subgroup_uniformity)\nif i > 3u { b[i] = subgroupAdd(1u); }",
    );
    assert!(error.unwrap_err().contains("k.wgsl:15: a subgroup operation"));
}

#[test]
fn a_barrier_needs_more_than_a_subgroup() {
    for condition in ["id > 3u", "subgroupAdd(1u) > 3u"] {
        let body = format!("if {condition} {{ workgroupBarrier(); }}");
        for directive in ["", "diagnostic(off, subgroup_uniformity);"] {
            let error = check(directive, &body).expect_err(condition);
            assert!(error.contains("a barrier must be reached by all"), "{condition}: {error}");
        }
    }
}

/// Whoever skips the rest of an iteration is apart in the next ones, too.
#[test]
fn a_continue_parts_a_subgroup() {
    let body = "for (var k = 0u; k < 4u; k++) {\nb[i] = subgroupAdd(1u);\nif i > k { continue; } }";
    let error = check("", body).unwrap_err();
    assert!(
        error.contains("k.wgsl:15: a subgroup operation") && error.contains("k.wgsl:16 varies"),
        "{error}"
    );
    assert_eq!(check("", &body.replace("i > k", "id > k")), Ok(()));
}

#[test]
fn a_shuffle_has_one_distance() {
    for name in ["Up", "Down", "Xor"] {
        for distance in ["i", "subgroupAdd(i)", "p", "b[0]"] {
            let body = format!("b[i] = 1u +\nsubgroupShuffle{name}(1u, {distance});");
            let error = check("", &body).expect_err(&body);
            assert!(error.contains("k.wgsl:15: subgroupShuffleUp, subgroupShuffleDown"), "{error}");
            assert_eq!(check("diagnostic(off, subgroup_uniformity);", &body), Ok(()));
        }
    }
}

#[test]
fn functions_are_followed() {
    for (body, line) in [
        ("b[i] = sum(i);", 7),
        ("if i > 3u { b[i] = sum(1u); }", 7),
        ("b[i] = up(i);", 10),
        ("@diagnostic(off, subgroup_uniformity) { b[i] = up(i); }", 10),
        ("only(i > 3u);", 11),
        // A branch that is never taken is in the text all the same.
        ("if i > 3u { only(false); }", 11),
    ] {
        let error = check("", body).expect_err(body);
        assert!(error.contains(&format!("k.wgsl:{line}: ")), "{body}: {error}");
    }
}

#[test]
fn functions_that_nothing_calls_are_checked_too() {
    let unreached = |function: &str| {
        let code = format!(
            "enable subgroups; var<private> p: u32; override o: u32;
             {function}
             @compute @workgroup_size(1) fn main() {{ }}"
        );
        Program::parse(&code, "k.wgsl", &Specialisation::default())
            .map(drop)
            .map_err(|error| error.to_string())
    };
    for function in [
        "fn f(x: u32) { if x > o { _ = subgroupAny(true); } }",
        "fn f(x: u32) { _ = subgroupShuffleUp(1u, x); }",
        "fn f() { if subgroupAny(true) { _ = subgroupAny(true); } }",
        "@diagnostic(off, subgroup_uniformity) fn f() { if p > 1u { _ = subgroupAny(true); } }",
    ] {
        assert_eq!(unreached(function), Ok(()), "{function}");
    }
    for function in [
        "fn f() { if p > 1u { _ = subgroupAny(true); } }",
        "fn f() { if p > 1u { g(); } } fn g() { _ = quadSwapX(1u); }",
        "fn f() { if subgroupElect() { _ = subgroupAny(true); } }",
        "@diagnostic(off, subgroup_uniformity) fn g() { } fn f() { if p > 1u { _ = subgroupAny(true); } }",
    ] {
        let error = unreached(function).expect_err(function);
        assert!(error.contains("k.wgsl:2: a subgroup operation"), "{function}: {error}");
    }
}

/// The text is written anew where constants have values, without functions that nothing calls.
#[test]
fn filters_survive_other_edits() {
    let code = |off: &str| {
        format!(
            "enable subgroups, f16; alias T = f32;
             override n: u32; const m = atan(1.0) * 2; const_assert m > 1;
             @group(0) @binding(0) var<storage, read_write> b: array<u32>;
             @diagnostic(off, subgroup_uniformity) fn unused() -> u32 {{ return subgroupAdd(1u) + n; }}
             @compute @workgroup_size(16) fn main(@builtin(subgroup_invocation_id) i: u32) {{
                 var shifts = array<u32, 4>(1, 2, 3, 4); let h = bitcast<u32>(vec2<f16>(1h, 2h));
                 if i > 3u || shifts[n] == 1u {off} {{ b[i] = subgroupAdd(n + h) + u32(m); }}
             }}"
        )
    };
    let values = Specialisation { constants: vec![("n".into(), "2".into())], ..Specialisation::default() };
    let check =
        |off| Program::parse(&code(off), "k.wgsl", &values).map(drop).map_err(|error| error.to_string());
    assert_eq!(check("@diagnostic(off, subgroup_uniformity)"), Ok(()));
    assert!(check("").unwrap_err().contains("k.wgsl:7: a subgroup operation"));
}
