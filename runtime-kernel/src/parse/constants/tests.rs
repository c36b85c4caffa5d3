use super::{evaluated, may_be_wrong};

/// The value of a constant expression, as text.
fn value(expression: &str) -> Option<String> {
    let code = format!("enable f16; const x = {expression};");
    let new = evaluated(&code)?;
    let (value, _) = new.strip_prefix("enable f16; const x = ")?.split_once(';')?;
    Some(value.to_owned())
}

/// Each expression with its value.
fn assert_values(expected: &[(&str, &str)]) {
    for (expression, expected) in expected {
        assert_eq!(value(expression).as_deref(), Some(*expected), "{expression}");
    }
}

#[test]
fn built_in_functions_have_their_values() {
    assert_values(&[
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
        ("extractBits(countOneBits(7), 0, 3)", "3i"),
        ("insertBits(firstLeadingBit(-1), 0, 0, 0)", "(-1i)"),
        ("extractBits(dot(vec2(1, 2), vec2(3, 4)), 0, 5)", "11i"),
        ("bitcast<u32>(dot4I8Packed(0xffu, 1u))", "4294967295u"),
        ("mix(cross(vec3(1.0, 0, 0), vec3(0, 1, 0)), vec3(), 0)", "vec3(0.0, 0.0, 1.0)"),
        ("smoothstep(2.0, 0.0, 1.0)", "0.5"),
        ("distance(-1.7976931348623157e308, 0.0)", "1.7976931348623157e308"),
        ("cosh(modf(2.5))", "cosh(modf_f32_result(0.5f, 2.0f))"),
        ("frexp(vec2(1.5h))", "frexp_vec2_f16_result(vec2<f16>(0.75h, 0.75h), vec2<i32>(1i, 1i))"),
        ("fma(2.0, 3.0, 4.0)", "10.0"),
        ("extractBits(u32(1e10), 0, 32)", "4294967295u"),
        ("extractBits(i32(-1e10), 0, 4)", "0i"),
        ("bitcast<i32>(0x80000000u)", "(-2147483647i - 1i)"),
        ("array<f32, extractBits(1u, 0u, 1u)>(1)", "array<f32, 1u>(1)"),
        ("array<u32, 2 * 2>(1, 2, 3, 4)[3] + extractBits(7u, 0, 0)", "4u"),
        ("ldexp(1.0, -1074)", "5e-324"),
        ("pack4x8unorm(vec4f(0.5))", "2155905152u"),
    ]);
}

#[test]
fn area_functions_are_exact_at_their_ends() {
    assert_values(&[
        ("mix(asinh(-1.7976931348623157e308), acosh(1e308), 0)", "(-710.4758600739439)"),
        ("mix(0, acosh(1.7976931348623157e308), 1)", "710.4758600739439"),
        ("atanh(-0.99999994f)", "(-8.66434f)"),
        ("atanh(-0.9999999999999999)", "(-18.714973875118524)"),
    ]);
}

