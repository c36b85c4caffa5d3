//! The program runs the code that its build script compiled.

use runtime_core::code::Fit;
use runtime_core::{Options, Runtime};
use runtime_package::{Reason, Taken};
use runtime_package_tests::{package, scale, square};

fn runtime() -> Runtime {
    Runtime::builder().discover(false).register(runtime_null::backend()).build()
}

#[test]
fn the_program_runs_the_code_that_its_build_script_compiled() {
    let device = runtime().open("null").unwrap();
    let mut values = [1.0, 2.0];
    let choice = scale(&*device, &mut values, 3.0).unwrap();
    assert_eq!(values, [3.0, 6.0]);
    assert_eq!(choice.taken, Taken::Code { target: "null:null".to_owned(), fit: Some(Fit::Optimal) });
}

#[test]
fn a_target_whose_backend_was_missing_is_left_out() {
    let package = package("scale").unwrap();
    let targets: Vec<_> = package.kernels()[0].codes.iter().map(|code| code.target.as_str()).collect();
    assert_eq!(targets, ["null:null"]);
    assert_eq!(package.verify().unwrap(), 2, "the code and the fallback");
    assert!(package.manifest().program.starts_with("runtime-build "));
}

#[test]
fn a_device_that_refuses_the_code_compiles_the_source() {
    let refuses = Options::new().with("fail_call", "load:1:unsupported");
    let device = runtime().open_with("null", &refuses).unwrap();
    let mut values = [1.0, 2.0];
    let choice = scale(&*device, &mut values, 3.0).unwrap();
    assert_eq!((values, choice.taken), ([3.0, 6.0], Taken::Fallback("null".into())));
    assert!(matches!(choice.passed_over[..], [ref passed] if matches!(passed.reason, Reason::Refused(_))));
}

#[test]
fn portable_code_that_was_compiled_for_the_host_needs_no_lowering_and_no_compiler() {
    let runtime = Runtime::builder().discover(false).register(runtime_host::backend()).build();
    let device = runtime.open("host").unwrap();
    let mut values: Vec<f32> = (0..1000u16).map(f32::from).collect();
    let expected: Vec<_> = values.iter().map(|value| value * value).collect();
    let choice = square(&*device, &mut values).unwrap();
    assert_eq!(choice.taken, Taken::Code { target: "host:native".to_owned(), fit: Some(Fit::Optimal) });
    assert_eq!(values, expected);
}
