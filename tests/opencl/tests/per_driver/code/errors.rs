//! Mistakes in code and launches are reported before anything runs, with helpful messages.

use opencl::Driver;
use runtime_core::{Arg, CodeFormat, Error, ErrorKind, Geometry, Result};

use super::Case;
use super::fixture::{Fixture, assert_equal, opencl_c, source};

pub(crate) const CASES: &[Case] = &[
    ("the_compiler_log_is_reported", the_compiler_log_is_reported),
    ("empty_code", empty_code),
    ("compiler_options", compiler_options),
    ("images_are_refused", images_are_refused),
    ("a_group_size_that_the_kernel_forbids", a_group_size_that_the_kernel_forbids),
    ("too_few_and_too_many_arguments", too_few_and_too_many_arguments),
    ("an_argument_of_the_wrong_size", an_argument_of_the_wrong_size),
    ("pointers_without_const_may_be_read", pointers_without_const_may_be_read),
    ("a_typedef_leaves_the_other_checks", a_typedef_leaves_the_other_checks),
    ("too_much_work_group_memory", too_much_work_group_memory),
    ("a_refused_launch_leaves_nothing_behind", a_refused_launch_leaves_nothing_behind),
];

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(outcome: Result<T>, kinds: &[ErrorKind], words: &[&str]) -> Error {
    let error = outcome.expect_err("an error");
    let text = error.to_string();
    assert!(kinds.contains(&error.kind()), "{error:?}");
    assert!(words.iter().all(|word| text.contains(word)), "{words:?} in {text}");
    error
}

fn the_compiler_log_is_reported(fixture: &Fixture) -> Result<()> {
    let code = "kernel void good(global int *x) { x[0] = 1; }\nkernel void bad(global int *x) { x[0] = undeclared_name; }\n";
    assert_refused(
        fixture.device.load(&opencl_c(code)).map(drop),
        &[ErrorKind::CompileFailed],
        &["undeclared_name"],
    );
    Ok(())
}

/// To a driver, a length of 0 means a NUL-terminated text.
fn empty_code(fixture: &Fixture) -> Result<()> {
    for format in [CodeFormat::OPENCL_C, CodeFormat::OPENCL_BINARY] {
        assert_refused(
            fixture.device.load(&source(format, "")).map(drop),
            &[ErrorKind::CompileFailed],
            &["empty", "path"],
        );
    }
    Ok(())
}

fn compiler_options(fixture: &Fixture) -> Result<()> {
    let code = "kernel void constant_(global int *x) { x[0] = VALUE + MORE; }";
    let source = opencl_c(code).option("build_options", "-DVALUE=40").option("build_options", "-D MORE=2");
    let (module, x) = (fixture.device.load(&source)?, fixture.zeros::<i32>(1)?);
    fixture.run_from(&module, "constant_", &Geometry::single(), &[Arg::write(&x)])?;
    assert_equal(&x, &[42])?;
    assert_refused(fixture.device.load(&opencl_c(code)).map(drop), &[ErrorKind::CompileFailed], &["VALUE"]);
    let unknown = opencl_c("kernel void noop(void) {}").option("build_options", "-no-such-option-at-all");
    assert_refused(
        fixture.device.load(&unknown).map(drop),
        &[ErrorKind::CompileFailed, ErrorKind::InvalidArgument],
        &["-no-such-option-at-all"],
    );
    Ok(())
}

/// Refused by the launch at the latest, without a crash in the driver.
fn images_are_refused(fixture: &Fixture) -> Result<()> {
    let module = match fixture.device.load(&opencl_c(include_str!("../../../kernels/images.cl"))) {
        Ok(module) => module,
        // Drivers without images do not compile them.
        Err(error) => {
            assert_refused::<()>(Err(error), &[ErrorKind::CompileFailed], &["image"]);
            return Ok(());
        }
    };
    let out = fixture.zeros::<f32>(64)?;
    let plain = module.kernel("plain")?;
    fixture.queue.launch(&plain, Geometry::new(1, 16), &[Arg::write(&out)])?.wait()?;
    let kernel = module.kernel("sample");
    let launched = kernel.and_then(|kernel| {
        let args = [Arg::read(&out), Arg::scalar(0u64), Arg::write(&out)];
        fixture.queue.launch(&kernel, Geometry::new(1, 4), &args)?.wait()
    });
    assert_refused(launched, &[ErrorKind::Unsupported, ErrorKind::InvalidArgument], &["image"]);
    Ok(())
}

fn a_group_size_that_the_kernel_forbids(fixture: &Fixture) -> Result<()> {
    let data = fixture.zeros::<f32>(256)?;
    let out = fixture.zeros::<f32>(256)?;
    let args = [
        Arg::read(&data),
        Arg::read(&data),
        Arg::write(&out),
        Arg::scalar(16i32),
        Arg::scalar(16i32),
        Arg::scalar(0.1f32),
    ];
    for geometry in [Geometry::single(), Geometry::new([1, 1], [8, 8]), Geometry::new([2, 2], [16, 8])] {
        assert_refused(fixture.run("heat", &geometry, &args), &[ErrorKind::InvalidArgument], &["16"]);
    }
    Ok(())
}

fn too_few_and_too_many_arguments(fixture: &Fixture) -> Result<()> {
    let x = fixture.zeros::<i32>(10)?;
    let out = fixture.zeros::<i32>(10)?;
    let all = [Arg::read(&x), Arg::write(&out), Arg::scalar(10u32), Arg::scalar(10u32)];
    for count in [0, 1, 2, 4] {
        assert_refused(
            fixture.run("add_ints", &Geometry::single(), &all[..count]),
            &[ErrorKind::InvalidArgument],
            &["3"],
        );
    }
    fixture.run("add_ints", &Geometry::single(), &all[..3])
}

