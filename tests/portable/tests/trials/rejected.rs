//! Invalid kernels are rejected with an error that names the rule or construct, and the line.

use libtest_mimic::{Failed, Trial};
use portable::module::{Language, Module};
use portable::{annotated, program::Program};
use runtime_core::ErrorKind;
use runtime_kernel::Dialect;

const RULES: &str = include_str!("../../rejected/rules.wgsl");
const MISTAKES: &str = include_str!("../../rejected/mistakes.wgsl");

/// Words that only naga's developers understand.
const INTERNALS: [&str; 9] = [
    "naga",
    "Handle",
    "Expression",
    "GlobalVariable",
    "TypeFlags",
    "StorageAccess",
    "Scalar",
    "Capabilities",
    "Some(",
];

pub(crate) fn trials() -> Vec<Trial> {
    let programs = [RULES, MISTAKES].into_iter().flat_map(annotated::parse);
    let trial =
        |program: Program| Trial::test(format!("rejected::{}", program.entry), move || check(&program));
    programs.map(trial).collect()
}

fn check(program: &Program) -> Result<(), Failed> {
    let module = Module::of("a.wgsl".to_owned(), &[program]);
    let Err(error) = module.lower(Language::C(Dialect::Host)) else {
        return Err(Failed::from("the kernel was accepted"));
    };
    let text = error.to_string();
    let kinds = [ErrorKind::CompileFailed, ErrorKind::Unsupported, ErrorKind::InvalidArgument];
    if !kinds.contains(&error.kind()) {
        return Err(Failed::from(format!("its kind is {}: {text}", error.kind())));
    }
    if let Some(word) = program.says.iter().find(|word| !text.contains(*word)) {
        return Err(Failed::from(format!("the error does not contain \"{word}\": {text}")));
    }
    if let Some(word) = INTERNALS.iter().find(|word| text.contains(*word)).copied().or(handle(&text)) {
        return Err(Failed::from(format!("the error contains \"{word}\": {text}")));
    }
    let marked = module.text.lines().position(|line| line.ends_with("//!")).map(|at| at + 1);
    match marked {
        Some(line) if !text.contains(&format!("a.wgsl:{line}")) => {
            Err(Failed::from(format!("the error does not name line {line}: {text}")))
        }
        _ => Ok(()),
    }
}

/// A handle of naga: a number in brackets that is not part of the quoted text.
fn handle(text: &str) -> Option<&str> {
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let messages = text.lines().filter(|line| !line.contains(['│', '`']));
    messages
        .flat_map(|line| line.split(" [").skip(1))
        .filter_map(|part| part.split(']').next())
        .find(is_number)
}
