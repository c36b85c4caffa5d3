//! Compiling without loading, on the stub of the driver and of NVRTC: what `compile` returns loads and behaves as the source does.

#![allow(clippy::unwrap_used, unsafe_code, reason = "a test that loads code")]

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use runtime_core::code::{CompiledCode, Fit, KernelInfo};
use runtime_core::{Arg, CodeFormat, CommonRuntime, ErrorKind, Geometry, ModuleSource, Options, Runtime};

/// Text with kernels of the stub, whose compilers take any text.
const CODE: &str =
    "extern \"C\" __global__ void spin(long us); __global__ void fill_f32(float *out, float value, long n);";

type Case = fn(&Runtime, &Arc<dyn CommonRuntime>) -> Result<(), Failed>;

const CASES: [(&str, Case); 9] = [
    ("a_compiled_cubin_behaves_as_its_source", behaves_as_its_source),
    ("the_compiler_reports_kernels_and_messages", reports_kernels),
    ("fewer_registers_spill_more", spills),
    ("launch_bounds_apply_to_portable_code", launch_bounds),
    ("registers_apply_to_code_that_is_compiled", registers_are_checked),
    ("errors_are_those_of_loading", errors_are_those_of_loading),
    ("native_code_is_not_compiled", native_code_is_not_compiled),
    ("a_cubin_fits_its_own_architecture", fits),
    ("an_architecture_needs_no_device", architectures),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if runtime_cuda_stub_tests::child_part().is_some() {
        let library = runtime_cuda_stub_tests::plugin_path().unwrap();
        // SAFETY: the backend of this workspace.
        let runtime = unsafe { Runtime::builder().discover(false).library(library) };
        let runtime = Arc::new(runtime.with_lowering(runtime_kernel::wgsl()).build());
        let device = runtime.open("cuda:0").unwrap();
        let trials = CASES.into_iter().map(|(name, case)| {
            let (runtime, device) = (Arc::clone(&runtime), Arc::clone(&device));
            Trial::test(name, move || case(&runtime, &device))
        });
        return libtest_mimic::run(&arguments, trials.collect()).exit_code();
    }
    let folder = tempfile::tempdir().unwrap();
    runtime_cuda_stub_tests::build(folder.path(), &[]).unwrap();
    let status =
        runtime_cuda_stub_tests::rerun_with_stub("compilation", folder.path(), "").unwrap().status().unwrap();
    if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn source(format: CodeFormat, code: impl Into<Vec<u8>>, options: &Options) -> ModuleSource {
    // SAFETY: the kernels stay within their arguments.
    let source = unsafe { ModuleSource::native(format, code.into()) };
    options.iter().fold(source, |source, (key, value)| source.option(key, value.clone()))
}

fn cuda_c(code: &str) -> ModuleSource {
    source(CodeFormat::CUDA_C, code, &Options::new())
}

fn ptx(code: &str) -> ModuleSource {
    source(CodeFormat::PTX, code, &Options::new())
}

fn loadable(compiled: &CompiledCode) -> ModuleSource {
    source(compiled.format.clone(), compiled.code.clone(), &compiled.options)
}

fn behaves_as_its_source(_: &Runtime, device: &Arc<dyn CommonRuntime>) -> Result<(), Failed> {
    for source in [cuda_c(CODE), ptx(CODE)] {
        let compiled = device.compile(&source)?.native;
        assert_eq!(compiled.format, CodeFormat::CUBIN);
        let (from_source, module) = (device.load(&source)?, device.load(&loadable(&compiled))?);
        assert_eq!(module.symbols()?, from_source.symbols()?);
        assert_eq!(module.symbols()?, ["fill_f32", "spin"]);
        let (fill, known) = (module.kernel("fill_f32")?, from_source.kernel("fill_f32")?);
        let without_spills = |info: &KernelInfo| KernelInfo { spilled_bytes: None, ..info.clone() };
        assert_eq!(without_spills(fill.info()), without_spills(known.info()));
        let (queue, x) = (device.queue()?, device.empty::<f32>([100])?);
        let args = [Arg::write(&x), Arg::scalar(2.0f32), Arg::scalar(100i64)];
        queue.launch(&fill, Geometry::cover(100, 32), &args)?.wait()?;
        assert!(x.to_vec::<f32>()?.iter().all(|value| value.to_bits() == 2.0f32.to_bits()));
        // The driver still knows the parameters.
        let wrong = queue.launch(&fill, Geometry::cover(100, 32), &args[..2]).unwrap_err();
        assert_eq!(wrong.kind(), ErrorKind::InvalidArgument, "{wrong}");
    }
    Ok(())
}

fn reports_kernels(_: &Runtime, device: &Arc<dyn CommonRuntime>) -> Result<(), Failed> {
    let compiled = device.compile(&cuda_c(&format!("{CODE} // unused")))?.native;
    let names: Vec<_> = compiled.kernels.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["spin", "fill_f32"]);
    assert_eq!(compiled.kernels[0].1.registers, Some(40));
    assert_eq!(compiled.kernels[0].1.spilled_bytes, Some(0));
    assert_eq!(compiled.log, "kernel.cu(1): warning: unused", "figures are no messages");
    assert_eq!(device.compile(&ptx(CODE))?.native.kernels, compiled.kernels);
    Ok(())
}