fn an_argument_of_the_wrong_size(fixture: &Fixture) -> Result<()> {
    let (x, out) = (fixture.zeros::<i32>(10)?, fixture.zeros::<i32>(10)?);
    let invalid = &[ErrorKind::InvalidArgument];
    // A scalar of 8 bytes for one of 4; a tensor for a scalar and vice versa.
    let args = [Arg::read(&x), Arg::write(&out), Arg::scalar(10u64)];
    assert_refused(fixture.run("add_ints", &Geometry::single(), &args), invalid, &["2"]);
    // Only the driver could check the size of a structure, and PoCL does not.
    if fixture.driver != Driver::Pocl {
        let camera = [Arg::read(&x), Arg::write(&out), Arg::bytes(&[0; 8]), Arg::read(&x)];
        assert_refused(fixture.run("look", &Geometry::single(), &camera), invalid, &["2"]);
    }
    let tensor = [Arg::read(&x), Arg::write(&out), Arg::read(&x)];
    assert_refused(fixture.run("add_ints", &Geometry::single(), &tensor), invalid, &["2"]);
    let scalar = [Arg::scalar(1u64), Arg::write(&out), Arg::scalar(10u32)];
    assert_refused(fixture.run("add_ints", &Geometry::single(), &scalar), invalid, &["0"]);
    let local = [Arg::local(64), Arg::write(&out), Arg::scalar(10u32)];
    assert_refused(fixture.run("add_ints", &Geometry::single(), &local), invalid, &["0"]);
    Ok(())
}

fn pointers_without_const_may_be_read(fixture: &Fixture) -> Result<()> {
    let code = "kernel void twice_(global int *x, global int *y, int n) { y[0] = x[0] * n; }";
    let (module, x, y) =
        (fixture.device.load(&opencl_c(code))?, fixture.tensor(&[3i32])?, fixture.zeros::<i32>(1)?);
    let scalar = Arg::scalar(2i32);
    fixture.run_from(&module, "twice_", &Geometry::single(), &[Arg::read(&x), Arg::write(&y), scalar])?;
    assert_equal(&y, &[6i32])?;
    let unsaid =
        fixture.device.default_queue()?.launch(&module.kernel("twice_")?, Geometry::single(), (&x, &y, 2i32));
    assert_refused(unsaid.map(drop), &[ErrorKind::InvalidArgument], &["argument 0", "read(&tensor)"]);
    Ok(())
}

fn a_typedef_leaves_the_other_checks(fixture: &Fixture) -> Result<()> {
    let code = "typedef int index_t; \
                kernel void scale_(global const float *x, global float *y, index_t n) { y[0] = x[0] * n; }";
    let (module, x, y) =
        (fixture.device.load(&opencl_c(code))?, fixture.tensor(&[3f32])?, fixture.zeros::<f32>(1)?);
    let run = |args: &[Arg<'_>]| fixture.run_from(&module, "scale_", &Geometry::single(), args);
    run(&[Arg::read(&x), Arg::write(&y), Arg::scalar(2i32)])?;
    assert_equal(&y, &[6f32])?;
    run(&[Arg::read(&x), Arg::write(&y), Arg::bytes(&3i32.to_ne_bytes())])?;
    assert_equal(&y, &[9f32])?;
    let refused = |args: &[Arg<'_>], words: &[&str]| {
        assert_refused(run(args), &[ErrorKind::InvalidArgument], words);
    };
    refused(&[Arg::write(&x), Arg::write(&y), Arg::scalar(2i32)], &["argument 0", "the kernel reads it"]);
    refused(&[Arg::read(&x), Arg::write(&y), Arg::read(&x)], &["argument 2"]);
    refused(&[Arg::read(&x), Arg::write(&y)], &["takes 3 arguments"]);
    let words = fixture.tensor(&[3i32])?;
    refused(&[Arg::read(&words), Arg::write(&y), Arg::scalar(2i32)], &["is i32", "takes f32"]);
    Ok(())
}

fn too_much_work_group_memory(fixture: &Fixture) -> Result<()> {
    let limit = fixture.device.info().limits.shared_bytes;
    let (x, out) = (fixture.zeros::<f32>(10)?, fixture.zeros::<f32>(10)?);
    let args = [Arg::read(&x), Arg::write(&out), Arg::local(limit + 1), Arg::scalar(10u32)];
    assert_refused(
        fixture.run("sum", &Geometry::single(), &args),
        &[ErrorKind::OutOfResources],
        &[&limit.to_string()],
    );
    Ok(())
}

/// One kernel, one queue: a refused launch leaves none of its arguments behind.
fn a_refused_launch_leaves_nothing_behind(fixture: &Fixture) -> Result<()> {
    let (x, out) = (fixture.tensor(&[1i32; 10])?, fixture.zeros::<i32>(10)?);
    for round in 0..3 {
        let wrong = [Arg::read(&x), Arg::write(&out), Arg::scalar(10u64)];
        assert!(fixture.run("add_ints", &Geometry::single(), &wrong).is_err());
        out.fill(&[0])?;
        let right = [Arg::read(&x), Arg::write(&out), Arg::scalar(10u32 - round)];
        fixture.run("add_ints", &Geometry::single(), &right)?;
        let n = 10 - round as usize;
        assert_equal(&out, &[vec![2; n], vec![0; 10 - n]].concat())?;
    }
    Ok(())
}
