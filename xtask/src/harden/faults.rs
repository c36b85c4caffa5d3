//! `cargo xtask faults`: runs the conformance suite with fault injection: one backend call at a time fails or returns an
//! invalid result.

use std::path::PathBuf;
use std::process::Command;

use crate::process::{Failure, Outcome, run};
use crate::workspace::{Profile, Workspace};

/// The backends and options of the default runs.
const FAULT_RUNS: [(&str, &[&str]); 7] = [
    ("null", &[]),
    ("null", &["--kind", "device_lost", "--first", "16", "--spread", "8"]),
    ("null", &["--kind", "unsupported", "--first", "4", "--spread", "2"]),
    // Only backends that tolerate any use of their objects: real drivers may crash after an invalid result.
    ("null", &["--corrupt", "--cases", "6", "--first", "2", "--spread", "1", "--longest-ms", "200"]),
    ("host", &["--corrupt", "--cases", "1", "--first", "1", "--spread", "0"]),
    ("host", &["--first", "4", "--spread", "2"]),
    (C_BACKEND, &["--first", "4", "--spread", "2"]),
];
/// The name of the backend in C, which is built first.
const C_BACKEND: &str = "cdemo";

/// Runs fault injection on the named backends, or on those of this repository that run anywhere.
pub(crate) fn faults(backends: &[String]) -> Outcome {
    let workspace = Workspace::read()?;
    let mut build = workspace.cargo(&["build", "--quiet", "--package", "runtime-conformance"]);
    for backend in workspace.backends() {
        build.args(["--package", &backend.package]);
    }
    run(&mut build)?;
    let sweep = |backend: &str, extent: &[&str]| {
        let mut conformance = workspace.executable(Profile::Debug, "conformance");
        // Requirements on the machine apply to the other tests only.
        run(conformance.args(["--faults", "--backend", backend]).args(extent).env_remove("RUNTIME_REQUIRE"))
    };
    let mut outcomes = Vec::new();
    for backend in backends {
        outcomes.push(sweep(backend, &[]));
    }
    if backends.is_empty() {
        let c_backend = build_c_backend(&workspace)?;
        for (backend, extent) in FAULT_RUNS {
            let path = c_backend.to_string_lossy();
            outcomes.push(sweep(if backend == C_BACKEND { &path } else { backend }, extent));
        }
    }
    let failed: Vec<_> =
        outcomes.into_iter().filter_map(|outcome| Some(outcome.err()?.to_string())).collect();
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(failed.join("; "))) }
}

/// Builds the backend in C from its sources.
fn build_c_backend(workspace: &Workspace) -> Outcome<PathBuf> {
    let folder = workspace.harden_dir("faults");
    std::fs::create_dir_all(&folder)?;
    let library = folder.join(format!("libruntime_{C_BACKEND}.so"));
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O1", "-g", "-fvisibility=hidden", "-shared", "-fPIC", "-pthread", "-I"]);
    cc.arg(workspace.root.join("runtime-core/include")).arg("-o").arg(&library);
    for file in std::fs::read_dir(workspace.root.join("tests/c-backend"))? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "c") {
            cc.arg(path);
        }
    }
    run(&mut cc)?;
    Ok(library)
}
