//! Loading through the code cache: where code comes from, what its key depends on, and what happens if a driver refuses it.

#![allow(unsafe_code, clippy::unwrap_used, reason = "a test that constructs native code")]

use std::path::Path;
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use runtime_core::cache::{CacheOptions, CodeCache};
use runtime_core::code::{CodeLoad, CodeOrigin};
use runtime_core::{Device, ErrorKind, ModuleSource, Options, Runtime, RuntimeBuilder, read_write};

/// The origins of all loads, in order.
#[derive(Clone, Debug, Default)]
struct Loads(Arc<Mutex<Vec<CodeLoad>>>);

impl Loads {
    fn origins(&self) -> Vec<CodeOrigin> {
        self.0.lock().unwrap().drain(..).map(|load| load.origin).collect()
    }
}

fn builder(folder: &Path, loads: &Loads) -> RuntimeBuilder {
    // SAFETY: only this program writes to the folder.
    let options = unsafe { CacheOptions::default().with_folder(folder) };
    let loads = loads.clone();
    Runtime::builder()
        .discover(false)
        .register(runtime_null::backend())
        .code_cache(CodeCache::with_options(options))
        .on_load(move |load| loads.0.lock().unwrap().push(load.clone()))
}

fn open(folder: &Path, loads: &Loads, options: &Options) -> Device {
    let options = options.clone().with("compiler", true);
    builder(folder, loads).build().open_with("null", &options).unwrap()
}

fn source(code: &str) -> ModuleSource {
    // SAFETY: every launch passes what the builtins expect.
    unsafe { ModuleSource::native("null", code) }
}

/// Whether `scale_f32` does what it should.
fn scales(device: &Device, name: &str, source: &ModuleSource) -> bool {
    let x = device.tensor([2], &[1.0f32, 2.0]).unwrap();
    let kernel = device.kernel(source, name).unwrap();
    device.queue().unwrap().call(&kernel, (1, 1), (read_write(&x), 3.0f32)).unwrap();
    x.to_vec::<f32>().unwrap() == [3.0, 6.0]
}

#[test]
fn code_is_compiled_once_and_loaded_once() {
    let (folder, loads) = (tempfile::tempdir().unwrap(), Loads::default());
    let device = open(folder.path(), &loads, &Options::new());
    let first = device.load(&source("scale_f32")).unwrap();
    assert!(scales(&device, "scale_f32", &source("scale_f32")));
    assert_eq!(loads.origins(), [CodeOrigin::Compiled, CodeOrigin::Loaded]);
    drop(first);
    assert!(scales(&device, "scale_f32", &source("scale_f32")), "it was unloaded");
    let other = open(folder.path(), &loads, &Options::new());
    assert!(scales(&other, "scale_f32", &source("scale_f32")));
    assert_eq!(loads.origins(), [CodeOrigin::Cache, CodeOrigin::Cache]);
}

#[test]
fn code_that_is_compiled_and_not_loaded_is_cached_as_well() {
    let (folder, loads) = (tempfile::tempdir().unwrap(), Loads::default());
    let compiled = open(folder.path(), &loads, &Options::new()).compile(&source("scale_f32")).unwrap();
    let failing = Options::new().with("fail_call", "compile:1");
    let other = open(folder.path(), &loads, &failing);
    assert_eq!(other.compile(&source("scale_f32")).unwrap(), compiled);
    assert!(other.compile(&source("noop")).is_err(), "that was never compiled");
    assert!(scales(&other, "scale_f32", &source("scale_f32")));
    assert_eq!(loads.origins(), [CodeOrigin::Cache]);
}

#[test]
fn an_unshared_module_is_one_of_its_own() {
    let (folder, loads) = (tempfile::tempdir().unwrap(), Loads::default());
    let device = open(folder.path(), &loads, &Options::new());
    let _first = device.load(&source("noop")).unwrap();
    let _second = device.load(&source("noop").unshared()).unwrap();
    assert_eq!(loads.origins(), [CodeOrigin::Compiled, CodeOrigin::Cache]);
}

#[test]
fn files_are_cached_by_their_content() {
    let (folder, loads) = (tempfile::tempdir().unwrap(), Loads::default());
    let path = folder.path().join("kernel.null");
    let device = open(folder.path(), &loads, &Options::new());
    // SAFETY: nothing is launched.
    let file = unsafe { ModuleSource::native_file("null", &path) };
    std::fs::write(&path, "noop").unwrap();
    let first = device.load(&file).unwrap();
    let again = device.load(&file).unwrap();
    std::fs::write(&path, "spin").unwrap();
    assert_eq!(device.load(&file).unwrap().symbols().unwrap(), ["spin"]);
    assert_eq!(first.symbols().unwrap(), again.symbols().unwrap());
    assert_eq!(loads.origins(), [CodeOrigin::Compiled, CodeOrigin::Loaded, CodeOrigin::Compiled]);
    std::fs::remove_file(&path).unwrap();
    let error = device.load(&file).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("kernel.null"), "{error}");
}

#[test]
fn every_part_of_the_key_makes_a_miss() {
    let (folder, loads) = (tempfile::tempdir().unwrap(), Loads::default());
    let load = |source: &ModuleSource| {
        open(folder.path(), &loads, &Options::new()).load(source).unwrap();
        loads.origins()[0]
    };
    let variants = [
        source("noop"),
        source("noop "),
        source("noop").option("prefix", "a"),
        source("noop").option("prefix", "b"),
        source("noop").option("prefix", "a").option("prefix", "b"),
        source("noop").option("prefix", "b").option("prefix", "a"),
    ];
    for variant in &variants {
        assert_eq!(load(variant), CodeOrigin::Compiled, "{variant:?}");
    }
    for variant in &variants {
        assert_eq!(load(variant), CodeOrigin::Cache, "{variant:?}");
    }
}