#[test]
fn what_is_an_error_or_not_constant_stays() {
    for expression in [
        "extractBits(1u, 30u, 5u)",
        "insertBits(1u, 1u, 33u, 0u)",
        "insertBits(0x1ffffffff, 1, 0, 1)",
        "mix(f32(-2147483648i / -1i), 1, 1)",
        "mix(f32(-2147483648i % -1i), 1, 1)",
        "mix(f32(1i << 31u), 1, 1)",
        "mix(f32(1u >> 32u), 1, 1)",
        "refract(vec2(1e20f), vec2(1e20f), 1e20f)",
        "mix(vec2(1.0), 1.0, 0.5)",
        "mix(1.0, 2.0, vec2(0.5))",
        "mix(vec4(1.0).xg, vec2(2.0), 0.5)",
        "mix(vec2<f32>(1i).x, 1.0, 0.5)",
        "mix(mat2x2<i32>(1, 2, 3, 4)[0].x, 1, 0)",
        "mix(array<f32, 2>(1, 2, 3)[0], 1, 0)",
        "mix(array(vec2(1), vec3(1))[0].x, 1, 0)",
        "fma(1e308, 2.0, -1e308)",
        "determinant(mat2x2f(3e30, 3e30, 3e30, 3e30))",
        "quantizeToF16(65519.0)",
        "mix(65504h + 8h, 0, 0)",
        "transpose(mat2x2(1.0, 2.0, 3.0, 4.0) + 1.0)",
        "transpose(-mat2x2(1.0, 2.0, 3.0, 4.0))",
        "mix(vec4(mat2x2(1.0, 2.0, 3.0, 4.0)), vec4(), 0)",
        "quantizeToF16(1h)",
        "pack2x16float(vec2(0.0, -65505.0))",
        "mix(select(1, vec2(1), true), 1, 1)",
        "bitcast<mat2x2f>(vec4f())",
        "0x1.002p0h",
        "0x1p16h",
        "0x1h",
        "extractBits(01u, 0, 1)",
        "0x1p-25h",
        "ldexp(1f, 129)",
        "smoothstep(1.0, 1.0, 0.5)",
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
    assert_eq!(value("true || array<bool, 2 * 2>()[1 / 0]").as_deref(), Some("true"));
    // The other side is a constant with a type.
    for expression in [
        "true || y",
        "false && 1",
        "true || vec2(true)",
        "true || vec2<f32>(1i).x == 1.0",
        "true || unknown(1)",
        "true || sqrt(-1.0) == 1u",
        "true || array<bool, 1 - 2>()[0]",
        "false && array<bool, u32(sqrt(-1))>()[0]",
    ] {
        assert_eq!(value(expression), None, "{expression}");
    }
    for expression in [
        "true || sqrt(-1.0) == 1.0",
        "true || extractBits(1, 31, 2) == 1 && atanh(2.0) < clamp(1.0, 3.0, 2.0)",
        "true || u32(-1) == 1 % 0 << 33u",
    ] {
        assert_eq!(value(expression).as_deref(), Some("true"), "{expression}");
    }
    assert_eq!(value("select(1u, 3u, 1 < 2 || 1 / 0 == 0)").as_deref(), Some("3u"));
}

#[test]
fn a_side_that_is_not_evaluated_is_a_constant() {
    let code = "var<private> v = 1; fn g() -> bool { return true; } fn f(x: f32) {
        const a = false && x > 1; const b = true || v == 1; const c = true || g(); let l = 1; const d = true || l == 1; }";
    assert_eq!(evaluated(code), None);
}

#[test]
fn names_are_those_of_their_places() {
    let code = "const b = a + 1.0; const a = mix(1.0, 3.0, 0.5); alias U = u32;
        const s = frexp(8.0);
        fn f(a: f32) { let x = mix(1.0, a, 0.5); const e = s.exp; }
        fn g() { const c = a * 2; { let a = 1.0; let y = mix(a, 1, 1); } let z = mix(c, 0.0, 0.0); }
        fn h() { let r = modf(1.5); let v = bitcast<U>(1.0f); }";
    let expected = "const b = a + 1.0; const a = 2.0; alias U = u32;
        const s = frexp_f32_result(0.5f, 4i);
        fn f(a: f32) { let x = mix(1.0, a, 0.5); const e = 4; }
        fn g() { const c = a * 2; { let a = 1.0; let y = mix(a, 1, 1); } let z = 4.0; }
        fn h() { let r = modf_f32_result(0.5f, 1.0f); let v = 1065353216u; }
struct frexp_f32_result { fract: f32, exp: i32 }
struct modf_f32_result { fract: f32, whole: f32 }";
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
    let deep = format!("const x = {}1.0{};", "mix(".repeat(1000), ")".repeat(1000));
    assert_eq!(evaluated(&deep), None);
}

#[test]
fn numbers_of_64_bits_are_exact() {
    assert_values(&[
        ("bitcast<i64>(vec2u(1, 0x80000000u))", "(-9223372036854775807li)"),
        ("bitcast<vec2<u32>>(18446744073709551615lu)", "vec2<u32>(4294967295u, 4294967295u)"),
        ("bitcast<u64>(1.0lf)", "4607182418800017408lu"),
        ("mix(1lf, 0.1lf, 1lf)", "0.1lf"),
        ("sqrt(2lf) + vec2<f64>(max(1.0, 2lf)).x", "3.414213562373095lf"),
        ("bitcast<u64>(9223372036854775807li * 3li)", "9223372036854775805lu"),
        ("bitcast<u64>(u64(1e30f))", "18446742974197923840lu"),
        ("bitcast<i64>(0x8000000000000000lu)", "(-9223372036854775807li - 1li)"),
        ("bitcast<u32>(i32(1e30f))", "2147483520u"),
    ]);
}

