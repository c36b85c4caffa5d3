//! Compiled code behaves like its source: what is known of its kernels, which errors it gives, and what it depends on.

use std::fs;
use std::sync::{Arc, Mutex};

use runtime_core::cache::{CacheOptions, CodeCache};
use runtime_core::code::{CodeOrigin, CompiledCode, Fit, KernelInfo};
use runtime_core::{
    Arg, CodeFormat, CommonRuntime, ErrorKind, Geometry, Module, ModuleSource, Result, Runtime,
};
use runtime_package::{KernelFile, Package, PackageBuilder, Taken};

use super::Case;
use super::fixture::{Fixture, assert_equal, opencl_c, source, unsupported};

pub(crate) const CASES: &[Case] = &[
    ("kernels_are_described_as_from_source", kernels_are_described_as_from_source),
    ("a_binary_gives_the_errors_of_its_source", a_binary_gives_the_errors_of_its_source),
    ("options_are_part_of_a_binary", options_are_part_of_a_binary),
    ("a_binary_fits_its_driver", a_binary_fits_its_driver),
    ("an_included_file_is_part_of_the_key", an_included_file_is_part_of_the_key),
    ("a_binary_is_saved_on_a_hit_too", a_binary_is_saved_on_a_hit_too),
    ("register_modes_are_refused_by_name", register_modes_are_refused_by_name),
    ("text_for_every_device_is_loaded", text_for_every_device_is_loaded),
    ("a_package_that_was_made_without_a_device_runs", packages_run),
];

const IDIOMS: &str = include_str!("../../../kernels/idioms.cl");
const IMAGES: &str = include_str!("../../../kernels/images.cl");

/// Compiled code, unless the driver gives none out.
fn compile(fixture: &Fixture, code: &ModuleSource) -> Result<CompiledCode> {
    if !fixture.device.info().accepts(&CodeFormat::OPENCL_BINARY) {
        return Err(unsupported("OpenCL binaries"));
    }
    fixture.device.compile(code).map(|compiled| compiled.native)
}

fn native(compiled: &CompiledCode) -> ModuleSource {
    let native = source(compiled.format.clone(), compiled.code.clone());
    compiled.options.iter().fold(native, |source, (key, value)| source.option(key, value.clone()))
}

/// A runtime with a cache of its own, and where the code of its loads came from.
#[allow(unsafe_code, reason = "names the folder of a code cache")]
fn cached(folder: &std::path::Path) -> (Runtime, Arc<Mutex<Vec<CodeOrigin>>>) {
    // SAFETY: only this program writes to the folder.
    let options = unsafe { CacheOptions::default().with_folder(folder) };
    let origins = Arc::new(Mutex::new(Vec::new()));
    let seen = origins.clone();
    let runtime = Runtime::builder()
        .code_cache(CodeCache::with_options(options))
        .on_load(move |load| seen.lock().unwrap().push(load.origin))
        .build();
    (runtime, origins)
}

/// What is known of every kernel of `code`, as a program sees it when the code is loaded for the first and the second time.
fn kernels_are_described_as_from_source(fixture: &Fixture) -> Result<()> {
    let compiled = compile(fixture, &opencl_c(IDIOMS))?;
    let direct = Runtime::builder().code_cache(CodeCache::off()).build().open("opencl:0")?;
    let module = direct.load(&opencl_c(IDIOMS))?;
    let names = module.symbols()?;
    assert!(!names.is_empty());
    let infos = |module: &Module| -> Result<Vec<KernelInfo>> {
        names.iter().map(|name| Ok(module.kernel(name)?.info().clone())).collect()
    };
    let described: Vec<_> = compiled.kernels.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(described, names);
    assert!(compiled.kernels.iter().all(|(_, info)| info.params.is_some() || info.max_group_items.is_some()));
    let folder = tempfile::tempdir().unwrap();
    for expected in [CodeOrigin::Compiled, CodeOrigin::Cache] {
        let (runtime, origins) = cached(folder.path());
        let loaded = runtime.open("opencl:0")?.load(&opencl_c(IDIOMS))?;
        assert_eq!(origins.lock().unwrap()[..], [expected]);
        assert_eq!(infos(&loaded)?, infos(&module)?, "{expected}");
        assert_eq!(loaded.symbols()?, names);
    }
    Ok(())
}

