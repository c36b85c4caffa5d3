//! Drivers that fail, lie or hang must lead to a meaningful error, never to a panic, crash or hang. Each case runs in a child process
//! with a deadline, on PoCL behind the stub.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;

use libtest_mimic::{Failed, Trial};
use opencl::smoke_test::{self, Outcome};
use opencl::{DEADLINE, Driver, IcdFolder, current_program, stub};
use runtime_core::ErrorKind;

type Check = fn(&Outcome) -> Result<(), String>;

/// A fault, and the check of its outcome.
struct Case {
    name: String,
    directives: String,
    check: Check,
}

pub(crate) fn trials() -> Vec<Trial> {
    match Driver::Pocl.library() {
        Ok(_) => on_pocl(),
        Err(remedy) => vec![opencl::missing_trial(Driver::Pocl.requirement(), remedy)],
    }
}

fn on_pocl() -> Vec<Trial> {
    let icd_folder = Arc::new(IcdFolder::with_drivers(&[Driver::Pocl]).unwrap());
    let library: Arc<Path> = stub::build(icd_folder.path()).unwrap().into();
    let trial = |case: Case| {
        let (icd_folder, library) = (icd_folder.clone(), library.clone());
        Trial::test(format!("driver_faults::{}", case.name), move || {
            let mut command = stub::command(&icd_folder, &current_program()?, &library, &case.directives)?;
            let outcome = smoke_test::run_child(&mut command, DEADLINE)?;
            Ok::<_, Failed>((case.check)(&outcome)?)
        })
    };
    cases().into_iter().map(trial).collect()
}

fn cases() -> Vec<Case> {
    let case = |name: &str, directives: &str, check: Check| Case {
        name: name.to_owned(),
        directives: directives.to_owned(),
        check,
    };
    let mut cases = vec![
        case("a_driver_without_faults_works", "", works),
        case("no_platform_without_an_error", "count=clGetPlatformIDs:0", unavailable),
        case("no_platform_with_an_error", "fail=clGetPlatformIDs:-1001:0", unavailable),
        case("a_platform_without_devices", "count=clGetDeviceIDs:0", unavailable),
        case("a_platform_without_devices_with_an_error", "fail=clGetDeviceIDs:-1:0", unavailable),
        case("more_platforms_than_there_are", "count=clGetPlatformIDs:3", passes),
        case("more_devices_than_there_are", "count=clGetDeviceIDs:3", passes),
        case("an_unknown_error_code_of_the_first_call", "fail=clGetPlatformIDs:-123456:0", any_error),
        case("a_positive_error_code_of_the_first_call", "fail=clGetPlatformIDs:77:0", any_error),
        case("a_kernel_that_fails", "event=clEnqueueNDRangeKernel:-5:1", failed),
        case("a_kernel_that_loses_the_device", "event=clEnqueueNDRangeKernel:-9999:1", lost),
        case("a_copy_that_fails", "event=clEnqueueCopyBuffer:-5:1", failed),
        case("a_driver_whose_failures_end_everything", "nvidia", works),
        case("a_failing_copy_with_a_launch_behind_it", "nvidia,event=clEnqueueCopyBuffer:-5:1", lost),
        case("work_that_never_ends", "never", timeout),
    ];
    for function in QUERIES {
        for answer in ["garbage", "nothing"] {
            cases.push(case(
                &format!("{function}_returns_{answer}"),
                &format!("{answer}={function}"),
                passes,
            ));
        }
    }
    for function in FUNCTIONS {
        // Out of resources, and an unknown code.
        for (code, count) in [(-5, 1), (-77_777, 0)] {
            cases.push(case(
                &format!("{function}_fails_with_{code}_{}", if count == 0 { "always" } else { "once" }),
                &format!("fail={function}:{code}:{count}"),
                passes,
            ));
        }
    }
    cases
}

/// Query functions whose answers are corrupted.
const QUERIES: &[&str] = &[
    "clGetPlatformInfo",
    "clGetDeviceInfo",
    "clGetKernelWorkGroupInfo",
    "clGetKernelArgInfo",
    "clGetProgramBuildInfo",
    "clGetEventProfilingInfo",
];

/// Functions that are made to fail, one at a time.
const FUNCTIONS: &[&str] = &[
    "clGetPlatformIDs",
    "clGetPlatformInfo",
    "clGetDeviceIDs",
    "clGetDeviceInfo",
    "clCreateContext",
    "clCreateCommandQueueWithProperties",
    "clCreateBuffer",
    "clCreateSubBuffer",
    "clSVMAlloc",
    "clCreateProgramWithSource",
    "clBuildProgram",
    "clGetProgramInfo",
    "clGetProgramBuildInfo",
    "clCreateKernel",
    "clGetKernelInfo",
    "clGetKernelArgInfo",
    "clGetKernelWorkGroupInfo",
    "clSetKernelArg",
    "clEnqueueNDRangeKernel",
    "clEnqueueReadBuffer",
    "clEnqueueWriteBuffer",
    "clEnqueueCopyBuffer",
    "clEnqueueFillBuffer",
    "clEnqueueMapBuffer",
    "clEnqueueUnmapMemObject",
    "clEnqueueMarkerWithWaitList",
    "clEnqueueBarrierWithWaitList",
    "clGetEventInfo",
    "clGetEventProfilingInfo",
    "clWaitForEvents",
    "clFlush",
    "clFinish",
    "clReleaseMemObject",
    "clReleaseEvent",
    "clReleaseKernel",
    "clReleaseProgram",
    "clReleaseCommandQueue",
    "clReleaseContext",
];

fn passes(_: &Outcome) -> Result<(), String> {
    Ok(())
}

fn works(outcome: &Outcome) -> Result<(), String> {
    let all_passed = outcome.passed == 1 && outcome.devices.len() == 1 && outcome.errors.is_empty();
    if all_passed { Ok(()) } else { Err(format!("it does not work: {outcome:?}")) }
}

fn unavailable(outcome: &Outcome) -> Result<(), String> {
    match outcome.errors.as_slice() {
        [(ErrorKind::Unavailable, words)] if !words.is_empty() && outcome.devices.is_empty() => Ok(()),
        _ => Err(format!("not `Unavailable`: {outcome:?}")),
    }
}

fn any_error(outcome: &Outcome) -> Result<(), String> {
    let found = !outcome.errors.is_empty() && outcome.passed == 0;
    if found { Ok(()) } else { Err(format!("nothing failed: {outcome:?}")) }
}

/// An error with the driver's name of the status.
fn failed(outcome: &Outcome) -> Result<(), String> {
    let found =
        outcome.errors.iter().any(|(kind, words)| *kind != ErrorKind::Timeout && words.contains("CL_"));
    if found { Ok(()) } else { Err(format!("nothing failed: {outcome:?}")) }
}

fn lost(outcome: &Outcome) -> Result<(), String> {
    let found = outcome.errors.last().is_some_and(|(kind, _)| *kind == ErrorKind::DeviceLost);
    if found { Ok(()) } else { Err(format!("not lost: {outcome:?}")) }
}

fn timeout(outcome: &Outcome) -> Result<(), String> {
    let found = outcome.errors.iter().any(|(kind, _)| *kind == ErrorKind::Timeout);
    if found { Ok(()) } else { Err(format!("nothing timed out: {outcome:?}")) }
}
