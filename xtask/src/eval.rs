//! `cargo xtask eval`: builds the command quickly, with the backends whose driver is found, and evaluates kernels.

use std::path::Path;

use crate::install;
use crate::process::{Outcome, is_installed, output, run};
use crate::workspace::{Profile, Target, Workspace};

/// Builds backends whose driver is not found, too.
const ALL_BACKENDS: &str = "--all-backends";

/// Builds the command and backends, and runs `runtime eval` with the arguments.
pub(crate) fn run_eval(arguments: &[String]) -> Outcome {
    let workspace = Workspace::read()?;
    let (options, arguments): (Vec<_>, Vec<_>) = arguments.iter().partition(|word| *word == ALL_BACKENDS);
    let libraries = installed_libraries();
    let (backends, left_out): (Vec<_>, Vec<_>) =
        workspace.device_backends().into_iter().partition(|backend| {
            !options.is_empty()
                || backend.drivers.is_empty()
                || backend.drivers.iter().any(|driver| is_found(driver, &libraries))
        });
    if !left_out.is_empty() {
        eprintln!("not built: {}; {ALL_BACKENDS} builds them, too", reasons(&left_out));
    }
    install::build(&workspace, Profile::Quick, &backends)?;
    run(workspace.executable(Profile::Quick, "runtime").arg("eval").args(arguments))
}

/// The names of backends, each with what was not found.
fn reasons(backends: &[Target]) -> String {
    let reason = |backend: &Target| {
        format!("{} (no {})", backend.backend().unwrap_or(&backend.name), backend.drivers.join(" or "))
    };
    backends.iter().map(reason).collect::<Vec<_>>().join(", ")
}

/// Whether a driver is installed: a library, a program, or an environment variable (`$NAME`) that its installation sets.
fn is_found(driver: &str, libraries: &str) -> bool {
    match driver.strip_prefix('$') {
        Some(variable) => std::env::var_os(variable).is_some_and(|value| !value.is_empty()),
        None => {
            libraries.split_whitespace().any(|word| word == driver)
                || in_library_path(driver)
                || is_installed(driver)
        }
    }
}

/// What the dynamic linker's cache lists; empty on systems without one.
fn installed_libraries() -> String {
    let programs =
        ["/sbin/ldconfig", "/usr/sbin/ldconfig"].into_iter().filter(|path| Path::new(path).exists());
    programs.take(1).filter_map(|path| output(std::process::Command::new(path).arg("-p")).ok()).collect()
}

/// Whether a folder of `LD_LIBRARY_PATH` has the library.
fn in_library_path(library: &str) -> bool {
    let folders = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(library).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_libraries_programs_or_variables() {
        let libraries = "\tlibOpenCL.so.1 (libc6,x86-64) => /usr/lib/libOpenCL.so.1\n";
        assert!(is_found("libOpenCL.so.1", libraries) && is_found("sh", libraries));
        assert!(is_found("$PATH", libraries));
        assert!(!is_found("libOpenCL.so", libraries) && !is_found("$NO_SUCH_VARIABLE", libraries));
    }

    #[test]
    fn a_backend_that_is_not_built_is_named_with_what_it_lacks() {
        let drivers = vec!["libcuda.so.1".to_owned(), "nvcc".to_owned()];
        let target = Target { package: "p".to_owned(), name: "runtime_cuda".to_owned(), drivers };
        assert_eq!(reasons(&[target]), "cuda (no libcuda.so.1 or nvcc)");
    }
}
