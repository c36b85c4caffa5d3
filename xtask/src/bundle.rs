//! `cargo xtask bundle DIR [--wgpu] [--null]`: a tree that runs on another Linux machine with the same or a newer C library.

use std::fs;
use std::path::{Path, PathBuf};

use crate::built;
use crate::install::{self, BACKENDS, check_places};
use crate::placed_file::{self, Content, PlacedFile, write_all};
use crate::process::{Failure, Outcome};
use crate::workspace::{Profile, Target, Workspace, library_file};

/// Executables of the bundle apart from the benchmarks, and their packages.
const PROGRAMS: &[(&str, &str)] = &[
    ("runtime", "runtime-cli"),
    ("conformance", "runtime-conformance"),
    ("kernel-fuzz", "runtime-kernel-fuzz"),
];
/// Folders of the bundle.
const FOLDERS: &[&str] = &["bin", BACKENDS, "kernels", INTEROP];
/// Folders that every bundle has, including those of earlier versions.
const REQUIRED_FOLDERS: &[&str] = &["bin", BACKENDS, "kernels"];
/// The test library for the exchange of tensors with Python, and the folder for it.
const INTEROP: &str = "interop";
const INTEROP_PACKAGE: &str = "runtime-interop-tests";
/// The feature that adds the comparison with wgpu to the benchmarks.
const WGPU: &str = "runtime-bench/wgpu";

/// What to write, and where.
#[derive(Debug, PartialEq, Eq)]
struct Options<'a> {
    directory: &'a Path,
    /// Features of the benchmarks.
    features: Vec<&'static str>,
    /// Whether the backends of the tests are included.
    test_backends: bool,
}

impl<'a> Options<'a> {
    fn parse(arguments: &'a [String]) -> Option<Self> {
        let (directory, options) = arguments.split_first().filter(|(first, _)| !first.starts_with("--"))?;
        let mut parsed = Self { directory: directory.as_ref(), features: Vec::new(), test_backends: false };
        for option in options {
            match option.as_str() {
                "--wgpu" => parsed.features = vec![WGPU],
                "--null" => parsed.test_backends = true,
                _ => return None,
            }
        }
        Some(parsed)
    }
}

/// Writes the bundle.
pub(crate) fn write_bundle(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments).ok_or_else(|| {
        Failure::new(
            "`bundle` takes the directory to write, then options: cargo xtask bundle DIR [--wgpu] [--null]",
        )
    })?;
    let workspace = Workspace::read()?;
    let directory = std::path::absolute(options.directory)?;
    check_is_empty_or_bundle(&directory)?;
    let backends = match options.test_backends {
        true => workspace.backends(),
        false => workspace.device_backends(),
    };
    let mut files = files(&workspace, &backends, &directory)?;
    check_places(&files)?;
    for (name, executable) in build(&workspace, &backends, &options.features)? {
        let to = directory.join("bin").join(format!("bench-{name}"));
        files.push(PlacedFile::new(Content::Program(executable), to));
    }
    clear(&directory)?;
    write_all(&files)?;
    install::check_finds_backends(&directory, &backends)?;
    println!("{}", directory.display());
    Ok(())
}

/// The files of the bundle, apart from the benchmarks.
fn files(workspace: &Workspace, backends: &[Target], directory: &Path) -> Outcome<Vec<PlacedFile>> {
    let built = workspace.built(Profile::Release);
    let mut files: Vec<_> =
        PROGRAMS.iter().map(|(program, _)| install::program(&built, program, directory)).collect();
    files.extend(install::backends(&built, backends, directory));
    files.extend(placed_file::folder(&workspace.root.join("kernels"), &directory.join("kernels"))?);
    let library = library_file(INTEROP);
    files.push(PlacedFile::new(
        Content::Library(built.join(&library)),
        directory.join(INTEROP).join(&library),
    ));
    let python = workspace.root.join("tests/interop/python");
    files.extend(placed_file::folder(&python, &directory.join(INTEROP))?);
    Ok(files)
}

/// Accepts a directory that is empty, missing or an earlier bundle to replace.
fn check_is_empty_or_bundle(directory: &Path) -> Outcome {
    let is_bundle = REQUIRED_FOLDERS.iter().all(|part| directory.join(part).is_dir());
    if directory.is_dir() && fs::read_dir(directory)?.next().is_some() && !is_bundle {
        return Err(Failure::new(format!(
            "`{}` is not empty and not an earlier bundle; choose another directory",
            directory.display()
        )));
    }
    Ok(())
}

/// Removes an earlier bundle.
fn clear(directory: &Path) -> Outcome {
    for part in FOLDERS.iter().map(|part| directory.join(part)).filter(|part| part.exists()) {
        fs::remove_dir_all(&part)?;
    }
    Ok(())
}

/// Builds everything in one call, since features of the benchmarks would otherwise compile crates again. Returns the benchmarks.
fn build(workspace: &Workspace, backends: &[Target], features: &[&str]) -> Outcome<Vec<(String, PathBuf)>> {
    let benchmarks = workspace.targets("bench");
    let programs = PROGRAMS.iter().map(|(_, package)| *package);
    let libraries = backends.iter().map(|backend| &*backend.package);
    let packages = programs.chain(libraries).chain([INTEROP_PACKAGE]);
    let mut build = workspace.cargo(&["build", "--release", "--quiet", "--lib", "--bins"]);
    build.args(
        packages.chain(benchmarks.iter().map(|bench| &*bench.package)).flat_map(|name| ["--package", name]),
    );
    build.args(benchmarks.iter().flat_map(|bench| ["--bench", &bench.name]));
    build.args(features.iter().flat_map(|feature| ["--features", feature]));
    let benches = built::executables(&mut build)?.into_iter().filter(|built| built.kind == "bench");
    Ok(benches.map(|bench| (bench.name, bench.path)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_follow_the_directory_in_any_order() {
        let parse = |line: &str| {
            let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
            Options::parse(&words).map(|options| (options.features.len(), options.test_backends))
        };
        assert_eq!(parse("dir"), Some((0, false)));
        assert_eq!(parse("dir --null --wgpu"), Some((1, true)));
        for wrong in ["", "--null", "dir other", "dir --cuda"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
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
