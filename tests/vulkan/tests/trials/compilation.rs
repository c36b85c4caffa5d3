//! Compiling without loading: a binary behaves as its SPIR-V, and only the driver that compiled it sees its data. The stub's
//! pipeline cache has data, which lavapipe's has not, and rejects any other.

#![allow(clippy::unwrap_used, unsafe_code, reason = "a test that loads code")]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use runtime_core::code::{CompiledCode, Fit};
use runtime_core::{CodeFormat, CommonRuntime, ErrorKind, ModuleSource, Options, Runtime};
use runtime_package::{KernelFile, Package, PackageBuilder, Taken};
use vulkan_tests::{Driver, built_file, finish, install_stub, lavapipe, missing, respawn, use_driver};

const DEADLINE: Duration = Duration::from_secs(60);
/// What a child does: the name of one of [`STEPS`].
const STEP: &str = "VULKAN_TESTS_STEP";
/// The file with the binary.
const BINARY: &str = "VULKAN_TESTS_BINARY";

const SCALE: &str = "
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
override factor: f32 = 2.0;
@compute @workgroup_size(64) fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&x)) { x[id.x] *= factor; }
}
@compute @workgroup_size(64) fn clear(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&x)) { x[id.x] = 0.0; }
}";
/// Offset of the driver's data from the end: the stub's, behind a header of 32 bytes.
const STUB_DATA_BYTES: usize = 32 + 68;

type Case = fn(&Driver) -> Result<(), Failed>;
type Step = fn(&Runtime, &Arc<dyn CommonRuntime>) -> Result<(), Failed>;

const STEPS: [(&str, Step); 9] = [
    ("a_binary_behaves_as_its_code", behaves_as_its_code),
    ("a_binary_keeps_the_values_of_constants", keeps_constants),
    ("an_entry_point_beyond_the_limits_fails_when_it_is_asked_for", limits_are_checked_later),
    ("a_binary_fits_the_driver_that_compiled_it", fits),
    ("damaged_binaries_are_refused", damage_is_refused),
    ("portable_code_needs_no_device", portable_code),
    ("a_package_that_was_made_without_a_device_runs", packages_run),
    ("save", save),
    ("load", load),
];

pub(crate) fn child() -> ExitCode {
    let step = std::env::var(STEP).unwrap();
    let (_, run) = STEPS.iter().find(|(name, _)| *name == step).unwrap();
    let runtime = runtime();
    let device = runtime.open("vulkan:0").unwrap();
    match run(&runtime, &device) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => panic!("{}", failed.message().unwrap_or_default()),
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    match lavapipe() {
        Err(reason) => vec![missing("vulkan::compilation", "vulkan", reason)],
        Ok(driver) => of_driver(&driver),
    }
}

fn of_driver(driver: &Driver) -> Vec<Trial> {
    let on_lavapipe = STEPS.iter().filter(|(name, _)| !["save", "load"].contains(name)).map(|(name, _)| {
        let driver = driver.clone();
        Trial::test(format!("compilation::{name}"), move || {
            let mut command = respawn("compilation")?;
            use_driver(&mut command, &driver.manifest).env(STEP, name);
            Ok(finish(&mut command, DEADLINE)?.success().map(drop)?)
        })
    });
    let on_stub: [(&str, Case); 3] = [
        ("the_driver_gets_its_data_back", its_data_come_back),
        ("data_of_another_driver_are_not_shown_to_it", other_data_are_ignored),
        ("a_driver_may_reject_its_data", data_are_rejected),
    ];
    let on_stub = on_stub.into_iter().map(|(name, case)| {
        let driver = driver.clone();
        Trial::test(format!("compilation::{name}"), move || case(&driver))
    });
    on_lavapipe.chain(on_stub).collect()
}

fn runtime() -> Runtime {
    let library = built_file("libruntime_vulkan.so").unwrap();
    let builder = Runtime::builder().discover(false).with_lowering(runtime_kernel::wgsl());
    // SAFETY: the backend of this workspace.
    unsafe { builder.library(library) }.build()
}

