//! Rewrites calls of `frexp` with `f16`: naga declares the exponent as an integer of 16 bits, which WGSL does not have, rather than
//! as `i32`. They become calls of functions that compute in `f32`, which is exact. naga's front end tells the types of the arguments.

use std::borrow::Cow;

use naga::{Module, Scalar, TypeInner, VectorSize};

use super::constants;
use super::every_error::bodies;
use super::half_bitcasts::evaluated;
use super::lists::List;
use super::text_edits::{Edit, applied};
use super::tokens::{Token, text, tokens};
use crate::ir::{blocks, resolved};

/// The name of the argument in a probe.
const PROBE: &str = "frexp_argument";

/// Bytes of all probes: each is at most as long as the text, and rarely more than its declarations.
const MOST_BYTES: usize = 4 << 20;

/// A cheap test: `false` means that the text has no such call.
pub(crate) fn may_be_in(code: &str) -> bool {
    code.contains("frexp") && code.contains("f16")
}

/// The text with these calls replaced; lines stay the same. A call whose argument naga rejects stays as it is.
pub(crate) fn without_calls(code: &str) -> Cow<'_, str> {
    let before: Vec<_> = tokens(code).collect();
    let is_own = before.windows(2).any(|pair| pair[0].text == "fn" && pair[1].text == "frexp");
    let is_call = |at: &usize| before[*at].text == "frexp" && text(&before, at + 1) == "(";
    let calls: Vec<_> = evaluated(&before).into_iter().filter(is_call).collect();
    if is_own || calls.is_empty() || calls.len() * code.len() > MOST_BYTES {
        return Cow::Borrowed(code);
    }
    let mut edits: Vec<Edit> = Vec::new();
    for call in calls {
        // The calls before it have the types of their replacements.
        let size =
            probe(code, &before, call, &edits).and_then(|probe| half(&constants::module_of(&probe)?.0));
        edits.extend(size.map(|size| (before[call].range.clone(), function(size).to_owned())));
    }
    if edits.is_empty() { Cow::Borrowed(code) } else { Cow::Owned(applied(code, edits) + &functions()) }
}

/// The function for an `f16`, or a vector of them.
const fn function(size: Option<VectorSize>) -> &'static str {
    match size {
        None => "frexp_f16",
        Some(VectorSize::Bi) => "frexp_vec2_f16",
        Some(VectorSize::Tri) => "frexp_vec3_f16",
        Some(VectorSize::Quad) => "frexp_vec4_f16",
    }
}

/// The definitions of all these functions.
fn functions() -> String {
    let sizes = [None, Some(VectorSize::Bi), Some(VectorSize::Tri), Some(VectorSize::Quad)];
    let define = |size: Option<VectorSize>| {
        let name = function(size);
        let result = constants::result_name("frexp", size.map_or(1, |size| size as usize), "f16");
        let [half, float, int] = ["f16", "f32", "i32"].map(|scalar| match size {
            None => scalar.to_owned(),
            Some(size) => format!("vec{}<{scalar}>", size as u8),
        });
        format!(
            "\nstruct {result} {{ fract: {half}, exp: {int} }} fn {name}(value: {half}) -> {result} {{ \
             let parts = frexp({float}(value)); return {result}({half}(parts.fract), parts.exp); }}"
        )
    };
    sizes.into_iter().map(define).collect()
}

/// The text up to the statement with a call, which is replaced by a declaration of the call's argument; other functions are
/// empty. `None` if the text has another form.
fn probe(code: &str, tokens: &[Token<'_>], call: usize, edits: &[Edit]) -> Option<String> {
    let close = List::at(tokens, call + 1)?.close;
    let argument = tokens[call + 2].range.start..tokens[close].range.start;
    let body = bodies(code).into_iter().find(|body| body.contains(&argument.start))?;
    let open = open_brackets(&tokens[..call]);
    let head = open.iter().copied().find(|at| text(tokens, at.wrapping_sub(1)) == "for");
    // What the head of a `for` declares holds in the rest of it.
    let declared = head.and_then(|head| (head..call).find(|at| tokens[*at].text == ";"));
    let ends = |token: &Token<'_>| matches!(token.text, ";" | "{" | "}");
    let end = declared.or_else(|| tokens[..head.unwrap_or(call)].iter().rposition(ends))?;
    let start = tokens[end].range.end;
    let braces = open.iter().filter(|at| tokens[**at].text == "{").count() - 1;
    let braces = braces + usize::from(declared.is_some());
    let mut all: Vec<_> = edits.iter().filter(|(range, _)| range.start < start).cloned().collect();
    let head = head.filter(|_| declared.is_some());
    all.extend(head.map(|at| (tokens[at - 1].range.start..tokens[at].range.end, "{".to_owned())));
    let argument = format!(" {{ let {PROBE} = {}; }}{}", &code[argument], "}".repeat(braces));
    all.push((start..body.end, argument));
    let others = bodies(code).into_iter().filter(|other| *other != body);
    all.extend(others.map(|other| (other, String::new())));
    Some(applied(code, all) + &functions())
}

/// The brackets that are open behind these tokens.
fn open_brackets(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut open = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "(" | "[" | "{" => open.push(at),
            ")" | "]" | "}" => drop(open.pop()),
            _ => {}
        }
    }
    open
}

