//! Invalid kernels are rejected with an error that names the rule or construct, and the line.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use portable::module::{Language, Module};
use portable::{annotated, program::Program};
use runtime_core::ErrorKind;
use runtime_kernel::Dialect;

const RULES: &str = include_str!("../rejected/rules.wgsl");

fn main() -> ExitCode {
    let programs = annotated::parse(RULES);
    let trial = |program: Program| Trial::test(program.entry.clone(), move || check(&program));
    libtest_mimic::run(&Arguments::from_args(), programs.into_iter().map(trial).collect()).exit_code()
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
    let marked = module.text.lines().position(|line| line.ends_with("//!")).map(|at| at + 1);
    match marked {
        Some(line) if !text.contains(&format!("a.wgsl:{line}")) => {
            Err(Failed::from(format!("the error does not name line {line}: {text}")))
        }
        _ => Ok(()),
    }
}