/// Runs a step on the stub, with its setting `cache` and a file for the binary.
fn on_stub(driver: &Driver, folder: &Path, step: &str, cache: &str) -> Result<(), Failed> {
    let mut command = respawn("compilation")?;
    let settings = format!("real={},cache={cache}", driver.library);
    use_driver(&mut command, &install_stub(folder)?.manifest)
        .env("STUB_VULKAN", settings)
        .env(STEP, step)
        .env(BINARY, folder.join("binary"));
    Ok(finish(&mut command, DEADLINE)?.success().map(drop)?)
}

fn save(_: &Runtime, device: &Arc<dyn CommonRuntime>) -> Result<(), Failed> {
    let compiled = device.compile(&ModuleSource::wgsl(SCALE))?.native;
    Ok(std::fs::write(std::env::var(BINARY)?, compiled.code)?)
}

fn load(_: &Runtime, device: &Arc<dyn CommonRuntime>) -> Result<(), Failed> {
    let module = device.load(&binary(std::fs::read(std::env::var(BINARY)?)?))?;
    module.kernel("scale")?;
    Ok(module.kernel("clear").map(drop)?)
}

fn its_data_come_back(driver: &Driver) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    on_stub(driver, folder.path(), "save", "empty")?;
    on_stub(driver, folder.path(), "load", "saved")
}

fn other_data_are_ignored(driver: &Driver) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    on_stub(driver, folder.path(), "save", "empty")?;
    if on_stub(driver, folder.path(), "load", "none").is_ok() {
        return Err("the driver did not see its own data".into());
    }
    let file = folder.path().join("binary");
    let code = std::fs::read(&file)?;
    // The header's size and version, vendor, device, and the driver's UUID.
    for field in [0, 4, 8, 12, 16, 31] {
        let mut other = code.clone();
        let at = code.len() - STUB_DATA_BYTES + field;
        other[at] ^= 1;
        std::fs::write(&file, other)?;
        on_stub(driver, folder.path(), "load", "none")?;
    }
    Ok(())
}

fn data_are_rejected(driver: &Driver) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    on_stub(driver, folder.path(), "save", "empty")?;
    on_stub(driver, folder.path(), "load", "empty")
}

fn binary(code: impl Into<Vec<u8>>) -> ModuleSource {
    // SAFETY: the kernels stay within their arguments.
    unsafe { ModuleSource::native(CodeFormat::VULKAN_BINARY, code) }
}

fn loadable(compiled: &CompiledCode) -> ModuleSource {
    // SAFETY: as above.
    let source = unsafe { ModuleSource::native(compiled.format.clone(), compiled.code.clone()) };
    compiled.options.iter().fold(source, |source, (key, value)| source.option(key, value.clone()))
}

/// What `scale` makes of threes.
fn scaled(device: &Arc<dyn CommonRuntime>, source: &ModuleSource) -> Result<Vec<f32>, Failed> {
    let (kernel, queue) = (device.load(source)?.kernel("scale")?, device.queue()?);
    let x = device.tensor([100], &[3.0f32; 100])?;
    queue.launch(&kernel, (2, 64), (&x,))?.wait()?;
    Ok(x.to_vec()?)
}

