//! The tasks of this repository: `cargo xtask help` lists them.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command that talks to the terminal")]

mod bundle;
mod eval;
mod fuzz_kernels;
mod harden;
mod header;
mod lint;
mod process;
mod requirements;
mod test;
mod workspace;

use std::process::ExitCode;

use process::{Failure, Outcome};

const HELP: &str = "\
Tasks of this repository, run as `cargo xtask TASK`:

  test             install what the tests need when allowed to, build the workspace, run everything
  eval SPEC… ARG…  build the command and the backends in release, then `runtime eval SPEC… ARG…`
  bundle DIR [--wgpu]
                   write a relocatable, stripped tree of the command, the backends and the benchmarks; that of Vulkan
                   compares with wgpu, too, if that is asked for, which takes a while to build
  lint             rustfmt, clippy, rustdoc, cargo-deny, the C header, the length of files
  header           write runtime-core/include/runtime.h again
  miri             core and the null backend under Miri: undefined behaviour, leaks
  valgrind         the loader's and the host's tests, and the suite against the backend in C, under valgrind
  tsan             core, null, host, kernels, the loader, the command and the suite under ThreadSanitizer
  fuzz [SECONDS [TARGET…]]
                   each fuzz target of tests/fuzz, or those, for a minute, or as long as that
  fuzz kernels [SECONDS] [--seed N] [--devices host,opencl:0,…] [--jobs N] …
                   random kernels on devices, against an interpreter of WGSL; what differs is made small and written
                   to target/kernel-fuzz
  faults [PATH|TARGET…]
                   the conformance suite with one call of the backend after the other refused, or answered by a lie
  mutants [--in-place] [--shard K/N] [MODULE…]
                   change one thing of a module at a time, all of them or a part, and see whether its tests notice: 95% of the
                   changes at least; a run that was ended is taken up again

`test` reads RUNTIME_REQUIRE, a comma-separated list of targets and tools whose absence is a failure.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run_task(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run_task(arguments: &[String]) -> Outcome {
    let Some((task, rest)) = arguments.split_first() else {
        return Err(Failure::new(format!("no task given\n\n{HELP}")));
    };
    match (task.as_str(), rest) {
        ("help" | "--help" | "-h", _) => {
            print!("{HELP}");
            Ok(())
        }
        ("test", []) => test::run_tests(),
        ("lint", []) => lint::run_checks(),
        ("header", []) => header::update(),
        ("miri", []) => harden::miri(),
        ("valgrind", []) => harden::valgrind(),
        ("tsan", []) => harden::tsan(),
        ("fuzz", [kernels, arguments @ ..]) if kernels == "kernels" => fuzz_kernels::run_fuzzer(arguments),
        ("fuzz", arguments) => harden::fuzz(arguments),
        ("faults", backends) => harden::faults(backends),
        ("mutants", arguments) => harden::mutants(arguments),
        ("bundle", [directory]) => bundle::write_bundle(directory.as_ref(), &[]),
        ("bundle", [directory, option]) if option == "--wgpu" => {
            bundle::write_bundle(directory.as_ref(), &[bundle::WGPU])
        }
        ("bundle", _) => Err(Failure::new(
            "`bundle` takes the directory to write, and behind it `--wgpu` or nothing: cargo xtask bundle DIR",
        )),
        ("eval", []) => {
            Err(Failure::new("`eval` takes at least one specification: cargo xtask eval kernels/matmul.toml"))
        }
        ("eval", arguments) => eval::run_eval(arguments),
        ("test" | "lint" | "header" | "miri" | "valgrind" | "tsan", [extra, ..]) => {
            Err(Failure::new(format!("`{task}` takes no arguments, got `{extra}`")))
        }
        _ => Err(Failure::new(format!("unknown task `{task}`\n\n{HELP}"))),
    }
}
