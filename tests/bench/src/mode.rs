//! Whether this run measures. criterion measures with `--bench`, which `cargo bench` passes; otherwise it runs each benchmark
//! once.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Whether this run measures.
#[must_use]
pub fn is_measuring() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// Restarts the program with `--bench` if it was not started by cargo.
///
/// # Panics
/// If the program cannot be started again.
pub fn measure_by_default() {
    let says_what = |argument: String| ["--bench", "--test", "--list", "--help"].contains(&argument.as_str());
    if std::env::var_os("CARGO").is_some() || std::env::args().any(says_what) {
        return;
    }
    let executable = std::env::current_exe().expect("the path of this program");
    let error = Command::new(executable).args(std::env::args().skip(1)).arg("--bench").exec();
    panic!("this program does not start again: {error}");
}
