//! Arbitrary text as a portable kernel: rejected with a reason, or every writer lowers it or gives a reason.
//!
//! The first byte selects an element type; a last line `//! NAME=VALUE …` gives constants. Half of the mutations move, repeat,
//! drop or replace whole words, so that many results are almost valid.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use runtime_core::{DType, Error, ErrorKind, Result};
use runtime_kernel::{Checks, Dialect, Program, Specialisation};

const ELEMENTS: [Option<DType>; 4] = [None, Some(DType::F16), Some(DType::F64), Some(DType::I32)];

const WORDS: &[&str] = &[
    "0",
    "1u",
    "-1",
    "2147483648",
    "0xffffffffu",
    "1e38f",
    "0.5h",
    "1lu",
    "2.0lf",
    "true",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    ";",
    ",",
    ".",
    ":",
    "=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "<<",
    ">>",
    "&",
    "|",
    "^",
    "&&",
    "||",
    "!",
    "~",
    "==",
    "+=",
    "++",
    "->",
    "@",
    "_",
    "i32",
    "u32",
    "f32",
    "f16",
    "f64",
    "i64",
    "u64",
    "bool",
    "vec2<f32>",
    "vec3<u32>",
    "vec4<i32>",
    "mat3x2<f32>",
    "array<f32, 4>",
    "array<u32>",
    "atomic<u32>",
    "ptr<function, f32>",
    "fn",
    "let",
    "var",
    "const",
    "override",
    "alias",
    "struct",
    "if",
    "else",
    "for",
    "loop",
    "continuing",
    "break",
    "break if",
    "continue",
    "switch",
    "case",
    "default",
    "return",
    "discard",
    "while",
    "var<workgroup>",
    "var<private>",
    "var<immediate>",
    "@compute",
    "@workgroup_size(4)",
    "@id(3)",
    "@align(16)",
    "@size(32)",
    "@group(0)",
    "@binding(1)",
    "workgroupBarrier();",
    "storageBarrier();",
    "workgroupUniformLoad(&x)",
    "atomicAdd(&x, 1)",
    "atomicCompareExchangeWeak(&x, 1, 2)",
    "subgroupAdd(x)",
    "subgroupShuffle(x, 1u)",
    "arrayLength(&x)",
    "select(x, x, true)",
    "bitcast<u32>(x)",
    "dot(x, x)",
    "modf(x)",
    "frexp(x)",
    "ldexp(x, 2)",
    "extractBits(x, 1u, 2u)",
    "pack4x8snorm(x)",
    "transpose(x)",
    "determinant(x)",
    "clamp(x, x, x)",
    "x",
    "y",
    "id",
    "i",
    "T",
    "N",
    "id.x",
    "&x",
    "*x",
    "x[i]",
    "x.y",
];

fn specialisation(first: u8, code: &str) -> Specialisation {
    let words = code.lines().next_back().and_then(|line| line.strip_prefix("//! ")).unwrap_or("");
    let constants = words.split_whitespace().filter_map(|word| Specialisation::parse_constant(word).ok());
    let element = ELEMENTS[usize::from(first) % ELEMENTS.len()];
    Specialisation { constants: constants.collect(), element, ..Specialisation::default() }
}

/// A rejection has a reason other than a defect; except for naga's own panics, which are caught and reported.
fn check<T>(outcome: Result<T>) -> Option<T> {
    outcome
        .map_err(|error: Error| {
            let text = error.to_string();
            assert!(!text.is_empty());
            assert!(error.kind() != ErrorKind::Internal || text.contains("/naga-"), "{text}");
        })
        .ok()
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, text)) = bytes.split_first() else { return };
    let code = String::from_utf8_lossy(text);
    let Some(program) = check(Program::parse(&code, "", &specialisation(first, &code))) else { return };
    assert!(!program.interfaces().is_empty());
    for checks in [Checks::Bounded, Checks::Unchecked] {
        check(program.spirv(checks));
        for dialect in [Dialect::OpenCl, Dialect::Cuda, Dialect::Host] {
            if let Some(code) = check(program.c(dialect, checks)) {
                assert_eq!(code.symbols.len(), program.interfaces().len());
            }
        }
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut random = u64::from(seed) | 1 << 32;
    let mut next = |below: usize| {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        usize::try_from(random >> 33).unwrap_or(0) % below.max(1)
    };
    let Ok(text) = std::str::from_utf8(&data[..size]) else { return fuzzer_mutate(data, size, max_size) };
    if next(2) == 0 || text.is_empty() {
        return fuzzer_mutate(data, size, max_size);
    }
    let mut words = split(text);
    for _ in 0..=next(4) {
        let (at, from) = (next(words.len()), next(words.len()));
        match next(5) {
            0 => words[at] = WORDS[next(WORDS.len())],
            1 => words.insert(at, WORDS[next(WORDS.len())]),
            2 => words.swap(at, from),
            3 => words.insert(at, words[from]),
            _ if words.len() > 1 => drop(words.remove(at)),
            _ => {}
        }
    }
    let mutated = words.concat();
    let size = mutated.len().min(max_size);
    data[..size].copy_from_slice(&mutated.as_bytes()[..size]);
    size
});

/// Words and everything between them.
fn split(text: &str) -> Vec<&str> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let differs = |letter: char| is_word(letter) != is_word(first) || !is_word(first);
        let end =
            rest.char_indices().skip(1).find(|&(_, letter)| differs(letter)).map_or(rest.len(), |(at, _)| at);
        words.push(&rest[..end]);
        rest = &rest[end..];
    }
    words
}
