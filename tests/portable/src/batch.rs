//! Loads many programs as one module, to start the compiler only once; one trial per check.

use std::sync::{Arc, OnceLock};

use libtest_mimic::{Completion, Failed, Trial};

use crate::program::{Outputs, Program};

/// Programs per module: enough to save time, few enough to use several threads.
const BATCH: usize = 48;

/// Why a program has no outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The executor lacks a feature that the program needs.
    Unsupported(String),
    /// The program failed.
    Failed(String),
}

/// A device, or anything else that runs programs.
pub trait Executor: Send + Sync {
    /// The name, for the names of trials.
    fn name(&self) -> &str;

    /// Whether it declares support for a feature; then the feature must not fail as unsupported.
    fn supports(&self, need: &str) -> bool;

    /// Loads `programs` as one module and runs each.
    ///
    /// # Errors
    /// The module does not load.
    fn run(&self, programs: &[&Program]) -> Result<Vec<Result<Outputs, Failure>>, Failure>;
}

/// Runs all programs. If a module does not load, its halves are loaded separately, so that only the faulty programs
/// fail.
pub fn run(executor: &dyn Executor, programs: &[&Program]) -> Vec<Result<Outputs, Failure>> {
    match executor.run(programs) {
        Ok(outputs) => outputs,
        Err(failure) if programs.len() < 2 => vec![Err(failure)],
        Err(_) => {
            let (front, back) = programs.split_at(programs.len() / 2);
            [run(executor, front), run(executor, back)].concat()
        }
    }
}

/// One trial per check of `programs`, grouped by module.
pub fn trials(executor: &Arc<dyn Executor>, topic: &str, programs: Vec<Program>) -> Vec<Vec<Trial>> {
    let mut modules = Vec::new();
    for programs in batches(programs) {
        let programs = Arc::new(programs);
        let results: Arc<OnceLock<Vec<_>>> = Arc::default();
        let mut trials = Vec::new();
        for (at, program) in programs.iter().enumerate() {
            for check in 0..program.checks.len() {
                let name = format!("semantics::{}::{topic}::{}", executor.name(), program.checks[check].name);
                let (executor, programs, results) = (executor.clone(), programs.clone(), results.clone());
                trials.push(Trial::ignorable_test(name, move || {
                    let all: Vec<_> = programs.iter().collect();
                    let result = &results.get_or_init(|| run(&*executor, &all))[at];
                    conclude(&*executor, &programs[at], check, result)
                }));
            }
        }
        modules.push(trials);
    }
    modules
}

/// All trials, with the first of each module in front: it loads the module, for which the module's other trials would
/// only wait. So each thread of the test runner loads another module.
#[must_use]
pub fn in_order(modules: Vec<Vec<Trial>>) -> Vec<Trial> {
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for module in modules {
        let mut trials = module.into_iter();
        first.extend(trials.next());
        rest.extend(trials);
    }
    first.append(&mut rest);
    first
}

/// Groups programs by required features.
#[must_use]
pub fn batches(programs: Vec<Program>) -> Vec<Vec<Program>> {
    let mut batches: Vec<Vec<Program>> = Vec::new();
    for program in programs {
        let alone = |program: &Program| {
            let has_textures = program.code.contains(": texture_");
            let is_special = program.element.is_some() || !program.constants.is_empty();
            is_special || !program.by_value.is_empty() || has_textures
        };
        let fits = |batch: &&mut Vec<Program>| {
            let alone = alone(&batch[0]) || alone(&program);
            !alone && batch.len() < BATCH && batch[0].needs == program.needs
        };
        match batches.iter_mut().find(fits) {
            Some(batch) => batch.push(program),
            None => batches.push(vec![program]),
        }
    }
    batches
}

fn conclude(
    executor: &dyn Executor,
    program: &Program,
    check: usize,
    result: &Result<Outputs, Failure>,
) -> Result<Completion, Failed> {
    match result {
        Ok(outputs) => match program.checks[check].verdict(&program.buffers, outputs) {
            Ok(()) => Ok(Completion::Completed),
            Err(wrong) => Err(Failed::from(wrong)),
        },
        Err(Failure::Unsupported(reason)) if !program.needs.iter().all(|need| executor.supports(need)) => {
            Ok(Completion::ignored_with(reason.clone()))
        }
        Err(Failure::Unsupported(reason) | Failure::Failed(reason)) => Err(Failed::from(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    /// Supports f64 but not f16, computes 3 for everything, and fails to load one expression.
    struct Three;

    impl Executor for Three {
        fn name(&self) -> &'static str {
            "three"
        }

        fn supports(&self, need: &str) -> bool {
            need == "f64"
        }

        fn run(&self, programs: &[&Program]) -> Result<Vec<Result<Outputs, Failure>>, Failure> {
            if programs.iter().any(|program| program.code.contains("x - y")) {
                return Err(Failure::Failed("subtraction".to_owned()));
            }
            let run = |program: &&Program| {
                let mut outputs: Outputs =
                    program.buffers.iter().map(|buffer| buffer.bytes.clone()).collect();
                outputs[2][0..4].copy_from_slice(&[3, 0, 0, 0]);
                Ok(outputs)
            };
            Ok(programs.iter().map(run).collect())
        }
    }

    #[test]
    fn only_faulty_programs_fail() {
        let programs = table::parse(
            "t",
            "i32, i32 -> i32: x + y\n  1, 2 => 3\ni32, i32 -> i32: x - y\n  5, 2 => 3\ni32, i32 -> i32: x / y\n  9, 4 => 2\n",
        );
        let results = run(&Three, &programs.iter().collect::<Vec<_>>());
        let failed = |at: usize| conclude(&Three, &programs[at], 0, &results[at]).is_err();
        assert_eq!([failed(0), failed(1), failed(2)], [false, true, true]);
    }

    #[test]
    fn an_unsupported_feature_is_ignored_only_if_not_declared() {
        let mut program = table::parse("t", "i32 -> i32: x\n  1 => 1\n").remove(0);
        let lacking = Err(Failure::Unsupported("no f16".to_owned()));
        assert!(conclude(&Three, &program, 0, &lacking).is_err(), "it requires nothing");
        program.needs.push("f64".to_owned());
        assert!(conclude(&Three, &program, 0, &lacking).is_err(), "the executor declares support");
        program.needs.push("f16".to_owned());
        assert!(matches!(conclude(&Three, &program, 0, &lacking), Ok(Completion::Ignored { .. })));
    }
}