#[test]
fn hexadecimal_halves_become_decimal_ones() {
    assert_values(&[
        ("0x3p+2h", "12.0h"),
        ("0xep2h", "56.0h"),
        ("-(0x1.8P-1h)", "(-0.75h)"),
        ("0x1p-24h", "5.9604645e-8h"),
        ("0x.8p0h + x", "0.5h + x"),
        ("0x1.ffcp15h", "65504.0h"),
        ("mix(0x1p1, 0x.8p1f, 0.5)", "1.5f"),
        ("ldexp(0x1.921fb54442d18p1, -1)", "1.5707963267948966"),
    ]);
}

#[test]
fn abstract_numbers_are_shifted_by_any_amount() {
    for (expression, expected) in [
        ("(-9223372036854775807 - 1) >> 128u", "(-1)"),
        ("vec2(-2, 2) >> vec2(1u, 100u)", "vec2((-1), 0)"),
        ("AMOUNT - (-3 >> AMOUNT)", "65"),
        ("-8 >> (1 + 69)", "(-1)"),
        ("-8 >> (2u * 35u)", "(-1)"),
        ("-8 >> u32(70)", "(-1)"),
        ("-8 >> max(70u, 1u)", "(-1)"),
    ] {
        let code = format!("const x = {expression}; const AMOUNT = 64;");
        assert!(may_be_wrong(&code), "{expression}");
        assert!(may_be_wrong(&code.replace("const ", "const\t")), "{expression}");
        let expected = format!("const x = {expected}; const AMOUNT = 64;");
        assert_eq!(evaluated(&code).unwrap_or_default(), expected, "{expression}");
    }
    for code in [
        "let y = x >> 16u;",
        "var<private> x: array<vec2<f32>>;",
        "x >>= 3; y >> n; const m = 64;",
        "const n: u32 = 8; y >> n;",
        "a >>",
        "let y = (x >> (8u * i)) & 255u;",
        "y = x >> n.a[2];",
    ] {
        assert!(!may_be_wrong(code), "{code}");
    }
}

#[test]
fn names_and_brackets_of_the_text_stay_what_they_are() {
    for (code, expected) in [
        ("fn i32(a: f32) -> f32 { return a * 2.0; } const x = i32(mix(4., 6., .5));", "const x = i32(5.0);"),
        (
            "fn f() { if(true||false) { switch(extractBits(7u, 0u, 1u)) { } } }",
            "if(true) { switch(1u) { } } }",
        ),
        ("const x = (9007199254740993 > 9007199254740992) && true;", "const x = (true);"),
        ("fn f(vec3: u32) { let x = mix(vec3f(1), vec3f(2), 0.5); }", "{ let x = vec3f(1.5f, 1.5f, 1.5f); }"),
        ("alias f32 = u32; const x = unpack2x16unorm(0);", "const x = vec2f(0.0f, 0.0f);"),
        ("const vecs = 1; const x = vecs < extractBits(7u, 0, 2);", "const x = true;"),
    ] {
        let found = evaluated(code).unwrap_or_default();
        assert!(found.ends_with(expected), "{code}: {found}");
    }
}

