//! CUDA C through the real NVRTC, and PTX through the real nvJitLink or `ptxas`, without a device. Ignored, with the reason, if they
//! are not installed; `RUNTIME_REQUIRE=nvrtc` turns that into a failure. `RUNTIME_TEST_NVRTC`, the path of a library, sets `CUDA_HOME`
//! to its toolkit.

#![allow(unsafe_code, reason = "sets an environment variable")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use runtime_core::code::CompiledCode;
use runtime_core::{CodeFormat, Error, ErrorKind, ModuleSource, Result, Runtime};

const SUITE: &str = include_str!("../../tests/conformance/src/kernels/suite.cu");
const BUILTIN: &str = include_str!("../src/builtin.cu");
const EMPTY: &str = "extern \"C\" __global__ void empty() {}";
/// Keeps 64 values at once, so that fewer registers spill.
const SPILLS: &str = "extern \"C\" __global__ void spills(float *a, int n) {
    float r[64];
    for (int i = 0; i < 64; i++) r[i] = a[i * n];
    for (int k = 0; k < n; k++)
        for (int i = 0; i < 64; i++) r[i] = r[i] * r[(i * 7 + 3) % 64] + a[k];
    for (int i = 0; i < 64; i++) a[i * n] = r[i];
}";
/// The same in a portable language, with groups of 256.
const PORTABLE_SPILLS: &str = "struct Scalars { n: u32 }
var<immediate> s: Scalars;
@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@compute @workgroup_size(256) fn spills(@builtin(global_invocation_id) id: vec3u) {
    var r: array<f32, 64>;
    for (var i = 0u; i < 64u; i++) { r[i] = a[i * s.n + id.x]; }
    for (var k = 0u; k < s.n; k++) {
        for (var i = 0u; i < 64u; i++) { r[i] = r[i] * r[(i * 7u + 3u) % 64u] + a[k]; }
    }
    for (var i = 0u; i < 64u; i++) { a[i * s.n + id.x] = r[i]; }
}";
/// Declares 400,000 bytes of work-group memory.
const LARGE: &str = "extern \"C\" __global__ void large(float *a) {
    __shared__ float s[100000];
    s[threadIdx.x] = a[0];
    __syncthreads();
    a[1] = s[(int)a[2]];
}";

type Case = fn() -> std::result::Result<(), Failed>;

