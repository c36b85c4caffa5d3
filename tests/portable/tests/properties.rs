//! Random expressions and random kernels on every device, against the interpreters of this crate.
//!
//! The seeds are fixed. Many of them go into one module, so that a compiler is started once; what fails is made smaller
//! before it is told.

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Failed, Trial};
use portable::batch::{self, Machine};
use portable::random::Random;
use portable::tree::{self, Generator, Tree};
use portable::{device, lockstep, minimise};

/// Modules of random expressions.
const MODULES: u64 = 8;
/// Kernels of a module, and expressions of a kernel.
const EXPRESSIONS: (usize, usize) = (10, 25);
/// Invocations that evaluate each expression.
const ROWS: usize = 50;
/// Modules of random kernels, and kernels of a module.
const KERNELS: (u64, u64) = (10, 20);

fn main() -> ExitCode {
    let (machines, mut trials) = device::all();
    for machine in &machines {
        trials.extend((0..MODULES).map(|seed| expressions(machine.clone(), seed)));
        (0..KERNELS.0).for_each(|module| trials.extend(kernels(machine, module)));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn expressions(machine: Arc<dyn Machine>, seed: u64) -> Trial {
    Trial::test(format!("{}::expressions::{seed}", machine.name()), move || {
        let mut random = Random::new(seed);
        let rows = tree::rows(&mut random, ROWS);
        let inputs = tree::inputs();
        let readable: Vec<_> = (0..inputs.len()).collect();
        let generator = Generator { inputs: &inputs, readable: &readable, rich: true };
        let mut tree = || {
            let depth = 1 + random.below(5);
            tree::tree(&mut random, &generator, depth)
        };
        let trees: Vec<Vec<Tree>> =
            (0..EXPRESSIONS.0).map(|_| (0..EXPRESSIONS.1).map(|_| tree()).collect()).collect();
        let batches = trees.iter().enumerate();
        let programs: Vec<_> =
            batches.map(|(at, trees)| tree::batch(&format!("t{at}"), trees, &rows)).collect();
        let results = batch::run(&*machine, &programs.iter().collect::<Vec<_>>());
        for ((program, trees), result) in programs.iter().zip(&trees).zip(results) {
            let outputs = result.map_err(|failure| Failed::from(format!("{failure:?}")))?;
            for (check, tree) in program.checks.iter().zip(trees) {
                if check.verdict(&program.buffers, &outputs).is_err() {
                    return Err(Failed::from(minimise::expression(&*machine, tree, &rows)));
                }
            }
        }
        Ok(())
    })
}

fn kernels(machine: &Arc<dyn Machine>, module: u64) -> Vec<Trial> {
    let seeds = module * KERNELS.1..(module + 1) * KERNELS.1;
    let kernels: Vec<_> = seeds.map(|seed| lockstep::kernel(&format!("k{seed}"), seed)).collect();
    let kernels = Arc::new(kernels);
    let results: Arc<OnceLock<Vec<_>>> = Arc::default();
    let trial = |at: usize| {
        let (machine, kernels, results) = (machine.clone(), kernels.clone(), results.clone());
        Trial::test(format!("{}::kernels::{}", machine.name(), kernels[at].entry), move || {
            let programs: Vec<_> = kernels.iter().map(lockstep::program).collect();
            let programs =
                programs.into_iter().collect::<Result<Vec<_>, _>>().map_err(|error| Failed::from(error.0))?;
            let all: Vec<_> = programs.iter().collect();
            let outcome = match &results.get_or_init(|| batch::run(&*machine, &all))[at] {
                Ok(outputs) => programs[at].checks[0].verdict(&programs[at].buffers, outputs),
                Err(failure) => return Err(Failed::from(format!("{failure:?}\n{}", programs[at].code))),
            };
            outcome.map_err(|_| Failed::from(minimise::kernel(&*machine, &kernels[at])))
        })
    };
    (0..kernels.len()).map(trial).collect()
}
