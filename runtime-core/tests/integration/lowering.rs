//! Portable code with a test lowering: its kernels' interfaces are kept, and their requirements are checked at launch.

#![allow(unsafe_code, reason = "loads code without checks")]

use std::sync::Arc;

use runtime_core::backend::OptionSpec;
use runtime_core::cache::{CacheOptions, CodeCache};
use runtime_core::code::{ArgKind, CodeOrigin, Param};
use runtime_core::dispatch::{ArgType, Dispatcher};
use runtime_core::lowering::{Lowered, LoweredKernel, LoweredParam, Lowering, PortableSource};
use runtime_core::{
    Access, Arg, CodeFormat, DType, DeviceInfo, Error, ErrorKind, Geometry, ModuleSource, Options, Result,
    Runtime, Tensor,
};

/// Lowers `NAME BUILTIN` to a kernel of the null backend.
#[derive(Debug)]
struct Renaming;

// SAFETY: it renames a builtin of the null backend, which stays in its arguments.
#[allow(unsafe_code, reason = "implements a lowering")]
unsafe impl Lowering for Renaming {
    fn format(&self) -> CodeFormat {
        CodeFormat::WGSL
    }

    fn options(&self) -> Vec<OptionSpec> {
        let unchecked = OptionSpec::module("unchecked", false, "No checks.");
        vec![OptionSpec::module("constant", "", "NAME=VALUE"), unchecked]
    }

    fn target(&self, device: &DeviceInfo) -> Option<CodeFormat> {
        device.accepts(&"null".into()).then(|| "null".into())
    }

    fn lower(&self, source: &PortableSource<'_>, _device: &DeviceInfo) -> Result<Lowered> {
        let (name, builtin) = source
            .code
            .trim()
            .split_once(' ')
            .ok_or_else(|| Error::new(ErrorKind::CompileFailed, format!("line 1: {}", source.code)))?;
        let prefix = source.options.texts("constant").find_map(|text| text.strip_prefix("PREFIX="));
        let tensor = |access| Param {
            kind: ArgKind::Tensor,
            access: Some(access),
            strided: false,
            dtype: Some(DType::F32),
        };
        let params = vec![
            LoweredParam { param: tensor(Access::Read), min_bytes: 8, alignment_bytes: 8 },
            LoweredParam { param: tensor(Access::ReadWrite), min_bytes: 0, alignment_bytes: 4 },
            LoweredParam {
                param: Param {
                    kind: ArgKind::Scalar,
                    access: Some(Access::Read),
                    strided: false,
                    dtype: Some(DType::F32),
                },
                min_bytes: 0,
                alignment_bytes: 1,
            },
        ];
        let prefix = prefix.unwrap_or_default();
        Ok(Lowered {
            format: CodeFormat::from("null"),
            code: builtin.into(),
            options: Options::new().with("prefix", prefix),
            kernels: vec![LoweredKernel {
                name: name.to_owned(),
                symbol: format!("{prefix}{builtin}"),
                params,
                group_size: [1; 3],
                work_items: None,
                shared_bytes: 0,
                tensor_sizes: false,
                coarsening: None,
                reports_on: None,
            }],
        })
    }
}

fn runtime() -> Runtime {
    Runtime::builder()
        .discover(false)
        .register(runtime_null::backend())
        .with_lowering(Arc::new(Renaming))
        .build()
}

#[test]
fn loading_portable_code_is_the_same_call() {
    let runtime = runtime();
    assert!(runtime.devices()[0].accepts(&CodeFormat::WGSL));
    let device = runtime.open("null").unwrap();
    let source = ModuleSource::wgsl("main saxpy_f32").constant("PREFIX", "p_");
    let module = device.load(&source).unwrap();
    assert_eq!(module.symbols().unwrap(), ["main"]);
    let kernel = module.kernel("main").unwrap();
    assert_eq!((kernel.name(), kernel.info().group_size), ("main", Some([1; 3])));

    let x = device.tensor([2], &[1.0f32, 2.0]).unwrap();
    let y = device.tensor([2], &[10.0f32, 20.0]).unwrap();
    let queue = device.queue().unwrap();
    let args = [Arg::read(&x), Arg::read_write(&y), Arg::scalar(2.0f32)];
    queue.call(&kernel, Geometry::single(), &args).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [12.0, 24.0]);

    let error = module.kernel("mian").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("did you mean \"main\"?"), "{error}");
}

