//! Errors while code is loaded and launched, on PoCL behind the stub: each has the driver's own words and leaks nothing, and the next
//! load works. Each case runs in a process of its own.

#![allow(clippy::unwrap_used, unsafe_code, reason = "a test that loads code")]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Failed, Trial};
use opencl::{DEADLINE, Driver, IcdFolder, current_program, missing_trial, stub};
use runtime_core::{
    Arg, CodeFormat, CommonRuntime, Error, ErrorKind, Geometry, Kernel, ModuleSource, Runtime,
};

/// Names the case that a child process runs.
const CASE: &str = "RUNTIME_TEST_OPENCL_LOAD_ERROR";
/// The directives of the stub; empty for none.
const DIRECTIVES: &str = "STUB_OPENCL";
const CODE: &str = "kernel void fill_i32(global int *out, int value) { out[get_global_id(0)] = value; }";
/// What Intel's compiler for GPUs says of a kernel whose private memory the device does not have.
const SCRATCH_OVERFLOW: &str = "total scratch space exceeds HW supported limit for kernel large: 295232 bytes (max permitted PTSS \
                                262144 bytes)";

type Case = fn(&dyn CommonRuntime) -> Result<(), Failed>;

const CASES: [(&str, Case); 5] = [
    ("load_error_of_the_device", load_error_of_the_device),
    ("load_error_of_the_kernel", load_error_of_the_kernel),
    ("a_kernel_that_is_not_there", a_kernel_that_is_not_there),
    ("scratch_overflow", scratch_overflow),
    ("a_group_that_the_kernel_has_no_registers_for", too_large_a_group),
];

/// What this process does instead of the tests, if one of them started it.
pub(crate) fn child() -> Option<ExitCode> {
    std::env::var(CASE).ok().map(|name| run_case(&name))
}

pub(crate) fn trials() -> Vec<Trial> {
    match IcdFolder::with_drivers(&[Driver::Pocl]) {
        Ok(icd_folder) => on_pocl(&Arc::new(icd_folder)),
        Err((driver, remedy)) => vec![missing_trial(driver.requirement(), remedy)],
    }
}

fn on_pocl(icd_folder: &Arc<IcdFolder>) -> Vec<Trial> {
    let library: Arc<Path> = stub::build(icd_folder.path()).unwrap().into();
    let trial = |(name, _): &(&'static str, Case)| {
        let (name, icd_folder, library) = (*name, Arc::clone(icd_folder), Arc::clone(&library));
        Trial::test(format!("load_errors::{name}"), move || {
            let mut command = stub::command(&icd_folder, &current_program()?, &library, "")?;
            opencl::finish(command.env(CASE, name).env("RUNTIME_CACHE", "off"), DEADLINE)?.success()?;
            Ok(())
        })
    };
    CASES.iter().map(trial).collect()
}

/// Runs one case, and then loads and runs code that is right.
#[allow(clippy::print_stderr, reason = "the parent reports it")]
fn run_case(name: &str) -> ExitCode {
    let case = CASES.iter().find(|(known, _)| *known == name).unwrap().1;
    let device = Runtime::new().open("opencl:0").unwrap();
    runs(&*device).unwrap();
    let before = settled(&*device);
    let outcome = case(&*device).and_then(|()| runs(&*device)).and_then(|()| match settled(&*device) {
        after if after == before => Ok(()),
        after => Err(format!("{before} programs and kernels were alive before, and {after} after").into()),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            eprintln!("{}", failed.message().unwrap_or("failed"));
            ExitCode::FAILURE
        }
    }
}

/// How many programs and kernels the driver has, after those that were dropped are gone: an allocation releases them.
fn settled(device: &dyn CommonRuntime) -> i32 {
    drop(device.empty::<f32>([4]).unwrap());
    let library = std::env::var_os("OPENCL_DYLIB_PATH").unwrap();
    // SAFETY: the stub, which is loaded already; it has no initialisers.
    let stub = unsafe { libloading::Library::new(library) }.unwrap();
    // SAFETY: the function takes nothing and returns an `int`.
    let count = unsafe { stub.get::<unsafe extern "C" fn() -> i32>(b"stub_live_objects\0") }.unwrap();
    // SAFETY: it only reads a number.
    unsafe { count() }
}