#[test]
fn arrays_and_structures_of_constants_have_values() {
    for (code, expected) in [
        ("const a = array(modf(1.5).fract, 2);", "const a = array(0.5, 2);"),
        ("const a = array(1, 2.5); const b = mix(a[1], a[0], 0);", "const a = array(1, 2.5); const b = 2.5;"),
        ("struct S { @size(8) a: f32, b: vec2u } const s = S(1, vec2(2)); const t = ldexp(s.a, 1);", "2.0f;"),
        ("struct S { a: f32 } const s = array<S, 2>()[1]; const t = bitcast<u32>(s.a);", "t = 0u;"),
        ("const a: array<f32, 2> = array(1, 2); const b = bitcast<u32>(a[1]);", "b = 1073741824u;"),
        (
            "const N = 2; const a = array<array<u32, N>, 2>(); const b = extractBits(a[1][1], 0, 1);",
            "b = 0u;",
        ),
        (
            "const a = array(modf(1.5), modf(2.25)); const b = a[1].fract;",
            "const a = array(modf_f32_result(0.5f, 1.0f), modf_f32_result(0.25f, 2.0f)); const b = 0.25;",
        ),
        ("const a = modf(1e300); const b = a.whole / 1e300;", "const a = 0; const b = 1.0;"),
        (
            "fn f() { const s = frexp(8f); let t = s; }",
            "{ const s = frexp_f32_result(0.5f, 4i); let t = frexp_f32_result(0.5f, 4i); }",
        ),
        (
            "fn f() { let x = array(modf(1.5), modf(y)); }",
            "{ let x = array(modf_f32_result(0.5f, 1.0f), modf(y)); }",
        ),
        ("const a = array<f32, 1000000000>()[1]; const b = mix(a, a, a);", "const b = 0.0f;"),
        ("const a: array<f32, 2> = array<f32, 1 + 1>(); const b = mix(a[1], 1, 0.5);", "const b = 0.5f;"),
        (
            "const N = 2; fn f() { const N = 3; const a = A(1, 2); let x = extractBits(a[1], 0, 2); } alias A = array<u32, N>;",
            "let x = 2u; } alias A = array<u32, N>;",
        ),
        (
            "const a = mix(A()[1], 1, 0); alias A = array<f32, 1 + 1>;",
            "const a = 0.0f; alias A = array<f32, 1 + 1>;",
        ),
    ] {
        let found = evaluated(code).unwrap_or_default();
        let found = found.split("\nstruct ").next().unwrap_or_default();
        assert!(found.ends_with(expected), "{code}: {found}");
    }
    for code in [
        "struct S { a: S } const s = S(); const t = mix(s.a.a, 1, 1);",
        "const a = array(1, 2); const b = mix(a[2], 1, 1);",
        "const a = array<f32, 2>()[2]; const b = mix(a, a, a);",
        "const a: array<f32, 2> = array<f32, 3>(); const b = mix(a[1], 1, 1);",
        "struct S { a: f32 } struct T { s: S } struct U { a: f32 } const t = mix(T(U(1)).s.a, 1, 1);",
        "struct S { a: f32 } struct U { a: f32 } const t = mix(array(S(1), U(1))[0].a, 1, 1);",
        "alias A = array<A, 2>; const a = A()[0]; const b = mix(a[0], 1, 1);",
    ] {
        assert_eq!(evaluated(code), None, "{code}");
    }
}

#[test]
fn a_chain_of_constants_may_be_long() {
    let count = 500;
    let links = (0..count).map(|at| format!("const a{at} = mix(a{}, 1, 0);", at + 1));
    let code = format!("{} const a{count} = 2.0;", links.collect::<String>());
    assert!(evaluated(&code).unwrap_or_default().starts_with("const a0 = 2.0;"));
}

#[test]
fn half_needs_to_be_enabled() {
    for expression in ["f32(f16(1))", "f32(1h)", "f32(bitcast<vec2h>(1u).x)", "f32(vec2<f16>(1).x)"] {
        assert_eq!(evaluated(&format!("const x = mix({expression}, 1, 0);")), None, "{expression}");
        assert!(evaluated(&format!("enable f16; const x = mix({expression}, 1, 0);")).is_some());
    }
}

#[test]
fn variables_of_loops_hide_constants() {
    let code = "const i = 2.0; fn f() { for (var i = 0.5; mix(i, 1.0, 1.0) < 2; i += 1) { let x = mix(i, 1.0, 1.0); }
        let y = mix(i, 1.0, 0.0); }";
    let expected = code.replace("y = mix(i, 1.0, 0.0)", "y = 2.0");
    assert_eq!(evaluated(code).unwrap_or_default(), expected);
}

#[test]
fn expressions_are_found_where_they_may_be() {
    for (code, expected) in [
        ("const a: vec2<f32> = mix(vec2(1f), vec2(3), 0.5);", "= vec2<f32>(2.0f, 2.0f);"),
        ("alias A = array<u32, extractBits(7u, 0u, 2u)>;", "alias A = array<u32, 3u>;"),
        (
            "fn f() { var x: array<u32, extractBits(7u, 0u, 2u)>= array(1, 2, pack4xU8(vec4())); }",
            "{ var x: array<u32, 3u>= array(1, 2, 0u); }",
        ),
        (
            "fn f() { const x: array<u32, select(2, 3, 1 == 1)> = array(1, 2, 3); let y = extractBits(x[2], 0, 2); }",
            "(1, 2, 3); let y = 3u; }",
        ),
        (
            "fn f() { x >>= extractBits(7u, 0u, 2u); y = z >= extractBits(7u, 0u, 2u); }",
            "{ x >>= 3u; y = z >= 3u; }",
        ),
        ("fn f() { for (; x < mix(0.0, 1.0, 0.5); ) { } }", "{ for (; x < 0.5; ) { } }"),
        (
            "fn f() { let x = *p + mix(0.0, 1.0, 0.5); g(&x, mix(0.0, 1.0, 0.5)); }",
            "{ let x = *p + 0.5; g(&x, 0.5); }",
        ),
        ("@workgroup_size(1, pack4xU8(vec4(2u, 0, 0, 0))) fn f() { }", "@workgroup_size(1, 2u) fn f() { }"),
    ] {
        let found = evaluated(code).unwrap_or_default();
        assert!(found.ends_with(expected), "{code}: {found}");
    }
}