fn spills(_: &Runtime, device: &Arc<dyn CommonRuntime>) -> Result<(), Failed> {
    for format in [CodeFormat::CUDA_C, CodeFormat::PTX] {
        let limited = |limit: &str| source(format.clone(), CODE, &Options::new().with("registers", limit));
        let spilled = |limit: &str| -> Result<_, Failed> {
            let compiled = device.compile(&limited(limit))?.native;
            Ok((compiled.kernels[1].1.registers, compiled.kernels[1].1.spilled_bytes))
        };
        assert_eq!(spilled("default")?, (Some(40), Some(0)), "{format}");
        assert_eq!(spilled("64")?, (Some(40), Some(0)), "{format}");
        assert_eq!(spilled("24")?, (Some(24), Some(64)), "{format}");
        // Loading the source reports them too.
        assert_eq!(
            device.load(&limited("24"))?.kernel("fill_f32")?.info().spilled_bytes,
            Some(64),
            "{format}"
        );
    }
    Ok(())
}

fn launch_bounds(_: &Runtime, device: &Arc<dyn CommonRuntime>) -> Result<(), Failed> {
    let code = "@group(0) @binding(0) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(64) fn clear(@builtin(global_invocation_id) id: vec3u) { y[id.x] = 0; }";
    let bounds = |source: &ModuleSource| -> Result<bool, Failed> {
        // The stub's compiler puts the text that it is given into the cubin.
        let compiled = device.compile(source)?.native;
        Ok(String::from_utf8_lossy(&compiled.code).contains("__launch_bounds__(64, 4)"))
    };
    assert!(!bounds(&ModuleSource::wgsl(code))?);
    assert!(bounds(&ModuleSource::wgsl(code).option("min_groups_per_unit", 4))?);
    let error = device.load(&ModuleSource::wgsl(code).option("min_groups_per_unit", 99)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    Ok(())
}

fn registers_are_checked(_: &Runtime, device: &Arc<dyn CommonRuntime>) -> Result<(), Failed> {
    let options = |limit: &str| Options::new().with("registers", limit);
    for source in
        [source(CodeFormat::CUDA_C, CODE, &options("8")), source(CodeFormat::PTX, CODE, &options("many"))]
    {
        for error in [device.compile(&source).unwrap_err(), device.load(&source).unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.message().contains("16 to 255"), "{error}");
        }
    }
    let native = loadable(&device.compile(&cuda_c(CODE))?.native).option("registers", "64");
    let error = device.load(&native).unwrap_err();
    assert!(error.message().contains("not to \"cubin\""), "{error}");
    Ok(())
}