/// The errors of launches with wrong arguments, and of looking up a kernel that no launch can run.
fn errors(
    device: &Arc<dyn CommonRuntime>,
    idioms: &Module,
    images: Option<&Module>,
) -> Result<Vec<std::result::Result<(), String>>> {
    let (queue, kernel) = (device.queue()?, idioms.kernel("add_ints")?);
    let (x, out) = (device.tensor([10], &[0i32; 10])?, device.tensor([10], &[0i32; 10])?);
    let wrong = [
        vec![Arg::read(&x), Arg::write(&out)],
        vec![Arg::read(&x), Arg::write(&out), Arg::scalar(10u64)],
        vec![Arg::read(&x), Arg::write(&out), Arg::read(&x)],
        vec![Arg::local(64), Arg::write(&out), Arg::scalar(10u32)],
        vec![Arg::read(&x), Arg::read(&out), Arg::scalar(10u32)],
    ];
    let refused = wrong.iter().map(|args| queue.launch(&kernel, Geometry::single(), args).map(drop));
    let looked_up = images.map(|images| images.kernel("sample").map(drop));
    Ok(refused.chain(looked_up).map(|outcome| outcome.map_err(|error| error.to_string())).collect())
}

fn a_binary_gives_the_errors_of_its_source(fixture: &Fixture) -> Result<()> {
    let compiled = compile(fixture, &opencl_c(IDIOMS))?;
    let images = compile(fixture, &opencl_c(IMAGES)).ok();
    let direct = Runtime::builder().code_cache(CodeCache::off()).build().open("opencl:0")?;
    let from_source = direct.load(&opencl_c(IDIOMS))?;
    let images_from_source = direct.load(&opencl_c(IMAGES)).ok();
    let from_binary = fixture.device.load(&native(&compiled))?;
    let images_from_binary =
        images.as_ref().map(|images| fixture.device.load(&native(images))).transpose()?;
    let expected = errors(&direct, &from_source, images_from_source.as_ref())?;
    assert!(expected.iter().filter(|outcome| outcome.is_err()).count() >= 4, "{expected:?}");
    assert_eq!(errors(&fixture.device, &from_binary, images_from_binary.as_ref())?, expected);
    Ok(())
}

fn options_are_part_of_a_binary(fixture: &Fixture) -> Result<()> {
    let code = "kernel void constant_(global float *x) { x[0] = VALUE + MORE; }";
    let options =
        ["-DVALUE=40 -cl-fast-relaxed-math", "-D MORE=2", "-cl-std=CL1.2", "-cl-denorms-are-zero", "-w"];
    let code = options.iter().fold(opencl_c(code), |code, words| code.option("build_options", *words));
    let compiled = compile(fixture, &code)?;
    let module = fixture.device.load(&native(&compiled))?;
    let x = fixture.zeros::<f32>(1)?;
    fixture.run_from(&module, "constant_", &Geometry::single(), &[Arg::write(&x)])?;
    assert_equal(&x, &[42.0f32])?;
    let broken = opencl_c("kernel void f(global int *x) { x[0] = undeclared_name; }");
    let error = fixture.device.compile(&broken).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CompileFailed);
    assert!(error.to_string().contains("undeclared_name"), "{error}");
    Ok(())
}

fn a_binary_fits_its_driver(fixture: &Fixture) -> Result<()> {
    let mut compiled = compile(fixture, &opencl_c(IDIOMS))?;
    let expected = if fixture.driver == opencl::Driver::Pocl { Fit::Optimal } else { Fit::Recompile };
    assert_eq!(fixture.device.fits(&native(&compiled))?, expected);
    assert_eq!(fixture.device.fits(&opencl_c(IDIOMS))?, Fit::Recompile);
    for code in [&b"x"[..], b"kernel void noop(void) {}", b""] {
        compiled.code = code.to_vec();
        assert_eq!(fixture.device.fits(&native(&compiled))?, Fit::Unsupported, "{code:?}");
    }
    Ok(())
}

