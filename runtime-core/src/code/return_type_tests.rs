use super::*;

fn of(text: &str) -> Option<String> {
    returned_type(&CodeFormat::CUDA_C, text, "f")
}

#[test]
fn a_kernel_that_returns_a_value_is_found() {
    for (text, expected) in [
        ("int f(int x) { return x; }", "int"),
        ("#include <math.h>\n#define N 4 /* rows */\nstatic unsigned  long\nf(void)\n{}", "unsigned long"),
        ("extern \"C\" __global__ float f(float *x) { return *x; }", "float"),
        ("extern \"C\" {\nint f();\nint f() {}\n}", "int"),
        ("__kernel __attribute__((reqd_work_group_size(8, 1, 1))) float4 f(__global float *x) {}", "float4"),
        ("void g(int f) { f(); }\n/* void f() {} */ // void f() {}\nint f() {}", "int"),
        ("const char *s = \"void f() {\"; char c = '{'; int f() {}", "int"),
        ("struct pair f() {}", "struct pair"),
        ("void *f() {}", "void *"),
        ("int **const f() {}", "int **"),
        ("float _Complex f() {}", "float _Complex"),
        ("[[nodiscard]] __launch_bounds__(64, (2)) double f() noexcept {}", "double"),
        ("int f() __attribute__((noinline)) {}", "int"),
        ("#ifdef A\n#pragma x\n#endif\nint f() {}", "int"),
    ] {
        assert_eq!(of(text).as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn a_kernel_without_a_value_has_none() {
    for text in [
        "void f() {}",
        "extern \"C\" __global__ void __launch_bounds__(64) f(float *x) {}",
        "kernel void f() {}",
        "static inline void f(void) {}",
        "int g() {} void f() { int f(int); }",
    ] {
        assert_eq!(of(text), None, "{text}");
    }
}

#[test]
fn a_doubt_is_no_type() {
    for text in [
        "",
        "int f();",
        "int f(a) int a; {}",
        "int g() { f(1); }",
        "int x = f(3);",
        "auto f() -> int {}",
        "f() {}",
        "T f() {}",
        "KERNEL int f() {}",
        "template <typename T> T f() {}",
        "typedef int status; status f() {}",
        "unsigned void f() {}",
        "#if A\nint f() {}\n#else\nvoid f() {}\n#endif",
        "#if A\nint f() {}\n#endif",
        "#define int void\nint f() {}",
        "#define f g\nint f() {}",
        "#define static static void g() {}\nstatic int f() {}",
        "static\n#if A\nvoid\n#endif\nint f() {}",
        "int f() {} void f() {}",
        "int f() {",
        "int f() {} }",
        "int f(] {}",
        "/\\\n* int f() {} */",
        "/\\\n/ int f() {}",
        "#define A /* \nint f() {} */",
        "int f() {} /* ",
        "int f() {} const char *s = R\"(\")\";",
        "int f() {} \"",
        "%: int f() {}",
        "namespace n { int f() {} }",
        "struct s { int f() {} };",
        "WRAP(int f() {})",
        "DEFINE(x)\nint f() {}",
    ] {
        assert_eq!(of(text), None, "{text}");
    }
    assert_eq!(returned_type(&CodeFormat::WGSL, "int f() {}", "f"), None);
    assert_eq!(returned_type(&CodeFormat::C, "int f() {}", ""), None);
    assert_eq!(returned_type(&CodeFormat::C, "int f() {}", "int f"), None);
}

const PIECES: [&str; 34] = [
    "f",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ";",
    "int ",
    "void ",
    "*",
    "\"",
    "'",
    "\\",
    "\n",
    "\r\n",
    "#",
    "#if ",
    "#endif\n",
    "#define ",
    "//",
    "/*",
    "*/",
    "extern \"C\" ",
    "__attribute__((x))",
    "noexcept",
    "R\"(",
    " ",
    "é",
    "\u{2028}",
    "<",
    "->",
    "struct ",
    "static ",
];

/// A fixed sequence of numbers (Marsaglia, "Xorshift RNGs", 2003).
fn numbers() -> impl Iterator<Item = usize> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap()
    })
}

#[test]
fn odd_texts_neither_panic_nor_give_anything_but_a_type() {
    let mut numbers = numbers();
    let mut found = 0;
    for _ in 0..60_000 {
        let length = numbers.next().unwrap() % 14;
        let text: String =
            numbers.by_ref().take(length).map(|number| PIECES[number % PIECES.len()]).collect();
        if let Some(ty) = of(&text) {
            assert!(
                ty.starts_with("int") || ty.starts_with("struct ") || ty.starts_with("void *"),
                "{ty}: {text}"
            );
            found += 1;
        }
        // In front of a definition, a complete text does not hide what it is.
        assert_ne!(of(&format!("void g() {{ {text} }} void f() {{}}")).as_deref(), Some("void"), "{text}");
    }
    // Few, but more than none, are a definition.
    let definitions = ["static ", "int ", "f", "(", ")", "{", "}"].concat();
    assert_eq!((of(&definitions).as_deref(), found < 60_000), (Some("int"), true));
}

#[test]
fn the_longest_texts_end() {
    let pieces = [
        "f(",
        "(",
        "int f() {}",
        "f",
        "#if\n",
        "#\\\n",
        "\\\n",
        "int f() __attribute__(()) {} ",
        "\r",
        "/*/",
        "int ",
        "\"",
    ];
    let pieces = pieces.map(|piece| (piece, "f")).into_iter().chain([("__attribute__(())", "__attribute__")]);
    // Time that grew with the square of the length would be hours.
    for (piece, entry) in pieces {
        let _ = returned_type(&CodeFormat::C, &piece.repeat(50_000), entry);
    }
}