fn errors_are_those_of_loading(_: &Runtime, device: &Arc<dyn CommonRuntime>) -> Result<(), Failed> {
    let cases = [
        (cuda_c("this is not code"), ErrorKind::CompileFailed, "kernel.cu(1): error"),
        (cuda_c("void f() // too much shared"), ErrorKind::OutOfResources, "too much shared data"),
        (cuda_c("void f() // unused, too much shared"), ErrorKind::OutOfResources, "too much shared data"),
        (ptx("broken ptx"), ErrorKind::CompileFailed, "line 1: broken ptx"),
        (ptx("void f() // too much shared"), ErrorKind::OutOfResources, "too much shared data"),
        (ptx("a\0b"), ErrorKind::CompileFailed, "NUL"),
    ];
    for (source, kind, text) in cases {
        for error in [device.compile(&source).unwrap_err(), device.load(&source).unwrap_err()] {
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.message().contains(text), "{error}");
        }
    }
    Ok(())
}

fn native_code_is_not_compiled(_: &Runtime, device: &Arc<dyn CommonRuntime>) -> Result<(), Failed> {
    let compiled = device.compile(&cuda_c(CODE))?.native;
    let error = device.compile(&loadable(&compiled)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    Ok(())
}

fn fits(_: &Runtime, device: &Arc<dyn CommonRuntime>) -> Result<(), Failed> {
    let compiled = device.compile(&cuda_c(CODE))?.native;
    assert_eq!(device.fits(&loadable(&compiled))?, Fit::Optimal);
    let changed = |flags: u32| {
        let mut code = compiled.code.clone();
        code[48..52].copy_from_slice(&flags.to_le_bytes());
        source(CodeFormat::CUBIN, code, &Options::new())
    };
    assert_eq!(device.fits(&changed(0x50_0550))?, Fit::Unsupported, "sm_80");
    assert_eq!(
        device.fits(&source(CodeFormat::CUBIN, &compiled.code[..40], &Options::new()))?,
        Fit::Unsupported
    );
    assert_eq!(device.fits(&source(CodeFormat::FATBIN, &b"short"[..], &Options::new()))?, Fit::Unsupported);
    assert_eq!(device.fits(&ptx(".version 7.0\n.target sm_80\n"))?, Fit::Recompile);
    assert_eq!(device.fits(&ptx(".version 99.0\n.target sm_80\n"))?, Fit::Unsupported);
    assert_eq!(device.fits(&cuda_c(CODE))?, Fit::Recompile);
    Ok(())
}

fn architectures(runtime: &Runtime, _: &Arc<dyn CommonRuntime>) -> Result<(), Failed> {
    let info = runtime.architecture("cuda:sm_80")?;
    assert_eq!((info.arch.as_deref(), info.limits.shared_bytes), (Some("sm_80"), 163 << 10));
    assert_eq!(runtime.compile("cuda:sm_80", &cuda_c(CODE))?.native.format, CodeFormat::CUBIN);
    assert_eq!(runtime.compile("cuda:compute_80", &cuda_c(CODE))?.native.format, CodeFormat::PTX);
    for unknown in ["cuda", "cuda:", "cuda:sm_70", "cuda:sm_90b", "cuda:sm_80a", "cuda:hopper"] {
        let error = runtime.architecture(unknown).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{unknown}: {error}");
        assert!(error.message().contains("sm_75, sm_80, sm_90"), "{error}");
    }
    let other = source(CodeFormat::CUDA_C, CODE, &Options::new().with("arch", "sm_90"));
    let error = runtime.compile("cuda:sm_80", &other).unwrap_err();
    assert!(error.message().contains("sm_90") && error.message().contains("sm_80"), "{error}");
    Ok(())
}
