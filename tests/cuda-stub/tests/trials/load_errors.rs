//! Errors while code is loaded, on the stub of the driver: each has the driver's own words and leaks nothing, and the next load works.
//! Each case runs in a process of its own.

#![allow(clippy::unwrap_used, unsafe_code, reason = "a test that loads code")]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use runtime_core::{Arg, CodeFormat, CommonRuntime, Error, ErrorKind, Geometry, ModuleSource, Runtime};

const DEADLINE: Duration = Duration::from_secs(120);
/// Names the case that a child process runs.
const CASE: &str = "LOAD_ERROR_CASE";
/// Text with a kernel of the stub, whose compilers take any text.
const CODE: &str = "extern \"C\" __global__ void fill_f32(float *out, float value, long n);";

type Case = fn(&dyn CommonRuntime) -> Result<(), Failed>;

const CASES: [(&str, Case); 4] = [
    ("load_error_of_the_device", load_error_of_the_device),
    ("load_error_of_the_kernel", load_error_of_the_kernel),
    ("a_kernel_that_is_not_there", a_kernel_that_is_not_there),
    ("scratch_overflow", scratch_overflow),
];

pub(crate) fn trials() -> Vec<Trial> {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    runtime_cuda_stub_tests::build(folder.path(), &[]).unwrap();
    let trial = |(name, _)| {
        let folder = Arc::clone(&folder);
        Trial::test(format!("load_errors::{name}"), move || run(name, folder.path()))
    };
    CASES.map(trial).into()
}

fn run(case: &str, folder: &Path) -> Result<(), Failed> {
    let mut command = runtime_cuda_stub_tests::rerun_with_stub("load_errors", folder, "")?;
    test_process::finish(command.env(CASE, case), DEADLINE)?.success()?;
    Ok(())
}

/// Runs one case, and then loads code that is right.
#[allow(clippy::print_stderr, reason = "the parent reports it")]
pub(crate) fn child() -> ExitCode {
    let name = std::env::var(CASE).unwrap();
    let case = CASES.iter().find(|(known, _)| *known == name).unwrap().1;
    let library = runtime_cuda_stub_tests::plugin_path().unwrap();
    // SAFETY: the backend of this workspace.
    let runtime = unsafe { Runtime::builder().discover(false).library(library) }.build();
    let device = runtime.open("cuda:0").unwrap();
    // The backend may load code of its own.
    runs(&*device).unwrap();
    let before = settled(&*device);
    let outcome = case(&*device).and_then(|()| runs(&*device)).and_then(|()| match settled(&*device) {
        after if after == before => Ok(()),
        after => Err(format!("{before} modules were loaded before, and {after} after").into()),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            eprintln!("{}", failed.message().unwrap_or("failed"));
            ExitCode::FAILURE
        }
    }
}

/// How many modules the driver has, after those that were dropped are gone: an allocation frees them.
fn settled(device: &dyn CommonRuntime) -> i32 {
    drop(device.empty::<f32>([4]).unwrap());
    loaded_modules()
}

/// How many modules the driver has.
fn loaded_modules() -> i32 {
    // SAFETY: the stub, which is loaded already; it has no initialisers.
    let stub = unsafe { libloading::Library::new("libcuda.so.1") }.unwrap();
    // SAFETY: the function takes nothing and returns an `int`.
    let count = unsafe { stub.get::<unsafe extern "C" fn() -> i32>(b"stub_loaded_modules\0") }.unwrap();
    // SAFETY: it only reads a number.
    unsafe { count() }
}

/// Makes a call of `function` fail: the `nth` from the first call of this function on.
fn fail(function: &str, code: i64, nth: u32) {
    // SAFETY: the stub reads the variable on this thread only.
    unsafe { std::env::set_var("STUB_CUDA", format!("fail={function}:{code}:{nth}")) };
}

fn source(format: CodeFormat, code: &str) -> ModuleSource {
    // SAFETY: the kernels stay within their arguments.
    unsafe { ModuleSource::native(format, code) }
}

fn runs(device: &dyn CommonRuntime) -> Result<(), Failed> {
    let kernel = device.load(&source(CodeFormat::CUDA_C, CODE))?.kernel("fill_f32")?;
    let (queue, x) = (device.queue()?, device.empty::<f32>([100])?);
    let args = [Arg::write(&x), Arg::scalar(2.0f32), Arg::scalar(100i64)];
    queue.launch(&kernel, Geometry::cover(100, 32), &args)?.wait_timeout(DEADLINE / 3)?;
    assert!(x.to_vec::<f32>()?.iter().all(|value| value.to_bits() == 2.0f32.to_bits()));
    Ok(())
}

fn expect(error: &Error, kind: ErrorKind, driver: Option<(&str, i64)>, words: &[&str]) {
    assert_eq!((error.kind(), error.driver()), (kind, driver), "{error}");
    assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
}

fn load_error_of_the_device(device: &dyn CommonRuntime) -> Result<(), Failed> {
    let before = settled(device);
    // No code for this device; no memory for the kernels' stacks.
    for (nth, code, kind, name) in [
        (1, 209, ErrorKind::CompileFailed, "CUDA_ERROR_INJECTED_BY_STUB"),
        (2, 2, ErrorKind::OutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"),
    ] {
        fail("cuModuleLoadDataEx", code, nth);
        let error = device.load(&source(CodeFormat::CUDA_C, CODE)).unwrap_err();
        expect(&error, kind, Some((name, code)), &["cuda:0", "load", "cuModuleLoadDataEx"]);
        assert_eq!(settled(device), before);
    }
    Ok(())
}

fn load_error_of_the_kernel(device: &dyn CommonRuntime) -> Result<(), Failed> {
    let module = device.load(&source(CodeFormat::CUDA_C, CODE))?;
    fail("cuModuleGetFunction", 2, 1);
    let error = module.kernel("fill_f32").unwrap_err();
    let driver = Some(("CUDA_ERROR_OUT_OF_MEMORY", 2));
    expect(&error, ErrorKind::OutOfMemory, driver, &["cuda:0", "kernel", "cuModuleGetFunction"]);
    // The module is still whole.
    module.kernel("fill_f32")?;
    Ok(())
}

fn a_kernel_that_is_not_there(device: &dyn CommonRuntime) -> Result<(), Failed> {
    let module = device.load(&source(CodeFormat::CUDA_C, CODE))?;
    let error = module.kernel("fill_f64").unwrap_err();
    expect(&error, ErrorKind::NotFound, None, &["cuda:0", "\"fill_f64\"", "fill_f32"]);
    Ok(())
}

/// A kernel whose private memory the device does not have.
fn scratch_overflow(device: &dyn CommonRuntime) -> Result<(), Failed> {
    for format in [CodeFormat::CUDA_C, CodeFormat::PTX] {
        let large = source(format, &format!("{CODE} // too much local"));
        for error in [device.load(&large).unwrap_err(), device.compile(&large).unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::OutOfResources, "{error}");
            let words = ["Entry function 'f' uses too much local data", "0x80000 max"];
            assert!(words.iter().all(|word| error.message().contains(word)), "{error}");
        }
    }
    Ok(())
}
