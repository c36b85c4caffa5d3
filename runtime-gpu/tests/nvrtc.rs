//! CUDA C through the real NVRTC, without a device. Ignored, with the reason, if NVRTC is not installed; `RUNTIME_REQUIRE=nvrtc`
//! turns that into a failure. `RUNTIME_TEST_NVRTC`, the path of a library, sets `CUDA_HOME` to its toolkit.

#![allow(unsafe_code, reason = "sets an environment variable")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use runtime_core::{Error, ErrorKind, Result};

const SUITE: &str = include_str!("../../tests/conformance/src/kernels/suite.cu");
const BUILTIN: &str = include_str!("../src/builtin.cu");
const EMPTY: &str = "extern \"C\" __global__ void empty() {}";

type Case = fn() -> std::result::Result<(), Failed>;

fn main() -> ExitCode {
    if let Some(toolkit) =
        std::env::var_os("RUNTIME_TEST_NVRTC").map(PathBuf::from).as_deref().and_then(toolkit_folder)
    {
        // SAFETY: no other thread runs yet.
        unsafe { std::env::set_var("CUDA_HOME", toolkit) };
    }
    let cases: [(&str, Case); 5] = [
        ("the suite's kernels compile for several architectures", suite),
        ("the backend's own kernels compile", builtin),
        ("a compile error has its line number", compile_error_line),
        ("an invalid option is rejected", invalid_option),
        ("options are passed to the compiler", options),
    ];
    let required = test_process::required("nvrtc");
    let missing = runtime_gpu::compile(EMPTY, "sm_90", &[])
        .err()
        .filter(|error| error.kind() == ErrorKind::Unavailable);
    let trials = cases.map(|(name, case)| {
        let missing = missing.clone();
        Trial::ignorable_test(name, move || match missing {
            Some(error) if required => Err(error.to_string().into()),
            Some(error) => Ok(Completion::ignored_with(error.to_string())),
            None => case().map(|()| Completion::Completed),
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}

/// The toolkit folder that contains the library.
fn toolkit_folder(library: &Path) -> Option<&Path> {
    library.parent()?.parent()
}

fn suite() -> std::result::Result<(), Failed> {
    for arch in ["sm_75", "sm_80", "sm_90", "sm_90a"] {
        let cubin = runtime_gpu::compile(SUITE, arch, &[])?;
        assert!(cubin.starts_with(b"\x7fELF"), "{arch}");
    }
    runtime_gpu::compile(include_str!("hopper.cu"), "sm_90", &[])?;
    Ok(())
}

fn builtin() -> std::result::Result<(), Failed> {
    let ptx = runtime_gpu::compile(BUILTIN, "compute_75", &[])?;
    let text = String::from_utf8_lossy(&ptx);
    assert!(
        ["empty", "fill_words", "fill_bytes"].iter().all(|name| text.contains(&format!(".entry {name}(")))
    );
    Ok(())
}

fn expect_error(result: Result<Vec<u8>>) -> std::result::Result<Error, Failed> {
    result.err().ok_or_else(|| "it compiled".into())
}

fn compile_error_line() -> std::result::Result<(), Failed> {
    let error =
        expect_error(runtime_gpu::compile(&format!("{EMPTY}\n\nint wrong = thing;\n"), "sm_90", &[]))?;
    assert_eq!(error.kind(), ErrorKind::CompileFailed);
    assert!(error.message().contains("kernel.cu(3)") && error.message().contains("thing"), "{error}");
    Ok(())
}

fn invalid_option() -> std::result::Result<(), Failed> {
    for (arch, options) in [("sm_90", &["--no-such-option"][..]), ("sm_1", &[])] {
        let error = expect_error(runtime_gpu::compile(EMPTY, arch, options))?;
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::CompileFailed), "{error}");
        assert!(!error.message().is_empty());
    }
    Ok(())
}

fn options() -> std::result::Result<(), Failed> {
    let source = "#if N != 4\n#error N is not 4\n#endif\nextern \"C\" __global__ void empty() {}";
    let error = expect_error(runtime_gpu::compile(source, "sm_90", &[]))?;
    assert!(error.message().contains("N is not 4"), "{error}");
    runtime_gpu::compile(source, "sm_90", &["-DN=4"])?;
    Ok(())
}
