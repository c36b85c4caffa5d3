//! Compiling without loading, and loading through the code cache: compiled code behaves like its source.

use std::sync::{Arc, Mutex, PoisonError};

use runtime_core::backend::TemporaryFolder;
use runtime_core::{
    Arg, CacheOptions, CodeCache, CodeFormat, CodeLoad, CodeOrigin, CommonRuntime, CompiledCode, ErrorKind,
    Fit, Kernel, ModuleSource,
};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::expect_all;
use crate::wait;

cases! {
    [Requirement::Kernel("fill_f32")] => compiled_code_behaves_like_its_source, compiled_code_fits_its_device,
        compiling_broken_code_is_an_error;
    [Requirement::Kernel("fill_f32"), Requirement::Library] => cached_code_behaves_like_its_source;
}

/// The suite's code, compiled; the case is unsupported if the backend does not give out compiled code.
fn compile(context: &Context) -> Result<CompiledCode, Failure> {
    context.fixture().module()?;
    match context.fixture().device().compile(&context.fixture().kernels()?.source()) {
        Err(error) if error.kind() == ErrorKind::Unsupported => Err(Failure::Unsupported(error.to_string())),
        other => Ok(other?),
    }
}

/// The source of compiled code.
#[allow(unsafe_code, reason = "loads compiled code")]
fn native(compiled: &CompiledCode) -> ModuleSource {
    // SAFETY: it was compiled from kernels of the suite.
    let source = unsafe { ModuleSource::native(compiled.format.clone(), &*compiled.code) };
    compiled.options.iter().fold(source, |source, (key, value)| source.option(key, value.clone()))
}

/// Launches `fill_f32`.
fn fills(context: &Context, device: &dyn CommonRuntime, kernel: &Kernel) -> Verdict {
    let out = device.tensor([100], &[0.0f32; 100])?;
    let args = [Arg::write(&out), Arg::scalar(2.5f32)];
    let args = context.fixture().args("fill_f32", &args, 100)?;
    wait::event(&device.queue()?.launch(kernel, context.fixture().geometry(100), &args)?)?;
    expect_all("compiled code", &out, 2.5)
}

fn compiled_code_behaves_like_its_source(context: &Context) -> Verdict {
    let compiled = compile(context)?;
    assert!(!compiled.code.is_empty(), "no code of format {}", compiled.format);
    let device = context.fixture().device();
    // Portable code has a launch interface of its own, which only core's cache keeps.
    if *context.fixture().kernels()?.format == *CodeFormat::WGSL.as_str() {
        return Ok(());
    }
    let module = device.load(&native(&compiled))?;
    fills(context, device, &module.kernel("fill_f32")?)
}

fn compiled_code_fits_its_device(context: &Context) -> Verdict {
    let compiled = compile(context)?;
    match context.fixture().device().fits(&native(&compiled)) {
        Err(error) if error.kind() == ErrorKind::Unsupported => Err(Failure::Unsupported(error.to_string())),
        fit => {
            assert_ne!(fit?, Fit::Unsupported);
            Ok(())
        }
    }
}

fn compiling_broken_code_is_an_error(context: &Context) -> Verdict {
    compile(context)?;
    let kernels = context.fixture().kernels()?;
    let Err(error) = context.fixture().device().compile(&kernels.broken()) else {
        return Err(Failure::Failed("broken code was compiled".to_owned()));
    };
    assert_eq!(error.kind(), ErrorKind::CompileFailed, "{error:?}");
    assert!(!error.message().is_empty(), "{error:?}");
    Ok(())
}

fn cached_code_behaves_like_its_source(context: &Context) -> Verdict {
    let folder = TemporaryFolder::new("runtime-conformance-compile-");
    let folder = folder.map_err(|error| Failure::Failed(format!("no temporary folder: {error}")))?;
    let origins = Arc::new(Mutex::new(Vec::new()));
    let mut infos = Vec::new();
    for _ in 0..2 {
        let mut options = CacheOptions::default();
        options.folder = Some(folder.path().to_owned());
        let (cache, seen) = (CodeCache::with_options(options), origins.clone());
        let hook = move |load: &CodeLoad| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(load.origin);
        };
        let runtime = context.another_runtime_with(|builder| builder.code_cache(cache).on_load(hook))?;
        let device = runtime.open(context.name())?;
        let module = device.load(&context.fixture().kernels()?.source())?;
        let kernel = module.kernel("fill_f32")?;
        fills(context, &*device, &kernel)?;
        infos.push((module.symbols()?, kernel.info().clone()));
    }
    let seen = origins.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match seen[..] {
        [CodeOrigin::Compiled, CodeOrigin::Cache] | [CodeOrigin::Direct, CodeOrigin::Direct] => {}
        _ => return Err(Failure::Failed(format!("the code came from {seen:?}"))),
    }
    assert_eq!(infos[0], infos[1], "a hit differs from a miss");
    Ok(())
}
