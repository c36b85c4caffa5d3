//! PTX for an architecture, assembled by a stub of nvJitLink, by a program in the place of `ptxas`, or by neither.

#![allow(clippy::unwrap_used, unsafe_code, reason = "a test that names code, which is not loaded")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use runtime_core::code::CompiledCode;
use runtime_core::{CodeFormat, ErrorKind, ModuleSource, Options, Result, Runtime};

/// Text with a kernel of the stub, whose assembler takes any text.
const CODE: &str = ".version 7.0 void spin(long us);";
/// Environment variable with the folder of the stubs.
const FOLDER: &str = "STUB_FOLDER";
/// Takes the place of `ptxas`: keeps its arguments, and copies a cubin.
const PTXAS: &str = "#!/bin/sh
echo \"$@\" > \"$STUB_FOLDER/arguments\"
if grep -q 'broken ptx' kernel.ptx; then
    echo 'ptxas kernel.ptx, line 4; error   : Not a name of any known instruction' >&2
    echo 'ptxas fatal   : Ptx assembly aborted due to errors' >&2
    exit 255
fi
echo \"ptxas info    : Compiling entry function 'spin' for 'sm_80'\" >&2
echo 'ptxas info    : Used 24 registers, 400 bytes cmem[0]' >&2
cp \"$STUB_FOLDER/cubin\" kernel.cubin
";

type Case = fn(&Runtime) -> std::result::Result<Completion, Failed>;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if let Ok(folder) = std::env::var(FOLDER) {
        let case: (&str, Case) = match Path::new(&folder).file_name().and_then(|name| name.to_str()) {
            Some("library") => ("nvjitlink_assembles_ptx", by_library),
            Some("program") => ("ptxas_assembles_ptx_where_nvjitlink_lacks_a_function", by_program),
            _ => ("without_an_assembler_the_error_has_the_remedy", by_nothing),
        };
        let library = runtime_cuda_stub_tests::plugin_path().unwrap();
        // SAFETY: the backend of this workspace.
        let runtime = unsafe { Runtime::builder().discover(false).library(library) }.build();
        let trial = Trial::ignorable_test(case.0, move || case.1(&runtime));
        return libtest_mimic::run(&arguments, vec![trial]).exit_code();
    }
    let folder = tempfile::tempdir().unwrap();
    let passed = ["library", "program", "nothing"].map(|name| run_in(&folder.path().join(name), name));
    if passed.iter().all(|passed| *passed) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs this program with the stubs of one situation.
fn run_in(folder: &Path, name: &str) -> bool {
    std::fs::create_dir(folder).unwrap();
    runtime_cuda_stub_tests::build(folder, &[]).unwrap();
    let defines: &[&str] = if name == "library" { &[] } else { &["LACKS_COMPLETE"] };
    runtime_cuda_stub_tests::build_nvjitlink(folder, defines).unwrap();
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    if name == "program" {
        let program = folder.join("ptxas");
        std::fs::write(&program, PTXAS).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let paths = [folder.to_owned()].into_iter().chain(std::env::split_paths(&path));
        path = std::env::join_paths(paths).unwrap();
    } else if name == "nothing" {
        path = "".into();
    }
    let mut command = runtime_cuda_stub_tests::rerun_with_stub("assemblers", folder, "").unwrap();
    command.env(FOLDER, folder).env("PATH", path).status().unwrap().success()
}

fn compile(runtime: &Runtime, target: &str, code: &str, options: &Options) -> Result<CompiledCode> {
    // SAFETY: it is never loaded.
    let source = unsafe { ModuleSource::native(CodeFormat::PTX, code) };
    let source = options.iter().fold(source, |source, (key, value)| source.option(key, value.clone()));
    Ok(runtime.compile(target, &source)?.native)
}

