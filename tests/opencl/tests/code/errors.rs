//! What is wrong with code or a launch is said before anything runs, in words that help.

use opencl::Driver;
use runtime_core::{Arg, CodeFormat, Error, ErrorKind, Geometry, Result};

use crate::Case;
use crate::lab::{Lab, c, same, source};

pub(crate) const CASES: &[Case] = &[
    ("the_log_of_the_compiler", the_log_of_the_compiler),
    ("no_code_at_all", no_code_at_all),
    ("options_of_the_compiler", options_of_the_compiler),
    ("images_are_refused", images_are_refused),
    ("a_group_size_that_the_code_forbids", a_group_size_that_the_code_forbids),
    ("too_few_and_too_many_arguments", too_few_and_too_many_arguments),
    ("an_argument_of_another_size", an_argument_of_another_size),
    ("group_memory_beyond_the_device", group_memory_beyond_the_device),
    ("a_refusal_poisons_nothing", a_refusal_poisons_nothing),
];

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: Result<T>, kinds: &[ErrorKind], words: &[&str]) -> Error {
    let error = outcome.expect_err("it is refused");
    let text = error.to_string();
    assert!(kinds.contains(&error.kind()), "{error:?}");
    assert!(words.iter().all(|word| text.contains(word)), "{words:?} in {text}");
    error
}

fn the_log_of_the_compiler(lab: &Lab) -> Result<()> {
    let code = "kernel void good(global int *x) { x[0] = 1; }\nkernel void bad(global int *x) { x[0] = undeclared_name; }\n";
    refused(lab.device.load(&c(code)).map(drop), &[ErrorKind::CompileFailed], &["undeclared_name"]);
    Ok(())
}

/// To the driver a length of 0 is none.
fn no_code_at_all(lab: &Lab) -> Result<()> {
    for format in [CodeFormat::OPENCL_C, CodeFormat::OPENCL_BINARY] {
        refused(
            lab.device.load(&source(format, "")).map(drop),
            &[ErrorKind::CompileFailed],
            &["empty", "path"],
        );
    }
    Ok(())
}

fn options_of_the_compiler(lab: &Lab) -> Result<()> {
    let code = "kernel void constant_(global int *x) { x[0] = VALUE + MORE; }";
    let source = c(code).option("build_options", "-DVALUE=40").option("build_options", "-D MORE=2");
    let (module, x) = (lab.device.load(&source)?, lab.zeros::<i32>(1)?);
    lab.run_of(&module, "constant_", &Geometry::single(), &[Arg::write(&x)])?;
    same(&x, &[42])?;
    refused(lab.device.load(&c(code)).map(drop), &[ErrorKind::CompileFailed], &["VALUE"]);
    let unknown = c("kernel void noop(void) {}").option("build_options", "-no-such-option-at-all");
    refused(
        lab.device.load(&unknown).map(drop),
        &[ErrorKind::CompileFailed, ErrorKind::InvalidArgument],
        &["-no-such-option-at-all"],
    );
    Ok(())
}

/// At the latest the launch says so: never a crash in the driver.
fn images_are_refused(lab: &Lab) -> Result<()> {
    let module = match lab.device.load(&c(include_str!("../../kernels/images.cl"))) {
        Ok(module) => module,
        // A driver without images does not compile them.
        Err(error) => {
            refused::<()>(Err(error), &[ErrorKind::CompileFailed], &["image"]);
            return Ok(());
        }
    };
    let out = lab.zeros::<f32>(64)?;
    let plain = module.kernel("plain")?;
    lab.queue.launch(&plain, &Geometry::new(1, 16), &[Arg::write(&out)])?.wait()?;
    let kernel = module.kernel("sample");
    let launched = kernel.and_then(|kernel| {
        let args = [Arg::read(&out), Arg::scalar(0u64), Arg::write(&out)];
        lab.queue.launch(&kernel, &Geometry::new(1, 4), &args)?.wait()
    });
    refused(launched, &[ErrorKind::Unsupported, ErrorKind::InvalidArgument], &["image"]);
    Ok(())
}