fn an_included_file_is_part_of_the_key(fixture: &Fixture) -> Result<()> {
    compile(fixture, &opencl_c(IDIOMS))?;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("include")).unwrap();
    fs::write(path("k.cl"), "#include \"value.h\"\nkernel void k(global int *x) { x[0] = VALUE; }").unwrap();
    let value = |expected: CodeOrigin| -> Result<i32> {
        let (runtime, origins) = cached(&path("cache"));
        // SAFETY: the kernel writes one element, and nothing changes the file meanwhile.
        let source = unsafe { ModuleSource::native_file(CodeFormat::OPENCL_C, path("k.cl")) };
        let device = runtime.open("opencl:0")?;
        let kernel = device.kernel(source.option("include", "include"), "k")?;
        let x = device.tensor([1], &[0i32])?;
        device.queue()?.launch(&kernel, Geometry::single(), &[Arg::write(&x)])?.wait()?;
        assert_eq!(origins.lock().unwrap()[..], [expected]);
        Ok(x.to_vec::<i32>()?[0])
    };
    fs::write(path("include/value.h"), "#define VALUE 1\n").unwrap();
    assert_eq!(value(CodeOrigin::Compiled)?, 1);
    assert_eq!(value(CodeOrigin::Cache)?, 1);
    fs::write(path("include/value.h"), "#define VALUE 2\n").unwrap();
    assert_eq!(value(CodeOrigin::Compiled)?, 2);
    fs::write(path("include/value.h"), "#define VALUE 1\n").unwrap();
    assert_eq!(value(CodeOrigin::Cache)?, 1);
    // Not kept: PoCL has a cache of its own, which may not see the file either, so only where the code came from counts.
    fs::write(
        path("k.cl"),
        "#define F \"value.h\"\n#include F\nkernel void k(global int *x) { x[0] = VALUE; }",
    )
    .unwrap();
    assert_eq!(value(CodeOrigin::Direct)?, 1);
    Ok(())
}

fn a_binary_is_saved_on_a_hit_too(fixture: &Fixture) -> Result<()> {
    compile(fixture, &opencl_c(IDIOMS))?;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("k.bin");
    for expected in [CodeOrigin::Compiled, CodeOrigin::Cache] {
        let (runtime, origins) = cached(&folder.path().join("cache"));
        let device = runtime.open("opencl:0")?;
        device.load(&opencl_c(IDIOMS).option("save_binary", file.to_str().unwrap()))?;
        assert_eq!(origins.lock().unwrap()[..], [expected]);
        let saved = fs::read(&file).unwrap();
        assert!(!device.load(&source(CodeFormat::OPENCL_BINARY, saved))?.symbols()?.is_empty());
        fs::remove_file(&file).unwrap();
    }
    Ok(())
}

fn register_modes_are_refused_by_name(fixture: &Fixture) -> Result<()> {
    fixture.device.load(&opencl_c(IDIOMS).option("registers", "default"))?;
    for mode in ["128", "256", "auto"] {
        let error = fixture.device.load(&opencl_c(IDIOMS).option("registers", mode)).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("\"default\""), "{error}");
    }
    let error = fixture.device.load(&opencl_c(IDIOMS).option("registers", "512")).map(drop).unwrap_err();
    assert!(error.to_string().contains("auto"), "{error}");
    Ok(())
}

fn text_for_every_device_is_loaded(fixture: &Fixture) -> Result<()> {
    let code = "kernel void f(global int *x) { x[0] = VALUE; }";
    let code = opencl_c(code).option("build_options", "-DVALUE=7");
    let compiled = Runtime::new().compile("opencl:c", &code)?.native;
    assert_eq!(compiled.format, CodeFormat::OPENCL_C);
    let (module, x) = (fixture.device.load(&native(&compiled))?, fixture.zeros::<i32>(1)?);
    fixture.run_from(&module, "f", &Geometry::single(), &[Arg::write(&x)])?;
    assert_equal(&x, &[7])
}

fn packages_run(fixture: &Fixture) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("square.wgsl");
    fs::write(&path, include_str!("../../../../package/kernels/square.wgsl"))?;
    let mut builder = PackageBuilder::new("tests");
    builder.add(KernelFile::new(path)?)?;
    let runtime = Runtime::builder().with_lowering(runtime_kernel::wgsl()).build();
    builder.compile(&runtime, "square", "opencl:c")?;
    let package = Package::from_bytes(builder.to_bytes()?)?;
    // SAFETY: compiled from the portable code of the file.
    let (module, choice) = unsafe { package.load(&*fixture.device, "square") }?;
    assert!(matches!(&choice.taken, Taken::Code { target, .. } if target == "opencl:c"), "{choice:?}");
    let x = fixture.device.tensor([100], &[3.0f32; 100])?;
    fixture.device.queue()?.call(&module.kernel("square")?, (2, 64), (&x,))?;
    assert_equal(&x, &[9.0f32; 100])
}