#[test]
fn code_whose_compiler_changed_meanwhile_is_not_kept() {
    let (folder, loads) = (tempfile::tempdir().unwrap(), Loads::default());
    let changing = Options::new().with("fail_call", "compiler_identity:2:unsupported");
    for options in [&changing, &Options::new()] {
        open(folder.path(), &loads, options).load(&source("noop")).unwrap();
    }
    assert_eq!(loads.origins(), [CodeOrigin::Compiled, CodeOrigin::Compiled]);
}

#[test]
fn refused_code_is_compiled_again() {
    let (folder, loads) = (tempfile::tempdir().unwrap(), Loads::default());
    let refusing = Options::new().with("fail_call", "load:1:invalid_argument");
    for options in [&Options::new(), &refusing, &Options::new()] {
        let device = open(folder.path(), &loads, options);
        assert!(scales(&device, "my_scale_f32", &source("scale_f32").option("prefix", "my_")));
    }
    assert_eq!(loads.origins(), [CodeOrigin::Compiled, CodeOrigin::Direct, CodeOrigin::Compiled]);
}

#[test]
fn a_lost_device_or_memory_does_not_spoil_the_entry() {
    let (folder, loads) = (tempfile::tempdir().unwrap(), Loads::default());
    open(folder.path(), &loads, &Options::new()).load(&source("noop")).unwrap();
    for kind in ["device_lost", "out_of_memory", "out_of_resources"] {
        let failing = Options::new().with("fail_call", format!("load:1:{kind}"));
        let error = open(folder.path(), &loads, &failing).load(&source("noop")).unwrap_err();
        assert_eq!(error.kind().to_string().to_lowercase(), kind.replace('_', ""));
    }
    open(folder.path(), &loads, &Options::new()).load(&source("noop")).unwrap();
    assert_eq!(loads.origins(), [CodeOrigin::Compiled, CodeOrigin::Cache]);
}

#[test]
fn code_that_a_backend_does_not_give_out_is_loaded_as_it_is() {
    let (folder, loads) = (tempfile::tempdir().unwrap(), Loads::default());
    for failing in ["compile:1:unsupported", "compiler_identity:1:unsupported"] {
        let options = Options::new().with("fail_call", failing);
        let device = open(folder.path(), &loads, &options);
        let module = device.load(&source("noop")).unwrap();
        assert_eq!((module.symbols().unwrap().len(), loads.origins()), (1, vec![CodeOrigin::Direct]));
    }
    let without_compiler = builder(folder.path(), &loads).build().open("null").unwrap();
    let _module = without_compiler.load(&source("noop")).unwrap();
    let _again = without_compiler.load(&source("noop")).unwrap();
    assert_eq!(loads.origins(), [CodeOrigin::Direct, CodeOrigin::Loaded]);
}

#[test]
fn an_error_of_the_compiler_is_that_of_the_load_and_is_not_kept() {
    let (folder, loads) = (tempfile::tempdir().unwrap(), Loads::default());
    let device = open(folder.path(), &loads, &Options::new());
    let error = device.load(&source("noop\nscale_f23")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CompileFailed);
    assert!(error.message().contains("line 2"), "{error}");
    let failing = Options::new().with("fail_call", "compile:1:driver");
    assert!(open(folder.path(), &loads, &failing).load(&source("noop")).is_err());
    assert!(device.load(&source("noop")).is_ok());
}

#[test]
fn threads_that_load_the_same_code_share_one_module() {
    const THREADS: usize = 64;
    let (folder, loads) = (tempfile::tempdir().unwrap(), Loads::default());
    let device = open(folder.path(), &loads, &Options::new());
    let barrier = Barrier::new(THREADS);
    let modules: Vec<_> = std::thread::scope(|scope| {
        let load = || {
            barrier.wait();
            device.load(&source("noop")).unwrap()
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(load)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let compiled = loads.origins().into_iter().filter(|origin| *origin == CodeOrigin::Compiled).count();
    assert_eq!((modules.len(), compiled), (THREADS, 1));
}

#[test]
fn the_cost_of_all_loads_is_summed_up() {
    let (folder, loads) = (tempfile::tempdir().unwrap(), Loads::default());
    for code in ["noop", "noop", "spin", "noop"] {
        open(folder.path(), &loads, &Options::new()).load(&source(code)).unwrap();
    }
    // SAFETY: only this program writes to the folder.
    let options = unsafe { CacheOptions::default().with_folder(folder.path()) };
    let totals = CodeCache::with_options(options).totals().unwrap();
    assert_eq!((totals.hits.loads, totals.misses.loads), (2, 2), "{totals:?}");
    assert!(totals.misses.compile > Duration::ZERO && totals.hits.compile == Duration::ZERO, "{totals:?}");
    assert!(totals.hits.read > Duration::ZERO && totals.hits.load > Duration::ZERO, "{totals:?}");
}

#[test]
fn without_a_cache_nothing_is_written() {
    let (folder, loads) = (tempfile::tempdir().unwrap(), Loads::default());
    let runtime = builder(folder.path(), &loads).code_cache(CodeCache::off()).build();
    let device = runtime.open_with("null", &Options::new().with("compiler", true)).unwrap();
    assert!(scales(&device, "scale_f32", &source("scale_f32")));
    assert_eq!(loads.origins(), [CodeOrigin::Direct]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
