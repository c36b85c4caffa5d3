//! Rewrites bit casts between words and vectors of `f16`, which naga rejects because it compares the sizes of their scalars.
//! Its front end tells the types of the casts.

use std::ops::Range;

use naga::front::Typifier;
use naga::proc::ResolveContext;
use naga::{Expression, Function, Module, RelationalFunction, Scalar, ScalarKind, TypeInner, VectorSize};

use runtime_core::Result;

use super::constants;
use super::diagnostics::{failed, location};
use super::lists::List;
use super::text_edits::{Edit, applied};
use super::tokens::{Token, text, tokens};
use crate::ir::blocks;

/// The function that makes a vector of four.
const FOUR: &str = "bitcast_vec4_f16";

/// The function that returns the bits of a vector of four.
const BITS_OF_FOUR: &str = "bitcast_from_vec4_f16";

/// Probe inserted before an argument so that naga computes its type; `any(dpdx(x))` accepts every type before validation,
/// and neither is evaluated if the argument is a constant. The comment between has the number of the cast.
const MARK: [&str; 2] = ["any/*", "*/(dpdx("];

/// The functions that a probe calls.
const CALLED: [&str; 3] = ["any", "dpdx", "select"];

/// The text with the functions that it uses, unless this added them before. naga reports a function of the kernel with such
/// a name as defined twice.
fn with_functions(mut code: String) -> String {
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
                location(code, path, own.span())
            )));
        }
    }
    Ok(())
}

/// The name of a function in its declaration, if the text has one.
fn function<'t, 'a>(tokens: &'t [Token<'a>], name: &str) -> Option<&'t Token<'a>> {
    let at = tokens.windows(2).position(|pair| pair[0].text == "fn" && pair[1].text == name)?;
    Some(&tokens[at + 1])
}

/// A cheap test: `false` means that the source has no f16 bitcast.
pub(crate) fn may_be_in(code: &str) -> bool {
    code.contains("bitcast") && code.contains("f16")
}

/// A kernel's text with casts, and a copy in which a probe replaces each cast, so that naga computes its types.
pub(crate) struct Probe<'a> {
    code: &'a str,
    casts: Vec<Cast>,
    text: String,
}

impl<'a> Probe<'a> {
    /// The probe of a text, if it has casts. The kernel's own `any`, `dpdx` and `select` are
    /// renamed in the probe.
    pub(crate) fn of(code: &'a str, tokens: &[Token<'_>]) -> Option<Self> {
        let casts: Vec<Cast> = evaluated(tokens).into_iter().filter_map(|at| Cast::at(tokens, at)).collect();
        if casts.is_empty() {
            return None;
        }
        let hidden = CALLED.map(|name| function(tokens, name).is_some());
        // A name that is not called is that of a variable or member.
        let is_own = |at: usize| {
            let called = CALLED.iter().zip(hidden).find(|(name, _)| **name == tokens[at].text);
            called.is_some_and(|(_, hidden)| hidden || text(tokens, at + 1) != "(")
        };
        let own = (0..tokens.len()).filter(|&at| is_own(at)).map(|at| &tokens[at]);
        let own = own.map(|token| (token.range.clone(), format!("own_{}", token.text)));
        let probes = casts.iter().enumerate().flat_map(|(number, cast)| cast.probe(number));
        let text = applied(code, probes.chain(own).collect());
        Some(Self { code, casts, text })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text with these casts expressed by functions that naga accepts, if it has any. Lines stay the same.
    /// A text that naga rejects stays as it is.
    pub(crate) fn with_conversions(&self) -> Option<String> {
        let (module, text) = constants::module_of(&self.text)?;
        let mut edits = Vec::new();
        for function in blocks::functions(&module) {
            self.convert(&module, function, &text, &mut edits);
        }
        (!edits.is_empty()).then(|| with_functions(applied(self.code, edits)))
    }

    /// The cast whose mark begins a text.
    fn marked(&self, text: &str) -> Option<&Cast> {
        let (number, _) = text.strip_prefix(MARK[0])?.split_once(MARK[1])?;
        self.casts.get(number.parse::<usize>().ok()?)
    }

    /// Adds the edits for the casts of a function that naga lacks.
    fn convert(&self, module: &Module, function: &Function, text: &str, edits: &mut Vec<Edit>) {
        let mut types = Typifier::new();
        let context = ResolveContext::with_locals(module, &function.local_variables, &function.arguments);
        for (handle, expression) in function.expressions.iter() {
            if types.grow(handle, &function.expressions, &context).is_err() {
                return;
            }
            let Expression::Select { condition, accept, .. } = *expression else { continue };
            let Expression::Relational { fun: RelationalFunction::Any, argument } =
                function.expressions[condition]
            else {
                continue;
            };
            let span = function.expressions.get_span(condition).to_range().unwrap_or_default();
            // A function of the kernel may hide the derivative.
            let Expression::Derivative { expr, .. } = function.expressions[argument] else { continue };
            let Some(cast) = text.get(span.start..).and_then(|text| self.marked(text)) else { continue };
            let types = [expr, accept].map(|value| types.get(value, &module.types));
            edits.extend(Conversion::between(types, cast).into_iter().flat_map(|it| cast.replaced(it)));
        }
    }
}

