//! `cargo xtask bundle DIR [--wgpu]`: a tree that runs on another Linux machine with the same or a newer C library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process::{Failure, Outcome, output, run};
use crate::workspace::{Profile, Target, Workspace};

/// Executables of the bundle, apart from the benchmarks.
const PROGRAMS: &[&str] = &["runtime", "conformance", "kernel-fuzz"];
/// Folders of the bundle.
const FOLDERS: &[&str] = &["bin", "lib/runtime", "kernels", "interop"];
/// Folders that every bundle has, including those of earlier versions.
const REQUIRED_FOLDERS: &[&str] = &["bin", "lib/runtime", "kernels"];
/// The test library for the exchange of tensors with Python.
const INTEROP: &str = "interop";

/// The feature that adds the comparison with wgpu to the benchmarks.
pub(crate) const WGPU: &str = "runtime-bench/wgpu";

/// Writes the bundle; the benchmarks are built with `features`.
pub(crate) fn write_bundle(directory: &Path, features: &[&str]) -> Outcome {
    let workspace = Workspace::read()?;
    let directory = std::path::absolute(directory)?;
    check_is_empty_or_bundle(&directory)?;
    run(&mut workspace.cargo(&["build", "--release", "--quiet", "--workspace", "--exclude", "xtask"]))?;
    let benchmarks = benchmarks(&workspace, features)?;
    clear(&directory)?;
    let built = workspace.built(Profile::Release);
    for program in PROGRAMS {
        install(&built.join(program), &directory.join("bin").join(program))?;
    }
    for (name, executable) in benchmarks {
        install(&executable, &directory.join("bin").join(format!("bench-{name}")))?;
    }
    let backends = workspace.backends();
    for backend in &backends {
        install(&built.join(backend.library()), &directory.join("lib/runtime").join(backend.library()))?;
    }
    copy_folder(&workspace.root.join("kernels"), &directory.join("kernels"))?;
    let interop = Target { package: String::new(), name: INTEROP.to_owned() }.library();
    install(&built.join(&interop), &directory.join(INTEROP).join(&interop))?;
    copy_folder(&workspace.root.join("tests/interop/python"), &directory.join(INTEROP))?;
    check_finds_backends(&directory, &backends)?;
    println!("{}", directory.display());
    Ok(())
}

/// Accepts a directory that is empty, missing or an earlier bundle to replace.
fn check_is_empty_or_bundle(directory: &Path) -> Outcome {
    let is_bundle = REQUIRED_FOLDERS.iter().all(|part| directory.join(part).is_dir());
    if directory.exists() && fs::read_dir(directory)?.next().is_some() && !is_bundle {
        return Err(Failure::new(format!(
            "`{}` is not empty and not an earlier bundle; choose another directory",
            directory.display()
        )));
    }
    Ok(())
}

fn clear(directory: &Path) -> Outcome {
    for part in FOLDERS {
        let part = directory.join(part);
        if part.exists() {
            fs::remove_dir_all(&part)?;
        }
        fs::create_dir_all(&part)?;
    }
    Ok(())
}

/// Copies a library or an executable and strips it.
fn install(from: &Path, to: &Path) -> Outcome {
    fs::copy(from, to).map_err(|error| Failure::new(format!("{}: {error}", from.display())))?;
    run(Command::new("strip").arg(to))
}

fn copy_folder(from: &Path, to: &Path) -> Outcome {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&copy)?;
            copy_folder(&entry.path(), &copy)?;
        } else {
            fs::copy(entry.path(), copy)?;
        }
    }
    Ok(())
}

/// Builds the benchmarks. Their file names contain a hash, so they are taken from cargo's messages.
fn benchmarks(workspace: &Workspace, features: &[&str]) -> Outcome<Vec<(String, PathBuf)>> {
    let benchmarks = workspace.targets("bench");
    if benchmarks.is_empty() {
        return Ok(Vec::new());
    }
    let mut build = workspace.cargo(&["bench", "--quiet", "--no-run", "--message-format", "json"]);
    for Target { package, name } in &benchmarks {
        build.args(["--package", package, "--bench", name]);
    }
    build.args(features.iter().flat_map(|feature| ["--features", feature]));
    let messages = output(&mut build)?;
    Ok(messages.lines().filter_map(|line| executable(&serde_json::from_str(line).ok()?)).collect())
}

/// The name and path of a benchmark that a cargo message reports as built.
fn executable(message: &Value) -> Option<(String, PathBuf)> {
    let target = &message["target"];
    if target["kind"].as_array()?.iter().any(|kind| kind == "bench") {
        return Some((target["name"].as_str()?.to_owned(), PathBuf::from(message["executable"].as_str()?)));
    }
    None
}

/// Runs the command from another directory with an empty environment; it must find every backend of the bundle.
fn check_finds_backends(directory: &Path, backends: &[Target]) -> Outcome {
    // The command resolves links in its own path.
    let directory = directory.canonicalize()?;
    let report = output(
        Command::new(directory.join("bin/runtime"))
            .arg("doctor")
            .env_clear()
            .current_dir(std::env::temp_dir()),
    )?;
    for backend in backends {
        let library = directory.join("lib/runtime").join(backend.library());
        let loaded = |line: &str| line.contains("loaded") && line.contains(&*library.to_string_lossy());
        if !report.lines().any(loaded) {
            return Err(Failure::new(format!(
                "the bundle's command does not find `{}`:\n{report}",
                library.display()
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn benchmarks_are_found_in_cargos_messages() {
        let message =
            |kind: &str| json!({"target": {"kind": [kind], "name": "launch"}, "executable": "/t/launch-0f"});
        assert_eq!(executable(&message("bench")), Some(("launch".to_owned(), PathBuf::from("/t/launch-0f"))));
        assert_eq!(executable(&message("bin")), None);
        assert_eq!(executable(&json!({"reason": "build-finished"})), None);
    }

    #[test]
    fn a_directory_with_other_contents_is_rejected() {
        let directory = std::env::temp_dir().join(format!("xtask-bundle-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("precious"), "").unwrap();
        let outcome = check_is_empty_or_bundle(&directory);
        let kept = directory.join("precious").is_file();
        fs::remove_dir_all(&directory).unwrap();
        assert!(outcome.unwrap_err().to_string().contains("is not empty"));
        assert!(kept);
    }
}
