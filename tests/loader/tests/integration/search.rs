//! The search order, tested with a program in separate folders and with its own environment.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fixture::Fixture;

/// Runs a copy of `loader-report` in `prefix/bin` and returns its lines.
struct Program {
    fixture: Fixture,
    variables: Vec<(&'static str, String)>,
}

impl Program {
    fn new() -> Self {
        let fixture = Fixture::new();
        fs::create_dir_all(fixture.path("prefix/bin")).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_loader-report"), fixture.path("prefix/bin/program")).unwrap();
        Self { fixture, variables: vec![] }
    }

    /// Builds a backend in `place`.
    fn with(self, place: &str, name: &str) -> Self {
        self.fixture.backend(name, &[&format!("NAME=\"{name}\"")]);
        let path = self.path(place);
        fs::create_dir_all(&path).unwrap();
        fs::rename(self.path(&format!("libruntime_{name}.so")), path.join(format!("libruntime_{name}.so")))
            .unwrap();
        self
    }

    fn variable(mut self, name: &'static str, places: &[&str]) -> Self {
        let paths: Vec<_> = places.iter().map(|place| self.path(place).display().to_string()).collect();
        self.variables.push((name, paths.join(":")));
        self
    }

    fn path(&self, place: &str) -> PathBuf {
        self.fixture.path(place)
    }

    fn run_in(&self, directory: &Path) -> Vec<String> {
        let output = Command::new(self.path("prefix/bin/program"))
            .env_clear()
            .env("HOME", self.path("home"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(directory)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    /// The names of the loaded backends, in order.
    fn loaded(&self) -> Vec<String> {
        let lines = self.run_in(&self.path(""));
        let names = lines.iter().filter(|line| line.starts_with("loaded"));
        names
            .map(|line| line.split("libruntime_").nth(1).unwrap().split('.').next().unwrap().to_owned())
            .collect()
    }
}

#[test]
fn locations_are_searched_in_the_documented_order() {
    let program = Program::new()
        .with("prefix/bin", "c")
        .with("home/.local/lib/runtime", "d")
        .with("added", "a")
        .with("prefix/lib/runtime", "b")
        .variable("RUNTIME_BACKEND_PATH", &["added"]);
    assert_eq!(program.loaded(), ["a", "b", "c", "d"]);
}

#[test]
fn runtime_backends_replaces_the_other_locations() {
    let program = Program::new()
        .with("prefix/bin", "a")
        .with("added", "b")
        .with("folder", "c")
        .with("folder", "d")
        .with("file", "e")
        .variable("RUNTIME_BACKEND_PATH", &["added"])
        .variable("RUNTIME_BACKENDS", &["file/libruntime_e.so", "folder"]);
    assert_eq!(program.loaded(), ["e", "c", "d"]);
}

#[test]
fn the_first_of_two_of_the_same_name_wins() {
    let program = Program::new()
        .with("prefix/bin", "a")
        .with("added", "a")
        .variable("RUNTIME_BACKEND_PATH", &["added"]);
    let lines = program.run_in(Path::new("/"));
    let loaded: Vec<_> = lines.iter().filter(|line| line.starts_with("loaded")).collect();
    assert!(loaded.len() == 1 && loaded[0].contains("/added/"), "{lines:?}");
    let skipped = lines.iter().find(|line| line.contains("/prefix/bin/libruntime_a.so")).unwrap();
    assert!(
        skipped.starts_with("skipped") && skipped.contains("target \"a\" already comes from"),
        "{skipped}"
    );
}

#[test]
fn the_current_directory_is_never_searched() {
    let mut program = Program::new().with("here", "a");
    for value in ["", ".", "here", "./libruntime_a.so", ":"] {
        program.variables =
            vec![("RUNTIME_BACKENDS", value.to_owned()), ("RUNTIME_BACKEND_PATH", value.to_owned())];
        let lines = program.run_in(&program.path("here"));
        assert!(!lines.iter().any(|line| line.starts_with("loaded")), "{value}: {lines:?}");
    }
}

#[test]
fn a_world_writable_directory_is_rejected_and_named() {
    let program = Program::new().with("added", "a").variable("RUNTIME_BACKEND_PATH", &["added"]);
    fs::set_permissions(program.path("added"), fs::Permissions::from_mode(0o777)).unwrap();
    let lines = program.run_in(Path::new("/"));
    let refused = format!("failed  {}: rejected: it is world-writable", program.path("added").display());
    assert!(lines.iter().any(|line| line.starts_with(&refused)), "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("loaded")), "{lines:?}");
}

#[test]
fn every_location_is_in_the_report() {
    let program = Program::new();
    fs::write(program.path("prefix/bin/libruntime_text.so"), "text").unwrap();
    let lines = program.run_in(Path::new("/"));
    let expected = [
        ("prefix/bin/libruntime_text.so: manifest: not an ELF file", "failed"),
        ("prefix/lib/runtime: no such directory", "skipped"),
        ("home/.local/lib/runtime: no such directory", "skipped"),
        ("/usr/local/lib/runtime", ""),
        ("/usr/lib/runtime", ""),
    ];
    for (text, outcome) in expected {
        assert!(
            lines.iter().any(|line| line.contains(text) && line.starts_with(outcome)),
            "{text}: {lines:?}"
        );
    }
}
