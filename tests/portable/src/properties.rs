//! Trials with random expressions and random kernels.
//!
//! The seeds of a device are a part of a fixed range. Many programs share one module, to start the compiler only once;
//! failures are shrunk before they are reported.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Failed, Trial};
use test_process::sample;

use crate::batch::{self, Executor};
use crate::random::Random;
use crate::tree::{self, Generator, Tree};
use crate::{lockstep, shrink};

/// Expressions per kernel, and kernels per module.
const EXPRESSIONS: (usize, usize) = (25, 10);
/// Invocations that evaluate each expression.
const ROWS: usize = 50;

/// The number of modules in a complete run. Others take one of each kind.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    /// Modules of expressions.
    pub expressions: u64,
    /// Modules of kernels, and kernels per module.
    pub kernels: (u64, u64),
}

/// For a device: 2000 expressions, 100 kernels.
pub const MANY: Amount = Amount { expressions: 8, kernels: (5, 20) };
/// For a device whose driver takes seconds to compile a kernel.
pub const SOME: Amount = Amount { expressions: 2, kernels: (1, 10) };
/// For a very slow compiler.
pub const FEW: Amount = Amount { expressions: 1, kernels: (1, 4) };

/// The trials for an executor, grouped by module.
#[must_use]
pub fn trials(executor: &Arc<dyn Executor>, amount: Amount) -> Vec<Vec<Trial>> {
    let seeds = sample(&format!("expressions on {}", executor.name()), 0..amount.expressions, 1);
    let expressions = seeds.into_iter().map(|seed| vec![expressions(executor.clone(), seed)]);
    let (modules, size) = amount.kernels;
    let modules = sample(&format!("kernels on {}", executor.name()), 0..modules, 1).into_iter();
    let kernels = modules.map(|module| kernels(executor, module * size..(module + 1) * size));
    expressions.chain(kernels).collect()
}

fn expressions(executor: Arc<dyn Executor>, seed: u64) -> Trial {
    Trial::test(format!("properties::{}::expressions::{seed}", executor.name()), move || {
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
            (0..EXPRESSIONS.1).map(|_| (0..EXPRESSIONS.0).map(|_| tree()).collect()).collect();
        let batches = trees.iter().enumerate();
        let programs: Vec<_> =
            batches.map(|(at, trees)| tree::batch(&format!("t{at}"), trees, &rows)).collect();
        let results = batch::run(&*executor, &programs.iter().collect::<Vec<_>>());
        for ((program, trees), result) in programs.iter().zip(&trees).zip(results) {
            let outputs = result.map_err(|failure| Failed::from(format!("{failure:?}")))?;
            for (check, tree) in program.checks.iter().zip(trees) {
                if check.verdict(&program.buffers, &outputs).is_err() {
                    return Err(Failed::from(shrink::expression(&*executor, tree, &rows)));
                }
            }
        }
        Ok(())
    })
}

fn kernels(executor: &Arc<dyn Executor>, seeds: Range<u64>) -> Vec<Trial> {
    let kernels: Vec<_> = seeds.map(|seed| lockstep::kernel(&format!("k{seed}"), seed)).collect();
    let kernels = Arc::new(kernels);
    let programs_and_results: Arc<OnceLock<Result<_, String>>> = Arc::default();
    let trial = |at: usize| {
        let (executor, kernels, shared) = (executor.clone(), kernels.clone(), programs_and_results.clone());
        Trial::test(format!("properties::{}::kernels::{}", executor.name(), kernels[at].entry), move || {
            let shared = shared.get_or_init(|| {
                let programs = kernels.iter().map(lockstep::program).collect::<Result<Vec<_>, _>>();
                let programs = programs.map_err(|error| error.0)?;
                let results = batch::run(&*executor, &programs.iter().collect::<Vec<_>>());
                Ok((programs, results))
            });
            let (programs, results) = shared.as_ref().map_err(Failed::from)?;
            let outcome = match &results[at] {
                Ok(outputs) => programs[at].checks[0].verdict(&programs[at].buffers, outputs),
                Err(failure) => return Err(Failed::from(format!("{failure:?}\n{}", programs[at].code))),
            };
            outcome.map_err(|_| Failed::from(shrink::kernel(&*executor, &kernels[at])))
        })
    };
    (0..kernels.len()).map(trial).collect()
}