/// The size of the argument of a probe, if it is an `f16` or a vector of them.
#[expect(clippy::option_option, reason = "no such type, a scalar, or a vector")]
fn half(module: &Module) -> Option<Option<VectorSize>> {
    for function in blocks::functions(module) {
        let Some((&value, _)) = function.named_expressions.iter().find(|(_, name)| *name == PROBE) else {
            continue;
        };
        return match *resolved(module, function, value)?.inner_with(&module.types) {
            TypeInner::Scalar(Scalar::F16) => Some(None),
            TypeInner::Vector { size, scalar: Scalar::F16 } => Some(Some(size)),
            _ => None,
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The statements of a function, with functions in place of these calls.
    fn replaced(statements: &str) -> String {
        let code = format!(
            "enable f16; struct S {{ h: array<vec3h, 2> }} var<private> s: S; alias H = f16;
             fn other(a: f32) -> H {{ let r = frexp(1.0h); return H(a) + r.fract; }}
             @compute @workgroup_size(1) fn main() {{ {statements} }}"
        );
        let new = without_calls(&code).into_owned();
        assert_eq!(new.matches("let r = frexp_f16(1.0h);").count(), 1, "{new}");
        new.split_once("fn main() { ").unwrap().1.split_once(" }\n").unwrap().0.to_owned()
    }

    #[test]
    fn calls_with_halves_are_replaced() {
        for (statements, expected) in [
            ("let a = frexp(s.h[1]).exp;", "let a = frexp_vec3_f16(s.h[1]).exp;"),
            ("let a = frexp(other(frexp(2.0).fract,));", "let a = frexp_f16(other(frexp(2.0).fract,));"),
            (
                "let a = frexp(frexp(s.h[0].xy).fract.x); let e: i32 = a.exp;",
                "let a = frexp_f16(frexp_vec2_f16(s.h[0].xy).fract.x); let e: i32 = a.exp;",
            ),
            (
                "let f = frexp(1h); let g = f.exp + 1; if frexp(vec4h(f.fract)).exp.x == g { return; }",
                "let f = frexp_f16(1h); let g = f.exp + 1; if frexp_vec4_f16(vec4h(f.fract)).exp.x == g { return; }",
            ),
            (
                "for (var i = frexp(1h); i.exp < frexp(i.fract).exp; i = frexp(i.fract)) { let a = frexp(i.fract); }",
                "for (var i = frexp_f16(1h); i.exp < frexp_f16(i.fract).exp; i = frexp_f16(i.fract)) { let a = frexp_f16(i.fract); }",
            ),
            (
                "var x = 1h; switch frexp(x).exp { case 1, 2: { x = frexp(x).fract; } default {} } let y = frexp(f32(x));",
                "var x = 1h; switch frexp_f16(x).exp { case 1, 2: { x = frexp_f16(x).fract; } default {} } let y = frexp(f32(x));",
            ),
            (
                "var x = 1h; loop { let y = x; continuing { x = frexp(y).fract; break if frexp(x).exp > 0; } }",
                "var x = 1h; loop { let y = x; continuing { x = frexp_f16(y).fract; break if frexp_f16(x).exp > 0; } }",
            ),
        ] {
            assert_eq!(replaced(statements), expected);
        }
    }

    #[test]
    fn other_texts_stay() {
        let own = "enable f16; fn frexp(a: f16) -> f16 { return a; } fn f() { let a = frexp(1h); }";
        for code in [
            own,
            "fn f() { let a = frexp(1.0); }",
            "enable f16; fn f() { let a = frexp(1, ",
            "enable f16; const",
        ] {
            assert!(matches!(without_calls(code), Cow::Borrowed(_)), "{code}");
        }
    }
}
