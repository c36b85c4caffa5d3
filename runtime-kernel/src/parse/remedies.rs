//! Adds remedies to naga's diagnostics where naga has none, or one that does not work for portable kernels.

use std::borrow::Cow;

use super::constants::UNEVALUATED;

/// Extensions that portable kernels lack, with what to write instead.
const EXTENSIONS: [(&str, &str); 3] = [
    (
        "`wgpu_binding_array`",
        "a portable kernel has no arrays of bindings; put the contents into one tensor, one after the other",
    ),
    (
        "`wgpu_ray_query`",
        "a portable kernel cannot trace rays through acceleration structures; intersect them itself",
    ),
    (
        "`wgpu_int16`",
        "a portable kernel has no integers of 16 bits; use `i32` and `u32`, and pack two into a word for storage",
    ),
];

/// What a message begins with, and what to write instead.
const BEGINNINGS: [(&str, &str); 6] = [
    (
        "Unexpected runtime-expression",
        "the value must be known before the kernel runs; assign it in a function instead",
    ),
    (
        "Unexpected override-expression",
        "an `override` is no constant, and neither is what depends on it; declare `override` instead of `const`",
    ),
    (
        "automatic conversions cannot convert elements of `vec3<u16>`",
        "three `f16` have no bit cast to a word; pad them to a `vec4<f16>`, and cast to `vec2<u32>`",
    ),
    ("expected assignment or increment/decrement", "declare a variable with `var name: type = value;`"),
    ("expected `;`, found \"?\"", "WGSL has no `?:`; write `select(if_false, if_true, condition)`"),
    ("expected statement, found \"\"", "add the missing `}`"),
];

/// When functions have no value as constants. Names are as naga prints them.
const VALUELESS: [(&str, &str); 7] = [
    ("bitcast", "the bits are those of an infinity or of no number, or the sizes differ"),
    ("ExtractBits", "offset and count must not go beyond the 32 bits of the number"),
    ("InsertBits", "offset and count must not go beyond the 32 bits of the number"),
    (
        "Ldexp",
        "the exponent must not be above that of the largest number of the type, and the result must be a number of it",
    ),
    ("SmoothStep", "the edges must differ"),
    ("QuantizeToF16", "an `f16` is at most 65504"),
    ("Pack2x16float", "an `f16` is at most 65504"),
];

/// Begins the lines that list the types of an argument.
const ALLOWED: &str = "  = note: allowed type: ";

/// Begins the lines that advise to enable an extension.
const ADVICE: &str = "You can enable this extension by adding";

/// A diagnostic with the remedy.
pub(super) fn with_remedy(text: &str) -> String {
    with_own_remedy(&with_short_lists(text)).replace(" see msg", " here")
}

/// A diagnostic with lists of types in one line.
fn with_short_lists(text: &str) -> String {
    let mut lines: Vec<Cow<'_, str>> = Vec::new();
    let mut in_list = false;
    for line in text.lines() {
        match line.strip_prefix(ALLOWED) {
            Some(name) if name.contains("Abstract") => {}
            Some(name) if in_list => {
                if let Some(last) = lines.last_mut() {
                    *last = Cow::Owned(format!("{last}, {name}"));
                }
            }
            Some(name) => {
                in_list = true;
                lines.push(Cow::Owned(format!("  = note: {name}")));
            }
            None => {
                in_list = false;
                lines.push(Cow::Borrowed(line));
            }
        }
    }
    lines.join("\n")
}

/// A diagnostic about a function that has no value as a constant.
fn with_reason(text: &str) -> Option<String> {
    let rest = text.strip_prefix(UNEVALUATED)?;
    let name = rest.split(' ').next()?;
    let reason = VALUELESS.iter().find(|(function, _)| *function == name);
    let reason =
        reason.map_or("an argument is out of range, or the result is too large", |(_, reason)| *reason);
    let mut called = name.to_owned();
    if let Some(first) = called.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    let called = if name == "SmoothStep" { "smoothstep" } else { &called };
    let rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    Some(format!("`{called}` has no value as a constant here\n{rest}\n  = note: {reason}"))
}

fn with_own_remedy(text: &str) -> Cow<'_, str> {
    if let Some(text) = with_reason(text) {
        return Cow::Owned(text);
    }
    if let Some((_, remedy)) = BEGINNINGS.iter().find(|(beginning, _)| text.starts_with(beginning)) {
        return Cow::Owned(format!("{text}\n  = note: {remedy}"));
    }
    if let Some(name) = text.strip_prefix("no definition in scope for identifier: `") {
        let name = name.split('`').next().unwrap_or_default();
        return Cow::Owned(format!(
            "{text}\n  = note: if another file declares `{name}`, join the files; if the program sets it, add a declaration"
        ));
    }
    if text.starts_with("unknown enable-extension `chromium_experimental_subgroup_matrix`") {
        return Cow::Owned(format!(
            "{text}\n  = note: the matrices of portable kernels are those of `enable wgpu_cooperative_matrix`"
        ));
    }
    let Some((before, advice)) = text.split_once(ADVICE) else { return Cow::Borrowed(text) };
    let remedy =
        EXTENSIONS.iter().find(|(name, _)| text.lines().next().is_some_and(|line| line.contains(name)));
    let Some((_, remedy)) = remedy else { return Cow::Borrowed(text) };
    let rest = advice.split_once('\n').map_or(String::new(), |(_, rest)| format!("\n{rest}"));
    Cow::Owned(format!("{before}{remedy}{rest}"))
}

