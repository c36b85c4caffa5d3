//! What is told of a random expression or kernel that fails: the least of it that still does.

use crate::batch::{Failure, Machine, run};
use crate::lockstep::{self, Kernel};
use crate::program::{Outputs, Program};
use crate::tree::{self, Tree, Value};

/// Runs of smaller kernels before what is left is told.
const PATIENCE: usize = 150;

/// What is wrong with a program on a machine, `None` if nothing is.
#[must_use]
pub fn wrong(machine: &dyn Machine, program: &Program) -> Option<String> {
    match machine.run(&[program]) {
        Ok(results) => told(program, &results[0]),
        Err(failure) => told(program, &Err(failure)),
    }
}

fn told(program: &Program, result: &Result<Outputs, Failure>) -> Option<String> {
    match result {
        Ok(outputs) => program.checks.iter().find_map(|check| check.verdict(&program.buffers, outputs).err()),
        Err(Failure::Failed(text) | Failure::Unsupported(text)) => Some(text.clone()),
    }
}

/// The smallest part of `tree` that is wrong, with the values of the variables in the first row where it is.
#[must_use]
pub fn expression(machine: &dyn Machine, tree: &Tree, rows: &[Vec<u32>]) -> String {
    let parts = tree::parts(tree);
    let program = tree::batch("part", &parts, rows);
    let results = run(machine, &[&program]);
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
            .map(|(input, value)| format!("{} = {:?}", input.name, shown(value, input.ty)))
            .collect();
        let due = shown(&tree::evaluate(part, &values), part.ty);
        return format!("{text}\nwhere {}\nmust be {due:?}; {error}", read.join(", "));
    }
    format!("only as a whole: {}", tree::text(tree, &inputs))
}

fn shown(value: &Value, ty: tree::Type) -> Vec<String> {
    let component = |bits: &u32| match ty.base {
        tree::Base::F32 => f32::from_bits(*bits).to_string(),
        tree::Base::I32 => (*bits as i32).to_string(),
        _ => bits.to_string(),
    };
    value[..ty.width].iter().map(component).collect()
}

/// The smallest kernel found that is wrong.
#[must_use]
pub fn kernel(machine: &dyn Machine, kernel: &Kernel) -> String {
    let mut least = kernel.clone();
    let mut tries = 0;
    'smaller: loop {
        for candidate in lockstep::smaller(&least) {
            tries += 1;
            if tries > PATIENCE {
                break 'smaller;
            }
            let Ok(program) = lockstep::program(&candidate) else { continue };
            // A candidate that does not load is another problem.
            let Ok(results) = machine.run(&[&program]) else { continue };
            if told(&program, &results[0]).is_some() {
                least = candidate;
                continue 'smaller;
            }
        }
        break;
    }
    match lockstep::program(&least) {
        Ok(program) => format!("{}\n{}", program.code, wrong(machine, &program).unwrap_or_default()),
        Err(invalid) => invalid.0,
    }
}