#[test]
fn requirements_of_portable_code_are_checked_at_launch() {
    let device = runtime().open("null").unwrap();
    let kernel = device.kernel(ModuleSource::wgsl("main saxpy_f32"), "main").unwrap();
    let queue = device.queue().unwrap();
    let all = device.tensor([8], &[1.0f32; 8]).unwrap();
    let refusal = |x: &Tensor, y: &Tensor| {
        let args = [Arg::read(x), Arg::read_write(y), Arg::scalar(2.0f32)];
        queue.launch(&kernel, Geometry::single(), &args).err().map(|error| error.to_string())
    };
    let (low, high) = (all.slice(0, 0..4).unwrap(), all.slice(0, 4..8).unwrap());
    assert_eq!(refusal(&low, &high), None, "beside each other");
    let error = refusal(&low, &all.slice(0, 3..7).unwrap()).unwrap();
    assert!(error.contains("arguments 0 and 1 of \"main\" share memory"), "{error}");
    let error = refusal(&all.slice(0, 0..1).unwrap(), &high).unwrap();
    assert!(error.contains("argument 0 of \"main\" has 4 bytes, but the kernel needs 8"), "{error}");
    let reversed = all.view(&[4], &[-1], 3).unwrap();
    let error = refusal(&reversed, &high).unwrap();
    assert!(error.contains("has 4 bytes"), "elements before the first do not count: {error}");
    assert_eq!(
        refusal(&all.slice(0, 2..4).unwrap(), &all.slice(0, 5..7).unwrap()),
        None,
        "8 and 20 bytes on"
    );
    let error = refusal(&all.slice(0, 1..3).unwrap(), &high).unwrap();
    assert!(
        error.contains("argument 0 of \"main\" is aligned to 4 bytes, but the kernel needs 8"),
        "{error}"
    );
}

#[test]
fn options_that_remove_checks_are_unsafe() {
    let device = runtime().open("null").unwrap();
    let safe = ModuleSource::wgsl("main saxpy_f32");
    let error = device.load(&safe.clone().option("unchecked", true)).unwrap_err();
    assert!(error.message().contains("ModuleSource::unchecked"), "{error}");
    let error = device.load(&safe.clone().option("prefix", "p_")).unwrap_err();
    assert!(error.message().contains("unknown option \"prefix\""), "a backend's option: {error}");
    // SAFETY: nothing is launched.
    let unchecked = unsafe { safe.unchecked() };
    device.load(&unchecked.option("prefix", "p_")).unwrap();
}

#[test]
fn code_that_somebody_vouches_for_is_not_shared_with_safe_code() {
    let device = runtime().open("null").unwrap();
    let text = "main saxpy_f32";
    let safe = ModuleSource::wgsl(text);
    // SAFETY: nothing is launched.
    let unchecked = unsafe { safe.clone().unchecked() };
    // SAFETY: as above.
    let native = unsafe { ModuleSource::native("wgsl", text) };
    let _kept = device.load(&unchecked).unwrap();
    let error = device.load(&safe.clone().option("unchecked", true)).unwrap_err();
    assert!(error.message().contains("ModuleSource::unchecked"), "{error}");
    let dispatcher = Dispatcher::new(safe.clone().option("unchecked", true), "main");
    let error = dispatcher.precompile(&*device, &[ArgType::Scalar(DType::F32)]).unwrap_err();
    assert!(error.message().contains("ModuleSource::unchecked"), "{error}");
    let _kept = device.load(&native.option("prefix", "p_")).unwrap();
    let error = device.load(&safe.option("prefix", "p_")).unwrap_err();
    assert!(error.message().contains("unknown option \"prefix\""), "{error}");
}

