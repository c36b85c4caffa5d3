//! Compiling without loading, and loading through the code cache: compiled code behaves like its source.

use std::sync::{Arc, Mutex, PoisonError};

use runtime_core::backend::TemporaryFolder;
use runtime_core::cache::{CacheOptions, CodeCache};
use runtime_core::code::{CodeLoad, CodeOrigin, Compiled, Fit};
use runtime_core::{Arg, CommonRuntime, DeviceInfo, Error, ErrorKind, Kernel, ModuleSource};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::expect_all;
use crate::kernels::FormatKernels;
use crate::wait;

cases! {
    [Requirement::Kernel("fill_f32")] => compiled_code_behaves_like_its_source, compiled_code_fits_its_device,
        compiling_broken_code_is_an_error, code_for_an_architecture_behaves_like_its_source,
        broken_code_is_an_error_for_an_architecture_too,
        an_unknown_architecture_is_not_found;
    [Requirement::Kernel("fill_f32"), Requirement::Library] => cached_code_behaves_like_its_source;
}

/// The suite's code, compiled; the case is unsupported if the backend does not give out compiled code.
fn compile(context: &Context) -> Result<Compiled, Failure> {
    context.fixture().module()?;
    match context.fixture().device().compile(&context.fixture().kernels()?.source()) {
        Err(error) if error.kind() == ErrorKind::Unsupported => Err(Failure::Unsupported(error.to_string())),
        other => Ok(other?),
    }
}

/// The source of compiled code.
#[allow(unsafe_code, reason = "loads compiled code")]
fn native(compiled: Compiled) -> ModuleSource {
    // SAFETY: it was compiled from kernels of the suite.
    unsafe { ModuleSource::compiled(compiled) }
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
    assert!(!compiled.native.code.is_empty(), "no code of format {}", compiled.native.format);
    let device = context.fixture().device();
    let module = device.load(&native(compiled))?;
    fills(context, device, &module.kernel("fill_f32")?)
}

fn compiled_code_fits_its_device(context: &Context) -> Verdict {
    let compiled = compile(context)?;
    match context.fixture().device().fits(&native(compiled)) {
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

/// An architecture of this device, by name: what the backend says of it, and the suite's kernels for it.
struct Architecture {
    name: String,
    info: DeviceInfo,
    kernels: &'static FormatKernels,
}

/// The device's own architecture or, if the backend does not compile for that, its default. The case is unsupported if the backend
/// compiles for devices only, or has no compiler here.
fn architecture(context: &Context) -> Result<(Architecture, Compiled), Failure> {
    let target = &context.target().name;
    let own = context.info().arch.as_ref().map(|arch| format!("{target}:{arch}"));
    let mut compiled = Err(Error::new(ErrorKind::NotFound, "the device has no architecture"));
    for name in own.into_iter().chain([target.clone()]) {
        compiled = context.runtime().architecture(&name).and_then(|info| {
            let kernels = kernels(context, &info)?;
            let compiled = context.runtime().compile(&name, &kernels.source())?;
            Ok((Architecture { name, info, kernels }, compiled))
        });
        match &compiled {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            _ => break,
        }
    }
    match compiled {
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Unavailable) => {
            Err(Failure::Unsupported(error.to_string()))
        }
        compiled => Ok(compiled?),
    }
}

/// The suite's kernels for an architecture, in the format that the device gets too: the arguments are the same.
fn kernels(context: &Context, info: &DeviceInfo) -> runtime_core::Result<&'static FormatKernels> {
    let own = context.fixture().kernels().map(|kernels| kernels.source()).ok();
    let chosen = context
        .kernel_provider()
        .choose(info)
        .filter(|kernels| own.as_ref().is_some_and(|source| source.format() == kernels.source().format()));
    chosen.ok_or_else(|| Error::unsupported(format!("{} is compiled for from other formats", info.name)))
}

fn code_for_an_architecture_behaves_like_its_source(context: &Context) -> Verdict {
    let (Architecture { name, info, .. }, compiled) = architecture(context)?;
    assert!(!info.formats.is_empty() && info.compute_units.is_none_or(|units| units > 0), "{name}: {info:?}");
    assert!(!compiled.native.code.is_empty(), "no code of format {}", compiled.native.format);
    let (device, source) = (context.fixture().device(), native(compiled));
    match device.fits(&source) {
        // A target without an architecture stands for all of its devices, and so may not fit this one.
        Ok(Fit::Unsupported) if !name.contains(':') => {
            return Err(Failure::Unsupported(format!("code for {name} does not fit this device")));
        }
        Ok(fit) => {
            assert_ne!(fit, Fit::Unsupported, "code for {name} does not fit the device of that architecture");
        }
        Err(error) if error.kind() == ErrorKind::Unsupported => {}
        Err(error) => return Err(error.into()),
    }
    fills(context, device, &device.load(&source)?.kernel("fill_f32")?)
}

fn broken_code_is_an_error_for_an_architecture_too(context: &Context) -> Verdict {
    let (Architecture { name, kernels, .. }, _) = architecture(context)?;
    let broken = kernels.broken();
    match context.runtime().compile(&name, &broken) {
        // Code that every device compiles for itself stays as it is.
        Ok(compiled) if compiled.native.format == *broken.format() => Ok(()),
        Ok(_) => Err(Failure::Failed("broken code was compiled".to_owned())),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::CompileFailed, "{error:?}");
            assert!(error.to_string().contains(&name), "{error}");
            Ok(())
        }
    }
}

fn an_unknown_architecture_is_not_found(context: &Context) -> Verdict {
    let (Architecture { kernels, .. }, _) = architecture(context)?;
    let unknown = format!("{}:no-such-architecture", context.target().name);
    // A load option may name a compiler for it, so that only compiling tells.
    let Err(error) = context.runtime().compile(&unknown, &kernels.source()) else {
        return Err(Failure::Failed(format!("code was compiled for {unknown}")));
    };
    let described = context.runtime().architecture(&unknown).err();
    for error in described.into_iter().chain([error]) {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error:?}");
        assert!(error.message().contains("no-such-architecture"), "{error}");
    }
    Ok(())
}

#[allow(unsafe_code, reason = "names the folder of a code cache")]
fn cached_code_behaves_like_its_source(context: &Context) -> Verdict {
    let folder = TemporaryFolder::new("runtime-conformance-compile-");
    let folder = folder.map_err(|error| Failure::Failed(format!("no temporary folder: {error}")))?;
    let origins = Arc::new(Mutex::new(Vec::new()));
    let mut infos = Vec::new();
    for _ in 0..2 {
        // SAFETY: only this program writes to the folder.
        let options = unsafe { CacheOptions::default().with_folder(folder.path()) };
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
