//! Tests of the lowering that are made while the program runs: a case for each shader, and those that need tools.

mod fuse;
mod spirv;
mod vectors;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let trials = [fuse::trials(), spirv::trials(), vectors::trials()].into_iter().flatten();
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