/// The tokens in bodies of functions that are not part of a constant or a `case`: naga has no derivatives there.
pub(super) fn evaluated(tokens: &[Token<'_>]) -> Vec<usize> {
    let (mut found, mut depth, mut is_function) = (Vec::new(), 0usize, false);
    // What ends the constant expression, if this is one.
    let mut ends: &[&str] = &[];
    for (at, token) in tokens.iter().enumerate() {
        if ends.contains(&token.text) {
            ends = &[];
        }
        match token.text {
            "fn" => is_function = true,
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                is_function &= depth > 0;
            }
            "const" | "const_assert" => ends = &[";"],
            "case" => ends = &[":", "{"],
            _ if is_function && depth > 0 && ends.is_empty() => found.push(at),
            _ => {}
        }
    }
    found
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
    fn between([from, to]: [&TypeInner; 2], cast: &Cast) -> Option<Self> {
        match (shape(from)?, shape(to)?) {
            ((Some(VectorSize::Bi), is_f16), (None, false)) if is_f16 || cast.pair.is_some() => {
                Some(Self::WordOfTwo)
            }
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

/// A cast in the text.
struct Cast {
    /// From `bitcast` up to its argument.
    head: Range<usize>,
    /// Behind the argument.
    end: usize,
    /// The type that the argument becomes.
    target: String,
    /// The name `vec2` of an argument `vec2(…)`: its elements are `f16` if a word is made of them, even where naga takes numbers
    /// without a type for `f32`.
    pair: Option<Range<usize>>,
}

impl Cast {
    /// The cast that begins at token `at`.
    fn at(tokens: &[Token<'_>], at: usize) -> Option<Self> {
        if tokens[at].text != "bitcast" {
            return None;
        }
        let open = List::at(tokens, at + 1)?.close + 1;
        let [argument] = &List::at(tokens, open)?.elements[..] else { return None };
        let argument_text = [open + 1, open + 2].map(|at| text(tokens, at));
        let target: Vec<_> = tokens[at + 2..open - 1].iter().map(|token| token.text).collect();
        Some(Self {
            head: tokens[at].range.start..tokens[open].range.end,
            end: tokens[argument.end].range.start,
            target: target.join(" "),
            pair: (argument_text == ["vec2", "("]).then(|| tokens[open + 1].range.clone()),
        })
    }

    /// The edits that put a probe in place of the cast: naga computes the types of its argument and of the cast.
    fn probe(&self, number: usize) -> [Edit; 2] {
        let (target, [before, after]) = (&self.target, MARK);
        self.edits(format!("select({target}(), {target}(), {before}{number}{after}"), "))")
    }

    fn replaced(&self, conversion: Conversion) -> impl Iterator<Item = Edit> {
        let target = &self.target;
        let edits = match conversion {
            Conversion::WordOfTwo => self.edits(format!("bitcast<{target}>(pack2x16float(vec2<f32>("), "))"),
            Conversion::WordsOfFour => self.edits(format!("bitcast<{target}>({BITS_OF_FOUR}("), ")"),
            Conversion::TwoOfWord => self.edits(format!("{target}(unpack2x16float(bitcast<u32>("), "))"),
            Conversion::FourOfWords => self.edits(format!("{FOUR}(bitcast<vec2<u32>>("), ")"),
        };
        let pair = self.pair.clone().filter(|_| matches!(conversion, Conversion::WordOfTwo));
        edits.into_iter().chain(pair.map(|name| (name, "vec2<f16>".to_owned())))
    }

    /// Edits for what stands before the argument, and behind it: one bracket closes anyway.
    fn edits(&self, before: String, after: &str) -> [Edit; 2] {
        [(self.head.clone(), before), (self.end..self.end, after.to_owned())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Program, Specialisation};

    /// The statements after `before`, with conversions; `None` if they stay.
    fn converted(before: &str, statements: &str) -> Option<String> {
        let code = format!("{before}\n@compute @workgroup_size(1) fn f() {{ {statements} }}");
        let new = Probe::of(&code, &tokens(&code).collect::<Vec<_>>())?.with_conversions()?;
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
                "let x = vec2u(1) + bitcast<vec2 < u32 >>(bitcast_from_vec4_f16(s.h[1]));",
            ),
            (
                "let x = bitcast<H>(array<u32, 2>(1u, 2u)[0]).x;",
                "let x = H(unpack2x16float(bitcast<u32>(array<u32, 2>(1u, 2u)[0]))).x;",
            ),
            (
                "const m = mix(1, 2, 0.5); let c = true || bitcast<u32>(vec2h(1, 1)) == 1u; let x = bitcast<u32>(h);",
                "const m = mix(1, 2, 0.5); let c = true || bitcast<u32>(pack2x16float(vec2<f32>(vec2h(1, 1)))) == 1u; let x = bitcast<u32>(pack2x16float(vec2<f32>(h)));",
            ),
            ("let x = bitcast<H>(1u).x;", "let x = H(unpack2x16float(bitcast<u32>(1u))).x;"),
            (
                "let x = bitcast<f32>(g(bitcast<u32>(-h)));",
                "let x = bitcast<f32>(pack2x16float(vec2<f32>(g(bitcast<u32>(pack2x16float(vec2<f32>(-h)))))));",
            ),
            (
                "let x = bitcast<i32>(vec2(h.y, h[0]));",
                "let x = bitcast<i32>(pack2x16float(vec2<f32>(vec2<f16>(h.y, h[0]))));",
            ),
            (
                "let x = bitcast<u32>(vec2(1, 2.5));",
                "let x = bitcast<u32>(pack2x16float(vec2<f32>(vec2<f16>(1, 2.5))));",
            ),
            (
                "let x = bitcast<u32>(vec2h(1, 2) + h);",
                "let x = bitcast<u32>(pack2x16float(vec2<f32>(vec2h(1, 2) + h)));",
            ),
            (
                "let x = bitcast<vec4<f16>>(vec2u(1));",
                "let x = bitcast_vec4_f16(bitcast<vec2<u32>>(vec2u(1)));",
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
        for code in [
            "let a = bitcast<vec4<f32>>(x);",
            "let a = bitcast<vec2<f16>>(h);",
            "let a = bitcast<u32>(x.x);",
            "let a = bitcast<u32>(vec2(1.0, 2.0).x);",
            "let a = bitcast<u32>(vec2<f32>(1, 2));",
        ] {
            assert_eq!(converted(before, code), None, "{code}");
        }
        let rejected = "enable f16; var<private> h: vec2<f16>; fn g() { let x: u32 = 1i; }";
        assert_eq!(converted(rejected, "let a = bitcast<u32>(h);"), None);
        assert_eq!(converted("enable f16;", "let a = bitcast<vec2<u32>"), None);
    }

    #[test]
    fn functions_of_the_kernel_do_not_mislead() {
        let cast = "let a = bitcast<u32>(h);";
        let conversion = "let a = bitcast<u32>(pack2x16float(vec2<f32>(h)));";
        for own in [
            "fn any(a: f32) -> f32 { return a; }",
            "fn select(a: u32) -> u32 { return a; }",
            "fn dpdx(a: vec2h) -> vec4<bool> { return vec4<bool>(); }",
            "fn dpdx(a: vec2h) -> vec4h { return vec4h(); } fn any(a: vec4h) -> bool { return true; }",
            "struct S { dpdx: u32 } fn g(any: f32, s: S) -> u32 { let select = any; return bitcast<u32>(select) + s.dpdx; }
             fn i() -> f32 { return select(1.0, 2.0, any(vec2(true))); }",
        ] {
            let before = format!("enable f16; var<private> h: vec2h; {own}");
            assert_eq!(converted(&before, cast).as_deref(), Some(conversion), "{own}");
        }
        // A word, whose derivative by the kernel is two `f16`.
        let before = "enable f16; var<private> w: u32; var<private> h: vec2h;
            fn dpdx(a: u32) -> vec2<f16> { return h; }";
        assert_eq!(converted(before, "let a = bitcast<i32>(w);"), None);
    }

    #[test]
    fn casts_in_constants_do_not_keep_others_from_conversion() {
        let before = "enable f16; override O = 1u; override P = bitcast<f32>(O); var<private> h: vec2h;";
        let cast = "let a = bitcast<u32>(h);";
        let conversion = "let a = bitcast<u32>(pack2x16float(vec2<f32>(h)));";
        assert_eq!(converted(before, cast).as_deref(), Some(conversion));
        let casts = |body: &str| {
            let code = format!("const A = bitcast<u32>(1); @size(bitcast<u32>(1)) fn f() {{ {body} }}");
            let tokens: Vec<_> = tokens(&code).collect();
            Probe::of(&code, &tokens).map_or(0, |probe| probe.casts.len())
        };
        assert_eq!(casts("const A: u32 = bitcast<u32>(1); const_assert bitcast<u32>(1) == 1;"), 0);
        let cases = "switch bitcast<u32>(x) { case bitcast<u32>(1), 2: { y = bitcast<u32>(x); } case 3 {} }";
        assert_eq!(casts(cases), 2);
        assert_eq!(casts("const A = 1; y = bitcast<u32>(x);"), 1);
    }

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
    fn a_type_may_have_comments_and_lines() {
        let before = "enable f16; var<private> h: vec4<f16>;";
        let code = "let x = bitcast<vec2< // of words\nu32>>(h); let y = h;";
        let expected = "let x = bitcast<vec2 < u32 >>(bitcast_from_vec4_f16(\nh)); let y = h;";
        assert_eq!(converted(before, code).as_deref(), Some(expected));
    }
}
