//! Any text as a portable kernel: it is refused with a reason, or every writer writes it or says why not.
//!
//! The first byte chooses an element type; a last line `//! NAME=VALUE …` has constants.
#![no_main]

use libfuzzer_sys::fuzz_target;
use runtime_core::{DType, Error, ErrorKind, Result};
use runtime_kernel::{Checks, Dialect, Program, Specialisation};

const ELEMENTS: [Option<DType>; 4] = [None, Some(DType::F16), Some(DType::F64), Some(DType::I32)];

fn specialisation(first: u8, code: &str) -> Specialisation {
    let words = code.lines().next_back().and_then(|line| line.strip_prefix("//! ")).unwrap_or("");
    let constants = words.split_whitespace().filter_map(|word| Specialisation::parse_constant(word).ok());
    Specialisation { constants: constants.collect(), element: ELEMENTS[usize::from(first) % ELEMENTS.len()] }
}

/// A refusal has a reason, and no defect is one: but for naga's own panics, which are caught and named.
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