fn main() -> ExitCode {
    if let Some(toolkit) =
        std::env::var_os("RUNTIME_TEST_NVRTC").map(PathBuf::from).as_deref().and_then(toolkit_folder)
    {
        // SAFETY: no other thread runs yet.
        unsafe { std::env::set_var("CUDA_HOME", toolkit) };
    }
    let cases: [(&str, Case); 10] = [
        ("the suite's kernels compile for several architectures", suite),
        ("the backend's own kernels compile", builtin),
        ("a compile error has its line number", compile_error_line),
        ("an invalid option is rejected", invalid_option),
        ("options are passed to the compiler", options),
        ("an architecture is compiled for without a device", architectures),
        ("fewer registers spill more", registers),
        ("launch bounds of portable kernels limit registers", launch_bounds),
        ("too much work-group memory is a lack of resources", too_large),
        ("an architecture that NVRTC does not know has the valid ones", unknown_architecture),
    ];
    let ptx_cases: [(&str, Case); 3] = [
        ("PTX is assembled for an architecture", ptx_is_assembled),
        ("options of PTX reach the assembler", ptx_options),
        ("errors of PTX have the whole log", ptx_errors),
    ];
    let required = test_process::required("nvrtc");
    let missing = compile(EMPTY, "sm_90", &[]).err().filter(|error| error.kind() == ErrorKind::Unavailable);
    let ptx_missing = missing.clone().or_else(no_assembler);
    let cases = cases.map(|case| (case, missing.clone())).into_iter();
    let trials =
        cases.chain(ptx_cases.map(|case| (case, ptx_missing.clone()))).map(|((name, case), missing)| {
            Trial::ignorable_test(name, move || match missing {
                Some(error) if required => Err(error.to_string().into()),
                Some(error) => Ok(Completion::ignored_with(error.to_string())),
                None => case().map(|()| Completion::Completed),
            })
        });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

/// Why PTX cannot be assembled, if there is neither nvJitLink nor `ptxas`.
fn no_assembler() -> Option<Error> {
    let error = assemble("sm_90", "", &[]).err()?;
    (error.kind() == ErrorKind::Unavailable).then_some(error)
}

/// The toolkit folder that contains the library.
fn toolkit_folder(library: &Path) -> Option<&Path> {
    library.parent()?.parent()
}

fn suite() -> std::result::Result<(), Failed> {
    for arch in ["sm_75", "sm_80", "sm_90", "sm_90a"] {
        let cubin = compile(SUITE, arch, &[])?;
        assert!(cubin.starts_with(b"\x7fELF"), "{arch}");
    }
    compile(include_str!("hopper.cu"), "sm_90", &[])?;
    Ok(())
}

fn builtin() -> std::result::Result<(), Failed> {
    let ptx = compile(BUILTIN, "compute_75", &[])?;
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
    let error = expect_error(compile(&format!("{EMPTY}\n\nint wrong = thing;\n"), "sm_90", &[]))?;
    assert_eq!(error.kind(), ErrorKind::CompileFailed);
    assert!(error.message().contains("kernel.cu(3)") && error.message().contains("thing"), "{error}");
    Ok(())
}

fn invalid_option() -> std::result::Result<(), Failed> {
    let error = expect_error(compile(EMPTY, "sm_90", &["--no-such-option"]))?;
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::CompileFailed), "{error}");
    assert!(!error.message().is_empty());
    Ok(())
}

fn options() -> std::result::Result<(), Failed> {
    let source = "#if N != 4\n#error N is not 4\n#endif\nextern \"C\" __global__ void empty() {}";
    let error = expect_error(compile(source, "sm_90", &[]))?;
    assert!(error.message().contains("N is not 4"), "{error}");
    compile(source, "sm_90", &["-DN=4"])?;
    Ok(())
}

/// The code that CUDA C becomes with options of NVRTC.
fn compile(code: &str, arch: &str, options: &[&str]) -> Result<Vec<u8>> {
    let runtime = Runtime::builder().discover(false).register(runtime_gpu::backend()).build();
    // SAFETY: nothing is launched.
    let source = unsafe { ModuleSource::native(CodeFormat::CUDA_C, code) };
    let source = options.iter().fold(source, |source, option| source.option("options", *option));
    runtime.compile(&format!("cuda:{arch}"), &source).map(|compiled| compiled.native.code)
}

/// Compiles for an architecture through the backend's table.
fn compile_for(arch: &str, code: &str, registers: &str) -> Result<CompiledCode> {
    let runtime = Runtime::builder().discover(false).register(runtime_gpu::backend()).build();
    // SAFETY: nothing is launched.
    let source = unsafe { ModuleSource::native(CodeFormat::CUDA_C, code) };
    runtime
        .compile(&format!("cuda:{arch}"), &source.option("registers", registers))
        .map(|compiled| compiled.native)
}

fn architectures() -> std::result::Result<(), Failed> {
    for (arch, format) in
        [("sm_80", CodeFormat::CUBIN), ("sm_90a", CodeFormat::CUBIN), ("compute_80", CodeFormat::PTX)]
    {
        let compiled = compile_for(arch, SUITE, "default")?;
        assert_eq!(compiled.format, format, "{arch}");
        assert_eq!(compiled.log, "", "{arch}: figures are no messages");
        // PTX is not assembled, so there are no figures.
        let add = compiled.kernels.iter().find(|(name, _)| name == "add_f32");
        assert_eq!(add.is_some(), format == CodeFormat::CUBIN, "{arch}");
        assert!(add.is_none_or(|(_, info)| info.spilled_bytes == Some(0)), "{arch}: {add:?}");
    }
    // The driver allocates the registers of PTX.
    assert_eq!(compile_for("compute_80", EMPTY, "64")?.options.text("registers"), Some("64"));
    assert_eq!(compile_for("sm_80", EMPTY, "64")?.options.text("registers"), None);
    Ok(())
}

