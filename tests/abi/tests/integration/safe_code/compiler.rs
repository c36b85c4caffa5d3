//! Runs the compiler with the libraries that this test was built with.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// The crate that the others depend on.
const CORE: &str = "runtime_core";
/// Other crates that programs may use, each with a builder call that compiles only if it was built with the same core.
const OTHERS: [(&str, &str); 3] = [
    ("runtime_host", "register(runtime_host::backend())"),
    ("runtime_kernel", "with_lowering(runtime_kernel::wgsl())"),
    ("runtime_opencl", "register(runtime_opencl::backend())"),
];

/// Compiles programs, without linking them.
#[derive(Debug)]
pub(crate) struct Compiler {
    dependencies: PathBuf,
    externs: Vec<String>,
}

impl Compiler {
    /// Finds the libraries next to this test: of several builds, the latest that fit together.
    pub(crate) fn new() -> Self {
        let dependencies = std::env::current_exe().unwrap().parent().unwrap().to_owned();
        let others = OTHERS.map(|(name, call)| (name, call, builds(&dependencies, name)));
        for core in builds(&dependencies, CORE) {
            let mut compiler = Self { dependencies: dependencies.clone(), externs: Vec::new() };
            compiler.add(CORE, &core);
            for (name, call, builds) in &others {
                let uses = format!("pub fn main() {{ let _ = runtime_core::Runtime::builder().{call}; }}");
                let fits = |build: &&PathBuf| compiler.with(name, build).run(&uses, true).is_ok();
                let Some(build) = builds.iter().find(fits) else { break };
                compiler.add(name, build);
            }
            if compiler.externs.len() == 1 + OTHERS.len() {
                return compiler;
            }
        }
        panic!("{dependencies:?} has no libraries of {CORE} and {OTHERS:?} that fit together");
    }

    fn add(&mut self, name: &str, build: &Path) {
        self.externs.push(format!("--extern={name}={}", build.display()));
    }

    fn with(&self, name: &str, build: &Path) -> Self {
        let mut more = Self { dependencies: self.dependencies.clone(), externs: self.externs.clone() };
        more.add(name, build);
        more
    }

    /// Compiles a program; the error is what the compiler prints.
    pub(crate) fn run(&self, program: &str, forbid: bool) -> Result<(), String> {
        use std::io::Write;
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()))
            .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--cap-lints=warn", "-"])
            .args(forbid.then_some("-Funsafe-code"))
            .arg(format!("-Ldependency={}", self.dependencies.display()))
            .args(&self.externs)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("rustc is installed, since it built this test");
        child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

/// The builds of a crate, the latest first.
fn builds(folder: &Path, name: &str) -> Vec<PathBuf> {
    let prefix = format!("lib{name}-");
    let mut found: Vec<(SystemTime, PathBuf)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "rlib"))
        .map(|entry| (entry.metadata().unwrap().modified().unwrap(), entry.path()))
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}