fn behaves_as_its_code(_: &Runtime, device: &Arc<dyn CommonRuntime>) -> Result<(), Failed> {
    let source = ModuleSource::wgsl(SCALE);
    let compiled = device.compile(&source)?.native;
    assert_eq!(compiled.format, CodeFormat::VULKAN_BINARY);
    assert_eq!(compiled.options, Options::new());
    let (module, from_source) = (device.load(&loadable(&compiled))?, device.load(&source)?);
    assert_eq!(module.symbols()?, from_source.symbols()?);
    assert_eq!(compiled.kernels.len(), 2);
    for (name, info) in &compiled.kernels {
        assert_eq!(info.group_size, Some([64, 1, 1]), "{name}");
        assert_eq!(info, module.kernel(name)?.info(), "{name}: reported when it was compiled");
    }
    assert_eq!(scaled(device, &source)?, [6.0; 100]);
    assert_eq!(scaled(device, &loadable(&compiled))?, [6.0; 100]);
    let error = device.compile(&loadable(&compiled)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    Ok(())
}

fn spirv(device: &Runtime, code: &str) -> Result<Vec<u8>, Failed> {
    Ok(device.compile("vulkan", &ModuleSource::wgsl(code))?.native.code)
}

/// `SCALE` as SPIR-V, with the factor as specialisation constant 7.
fn with_constant(runtime: &Runtime) -> Result<ModuleSource, Failed> {
    const CONSTANT: u32 = 43;
    const SPEC_CONSTANT: u32 = 50;
    const DECORATE: u32 = 71;
    const SPEC_ID: u32 = 1;
    let code = spirv(runtime, SCALE)?;
    let mut words: Vec<u32> =
        code.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    let (mut at, mut decoration, mut factor) = (5, None, None);
    while at < words.len() {
        let (length, opcode) = ((words[at] >> 16) as usize, words[at] & 0xffff);
        match opcode {
            DECORATE => decoration = decoration.or(Some(at)),
            CONSTANT if length == 4 && words[at + 3] == 2.0f32.to_bits() => {
                words[at] = 4 << 16 | SPEC_CONSTANT;
                factor = Some(words[at + 2]);
            }
            _ => {}
        }
        at += length;
    }
    let (decoration, factor) = decoration.zip(factor).ok_or("no decoration or no factor")?;
    words.splice(decoration..decoration, [4 << 16 | DECORATE, factor, SPEC_ID, 7]);
    let code: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    // SAFETY: the kernels stay within their arguments.
    Ok(unsafe { ModuleSource::native(CodeFormat::SPIRV_SHADER, code) })
}

fn keeps_constants(runtime: &Runtime, device: &Arc<dyn CommonRuntime>) -> Result<(), Failed> {
    let source = with_constant(runtime)?.option("constant", "7=5.0");
    assert_eq!(scaled(device, &source)?, [15.0; 100]);
    assert_eq!(scaled(device, &loadable(&device.compile(&source)?.native))?, [15.0; 100]);
    let portable = runtime.compile("vulkan:spirv", &source)?.native;
    assert_eq!(scaled(device, &loadable(&portable))?, [15.0; 100]);
    // Those of WGSL become a part of the code.
    let source = ModuleSource::wgsl(SCALE).constant("factor", 5.0);
    assert_eq!(scaled(device, &loadable(&device.compile(&source)?.native))?, [15.0; 100]);
    let refused = loadable(&device.compile(&source)?.native).option("constant", "factor=7.0");
    let error = device.load(&refused).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let portable = runtime.compile("vulkan:spirv", &source)?.native;
    assert_eq!(scaled(device, &loadable(&portable))?, [15.0; 100]);
    Ok(())
}

fn packages_run(runtime: &Runtime, device: &Arc<dyn CommonRuntime>) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("scale.wgsl");
    std::fs::write(&path, SCALE)?;
    let mut kernel = KernelFile::new(path)?;
    kernel.options.push("constant", "factor=5.0");
    let mut builder = PackageBuilder::new("tests");
    builder.add(kernel)?;
    builder.compile(runtime, "scale", "vulkan")?;
    let package = Package::from_bytes(builder.to_bytes()?)?;
    // SAFETY: compiled from the portable code above.
    let choice = unsafe { package.load(&**device, "scale") }?.1;
    let target = "vulkan".to_owned();
    assert!(
        matches!(&choice.taken, Taken::Code { target: taken, fit: Some(_) } if *taken == target),
        "{choice:?}"
    );
    assert_eq!(scaled(device, &choice.source)?, [15.0; 100]);
    Ok(())
}

