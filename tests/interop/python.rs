//! Exchange of tensors with NumPy and PyTorch, one trial per case.
//!
//! The cases run in the Python named by `RUNTIME_TEST_PYTHON` (`install.sh` installs one). Without it, or without the module
//! that a case needs, they are ignored, with the reason, and fail if `RUNTIME_REQUIRE` lists `python` (or `numpy`, `torch`,
//! `safetensors`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// The Python modules, with their requirements and cases.
const MODULES: [(&str, &str); 3] = [
    ("numpy", include_str!("python/numpy_cases.py")),
    ("torch", include_str!("python/torch_cases.py")),
    ("safetensors", include_str!("python/safetensors_cases.py")),
];

/// The results of a module's cases.
enum Run {
    /// Not run, for this reason.
    Missing(String),
    /// The output of each case, and whether it passed.
    Done(BTreeMap<String, (bool, String)>),
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for (module, source) in MODULES {
        // One process for all cases of a module: importing PyTorch takes seconds.
        let outcomes = Arc::new(OnceLock::new());
        for case in cases(source) {
            let outcomes = outcomes.clone();
            let name = format!("{module}::{}", case.trim_start_matches("case_"));
            trials.push(Trial::ignorable_test(name, move || {
                outcome(module, &case, outcomes.get_or_init(|| run(module)))
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn cases(source: &str) -> impl Iterator<Item = String> {
    let names = source.lines().filter_map(|line| line.strip_prefix("def case_")?.split_once('('));
    names.map(|(name, _)| format!("case_{name}"))
}

fn outcome(module: &str, case: &str, run: &Run) -> Result<Completion, Failed> {
    match run {
        Run::Missing(reason) if is_required(module) => Err(Failed::from(reason)),
        Run::Missing(reason) => Ok(Completion::ignored_with(reason.clone())),
        Run::Done(cases) => match cases.get(case) {
            Some((true, _)) => Ok(Completion::Completed),
            Some((false, text)) => Err(Failed::from(text)),
            None => Err(Failed::from("Python ended before this case")),
        },
    }
}

fn is_required(module: &str) -> bool {
    test_process::required(module) || test_process::required("python")
}

/// Runs all cases of a module.
fn run(module: &str) -> Run {
    let Some(python) = std::env::var_os("RUNTIME_TEST_PYTHON") else {
        return Run::Missing("RUNTIME_TEST_PYTHON names no Python with numpy".to_owned());
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    let mut command = Command::new(&python);
    command.arg("-B").arg(folder.join("run.py")).arg(library()).arg(format!("{module}_cases"));
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return Run::Missing(format!("RUNTIME_TEST_PYTHON: {}: {error}", python.display())),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(3) {
        return Run::Missing(text.trim().to_owned());
    }
    let end = format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    Run::Done(read(&text, &end))
}

/// The lines between `begin NAME` and `ok NAME` or `FAILED NAME`; a case without an end is the one that crashed Python.
fn read(text: &str, end: &str) -> BTreeMap<String, (bool, String)> {
    let mut cases = BTreeMap::new();
    let mut said = String::new();
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("begin", name)) => {
                said.clear();
                cases.insert(name.to_owned(), (false, format!("Python ended in this case: {end}")));
            }
            Some((result @ ("ok" | "FAILED"), name)) if cases.contains_key(name) => {
                cases.insert(name.to_owned(), (result == "ok", std::mem::take(&mut said)));
            }
            _ => said = said + line + "\n",
        }
    }
    cases
}

/// The library that was built together with this test.
fn library() -> PathBuf {
    let name = format!("{}interop{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let executable = std::env::current_exe().unwrap_or_default();
    let beside = executable.parent().unwrap_or(Path::new("")).join(&name);
    // Cargo puts the library of a test next to it, and that of a build one folder above.
    if beside.exists() { beside } else { beside.with_file_name("..").join(name) }
}
