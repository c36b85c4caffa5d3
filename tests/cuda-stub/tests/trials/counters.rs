//! Counters of the CUDA backend without CUPTI, with one that is too old, and with one that may not read counters: each has
//! the reason and the remedy.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use runtime_core::{Error, Runtime, abi};

/// Longer than any case takes.
const DEADLINE: Duration = Duration::from_secs(120);

/// The CUPTI of a case.
#[derive(Clone, Copy, Debug)]
enum Cupti {
    Missing,
    NotALibrary,
    Stub(&'static [&'static str]),
}

pub(crate) fn trials() -> Vec<Trial> {
    // The backend would find the CUPTI of a real toolkit.
    let has_toolkit = Path::new("/usr/local/cuda").exists();
    let trial = |name: &str, cupti, words: &'static [&'static str]| {
        let ignored = has_toolkit && !matches!(cupti, Cupti::Stub([]));
        Trial::test(format!("counters::{name}"), move || run(cupti, words)).with_ignored_flag(ignored)
    };
    vec![
        trial("without_cupti_the_remedy_is_to_install_it", Cupti::Missing, &["CUDA 12.6", "CUDA_HOME"]),
        trial("a_cupti_that_is_no_library_is_the_reason", Cupti::NotALibrary, &["libcupti", "CUDA_HOME"]),
        trial("an_old_cupti_is_the_reason", Cupti::Stub(&["OLD"]), &["lacks cuptiRangeProfilerSetConfig"]),
        trial(
            "without_the_permission_the_remedy_is_the_drivers_option",
            Cupti::Stub(&[]),
            &["(35)", "as root", "NVreg_RestrictProfilingToAdminUsers=0"],
        ),
    ]
}

fn run(cupti: Cupti, words: &[&str]) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    runtime_cuda_stub_tests::build(folder.path(), &[])?;
    match cupti {
        Cupti::Missing => {}
        Cupti::NotALibrary => std::fs::write(folder.path().join("libcupti.so.12"), "not a library")?,
        Cupti::Stub(defines) => runtime_cuda_stub_tests::build_cupti(folder.path(), defines)?,
    }
    let mut command = runtime_cuda_stub_tests::rerun_with_stub("counters", folder.path(), "")?;
    let text = test_process::finish(&mut command, DEADLINE)?.success()?;
    let lines: Vec<_> = text.lines().collect();
    // Each of two lists and a set.
    let is_right =
        |line: &&str| line.starts_with("Unavailable ") && words.iter().all(|word| line.contains(word));
    if lines.len() == 3 && lines.iter().all(is_right) {
        return Ok(());
    }
    Err(format!("expected Unavailable with {words:?}, got:\n{text}").into())
}

/// The process that loads the stub: prints why counters cannot be listed, again, and opened.
#[allow(clippy::print_stdout, reason = "the parent reads it")]
pub(crate) fn child() -> ExitCode {
    let library = runtime_cuda_stub_tests::plugin_path().unwrap();
    // SAFETY: the backend of this workspace.
    #[allow(unsafe_code, reason = "loads the backend")]
    let runtime = unsafe { Runtime::builder().discover(false).library(library) }.build();
    let device = runtime.open("cuda:0").unwrap();
    assert!(device.info().capabilities.has(abi::CAP_COUNTERS), "the capability is declared");
    let print = |error: Error| println!("{:?} {error}", error.kind());
    print(device.counters().unwrap_err());
    print(device.counters().unwrap_err());
    print(device.counter_set(&["dram__bytes_read.sum"]).unwrap_err());
    ExitCode::SUCCESS
}
