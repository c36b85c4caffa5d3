use super::evaluated;

/// The value of a constant expression, as text.
fn value(expression: &str) -> Option<String> {
    let code = format!("const x = {expression};");
    Some(evaluated(&code)?.strip_prefix("const x = ")?.strip_suffix(';')?.to_owned())
}

#[test]
fn built_in_functions_have_their_values() {
    for (expression, expected) in [
        ("mix(1.0, 3.0, 0.5)", "2.0"),
        ("mix(vec2(1, 2), vec2(3, 6), 0.5)", "vec2(2.0, 4.0)"),
        ("mix(vec2(1f, 2), vec2(3, 6), vec2(0, 1))", "vec2<f32>(1.0f, 6.0f)"),
        ("bitcast<u32>(1.0f)", "1065353216u"),
        ("bitcast<f32>(0xff7fffffu)", "(-3.4028235e38f)"),
        ("bitcast<f32>(0x3f800000)", "1.0f"),
        ("bitcast<i32>(4294967295)", "(-1i)"),
        ("bitcast<vec2<f16>>(0x3c004000u)", "vec2<f16>(2.0h, 1.0h)"),
        ("bitcast<vec2u>(vec4h(1, 0, 0, 2))", "vec2<u32>(15360u, 1073741824u)"),
        ("smoothstep(0.0, 2.0, 1.0)", "0.5"),
        ("ldexp(1.5, 2)", "6.0"),
        ("ldexp(1f, -149)", "1e-45f"),
        ("frexp(8.0).fract", "0.5"),
        ("frexp(8.0f).exp", "4i"),
        ("frexp(vec2(0.0, -3.0)).fract", "vec2(0.0, (-0.75))"),
        ("modf(-1.5).fract", "(-0.5)"),
        ("modf(vec2f(2.25, -1)).whole.x", "2.0f"),
        ("determinant(mat2x2(1.0, 2.0, 3.0, 4.0))", "(-2.0)"),
        ("determinant(mat3x3f(2, 0, 0, 0, 3, 0, 5, 0, 4))", "24.0f"),
        ("transpose(mat2x3f(1, 2, 3, 4, 5, 6))", "mat3x2<f32>(1.0f, 4.0f, 2.0f, 5.0f, 3.0f, 6.0f)"),
        ("reflect(vec2(1.0, -1.0), vec2(0.0, 1.0))", "vec2(1.0, 1.0)"),
        ("refract(vec2(0.0, -1.0), vec2(0.0, 1.0), 2.0).y", "(-1.0)"),
        ("faceForward(vec2(1.0, 2.0), vec2(0.0, 1.0), vec2(0.0, 1.0))", "vec2((-1.0), (-2.0))"),
        ("extractBits(0xf0u, 4u, 2u)", "3u"),
        ("extractBits(-1i, 0, 32)", "(-1i)"),
        ("extractBits(0x80u, 7, 1) + 0", "1u"),
        ("extractBits(8i, 3u, 1u)", "(-1i)"),
        ("insertBits(0u, 0xffu, 4u, 4u)", "240u"),
        ("quantizeToF16(1.0002)", "1.0f"),
        ("pack4x8unorm(vec4(1.0, 0.0, 0.0, 0.0))", "255u"),
        ("pack4x8snorm(vec4f(-1, 1, 0, 0))", "32641u"),
        ("pack2x16float(vec2(1.0, 2.0))", "1073757184u"),
        ("pack4xI8Clamp(vec4i(200, -200, 0, 0))", "32895u"),
        ("pack4xU8(vec4u(1, 2, 3, 260))", "67305985u"),
        ("unpack4xI8(0xff01u).y", "(-1i)"),
        ("unpack2x16unorm(0xffffu).x", "1.0f"),
        ("unpack2x16float(0x3c00u)", "vec2<f32>(1.0f, 0.0f)"),
        ("atanh(-0.99999994f)", "(-8.66434f)"),
    ] {
        assert_eq!(value(expression).as_deref(), Some(expected), "{expression}");
    }
}

#[test]
fn what_is_an_error_or_not_constant_stays() {
    for expression in [
        "extractBits(1u, 30u, 5u)",
        "ldexp(1f, 129)",
        "smoothstep(1.0, 0.0, 0.5)",
        "atanh(1.0)",
        "bitcast<f32>(0x7f800000u)",
        "quantizeToF16(70000.0)",
        "mix(1.0, y, 0.5)",
        "mix(1.0f, 2.0h, 0.5)",
        "sqrt(4.0)",
        "1 + 2 * 3",
        "transpose(vec2(1.0, 2.0))",
    ] {
        assert_eq!(value(expression), None, "{expression}");
    }
}

#[test]
fn the_other_side_of_a_logical_operator_is_not_evaluated() {
    assert_eq!(value("false && 1.0f / 0.0f == 0.0f").as_deref(), Some("false"));
    assert_eq!(value("true || 1 / 0 == 0").as_deref(), Some("true"));
    assert_eq!(value("true && 1 / 0 == 0"), None);
    assert_eq!(value("select(1u, 3u, 1 < 2 || 1 / 0 == 0)").as_deref(), Some("3u"));
}

#[test]
fn names_are_those_of_their_places() {
    let code = "const b = a + 1.0; const a = mix(1.0, 3.0, 0.5); alias U = u32;
        const s = frexp(8.0);
        fn f(a: f32) { let x = mix(1.0, a, 0.5); const e = s.exp; }
        fn g() { const c = a * 2; { let a = 1.0; let y = mix(a, 1, 1); } let z = mix(c, 0.0, 0.0); }
        fn h() { let r = modf(1.5); let v = bitcast<U>(1.0f); }";
    let expected = "const b = a + 1.0; const a = 2.0; alias U = u32;
        const s = 0;
        fn f(a: f32) { let x = mix(1.0, a, 0.5); const e = 4; }
        fn g() { const c = a * 2; { let a = 1.0; let y = mix(a, 1, 1); } let z = 4.0; }
        fn h() { let r = modf(1.5f); let v = 1065353216u; }";
    assert_eq!(evaluated(code).unwrap(), expected);
}

#[test]
fn odd_texts_end() {
    for code in [
        "const a = b; const b = mix(a, a, a);",
        "const a = mix(",
        "alias A = A; const x = bitcast<A>(1);",
        "}{",
        "fn",
    ] {
        assert_eq!(evaluated(code), None, "{code}");
    }
    let deep = format!("const x = {}1.0{};", "mix(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(evaluated(&deep), None);
}