fn by_library(runtime: &Runtime) -> std::result::Result<Completion, Failed> {
    let plain = compile(runtime, "cuda:sm_80", CODE, &Options::new())?;
    assert_eq!((plain.format, plain.log.as_str()), (CodeFormat::CUBIN, ""));
    assert!(plain.code.windows(CODE.len()).any(|text| text == CODE.as_bytes()));
    assert_eq!((plain.kernels[0].0.as_str(), plain.kernels[0].1.registers), ("spin", Some(40)));
    let options = Options::new().with("registers", "24").with("optimization", "1");
    let limited = compile(runtime, "cuda:sm_80", CODE, &options)?;
    let info = &limited.kernels[0].1;
    assert_eq!((info.registers, info.spilled_bytes), (Some(24), Some(64)));
    for (code, kind, function, parts) in [
        (
            "broken ptx",
            ErrorKind::CompileFailed,
            "nvJitLinkAddData",
            ["line 4; error", "aborted due to errors"],
        ),
        (
            "too much shared",
            ErrorKind::OutOfResources,
            "nvJitLinkComplete",
            ["too much shared data", "0xc000"],
        ),
    ] {
        let error = compile(runtime, "cuda:sm_80", code, &Options::new()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.operation().ends_with(function), "{error}");
        assert!(parts.iter().all(|part| error.message().contains(part)), "{error}");
        assert!(error.driver().is_some_and(|(name, _)| name.starts_with("NVJITLINK_ERROR_")), "{error}");
    }
    for (target, code, kind) in [
        ("cuda:compute_80", CODE, ErrorKind::InvalidArgument),
        ("cuda:sm_70", CODE, ErrorKind::NotFound),
        ("cuda:sm_80", "nul\0inside", ErrorKind::CompileFailed),
    ] {
        let error = compile(runtime, target, code, &Options::new()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    for (key, value) in [("optimization", "5"), ("registers", "8"), ("options", "-O1"), ("arch", "sm_80")] {
        let error = compile(runtime, "cuda:sm_80", CODE, &Options::new().with(key, value)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{key}: {error}");
    }
    Ok(Completion::Completed)
}

fn by_program(runtime: &Runtime) -> std::result::Result<Completion, Failed> {
    let folder = std::env::var_os(FOLDER).unwrap();
    let folder = Path::new(&folder);
    // SAFETY: it is never loaded.
    let source = unsafe { ModuleSource::native(CodeFormat::CUDA_C, "void spin(long us);") };
    std::fs::write(folder.join("cubin"), runtime.compile("cuda:sm_80", &source)?.native.code)?;
    let options = Options::new().with("registers", "24").with("optimization", "1");
    let compiled = compile(runtime, "cuda:sm_80", CODE, &options)?;
    assert_eq!((compiled.format, compiled.kernels[0].1.registers), (CodeFormat::CUBIN, Some(24)));
    let arguments = std::fs::read_to_string(folder.join("arguments"))?;
    assert_eq!(arguments.trim(), "-v -arch=sm_80 -maxrregcount=24 -O1 -o kernel.cubin kernel.ptx");
    let error = compile(runtime, "cuda:sm_80", "broken ptx", &Options::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CompileFailed);
    let parts = ["line 4; error", "aborted due to errors", "ptxas: exit status: 255"];
    assert!(parts.iter().all(|part| error.message().contains(part)), "{error}");
    Ok(Completion::Completed)
}

fn by_nothing(runtime: &Runtime) -> std::result::Result<Completion, Failed> {
    if Path::new("/usr/local/cuda").exists() {
        return Ok(Completion::ignored_with(
            "the default CUDA toolkit is installed, so there may be an assembler",
        ));
    }
    let error = compile(runtime, "cuda:sm_80", CODE, &Options::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let parts =
        ["requires ptxas or nvJitLink", "it lacks nvJitLinkComplete", "nvidia-nvjitlink-cu12", "CUDA_HOME"];
    assert!(parts.iter().all(|part| error.message().contains(part)), "{error}");
    Ok(Completion::Completed)
}