#[test]
fn texts_that_end_or_lack_a_word_anywhere_are_read() {
    let code = "const b = mix(A()[0], S(1, vec2(2f)).b.x, 0x1.8p-1f) + 1.5e+3; const m = modf(.5); const c = m.fract;
        struct S { @size(8) a: f32, b: vec2<f32> } alias A = array<f32, N>; const N = 1 << 2u; const h = -0x3p2h;
        fn f(x: f32) -> f32 { const t = transpose(mat2x2<f32>(1, 2, 3, 4))[1].yx; for (var i = 0; i < 3; i++) { }
        let y = array<u32, pack4xU8(vec4(1))>()[0] >> 65u; return select(t.x, ~1, true || !false && x != 0); }";
    assert!(evaluated(code).is_some());
    let tokens: Vec<_> = crate::parse::tokens::tokens(code).collect();
    for token in &tokens {
        let (before, after) = (&code[..token.range.start], &code[token.range.end..]);
        for text in
            [before.to_owned(), format!("{before}{after}"), format!("{before}{0}{0}{after}", token.text)]
        {
            _ = may_be_wrong(&text);
            _ = evaluated(&text);
        }
    }
}

/// Texts that make something large out of little: the test ends.
#[test]
fn hostile_texts_end_soon() {
    let count = 10_000;
    let chain: String =
        (0..count).map(|at| format!("const a{at} = mix(a{}, a{}, 0.5);", at + 1, at + 1)).collect();
    let back: String =
        (1..count).map(|at| format!("const a{at} = mix(a{}, a{}, 0.5);", at - 1, at - 1)).collect();
    let local = |list: String| format!("fn f() {{ const a0 = 1.0; {list} }}");
    let structures: String =
        (0..count).map(|at| format!("struct S{at} {{ a: S{}, b: S{} }}", at + 1, at + 1)).collect();
    let pairs: String = (0..60).map(|at| format!("const b{at} = array(b{}, b{});", at + 1, at + 1)).collect();
    let arrays: String = (0..30).map(|at| format!("alias A{at} = array<A{}, 4000>;", at + 1)).collect();
    for code in [
        chain.clone(),
        format!("const a{count} = 1.0; {chain}"),
        format!("const a0 = 1.0; {back}"),
        local(chain),
        local(back),
        format!("{structures} const s = S0().a.b.a;"),
        format!("{} const s = S0().a.a; const t = mix(s, s, s);", structures.replace(": S100,", ": u32,")),
        format!("const b60 = 1; {pairs} const s: array<u32, 2> = b0; const t = mix(s[0], s[0], s[0]);"),
        format!(
            "alias P60 = u32; {} const s: P0 = b0; {pairs} const t = mix(s[0], s[0], 1);",
            (0..60).map(|at| format!("alias P{at} = array<P{}, 2>;", at + 1)).collect::<String>()
        ),
        format!("alias A30 = u32; {arrays} const a = A0()[1][2]; const b = mix(a[0], a[0], a[0]);"),
        "const a = select(a, a || a, a && a || a == a) && a;".repeat(100),
        format!("const a = {}1;", "1 + ".repeat(10_000)),
        format!("const a = {}1;", "-~!*&".repeat(10_000)),
        format!("const a = array({})[3]; const b = mix(a, a, a);", "1,".repeat(50_000)),
        "x >> ".repeat(50_000),
        "=array<".repeat(5_000),
        "f(1,".repeat(1_000),
        "const c = 1 << 4294967295u; const d = 0 << 4294967295u; const e = mix(d, d, -1 >> 4294967295u);"
            .to_owned(),
        "ldexp(1.0, -2147483648) ldexp(1.0, 2147483647) 0x1p2147483647h 0x1p-2147483648h 0xp99999999999h"
            .to_owned(),
        format!("const a = mix(0x{}.{}p1, 1, 1);", "f".repeat(9999), "0".repeat(9999)),
    ] {
        _ = may_be_wrong(&code);
        _ = evaluated(&code);
    }
}