/// As [`Renaming`], for code that is kept on disk.
#[derive(Debug)]
struct Kept;

// SAFETY: as `Renaming`.
unsafe impl Lowering for Kept {
    fn format(&self) -> CodeFormat {
        Renaming.format()
    }

    fn options(&self) -> Vec<OptionSpec> {
        Renaming.options()
    }

    fn target(&self, device: &DeviceInfo) -> Option<CodeFormat> {
        Renaming.target(device)
    }

    fn identity(&self, _device: &DeviceInfo) -> Option<String> {
        Some("1".to_owned())
    }

    fn lower(&self, source: &PortableSource<'_>, device: &DeviceInfo) -> Result<Lowered> {
        Renaming.lower(source, device)
    }
}

#[test]
fn trust_is_a_part_of_the_key_on_disk() {
    let (folder, origins) = (tempfile::tempdir().unwrap(), Arc::new(std::sync::Mutex::new(Vec::new())));
    let load = |source: &ModuleSource| {
        // SAFETY: only this test writes to the folder.
        let options = unsafe { CacheOptions::default().with_folder(folder.path()) };
        let seen = origins.clone();
        let runtime = Runtime::builder().discover(false).register(runtime_null::backend());
        let runtime = runtime
            .with_lowering(Arc::new(Kept))
            .code_cache(CodeCache::with_options(options))
            .on_load(move |load| seen.lock().unwrap().push(load.origin))
            .build();
        let device = runtime.open_with("null", &Options::new().with("compiler", true)).unwrap();
        device.load(source).unwrap();
    };
    let safe = ModuleSource::wgsl("main saxpy_f32");
    // SAFETY: nothing is launched.
    load(&unsafe { ModuleSource::native("wgsl", "main saxpy_f32") });
    load(&safe);
    load(&safe);
    let expected = [CodeOrigin::Compiled, CodeOrigin::Compiled, CodeOrigin::Cache];
    assert_eq!(*origins.lock().unwrap(), expected);
}

#[test]
fn code_for_a_debugger_is_safe_to_load() {
    let device = runtime().open("null").unwrap();
    let source = ModuleSource::wgsl("main saxpy_f32");
    device.load(&source.clone().debug(true)).unwrap();
    device.load(&source.clone().debug(false)).unwrap();
    let error = device.load(&source.option("debug", "yes")).unwrap_err();
    assert!(error.message().contains("debug"), "{error}");
}

/// Passes the options that it sees on to the code, as text.
#[derive(Debug)]
struct Seeing(std::sync::Mutex<Vec<(Options, Options)>>);

// SAFETY: as `Renaming`.
unsafe impl Lowering for Seeing {
    fn format(&self) -> CodeFormat {
        CodeFormat::WGSL
    }

    fn options(&self) -> Vec<OptionSpec> {
        let mut options = Renaming.options();
        options.push(OptionSpec::module("debug", false, "For debuggers."));
        options
    }

    fn target(&self, device: &DeviceInfo) -> Option<CodeFormat> {
        Renaming.target(device)
    }

    fn lower(&self, source: &PortableSource<'_>, device: &DeviceInfo) -> Result<Lowered> {
        self.0
            .lock()
            .expect("no test panics here")
            .push((source.options.clone(), device.open_options.clone()));
        Renaming.lower(source, device)
    }
}

