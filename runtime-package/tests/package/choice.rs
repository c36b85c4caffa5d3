//! What a device takes, and the reasons for what it does not take.

use runtime_core::code::Fit;
use runtime_core::{Arg, CodeFormat, CommonRuntime, ErrorKind, Geometry, ModuleSource, Options, Tensor};
use runtime_package::{Choice, Package, Reason, Taken};

use crate::fixture::{Code, bare_runtime, builder, package_of, runtime};

const OPTIMAL: Code<'_> =
    Code { target: "null:null", format: "null-binary", code: "null binary 1\nnoop=noop\n" };
const OLD: Code<'_> = Code { target: "null:old", format: "null-binary", code: "null binary 0\nnoop=noop\n" };
const RUNS: Code<'_> = Code { target: "null:text", format: "null", code: "noop" };
const BROKEN: Code<'_> =
    Code { target: "null:broken", format: "null-binary", code: "null binary 1\nno such builtin\n" };
const FOREIGN: Code<'_> = Code { target: "cuda:sm_90", format: "cubin", code: "ELF" };
const ODD: Code<'_> = Code { target: "null:odd", format: "cubin", code: "ELF" };

fn choose(package: &Package, device: &dyn CommonRuntime) -> runtime_core::Result<Choice> {
    // SAFETY: builtins of the null backend.
    unsafe { package.choose(device, "kernel") }
}

/// Targets and reasons, in short.
fn reasons(choice: &Choice) -> Vec<(&str, String)> {
    choice
        .passed_over
        .iter()
        .map(|passed| {
            let reason = match &passed.reason {
                Reason::Refused(error) => format!("refused: {}", error.kind().code()),
                other => format!("{other:?}"),
            };
            (passed.target.as_str(), reason)
        })
        .collect()
}

fn code(target: &str, fit: Option<Fit>) -> Taken {
    Taken::Code { target: target.to_owned(), fit }
}

#[test]
fn the_best_fit_is_taken_and_the_others_have_reasons() {
    let device = runtime().open("null").unwrap();
    let package = package_of(&[FOREIGN, ODD, OLD, RUNS, OPTIMAL], Some(("wgsl", "noop noop")));
    let choice = choose(&package, &*device).unwrap();
    assert_eq!(choice.taken, code("null:null", Some(Fit::Optimal)));
    assert_eq!(choice.why, "code for null:null is optimal for null:0");
    assert_eq!(
        reasons(&choice),
        [
            ("cuda:sm_90", "OtherTarget".to_owned()),
            ("null:odd", "Format(cubin)".to_owned()),
            ("null:old", "Unfit".to_owned()),
            ("null:text", "Outranked".to_owned()),
        ]
    );
    device.load(&choice.source).unwrap().kernel("noop").unwrap();
}

#[test]
fn code_that_runs_comes_before_the_fallback() {
    let device = runtime().open("null").unwrap();
    let choice = choose(&package_of(&[OLD, RUNS], Some(("wgsl", "noop noop"))), &*device).unwrap();
    assert_eq!(choice.taken, code("null:text", Some(Fit::Recompile)));
    assert!(choice.why.contains("could be faster"), "{}", choice.why);
    // Of equals, the first.
    let other = Code { target: "null:other", ..OPTIMAL };
    let choice = choose(&package_of(&[OPTIMAL, other], None), &*device).unwrap();
    assert_eq!(choice.taken, code("null:null", Some(Fit::Optimal)));
    assert_eq!(reasons(&choice), [("null:other", "Outranked".to_owned())]);
}

#[test]
fn code_for_a_newer_driver_or_another_architecture_leads_to_the_fallback() {
    let device = runtime().open("null").unwrap();
    let choice = choose(&package_of(&[OLD, FOREIGN], Some(("wgsl", "noop noop"))), &*device).unwrap();
    assert_eq!(choice.taken, Taken::Fallback(CodeFormat::WGSL));
    assert_eq!(choice.why, "no native code of the package was taken, so null:0 compiles its wgsl code");
    assert_eq!(
        reasons(&choice),
        [("null:old", "Unfit".to_owned()), ("cuda:sm_90", "OtherTarget".to_owned())]
    );
    let shown: Vec<_> = choice.passed_over.iter().map(|passed| passed.reason.to_string()).collect();
    assert_eq!(shown, ["it does not run on this device with its driver", "it is for another backend"]);
    device.load(&choice.source).unwrap().kernel("noop").unwrap();
}