fn a_group_size_that_the_code_forbids(lab: &Lab) -> Result<()> {
    let data = lab.zeros::<f32>(256)?;
    let out = lab.zeros::<f32>(256)?;
    let args = [
        Arg::read(&data),
        Arg::read(&data),
        Arg::write(&out),
        Arg::scalar(16i32),
        Arg::scalar(16i32),
        Arg::scalar(0.1f32),
    ];
    for geometry in [Geometry::single(), Geometry::new([1, 1], [8, 8]), Geometry::new([2, 2], [16, 8])] {
        refused(lab.run("heat", &geometry, &args), &[ErrorKind::InvalidArgument], &["16"]);
    }
    Ok(())
}

fn too_few_and_too_many_arguments(lab: &Lab) -> Result<()> {
    let x = lab.zeros::<i32>(10)?;
    let out = lab.zeros::<i32>(10)?;
    let all = [Arg::read(&x), Arg::write(&out), Arg::scalar(10u32), Arg::scalar(10u32)];
    for count in [0, 1, 2, 4] {
        refused(
            lab.run("add_ints", &Geometry::single(), &all[..count]),
            &[ErrorKind::InvalidArgument],
            &["3"],
        );
    }
    lab.run("add_ints", &Geometry::single(), &all[..3])
}

fn an_argument_of_another_size(lab: &Lab) -> Result<()> {
    let (x, out) = (lab.zeros::<i32>(10)?, lab.zeros::<i32>(10)?);
    let invalid = &[ErrorKind::InvalidArgument];
    // A scalar of 8 bytes for one of 4; a tensor for a scalar and the other way round.
    let args = [Arg::read(&x), Arg::write(&out), Arg::scalar(10u64)];
    refused(lab.run("add_ints", &Geometry::single(), &args), invalid, &["2"]);
    // Of a structure only the driver knows the size, and PoCL does not look.
    if lab.driver != Driver::Pocl {
        let camera = [Arg::read(&x), Arg::write(&out), Arg::bytes(&[0; 8]), Arg::read(&x)];
        refused(lab.run("look", &Geometry::single(), &camera), invalid, &["2"]);
    }
    let tensor = [Arg::read(&x), Arg::write(&out), Arg::read(&x)];
    refused(lab.run("add_ints", &Geometry::single(), &tensor), invalid, &["2"]);
    let scalar = [Arg::scalar(1u64), Arg::write(&out), Arg::scalar(10u32)];
    refused(lab.run("add_ints", &Geometry::single(), &scalar), invalid, &["0"]);
    let local = [Arg::local(64), Arg::write(&out), Arg::scalar(10u32)];
    refused(lab.run("add_ints", &Geometry::single(), &local), invalid, &["0"]);
    Ok(())
}

fn group_memory_beyond_the_device(lab: &Lab) -> Result<()> {
    let limit = lab.device.info().limits.shared_bytes;
    let (x, out) = (lab.zeros::<f32>(10)?, lab.zeros::<f32>(10)?);
    let args = [Arg::read(&x), Arg::write(&out), Arg::local(limit + 1), Arg::scalar(10u32)];
    refused(lab.run("sum", &Geometry::single(), &args), &[ErrorKind::InvalidArgument], &[&limit.to_string()]);
    Ok(())
}

/// One kernel, one queue: what was refused leaves nothing of its arguments behind.
fn a_refusal_poisons_nothing(lab: &Lab) -> Result<()> {
    let (x, out) = (lab.tensor(&[1i32; 10])?, lab.zeros::<i32>(10)?);
    for round in 0..3 {
        let wrong = [Arg::read(&x), Arg::write(&out), Arg::scalar(10u64)];
        assert!(lab.run("add_ints", &Geometry::single(), &wrong).is_err());
        out.fill(&[0])?;
        let right = [Arg::read(&x), Arg::write(&out), Arg::scalar(10u32 - round)];
        lab.run("add_ints", &Geometry::single(), &right)?;
        let n = 10 - round as usize;
        same(&out, &[vec![2; n], vec![0; 10 - n]].concat())?;
    }
    Ok(())
}