fn registers() -> std::result::Result<(), Failed> {
    let figures = |registers: &str| -> Result<(u32, u32)> {
        let compiled = compile_for("sm_80", SPILLS, registers)?;
        let (name, info) = &compiled.kernels[0];
        assert_eq!(name, "spills");
        Ok((info.registers.unwrap_or(0), info.spilled_bytes.unwrap_or(u32::MAX)))
    };
    let (few, many) = (figures("32")?, figures("128")?);
    assert!(few.0 <= 32 && few.1 > 0, "{few:?}");
    assert!(many.0 > 32 && many.0 <= 128 && many.1 < few.1, "{many:?} {few:?}");
    assert_eq!(figures("32")?, few, "the same every time");
    Ok(())
}

/// Portable code has the size of its groups and, if asked for, how many of them a multiprocessor should hold at least.
fn launch_bounds() -> std::result::Result<(), Failed> {
    let runtime = Runtime::builder()
        .discover(false)
        .register(runtime_gpu::backend())
        .with_lowering(runtime_kernel::wgsl())
        .build();
    let compiled = |arch: &str, groups: i64| {
        let source = ModuleSource::wgsl(PORTABLE_SPILLS).option("min_groups_per_unit", groups);
        runtime.compile(arch, &source).map(|compiled| compiled.native)
    };
    for (groups, says_least) in [(0, false), (8, true)] {
        let ptx = String::from_utf8(compiled("cuda:compute_80", groups)?.code)?;
        assert!(ptx.contains(".maxntid 256"), "{ptx}");
        assert_eq!(ptx.contains(".minnctapersm 8"), says_least, "{ptx}");
        assert_eq!(ptx.contains(".minnctapersm"), says_least, "{ptx}");
    }
    let figures = |groups| {
        let (_, info) = compiled("cuda:sm_80", groups)?.kernels.swap_remove(0);
        Ok::<_, Error>((info.registers.unwrap_or(0), info.spilled_bytes.unwrap_or(u32::MAX)))
    };
    let (free, bound) = (figures(0)?, figures(8)?);
    // 8 groups of 256 share 65536 registers.
    assert!(free.0 > 32 && free.1 == 0, "{free:?}");
    assert!(bound.0 <= 32 && bound.1 > 0, "{bound:?}");
    Ok(())
}

fn too_large() -> std::result::Result<(), Failed> {
    let error = compile_for("sm_80", LARGE, "default").err().ok_or("it compiled")?;
    assert_eq!(error.kind(), ErrorKind::OutOfResources, "{error}");
    assert!(error.message().contains("shared data") && error.message().contains("large"), "{error}");
    Ok(())
}

fn unknown_architecture() -> std::result::Result<(), Failed> {
    for arch in ["sm_12", "sm_80a", "sm_80f", "ampere", ""] {
        let error = compile_for(arch, EMPTY, "default").err().ok_or("it compiled")?;
        assert_eq!(error.kind(), ErrorKind::NotFound, "{arch}: {error}");
        assert!(error.message().contains("sm_80") && error.message().contains("compute_"), "{error}");
    }
    Ok(())
}

/// Assembles PTX for an architecture through the backend's table.
fn assemble(arch: &str, ptx: &str, options: &[(&str, &str)]) -> Result<CompiledCode> {
    let runtime = Runtime::builder().discover(false).register(runtime_gpu::backend()).build();
    // SAFETY: nothing is launched.
    let source = unsafe { ModuleSource::native(CodeFormat::PTX, ptx) };
    let source = options.iter().fold(source, |source, (key, value)| source.option(key, *value));
    runtime.compile(&format!("cuda:{arch}"), &source).map(|compiled| compiled.native)
}