#[test]
fn without_an_answer_from_the_backend_the_architecture_decides() {
    let unsure = Options::new().with("fail_call", "fits:1:unsupported");
    let device = |options: &Options| runtime().open_with("null", options).unwrap();
    let fallback = Some(("null", "noop"));
    let choice = choose(&package_of(&[OPTIMAL], fallback), &*device(&unsure)).unwrap();
    assert_eq!(choice.taken, code("null:null", None));
    assert_eq!(choice.why, "code for null:null is for the architecture of null:0");
    let other = Code { target: "null:other", ..OPTIMAL };
    let choice = choose(&package_of(&[other], fallback), &*device(&unsure)).unwrap();
    assert_eq!(choice.taken, Taken::Fallback("null".into()));
    assert!(
        matches!(&choice.passed_over[0].reason, Reason::OtherArchitecture(Some(code), _) if code == "other")
    );
    // Any other error is the device's, not the code's.
    let lost = Options::new().with("fail_call", "fits:1:device_lost");
    let error = choose(&package_of(&[OPTIMAL], fallback), &*device(&lost)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeviceLost);
}

#[test]
fn code_that_the_device_refuses_is_passed_over() {
    let device = runtime().open("null").unwrap();
    let load = |codes: &[Code<'_>], fallback| {
        // SAFETY: builtins of the null backend.
        unsafe { package_of(codes, fallback).load(&*device, "kernel") }
    };
    let (module, choice) = load(&[BROKEN, RUNS], None).unwrap();
    assert_eq!(
        (choice.taken.clone(), module.symbols().unwrap()),
        (code("null:text", Some(Fit::Recompile)), vec!["noop".to_owned()])
    );
    assert_eq!(choice.passed_over[0].target, "null:broken");
    assert!(
        matches!(&choice.passed_over[0].reason, Reason::Refused(error) if error.message().contains("no such builtin"))
    );

    let (_, choice) = load(&[BROKEN], Some(("wgsl", "noop noop"))).unwrap();
    assert_eq!(choice.taken, Taken::Fallback(CodeFormat::WGSL));

    let error = load(&[BROKEN, OLD], None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    for word in [
        "no code of \"kernel\" that null:0 can load",
        "null:broken: the device refused it",
        "null:old: it does not run",
    ] {
        assert!(error.message().contains(word), "{error}");
    }
    let error = load(&[BROKEN], Some(("wgsl", "nonsense"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CompileFailed, "the fallback's own error");
    assert!(error.message().contains("null:broken"), "{error}");
}

#[test]
fn a_failure_of_the_device_is_not_blamed_on_the_code() {
    let device =
        runtime().open_with("null", &Options::new().with("fail_call", "load:1:out_of_memory")).unwrap();
    let package = package_of(&[OPTIMAL], Some(("wgsl", "noop noop")));
    // SAFETY: builtins of the null backend.
    let error = unsafe { package.load(&*device, "kernel") }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
}

#[test]
fn nothing_that_fits_is_an_error_with_all_reasons() {
    let device = bare_runtime().open("null").unwrap();
    let error = choose(&package_of(&[OLD, FOREIGN], Some(("wgsl", "noop noop"))), &*device).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    for word in
        ["fallback, which is \"wgsl\"", "with_lowering", "null:old: ", "cuda:sm_90: it is for another"]
    {
        assert!(error.message().contains(word), "{error}");
    }
    // SAFETY: nothing is loaded.
    let error = unsafe { package_of(&[], None).choose(&*device, "kernels") }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("did you mean \"kernel\"?"), "{error}");
}

#[test]
fn native_code_of_a_portable_kernel_runs_and_is_checked_like_its_source() {
    let package = Package::from_bytes(builder().to_bytes().unwrap()).unwrap();
    // Without a lowering: the native code needs none.
    let device = bare_runtime().open("null").unwrap();
    // SAFETY: builtins of the null backend.
    let (module, choice) = unsafe { package.load(&*device, "scale") }.unwrap();
    assert_eq!(choice.taken, code("null:null", Some(Fit::Optimal)));
    assert_eq!(module.symbols().unwrap(), ["scale"]);
    let kernel = module.kernel("scale").unwrap();
    let x = device.tensor([2], &[1.0f32, 2.0]).unwrap();
    let queue = device.queue().unwrap();
    let call = |x: &Tensor, value: f32| {
        queue.call(&kernel, Geometry::single(), &[Arg::read_write(x), Arg::scalar(value)]).map(drop)
    };
    call(&x, 3.0).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [3.0, 6.0]);
    let error = call(&x.slice(0, 0..1).unwrap(), 3.0).unwrap_err();
    assert!(error.message().contains("has 4 bytes, but the kernel needs 8"), "{error}");

    // The same as the fallback.
    let source = ModuleSource::wgsl("scale scale_f32").constant("PREFIX", "p_");
    let fallback = runtime().open("null").unwrap().kernel(source, "scale").unwrap();
    assert_eq!(kernel.info(), fallback.info());
}
