//! `cargo xtask install` and `cargo xtask package`: the contents, and that command and programs work from there, with no
//! variable set and outside the repository. Both take what the tests have built; with
//! `cargo xtask test --all` they build in release, once. Ignored if cargo-deb is missing, which
//! `RUNTIME_REQUIRE=package` makes a failure; with that word the superuser also installs the package and removes it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "prints the backends that it finds, as a program of a user would")]

mod install;
mod machine;
mod package;

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use runtime_core::Runtime;

/// The argument with which this program lists the backends that it finds.
const LIST: &str = "list-backends";

type Case = fn() -> Result<Completion, Failed>;

const CASES: [(&str, Case); 4] = [
    ("install::a_prefix_that_cannot_be_written_is_named", install::unwritable),
    ("install::programs_find_what_is_installed", install::works),
    ("package::runs_where_it_is_unpacked", package::unpacked),
    ("package::is_installed_and_removed", package::installed),
];

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(LIST) {
        return list_backends();
    }
    let trials = CASES.map(|(name, case)| Trial::ignorable_test(name, case));
    // One after the other: they share a build directory.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials.into()).exit_code()
}

/// What a program does that depends on `runtime-core` and on no backend.
fn list_backends() -> ExitCode {
    for target in Runtime::new().targets() {
        println!("{} {}", target.name, target.path.as_deref().unwrap_or(Path::new("")).display());
    }
    ExitCode::SUCCESS
}
