//! The tasks of this repository; `cargo xtask help` lists them.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program")]

mod architecture;
mod built;
mod bundle;
mod circles;
mod count_lines;
mod debian_package;
mod dependencies;
mod eval;
mod examples;
mod fuzz_kernels;
mod harden;
mod header;
mod imports;
mod install;
mod layers;
mod lint;
mod markdown;
mod named_code;
mod other_targets;
mod placed_file;
mod process;
mod programs;
mod requirements;
mod spelling;
mod stray_files;
mod test;
mod tokens;
mod workspace;

use std::process::ExitCode;

use process::{Failure, Outcome};

const HELP: &str = "\
Tasks of this repository, run as `cargo xtask TASK`:

  test [--all]     install what the tests need if possible, build the workspace, run all tests; --all runs sweeps
                   completely that are sampled otherwise, and compiles the fuzz targets
  eval SPEC… ARG… [--all-backends]
                   build the command and the backends whose driver is installed, optimised where kernels run, then
                   `runtime eval SPEC… ARG…`
  install [PREFIX] [--debug]
                   build the command and the backends in release and install them with the C header below PREFIX
                   (default: $HOME/.local); --debug takes what `test` builds, which is slow code
  package [--debug]
                   a Debian package with the same contents
  bundle DIR [--wgpu] [--null]
                   write a relocatable, stripped tree of the command, the backends and the benchmarks; --wgpu adds the
                   comparison with wgpu to the Vulkan benchmark, which takes a while to build; --null adds the null
                   backend, for the conformance suite
  lint [WORD…]     all checks, or those whose name contains a word: rustfmt, clippy, rustdoc, the C header,
                   the length of files, imports between modules, files that nothing reads, paths in ARCHITECTURE.md,
                   dependencies, examples in the documentation, Markdown; where they are installed, spelling (`typos`),
                   licences (`cargo-deny`) and the other targets of deny.toml; by its name only, `fuzz targets`, which
                   takes a minute to compile
  lines            lines of code of each product crate, without blank lines, comments and tests
  header           regenerate runtime-core/include/runtime.h
  miri             core and the null backend under Miri: undefined behaviour, leaks
  valgrind         the loader's and the host's tests, and the suite against the backend in C, under valgrind
  tsan             core, null, host, kernels, the loader, the command and the suite under ThreadSanitizer
  fuzz [SECONDS [TARGET…]]
                   run each fuzz target of tests/fuzz, or only those named, for SECONDS (default 60)
  fuzz kernels [SECONDS] [--seed N] [--devices host,opencl:0,…] [--jobs N] …
                   compare random kernels on devices with a WGSL interpreter; mismatches are reduced and written to
                   target/kernel-fuzz
  faults [PATH|TARGET…]
                   the conformance suite with fault injection: one backend call at a time fails or returns an invalid
                   result
  mutants [--in-place] [--shard K/N] [MODULE…]
                   mutation testing, of all modules or those named: the tests must catch at least 95% of the mutants;
                   resumes an interrupted run

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
        ("test", arguments) => test::run_tests(arguments),
        ("lint", words) => lint::run_checks(words),
        ("lines", []) => count_lines::print(),
        ("header", []) => header::update(),
        ("miri", []) => harden::miri(),
        ("valgrind", []) => harden::valgrind(),
        ("tsan", []) => harden::tsan(),
        ("fuzz", [kernels, arguments @ ..]) if kernels == "kernels" => fuzz_kernels::run_fuzzer(arguments),
        ("fuzz", arguments) => harden::fuzz(arguments),
        ("faults", backends) => harden::faults(backends),
        ("mutants", arguments) => harden::mutants(arguments),
        ("install", arguments) => install::install(arguments),
        ("package", arguments) => debian_package::write_package(arguments),
        ("bundle", arguments) => bundle::write_bundle(arguments),
        ("eval", []) => {
            Err(Failure::new("`eval` takes at least one specification: cargo xtask eval kernels/matmul.toml"))
        }
        ("eval", arguments) => eval::run_eval(arguments),
        ("lines" | "header" | "miri" | "valgrind" | "tsan", [extra, ..]) => {
            Err(Failure::new(format!("`{task}` takes no arguments, got `{extra}`")))
        }
        _ => Err(Failure::new(format!("unknown task `{task}`\n\n{HELP}"))),
    }
}
