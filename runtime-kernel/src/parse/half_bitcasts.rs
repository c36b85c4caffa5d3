//! Rewrites bit casts between words and vectors of `f16`, which naga rejects because it compares the sizes of their scalars.

use std::borrow::Cow;

use runtime_core::Result;

use super::diagnostics::{failed, place};
use super::text_edits::{Edit, applied, arguments};
use super::tokens::{Token, text, tokens};

/// The function that makes a vector of four.
pub(super) const FOUR: &str = "bitcast_vec4_f16";

/// The function that returns the bits of a vector of four.
pub(super) const BITS_OF_FOUR: &str = "bitcast_from_vec4_f16";

/// `code` with these casts expressed by `unpack2x16float` and `pack2x16float`, which writers print as casts
/// (`ir::half_bits`). A cast of a vector to a word is recognised where its argument is a constructor. `vec2(a, b)` is of
/// `f16` there: no other vector of two has the size of a word. Lines stay the same.
pub(crate) fn with_conversions(code: &str) -> Cow<'_, str> {
    if !code.contains("bitcast") || !code.contains("f16") {
        return Cow::Borrowed(code);
    }
    let tokens: Vec<_> = tokens(code).collect();
    let mut edits: Vec<Edit> = Vec::new();
    for at in 0..tokens.len() {
        edits.extend(cast(&tokens, at).unwrap_or_default());
    }
    if edits.is_empty() {
        return Cow::Borrowed(code);
    }
    Cow::Owned(with_functions(applied(code, edits)))
}

/// The text with the functions that it uses, unless this added them before. naga reports a function of the kernel with such
/// a name as defined twice.
pub(super) fn with_functions(mut code: String) -> String {
    let functions = [
        (
            FOUR,
            "(v: vec2<u32>) -> vec4<f16> { return vec4<f16>(vec2<f16>(unpack2x16float(v.x)), \
             vec2<f16>(unpack2x16float(v.y))); }",
        ),
        (
            BITS_OF_FOUR,
            "(v: vec4<f16>) -> vec2<u32> { return vec2<u32>(pack2x16float(vec2<f32>(v.xy)), \
             pack2x16float(vec2<f32>(v.zw))); }",
        ),
    ];
    for (name, function) in functions {
        let definition = format!("\nfn {name}{function}");
        if code.contains(&format!("{name}(")) && !code.contains(&definition) {
            code += &definition;
        }
    }
    code
}

/// Checks that no function of the kernel hides a function by which `converted` expresses the casts of `code`.
///
/// # Errors
/// `CompileFailed`, naming the function and its line.
pub(crate) fn check_calls(code: &str, converted: &str, path: &str) -> Result<()> {
    let before: Vec<_> = tokens(code).collect();
    for name in ["pack2x16float", "unpack2x16float"] {
        let Some(own) = function(&before, name) else { continue };
        let count = |tokens: &[Token<'_>]| tokens.iter().filter(|token| token.text == name).count();
        if count(&tokens(converted).collect::<Vec<_>>()) > count(&before) {
            return Err(failed(format!(
                "{}: `{name}` of the kernel hides the built-in function by which bit casts of `f16` are expressed; rename it",
                place(code, path, own.span())
            )));
        }
    }
    Ok(())
}

/// The name of a function in its declaration, if the text has one.
pub(super) fn function<'t, 'a>(tokens: &'t [Token<'a>], name: &str) -> Option<&'t Token<'a>> {
    let at = tokens.windows(2).position(|pair| pair[0].text == "fn" && pair[1].text == name)?;
    Some(&tokens[at + 1])
}

