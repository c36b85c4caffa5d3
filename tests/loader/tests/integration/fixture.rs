//! Libraries built by the tests, and the paths of the workspace's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use runtime_core::Runtime;
use runtime_core::backend::{LoadOutcome, LoadReport, LoadStage};

/// A folder of libraries that only its owner may write to.
pub(crate) struct Fixture(tempfile::TempDir);

impl Fixture {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    /// Builds `libruntime_<name>.so` in the folder from `fixtures/backend.c`; `defines` select a defect.
    pub(crate) fn backend(&self, name: &str, defines: &[&str]) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let library = self.path(&format!("libruntime_{name}.so"));
        fs::create_dir_all(library.parent().unwrap()).unwrap();
        let output = Command::new("cc")
            .args([
                "-std=c11",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-unused",
                "-shared",
                "-fPIC",
                "-fvisibility=hidden",
                "-I",
            ])
            .arg(root.join("../../runtime-core/include"))
            .args(defines.iter().map(|define| format!("-D{define}")))
            .arg("-o")
            .arg(&library)
            .arg(root.join("fixtures/backend.c"))
            .output()
            .expect("a C compiler is installed as `cc`");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        library
    }

    /// Builds a broken library, loads it, and returns its line of the load report.
    pub(crate) fn report(&self, defines: &[&str]) -> LoadReport {
        line(&self.backend("fixture", defines))
    }
}

/// A `Runtime` with this library only.
#[allow(unsafe_code, reason = "loads libraries that are broken on purpose")]
pub(crate) fn load(library: &Path) -> Runtime {
    // SAFETY: built for this test; it does nothing else than the defect under test.
    unsafe { Runtime::builder().discover(false).library(library) }.build()
}

/// The report line of this library.
pub(crate) fn line(library: &Path) -> LoadReport {
    let runtime = load(library);
    assert_eq!(runtime.load_report().len(), 1);
    let line = runtime.load_report()[0].clone();
    assert_eq!(line.path, std::path::absolute(library).unwrap());
    assert_eq!(runtime.targets().len(), usize::from(line.outcome == LoadOutcome::Loaded));
    line
}

/// Checks that a library failed at `stage`, with `reason` in its line.
pub(crate) fn assert_failed(line: &LoadReport, stage: LoadStage, reason: &str) {
    assert_eq!((line.outcome, line.stage), (LoadOutcome::Failed, stage), "{line}");
    assert!(line.reason.contains(reason), "{line}");
}

/// A backend library of this workspace, built in the same profile as this test.
pub(crate) fn built(name: &str) -> PathBuf {
    let executable = std::env::current_exe().unwrap();
    let folder = executable.ancestors().nth(2).unwrap();
    let library = folder.join(format!("libruntime_{name}.so"));
    assert!(library.exists(), "{} is not there: run `cargo build --workspace` first", library.display());
    library
}
