//! The command line of the benchmark.

use std::path::Path;

use runtime_bench::is_measuring;

/// The selected kernels and rounds.
#[derive(Debug)]
pub(crate) struct Options {
    only: Vec<String>,
    /// Turns per contender.
    pub(crate) rounds: usize,
    /// Without bounds checks, on both sides.
    pub(crate) unchecked: bool,
}

impl Options {
    /// Parses the arguments. Without `--bench`, which cargo passes, one turn checks that everything runs correctly.
    pub(crate) fn read() -> Self {
        let rounds = if is_measuring() { 41 } else { 1 };
        let mut options = Self { only: Vec::new(), rounds, unchecked: false };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--only" => options.only.extend(arguments.next()),
                "--rounds" => {
                    let count = arguments.next().and_then(|count| count.parse::<usize>().ok());
                    options.rounds = count.expect("--rounds takes a number").max(1);
                }
                "--unchecked" => options.unchecked = true,
                _ => {}
            }
        }
        options
    }

    /// Whether the kernel of the spec is to be measured.
    pub(crate) fn takes(&self, path: &Path) -> bool {
        let name = path.file_stem().map(|name| name.to_string_lossy()).unwrap_or_default();
        self.only.is_empty() || self.only.iter().any(|only| *only == name)
    }
}
