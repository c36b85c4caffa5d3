//! Rewrites bit casts between words and vectors of `f16` that `half_bitcasts` cannot recognise by their text, but by the
//! types that naga computes: of named values, and to named types.

use std::collections::HashMap;
use std::ops::Range;

use naga::front::{Typifier, wgsl};
use naga::proc::ResolveContext;
use naga::{Expression, Function, Module, RelationalFunction, Scalar, ScalarKind, TypeInner, VectorSize};

use super::half_bitcasts::{BITS_OF_FOUR, FOUR, with_functions};
use super::text_edits::{Edit, applied, arguments};
use super::tokens::{Token, text};
use crate::ir::blocks;

/// Stands before each argument in the text whose types are asked for: until the module is validated, a derivative has the
/// type of any argument, and `any` of it is a `bool`. Neither is evaluated if the argument is a constant. The blanks tell
/// it from other calls.
const MARK: &str = "any\t \t(dpdx(";

/// Whether a text may have such casts.
pub(crate) fn may_be_in(code: &str) -> bool {
    code.contains("bitcast") && code.contains("f16")
}

/// The text with these casts expressed by functions that naga accepts, if it has any. Lines stay the same.
/// A text that naga rejects stays as it is.
pub(crate) fn with_conversions(code: &str, tokens: &[Token<'_>]) -> Option<String> {
    let casts: Vec<Cast> = (0..tokens.len()).filter_map(|at| Cast::at(code, tokens, at)).collect();
    if casts.is_empty() {
        return None;
    }
    let probe = applied(code, casts.iter().flat_map(Cast::probe).collect());
    let marks: HashMap<u32, usize> =
        probe.match_indices(MARK).enumerate().map(|(cast, (at, _))| (offset(at), cast)).collect();
    let module = wgsl::parse_str(&probe).ok()?;
    if marks.len() != casts.len() {
        return None;
    }
    let mut edits = Vec::new();
    for function in blocks::functions(&module) {
        for (cast, conversion) in conversions(&module, function, &marks) {
            edits.extend(casts[cast].replaced(conversion));
        }
    }
    (!edits.is_empty()).then(|| with_functions(applied(code, edits)))
}

/// How a cast is expressed.
#[derive(Clone, Copy)]
enum Conversion {
    WordOfTwo,
    WordsOfFour,
    TwoOfWord,
    FourOfWords,
}

impl Conversion {
    /// The conversion between two types, unless naga has the cast.
    fn between(from: &TypeInner, to: &TypeInner) -> Option<Self> {
        match (shape(from)?, shape(to)?) {
            ((Some(VectorSize::Bi), true), (None, false)) => Some(Self::WordOfTwo),
            ((Some(VectorSize::Quad), true), (Some(VectorSize::Bi), false)) => Some(Self::WordsOfFour),
            ((None, false), (Some(VectorSize::Bi), true)) => Some(Self::TwoOfWord),
            ((Some(VectorSize::Bi), false), (Some(VectorSize::Quad), true)) => Some(Self::FourOfWords),
            _ => None,
        }
    }
}

/// The size of a vector, and whether its elements are `f16` rather than words.
fn shape(ty: &TypeInner) -> Option<(Option<VectorSize>, bool)> {
    let (size, scalar) = match *ty {
        TypeInner::Scalar(scalar) => (None, scalar),
        TypeInner::Vector { size, scalar } => (Some(size), scalar),
        _ => return None,
    };
    match scalar {
        Scalar::F16 => Some((size, true)),
        Scalar { width: 4, kind: ScalarKind::Float | ScalarKind::Sint | ScalarKind::Uint } => {
            Some((size, false))
        }
        _ => None,
    }
}

/// The casts of a function that naga lacks.
fn conversions(
    module: &Module,
    function: &Function,
    marks: &HashMap<u32, usize>,
) -> Vec<(usize, Conversion)> {
    let mut types = Typifier::new();
    let context = ResolveContext::with_locals(module, &function.local_variables, &function.arguments);
    let mut found = Vec::new();
    for (handle, expression) in function.expressions.iter() {
        if types.grow(handle, &function.expressions, &context).is_err() {
            return found;
        }
        let Expression::Select { condition, accept, .. } = *expression else { continue };
        let Expression::Relational { fun: RelationalFunction::Any, argument } =
            function.expressions[condition]
        else {
            continue;
        };
        let span = function.expressions.get_span(condition).to_range().unwrap_or_default();
        let cast = marks.get(&offset(span.start));
        let conversion =
            Conversion::between(types.get(argument, &module.types), types.get(accept, &module.types));
        found.extend(cast.copied().zip(conversion));
    }
    found
}

/// A cast in the text.
struct Cast {
    /// From `bitcast` up to its argument.
    head: Range<usize>,
    /// Behind the argument.
    end: usize,
    /// The type that the argument becomes.
    target: String,
}

impl Cast {
    /// The cast that begins at token `at`.
    fn at(code: &str, tokens: &[Token<'_>], at: usize) -> Option<Self> {
        if tokens[at].text != "bitcast" || text(tokens, at + 1) != "<" {
            return None;
        }
        let open = at + 2 + tokens[at + 2..].iter().take(MOST_TOKENS).position(|token| token.text == "(")?;
        if text(tokens, open - 1) != ">" {
            return None;
        }
        let [argument] = &arguments(tokens, open + 1)[..] else { return None };
        Some(Self {
            head: tokens[at].range.start..tokens[open].range.end,
            end: tokens[argument.end].range.start,
            target: code[tokens[at + 2].range.start..tokens[open - 1].range.start].replace('\n', " "),
        })
    }

    /// The edits that put the types of the argument and of the cast in place of the cast.
    fn probe(&self) -> [Edit; 2] {
        let target = &self.target;
        self.edits(format!("select({target}(), {target}(), {MARK}"), "))")
    }

    fn replaced(&self, conversion: Conversion) -> [Edit; 2] {
        let target = &self.target;
        match conversion {
            Conversion::WordOfTwo => self.edits(format!("bitcast<{target}>(pack2x16float(vec2<f32>("), "))"),
            Conversion::WordsOfFour => self.edits(format!("bitcast<{target}>({BITS_OF_FOUR}("), ")"),
            Conversion::TwoOfWord => self.edits(format!("{target}(unpack2x16float(bitcast<u32>("), "))"),
            Conversion::FourOfWords => self.edits(format!("{FOUR}(bitcast<vec2<u32>>("), ")"),
        }
    }

    /// Edits for what stands before the argument, and behind it: one bracket closes anyway.
    fn edits(&self, before: String, after: &str) -> [Edit; 2] {
        [(self.head.clone(), before), (self.end..self.end, after.to_owned())]
    }
}

/// A type of more tokens is no type of a cast.
const MOST_TOKENS: usize = 8;

fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::tokens::tokens;

    /// The statements after `before`, with conversions; `None` if they stay.
    fn converted(before: &str, statements: &str) -> Option<String> {
        let code = format!("{before}\n@compute @workgroup_size(1) fn f() {{ {statements} }}");
        let new = with_conversions(&code, &tokens(&code).collect::<Vec<_>>())?;
        Some(new.split_once("fn f() { ")?.1.split_once(" }")?.0.to_owned())
    }

    #[test]
    fn casts_of_named_values_are_conversions() {
        let before = "enable f16; alias H = vec2<f16>; alias W = u32; struct S { h: array<vec4h, 2> }
            var<private> h: H; var<private> s: S; fn g(a: u32) -> H { return h; }";
        let cases = [
            ("let x = bitcast<u32>(h);", "let x = bitcast<u32>(pack2x16float(vec2<f32>(h)));"),
            (
                "let x = bitcast<W>(g(1u),) + 1u;",
                "let x = bitcast<W>(pack2x16float(vec2<f32>(g(1u))),) + 1u;",
            ),
            (
                "let x = vec2u(1) + bitcast<vec2<u32>>(s.h[1]);",
                "let x = vec2u(1) + bitcast<vec2<u32>>(bitcast_from_vec4_f16(s.h[1]));",
            ),
            ("let x = bitcast<H>(1u).x;", "let x = H(unpack2x16float(bitcast<u32>(1u))).x;"),
            (
                "let x = bitcast<f32>(g(bitcast<u32>(-h)));",
                "let x = bitcast<f32>(pack2x16float(vec2<f32>(g(bitcast<u32>(pack2x16float(vec2<f32>(-h)))))));",
            ),
            (
                "let x = bitcast<f32>(0x7f800000u); let y = bitcast<i32>(h);",
                "let x = bitcast<f32>(0x7f800000u); let y = bitcast<i32>(pack2x16float(vec2<f32>(h)));",
            ),
        ];
        for (code, expected) in cases {
            assert_eq!(converted(before, code).as_deref(), Some(expected));
        }
    }

    #[test]
    fn other_casts_stay() {
        let before = "enable f16; var<private> h: vec2<f16>; var<private> x: vec4<u32>;";
        for code in
            ["let a = bitcast<vec4<f32>>(x);", "let a = bitcast<vec2<f16>>(h);", "let a = bitcast<u32>(x.x);"]
        {
            assert_eq!(converted(before, code), None, "{code}");
        }
        // naga rejects the text, or has another function in mind.
        for before in ["fn any(a: f32) -> f32 { return a; }", "fn g() { let x: u32 = 1i; }"] {
            let before = format!("enable f16; var<private> h: vec2<f16>; {before}");
            assert_eq!(converted(&before, "let a = bitcast<u32>(h);"), None);
        }
        assert_eq!(converted("enable f16;", "let a = bitcast<vec2<u32>"), None);
    }
}