/// The edits for a cast that begins at `at`.
fn cast(tokens: &[Token<'_>], at: usize) -> Option<Vec<Edit>> {
    if tokens[at].text != "bitcast" || text(tokens, at + 1) != "<" {
        return None;
    }
    let (kind, length) = vector(tokens, at + 2);
    let open = at + 3 + length.max(1);
    if text(tokens, open - 1) != ">" || text(tokens, open) != "(" {
        return None;
    }
    let [argument] = &arguments(tokens, open + 1)[..] else { return None };
    let (before, after) = match (kind, text(tokens, at + 2)) {
        ("vec2", _) => ("vec2<f16>(unpack2x16float(bitcast<u32>(".to_owned(), "))"),
        ("vec4", _) => (format!("{FOUR}(bitcast<vec2<u32>>("), ")"),
        (_, word @ ("u32" | "i32" | "f32")) if is_constructor(tokens, argument.start, argument.end) => {
            (format!("bitcast<{word}>(pack2x16float(vec2<f32>("), "))")
        }
        _ => return None,
    };
    let end = tokens[argument.end].range.start;
    let mut edits =
        vec![(tokens[at].range.start..tokens[open].range.end, before), (end..end, after.to_owned())];
    if kind.is_empty() && vector(tokens, open + 1).1 == 0 {
        edits.push((tokens[open + 1].range.clone(), "vec2<f16>".to_owned()));
    }
    Some(edits)
}

/// The kind of a vector of `f16` at a place, and the number of its tokens.
fn vector(tokens: &[Token<'_>], at: usize) -> (&'static str, usize) {
    let is_long = text(tokens, at + 1) == "<" && text(tokens, at + 2) == "f16" && text(tokens, at + 3) == ">";
    match text(tokens, at) {
        "vec2h" => ("vec2", 1),
        "vec4h" => ("vec4", 1),
        "vec2" if is_long => ("vec2", 4),
        "vec4" if is_long => ("vec4", 4),
        _ => ("", 0),
    }
}

/// Whether the tokens of a range are one constructor of a vector of two, whose elements may be inferred.
fn is_constructor(tokens: &[Token<'_>], start: usize, end: usize) -> bool {
    let (kind, length) = match vector(tokens, start) {
        ("", _) => (text(tokens, start), 1),
        named => named,
    };
    let open = start + length;
    let elements = arguments(tokens, open + 1);
    // One argument without a type is a vector of any type.
    let is_certain = length > 1 || text(tokens, start) == "vec2h" || elements.len() == 2;
    let ends = elements.last().is_some_and(|last| last.end + 1 == end);
    kind == "vec2" && text(tokens, open) == "(" && ends && is_certain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Program, Specialisation};

    #[test]
    fn functions_of_the_kernel_are_not_called_instead() {
        let own = "enable f16; fn bitcast_vec4_f16(v: vec2<u32>) -> vec4<f16> { return vec4<f16>(); }";
        let code = format!(
            "{own} @group(0) @binding(0) var<storage, read_write> y: array<vec4<f16>>;
             @compute @workgroup_size(1) fn main() {{ y[0] = bitcast<vec4<f16>>(vec2<u32>(1, 2)); }}"
        );
        let Err(error) = Program::parse(&code, "", &Specialisation::default()) else { panic!("accepted") };
        assert!(error.to_string().contains("redefinition of `bitcast_vec4_f16`"), "{error}");
        assert_eq!(with_functions(with_functions(code.clone())), with_functions(code));
    }

    #[test]
    fn functions_of_the_kernel_that_hide_conversions_are_errors() {
        let parse = |own: &str, statement: &str| {
            let code = format!(
                "enable f16; var<private> h: vec2h; var<private> w: u32;\n{own}
                 @group(0) @binding(0) var<storage, read_write> y: array<u32>;
                 @compute @workgroup_size(1) fn main() {{ {statement} }}"
            );
            Program::parse(&code, "k.wgsl", &Specialisation::default())
                .map(drop)
                .map_err(|error| error.to_string())
        };
        let pack = "fn pack2x16float(v: vec2<f32>) -> u32 { return 1u; }";
        let unpack = "fn unpack2x16float(v: u32) -> vec2<f32> { return vec2<f32>(); }";
        for (own, statement) in [
            (pack, "y[0] = bitcast<u32>(vec2<f16>(h.x, 1h));"),
            (pack, "y[0] = bitcast<u32>(h);"),
            (pack, "y[0] = bitcast<vec2<u32>>(h.xyxy).x;"),
            (unpack, "h = bitcast<vec2h>(w);"),
            (unpack, "h = bitcast<vec4h>(vec2(w)).xy;"),
        ] {
            let error = parse(own, statement).expect_err(statement);
            assert!(
                error.contains("k.wgsl:2: `") && error.contains("pack2x16float` of the kernel hides"),
                "{error}"
            );
            assert_eq!(parse("", statement), Ok(()));
        }
        for (own, statement) in [
            (pack, "y[0] = pack2x16float(vec2<f32>(h)); h = bitcast<vec2h>(w);"),
            (unpack, "y[0] = bitcast<u32>(h);"),
            (pack, "y[0] = bitcast<u32>(1.0);"),
        ] {
            assert_eq!(parse(own, statement), Ok(()), "{statement}");
        }
    }

    #[test]
    fn casts_are_conversions() {
        let cases = [
            ("f16; bitcast<vec2<f16>>(u[0]).x", "f16; vec2<f16>(unpack2x16float(bitcast<u32>(u[0]))).x"),
            ("f16; bitcast<vec2h>(f(a, b))", "f16; vec2<f16>(unpack2x16float(bitcast<u32>(f(a, b))))"),
            (
                "f16; bitcast<i32>(vec2<f16>(a, b)) + bitcast<u32>(c)",
                "f16; bitcast<i32>(pack2x16float(vec2<f32>(vec2<f16>(a, b)))) + bitcast<u32>(c)",
            ),
            ("f16; bitcast<vec2<f32>>(x)", "f16; bitcast<vec2<f32>>(x)"),
            ("f16; bitcast<u32>(vec2(v))", "f16; bitcast<u32>(vec2(v))"),
            ("f16; bitcast<u32>(vec2h(a, b) + c)", "f16; bitcast<u32>(vec2h(a, b) + c)"),
            ("f16; bitcast<vec2<f16>>(x", "f16; bitcast<vec2<f16>>(x"),
            (
                "f16; bitcast<u32>(vec2(a[i], b))",
                "f16; bitcast<u32>(pack2x16float(vec2<f32>(vec2<f16>(a[i], b))))",
            ),
            ("f16; bitcast<u32>(vec2<f32>(a, b))", "f16; bitcast<u32>(vec2<f32>(a, b))"),
            ("f16; bitcast<u32>(vec2(a, b).x)", "f16; bitcast<u32>(vec2(a, b).x)"),
        ];
        for (code, expected) in cases {
            assert_eq!(with_conversions(code), expected);
        }
        let four = with_conversions("f16; bitcast<vec4<f16>>(v)");
        assert!(
            four.starts_with("f16; bitcast_vec4_f16(bitcast<vec2<u32>>(v))\nfn bitcast_vec4_f16("),
            "{four}"
        );
    }
}