#[cfg(test)]
mod tests {
    use crate::{Program, Specialisation};

    fn error(code: &str) -> String {
        Program::parse(code, "a.wgsl", &Specialisation::default()).unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_name_may_be_in_another_file() {
        let error = error("\nvar<private> a: Shared;\n@compute @workgroup_size(1) fn f() { }");
        assert!(error.contains("a.wgsl:2:17"), "{error}");
        assert!(error.contains("if another file declares `Shared`, join the files"), "{error}");
    }

    #[test]
    fn functions_without_a_value_are_named_with_the_reason() {
        for (expression, name, reason) in [
            ("extractBits(1u, 30u, 5u)", "extractBits", "beyond the 32 bits"),
            ("insertBits(1u, 1u, 30u, 5u)", "insertBits", "beyond the 32 bits"),
            ("bitcast<f32>(0x7f800000u)", "bitcast", "an infinity"),
            ("ldexp(1f, 129)", "ldexp", "the exponent"),
            ("smoothstep(1.0, 1.0, 1.0)", "smoothstep", "must differ"),
            ("quantizeToF16(65520.0)", "quantizeToF16", "65504"),
            ("pack2x16float(vec2(0.0, 7e4))", "pack2x16float", "65504"),
            ("reflect(vec2(1e30f), vec2(1e30f))", "reflect", "too large"),
            ("mix(1.0, extractBits(1u, 33, 0), 0.5)", "extractBits", "beyond the 32 bits"),
        ] {
            for code in [
                format!("const ok = mix(1.0, 2.0, 0.5);\nconst c = {expression};\n"),
                format!("const ok = modf(1.0).fract;\nfn f() {{ const c = {expression}; }}\n"),
            ] {
                let error = error(&(code.clone() + "@compute @workgroup_size(1) fn main() { }"));
                assert!(error.contains("a.wgsl:2:"), "{code}: {error}");
                assert!(error.contains(&format!("`{name}` has no value as a constant")), "{code}: {error}");
                assert!(error.contains(reason) && !error.contains("Not implemented"), "{code}: {error}");
            }
        }
        let error = error("const a = atanh(1.5);\n@compute @workgroup_size(1) fn main() { }");
        assert!(error.contains("a.wgsl:1:") && error.contains("atanh"), "{error}");
    }

    #[test]
    fn other_errors_come_first() {
        let error =
            error("const a = mix(1.0, 2.0, 0.5);\nconst b = a / 0;\n@compute @workgroup_size(1) fn f() { }");
        assert!(error.contains("a.wgsl:2:") && !error.contains("mix"), "{error}");
    }

    #[test]
    fn missing_extensions_are_not_advised() {
        for (kind, remedy) in
            [("binding_array<texture_2d<f32>>", "into one tensor"), ("acceleration_structure", "intersect")]
        {
            let error = error(&format!(
                "\n@group(0) @binding(0) var x: {kind};\n@compute @workgroup_size(1) fn f() {{ }}"
            ));
            assert!(error.contains("a.wgsl:2:"), "{error}");
            assert!(error.contains(remedy), "{error}");
            assert!(!error.contains("You can enable"), "{error}");
        }
    }

    #[test]
    fn matrices_of_chromium_have_another_name_here() {
        let error =
            error("enable chromium_experimental_subgroup_matrix;\n@compute @workgroup_size(1) fn f() { }");
        assert!(error.contains("`enable wgpu_cooperative_matrix`"), "{error}");
    }

    #[test]
    fn existing_extensions_are_advised() {
        let error = error("var<private> a: f16;\n@compute @workgroup_size(1) fn f() { }");
        assert!(error.contains("enable f16;"), "{error}");
    }

    #[test]
    fn cube_arrays_of_other_stages_do_not_matter() {
        let cube = "@group(0) @binding(0) var x: texture_cube_array<f32>;\n";
        let fragment = "@fragment fn g() { _ = textureNumLevels(x); }\n";
        let compute = |body: &str| format!("{cube}{fragment}@compute @workgroup_size(1) fn f() {{ {body} }}");
        assert!(Program::parse(&compute(""), "a.wgsl", &Specialisation::default()).is_ok());
        let error = error(&compute("_ = textureNumLevels(x);"));
        assert!(error.contains("a.wgsl:1: \"x\" is a texture that is no tensor"), "{error}");
    }
}