/// What NVRTC makes of CUDA C for a virtual architecture.
fn ptx_of(code: &str) -> Result<String> {
    let compiled = compile_for("compute_80", code, "default")?;
    Ok(String::from_utf8_lossy(&compiled.code).trim_end_matches('\0').to_owned())
}

fn ptx_is_assembled() -> std::result::Result<(), Failed> {
    let ptx = ptx_of(SUITE)?;
    for arch in ["sm_80", "sm_90", "sm_90a"] {
        let (compiled, direct) = (assemble(arch, &ptx, &[])?, compile_for(arch, SUITE, "default")?);
        assert_eq!(compiled.format, CodeFormat::CUBIN, "{arch}");
        assert_eq!(compiled.log, "", "{arch}: figures are no messages");
        let figures = |code: &CompiledCode| {
            let mut names: Vec<_> = code.kernels.iter().map(|(name, _)| name.clone()).collect();
            names.sort();
            names
        };
        assert_eq!(figures(&compiled), figures(&direct), "{arch}");
        let add = compiled.kernels.iter().find(|(name, _)| name == "add_f32").ok_or("no figures")?;
        assert!(add.1.registers.is_some_and(|registers| registers > 0), "{arch}: {add:?}");
        assert_eq!((add.1.spilled_bytes, add.1.shared_bytes), (Some(0), Some(0)), "{arch}");
    }
    Ok(())
}

fn ptx_options() -> std::result::Result<(), Failed> {
    let ptx = ptx_of(SPILLS)?;
    let figures = |options: &[(&str, &str)]| -> Result<(u32, u32, Vec<u8>)> {
        let compiled = assemble("sm_90", &ptx, options)?;
        let (name, info) = &compiled.kernels[0];
        assert_eq!(name, "spills");
        Ok((info.registers.unwrap_or(0), info.spilled_bytes.unwrap_or(u32::MAX), compiled.code))
    };
    let (few, many) = (figures(&[("registers", "32")])?, figures(&[("registers", "128")])?);
    assert!(few.0 <= 32 && few.1 > 0, "{} {}", few.0, few.1);
    assert!(many.0 > 32 && many.0 <= 128 && many.1 < few.1, "{} {}", many.0, many.1);
    let (plain, third, none) =
        (figures(&[])?, figures(&[("optimization", "3")])?, figures(&[("optimization", "0")])?);
    assert_eq!(plain.2.len(), third.2.len());
    assert_ne!(plain.2, none.2);
    assert_ne!(figures(&[("optimization", "1")])?.2, none.2);
    Ok(())
}

fn ptx_errors() -> std::result::Result<(), Failed> {
    let ptx = ptx_of(EMPTY)?;
    let fails = |arch: &str, ptx: &str, kind: ErrorKind, parts: &[&str]| -> std::result::Result<(), Failed> {
        let error = assemble(arch, ptx, &[]).err().ok_or("it compiled")?;
        assert_eq!(error.kind(), kind, "{error}");
        assert!(parts.iter().all(|part| error.message().contains(part)), "{error}");
        Ok(())
    };
    let broken = ptx.replace("ret;", "brk;\n\tbrk2;");
    fails("sm_90", &broken, ErrorKind::CompileFailed, &["'brk'", "'brk2'", "aborted"])?;
    fails(
        "sm_90",
        &ptx.replace(".version ", ".version 99"),
        ErrorKind::CompileFailed,
        &["Unsupported .version"],
    )?;
    fails("sm_75", &ptx, ErrorKind::CompileFailed, &["SM version specified by .target is higher"])?;
    fails("sm_90", "not PTX", ErrorKind::CompileFailed, &[])?;
    fails("sm_90", "", ErrorKind::CompileFailed, &[])?;
    fails("sm_12", &ptx, ErrorKind::NotFound, &["sm_90"])?;
    fails("compute_90", &ptx, ErrorKind::InvalidArgument, &["name a real one, such as \"sm_90\""])?;
    fails("sm_90", &ptx_of(LARGE)?, ErrorKind::OutOfResources, &["large"])?;
    Ok(())
}