#[test]
fn a_lowering_sees_the_options_of_the_device_and_shares_debug_with_the_backend() {
    let seeing = Arc::new(Seeing(std::sync::Mutex::default()));
    let runtime = Runtime::builder().discover(false).register(runtime_null::backend());
    let runtime = runtime.with_lowering(Arc::<Seeing>::clone(&seeing)).build();
    let opened = runtime.open_with("null", &Options::new().with("compiler", true)).unwrap();
    assert!(opened.info().open_options.flag("compiler"));
    // The option goes to the backend as well, which would refuse another type.
    opened.load(&ModuleSource::wgsl("main saxpy_f32").debug(true)).unwrap();
    runtime.open("null").unwrap().load(&ModuleSource::wgsl("main saxpy_f32")).unwrap();
    let seen = seeing.0.lock().unwrap();
    let flags = seen.iter().map(|(load, open)| (load.flag("debug"), open.flag("compiler")));
    assert_eq!(flags.collect::<Vec<_>>(), [(true, true), (false, false)]);
}

#[test]
fn compiled_portable_code_keeps_the_names_and_checks_of_its_source() {
    let (here, elsewhere) = (runtime(), runtime());
    let source = ModuleSource::wgsl("main saxpy_f32").constant("PREFIX", "p_");
    let compiled = here.compile("null", &source).unwrap();
    assert_eq!(compiled.native.format, CodeFormat::from("null-binary"));
    assert_eq!(elsewhere.open("null").unwrap().compile(&source).unwrap(), compiled, "for a device");

    let device = elsewhere.open("null").unwrap();
    // SAFETY: a builtin of the null backend, which stays in its arguments.
    let module = device.load(&unsafe { ModuleSource::compiled(compiled) }).unwrap();
    assert_eq!(module.symbols().unwrap(), ["main"]);
    let kernel = module.kernel("main").unwrap();
    assert_eq!((kernel.name(), kernel.info().group_size), ("main", Some([1; 3])));
    assert_eq!(module.kernel("p_saxpy_f32").unwrap_err().kind(), ErrorKind::NotFound);

    let all = device.tensor([4], &[1.0f32, 2.0, 10.0, 20.0]).unwrap();
    let (x, y) = (all.slice(0, 0..2).unwrap(), all.slice(0, 2..4).unwrap());
    let queue = device.queue().unwrap();
    let launch = |x: &Tensor, y: &Tensor| {
        queue
            .call(&kernel, Geometry::single(), &[Arg::read(x), Arg::read_write(y), Arg::scalar(2.0f32)])
            .map(drop)
    };
    launch(&x, &y).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [12.0, 24.0]);
    let error = launch(&y, &y).unwrap_err();
    assert!(error.message().contains("arguments 0 and 1 of \"main\" share memory"), "{error}");
}

#[test]
fn what_the_driver_does_not_report_of_compiled_code_comes_from_its_compiler() {
    let runtime = runtime();
    // SAFETY: nothing is launched.
    let source = unsafe { ModuleSource::native("null", "noop\nadd = add_f32") };
    let mut compiled = runtime.compile("null", &source).unwrap();
    assert_eq!(compiled.lowered, None);
    compiled.native.kernels[1].1.registers = Some(99);
    compiled.native.kernels[1].1.virtual_version = Some(7);
    // SAFETY: nothing is launched.
    let module = runtime.open("null").unwrap().load(&unsafe { ModuleSource::compiled(compiled) }).unwrap();
    let info = |name: &str| module.kernel(name).unwrap().info().clone();
    assert_eq!(info("noop").virtual_version, None, "of another kernel");
    assert_eq!((info("add").registers, info("add").virtual_version), (Some(16), Some(7)));
}

#[test]
fn errors_name_their_origin() {
    let device = runtime().open("null").unwrap();
    let error = device.load(&ModuleSource::wgsl("nonsense")).unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::CompileFailed, "line 1: nonsense"));
    let error = device.load(&ModuleSource::wgsl("main fail").option("constnat", "N=1")).unwrap_err();
    assert!(error.message().contains("did you mean \"constant\"?"), "{error}");
    let error = device.load(&ModuleSource::wgsl_file("no/such/file.wgsl")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("no/such/file.wgsl"), "{error}");

    let bare = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    let error = bare.open("null").unwrap().load(&ModuleSource::wgsl("main fail")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.message().contains("with_lowering"), "{error}");
}
