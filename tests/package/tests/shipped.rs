//! The program runs the code that its build script compiled.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use runtime_core::{Fit, Options, Runtime};
use runtime_package::{Reason, Taken};
use runtime_package_tests::{package, scale};

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
    let package = package().unwrap();
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