/// The error of `operation`, of which all calls of `function` fail.
fn with_fault<T>(function: &str, code: i64, operation: impl Fn() -> runtime_core::Result<T>) -> Error {
    // SAFETY: only the stub reads the variable, on this thread.
    unsafe { std::env::set_var(DIRECTIVES, format!("fail={function}:{code}:0")) };
    let result = operation();
    // SAFETY: as above.
    unsafe { std::env::set_var(DIRECTIVES, "") };
    result.err().unwrap_or_else(|| panic!("{function} failed with {code}, and nothing noticed"))
}

fn source(code: &str) -> ModuleSource {
    // SAFETY: the kernels stay within their arguments.
    unsafe { ModuleSource::native(CodeFormat::OPENCL_C, code) }
}

fn launch(device: &dyn CommonRuntime, kernel: &Kernel) -> runtime_core::Result<Vec<i32>> {
    let (queue, x) = (device.queue()?, device.zeros::<i32>([64])?);
    queue
        .launch(kernel, Geometry::new(1, 64), &[Arg::write(&x), Arg::scalar(7)])?
        .wait_timeout(DEADLINE / 3)?;
    x.to_vec()
}

fn runs(device: &dyn CommonRuntime) -> Result<(), Failed> {
    let kernel = device.load(&source(CODE))?.kernel("fill_i32")?;
    assert_eq!(launch(device, &kernel)?, [7; 64]);
    Ok(())
}

fn expect(error: &Error, kind: ErrorKind, driver: (&str, i64), words: &[&str]) {
    assert_eq!((error.kind(), error.driver()), (kind, Some(driver)), "{error}");
    assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
}

fn load_error_of_the_device(device: &dyn CommonRuntime) -> Result<(), Failed> {
    let before = settled(device);
    for (function, code, kind, name) in [
        ("clCreateProgramWithSource", -6, ErrorKind::OutOfMemory, "CL_OUT_OF_HOST_MEMORY"),
        ("clBuildProgram", -5, ErrorKind::OutOfResources, "CL_OUT_OF_RESOURCES"),
        ("clBuildProgram", -11, ErrorKind::CompileFailed, "CL_BUILD_PROGRAM_FAILURE"),
    ] {
        let error = with_fault(function, code, || device.load(&source(CODE)));
        expect(&error, kind, (name, code), &["opencl:0", "load", function]);
        assert_eq!(settled(device), before, "{error}");
    }
    Ok(())
}

fn load_error_of_the_kernel(device: &dyn CommonRuntime) -> Result<(), Failed> {
    let module = device.load(&source(CODE))?;
    let before = settled(device);
    for (code, kind, name) in [
        (-5, ErrorKind::OutOfResources, "CL_OUT_OF_RESOURCES"),
        (-6, ErrorKind::OutOfMemory, "CL_OUT_OF_HOST_MEMORY"),
    ] {
        let error = with_fault("clCreateKernel", code, || module.kernel("fill_i32"));
        expect(&error, kind, (name, code), &["opencl:0", "kernel", "clCreateKernel"]);
        assert_eq!(settled(device), before, "{error}");
    }
    // The module is still whole.
    module.kernel("fill_i32")?;
    Ok(())
}

fn a_kernel_that_is_not_there(device: &dyn CommonRuntime) -> Result<(), Failed> {
    let error = device.load(&source(CODE))?.kernel("fill_i64").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let words = ["opencl:0", "\"fill_i64\"", "fill_i32"];
    assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
    Ok(())
}

/// A kernel whose private memory the device does not have: PoCL's compiler is made to say what Intel's says.
fn scratch_overflow(device: &dyn CommonRuntime) -> Result<(), Failed> {
    let large = source(&format!("#error {SCRATCH_OVERFLOW}\n{CODE}"));
    for error in [device.load(&large).map(drop).unwrap_err(), device.compile(&large).map(drop).unwrap_err()] {
        let words = [SCRATCH_OVERFLOW, "clBuildProgram"];
        expect(&error, ErrorKind::OutOfResources, ("CL_BUILD_PROGRAM_FAILURE", -11), &words);
    }
    Ok(())
}

fn too_large_a_group(device: &dyn CommonRuntime) -> Result<(), Failed> {
    let kernel = device.load(&source(CODE))?.kernel("fill_i32")?;
    let error = with_fault("clEnqueueNDRangeKernel", -54, || launch(device, &kernel));
    let words = ["smaller", "fill_i32"];
    expect(&error, ErrorKind::OutOfResources, ("CL_INVALID_WORK_GROUP_SIZE", -54), &words);
    assert_eq!(launch(device, &kernel)?, [7; 64]);
    Ok(())
}
