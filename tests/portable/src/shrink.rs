//! Shrinks random expressions and kernels that fail, for the failure message.

use crate::batch::{Executor, Failure, run};
use crate::lockstep::{self, Kernel};
use crate::program::{Outputs, Program};
use crate::tree::{self, Tree, Value};

/// The maximum number of smaller kernels to run.
const MAX_TRIES: usize = 150;

/// The failure of a program on an executor; `None` if it passes.
#[must_use]
pub fn failure(executor: &dyn Executor, program: &Program) -> Option<String> {
    match executor.run(&[program]) {
        Ok(results) => failure_text(program, &results[0]),
        Err(failure) => failure_text(program, &Err(failure)),
    }
}

fn failure_text(program: &Program, result: &Result<Outputs, Failure>) -> Option<String> {
    match result {
        Ok(outputs) => program.checks.iter().find_map(|check| check.verdict(&program.buffers, outputs).err()),
        Err(Failure::Failed(text) | Failure::Unsupported(text)) => Some(text.clone()),
    }
}

/// The smallest part of `tree` that fails, with the values of the variables in the first failing row.
#[must_use]
pub fn expression(executor: &dyn Executor, tree: &Tree, rows: &[Vec<u32>]) -> String {
    let parts = tree::parts(tree);
    let program = tree::batch("part", &parts, rows);
    let results = run(executor, &[&program]);
    let (inputs, row_words) = (tree::inputs(), parts.iter().map(|part| part.ty.width).sum::<usize>());
    let outputs = match &results[0] {
        Ok(outputs) => outputs,
        Err(failure) => return format!("{failure:?}\n{}", tree::text(tree, &inputs)),
    };
    for (part, check) in parts.iter().zip(&program.checks) {
        let Some(error) = check.verdict(&program.buffers, outputs).err() else { continue };
        let at = error.split(['[', ']']).nth(1).and_then(|at| at.parse::<usize>().ok()).unwrap_or(0);
        let values = tree::values(&rows[at / row_words]);
        let text = tree::text(part, &inputs);
        let read: Vec<_> = (inputs.iter().zip(&values))
            .filter(|(input, _)| text.contains(&input.name))
            .map(|(input, value)| format!("{} = {:?}", input.name, formatted(value, input.ty)))
            .collect();
        let expected = formatted(&tree::evaluate(part, &values), part.ty);
        return format!("{text}\nwhere {}\nexpected {expected:?}; {error}", read.join(", "));
    }
    format!("fails only as a whole: {}", tree::text(tree, &inputs))
}

fn formatted(value: &Value, ty: tree::Type) -> Vec<String> {
    let component = |bits: &u32| match ty.base {
        tree::Base::F32 => f32::from_bits(*bits).to_string(),
        tree::Base::I32 => (*bits as i32).to_string(),
        _ => bits.to_string(),
    };
    value[..ty.width].iter().map(component).collect()
}

/// The smallest failing kernel found.
#[must_use]
pub fn kernel(executor: &dyn Executor, kernel: &Kernel) -> String {
    let mut smallest = kernel.clone();
    let mut tries = 0;
    'smaller: loop {
        for candidate in lockstep::smaller(&smallest) {
            tries += 1;
            if tries > MAX_TRIES {
                break 'smaller;
            }
            let Ok(program) = lockstep::program(&candidate) else { continue };
            // A candidate that does not load is a different failure.
            let Ok(results) = executor.run(&[&program]) else { continue };
            if failure_text(&program, &results[0]).is_some() {
                smallest = candidate;
                continue 'smaller;
            }
        }
        break;
    }
    match lockstep::program(&smallest) {
        Ok(program) => format!("{}\n{}", program.code, failure(executor, &program).unwrap_or_default()),
        Err(invalid) => invalid.0,
    }
}