fn limits_are_checked_later(runtime: &Runtime, device: &Arc<dyn CommonRuntime>) -> Result<(), Failed> {
    let mut code = spirv(runtime, SCALE)?;
    // The group size of the first entry point: `OpExecutionMode LocalSize 64 1 1`.
    let size: Vec<u8> = [17_u32, 64, 1, 1].iter().flat_map(|word| word.to_le_bytes()).collect();
    let at = code.windows(16).position(|words| words == size).ok_or("no group size")?;
    code[at + 4..at + 8].copy_from_slice(&1_000_000_u32.to_le_bytes());
    // SAFETY: nothing is launched.
    let source = unsafe { ModuleSource::native(CodeFormat::SPIRV_SHADER, code) };
    let compiled = device.compile(&source)?.native;
    assert_eq!(compiled.kernels.len(), 1, "{:?}", compiled.kernels);
    let (module, from_source) = (device.load(&loadable(&compiled))?, device.load(&source)?);
    assert_eq!(module.symbols()?.len(), 2);
    let right = compiled.kernels[0].0.as_str();
    module.kernel(right)?;
    for name in module.symbols()?.iter().filter(|name| *name != right) {
        let (error, expected) = (module.kernel(name).unwrap_err(), from_source.kernel(name).unwrap_err());
        assert_eq!(error.to_string(), expected.to_string());
        assert!(error.message().contains("1000000"), "{error}");
    }
    Ok(())
}

fn fits(runtime: &Runtime, device: &Arc<dyn CommonRuntime>) -> Result<(), Failed> {
    let compiled = device.compile(&ModuleSource::wgsl(SCALE))?.native;
    assert_eq!(device.fits(&loadable(&compiled))?, Fit::Optimal);
    let changed = |at: usize| {
        let mut code = compiled.code.clone();
        code[at] ^= 1;
        device.fits(&binary(code))
    };
    let length = compiled.code.len();
    assert_eq!(changed(length - 1)?, Fit::Recompile, "another driver's data: lavapipe's end in the UUID");
    assert_eq!(changed(7)?, Fit::Unsupported, "another version");
    assert_eq!(changed(20)?, Fit::Unsupported, "not SPIR-V");
    assert_eq!(device.fits(&binary(&compiled.code[..length - 1]))?, Fit::Unsupported, "not complete");
    // SAFETY: nothing is launched.
    let shader = unsafe { ModuleSource::native(CodeFormat::SPIRV_SHADER, spirv(runtime, SCALE)?) };
    assert_eq!(device.fits(&shader)?, Fit::Recompile);
    Ok(())
}

fn damage_is_refused(_: &Runtime, device: &Arc<dyn CommonRuntime>) -> Result<(), Failed> {
    let code = device.compile(&ModuleSource::wgsl(SCALE))?.native.code;
    for length in (0..code.len()).step_by(7) {
        let error = device.load(&binary(&code[..length])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CompileFailed, "{length}: {error}");
    }
    // Every number of the header, and the version.
    for at in 0..20 {
        let mut damaged = code.clone();
        damaged[at] ^= 0x10;
        let error = device.load(&binary(damaged)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CompileFailed, "{at}: {error}");
    }
    Ok(())
}

fn portable_code(runtime: &Runtime, device: &Arc<dyn CommonRuntime>) -> Result<(), Failed> {
    let compiled = runtime.compile("vulkan", &ModuleSource::wgsl(SCALE))?.native;
    assert_eq!(compiled.format, CodeFormat::SPIRV_SHADER);
    assert_eq!(compiled.kernels.len(), 2);
    assert!(
        compiled.kernels.iter().all(|(_, info)| info.params.as_ref().is_some_and(|list| !list.is_empty()))
    );
    assert_eq!(scaled(device, &loadable(&compiled))?, [6.0; 100]);
    let with_groups = |items: &str| ModuleSource::wgsl(&SCALE.replace("64", items));
    assert!(runtime.compile("vulkan", &with_groups("256")).is_ok(), "the limit of WebGPU");
    for (architecture, items, limit) in [("vulkan", "257", "256"), ("vulkan:spirv", "129", "128")] {
        let error = runtime.compile(architecture, &with_groups(items)).unwrap_err();
        assert!(error.message().contains(limit), "the limit of {architecture}: {error}");
    }
    assert_eq!(runtime.architecture("vulkan:nvidia").unwrap_err().kind(), ErrorKind::NotFound);
    Ok(())
}
