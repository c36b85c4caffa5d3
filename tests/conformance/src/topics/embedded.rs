//! Embedded devices: flash, run with a deadline, read.

use std::time::Duration;

use runtime_core::code::Register;
use runtime_core::{
    Arg, DType, DeviceKind, EmbeddedDevice, ErrorKind, HostArray, ModuleSource, Options, Tensor,
};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_equal, expect_error};
use crate::fixture::Fixture;
use crate::kernels;
use crate::wait::WAIT_TIMEOUT;

cases! {
    [Requirement::Program("scale_f32")] => a_program_runs_on_its_data, a_program_can_run_again,
        a_new_program_replaces_the_old, seeds_make_the_same_data, scalars_reach_the_program,
        zero_size_tensors_are_flashed, running_nothing_is_refused, reading_nothing_is_refused,
        a_tensor_of_another_opening_is_refused, a_program_that_is_too_slow_times_out,
        a_wrong_image_is_refused, a_failed_flash_does_not_poison_the_next, a_reset_starts_the_program_over,
        resetting_nothing_is_refused, memory_and_registers_are_read, inspecting_nothing_is_refused;
    [Requirement::Program("fail")] => a_failing_program_says_so;
    [Requirement::Kind(DeviceKind::Embedded)] => it_has_no_queues, its_tensors_are_described,
        an_unaccepted_format_is_refused;
}

fn opened(context: &Context) -> Result<Fixture, Failure> {
    context.reopen(&Options::new())
}

fn device(fixture: &Fixture) -> Result<&EmbeddedDevice, Failure> {
    fixture
        .device()
        .as_embedded()
        .ok_or_else(|| Failure::Failed("the device did not open as an embedded device".to_owned()))
}

fn program(fixture: &Fixture, name: &str) -> Result<ModuleSource, Failure> {
    fixture
        .kernels()?
        .program(name)
        .ok_or_else(|| Failure::Unsupported("the suite has no programs in this format".to_owned()))
}

fn scale(fixture: &Fixture, data: &[f32], factor: f32) -> Verdict {
    let tensor = device(fixture)?.tensor_from_array(HostArray::from_slice(&[data.len()], data)?)?;
    Ok(device(fixture)?.flash(&program(fixture, "scale_f32")?, &scale_args(fixture, &tensor, factor)?)?)
}

/// The arguments of `scale_f32`; the number of elements only where the kernels of the format take it.
fn scale_args<'a>(fixture: &Fixture, tensor: &'a Tensor, factor: f32) -> Result<Vec<Arg<'a>>, Failure> {
    let mut args = vec![Arg::read_write(tensor), Arg::scalar(factor)];
    if fixture.kernels()?.takes_count {
        args.push(Arg::scalar(i64::try_from(tensor.len()).unwrap_or(i64::MAX)));
    }
    Ok(args)
}

fn result(fixture: &Fixture) -> Result<Vec<f32>, Failure> {
    Ok(device(fixture)?.read(0)?.as_slice::<f32>()?.to_vec())
}

fn a_program_runs_on_its_data(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    scale(&fixture, &[1.0, 2.0, 3.0], 2.0)?;
    let report = device(&fixture)?.run(WAIT_TIMEOUT)?;
    assert_eq!(report.exit_code, 0, "{report:?}");
    expect_equal("scaled", &result(&fixture)?, &[2.0, 4.0, 6.0])
}

fn a_program_can_run_again(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    scale(&fixture, &[1.0; 1000], 2.0)?;
    for _ in 0..3 {
        device(&fixture)?.run(WAIT_TIMEOUT)?;
    }
    let data = result(&fixture)?;
    assert!(data.iter().all(|&x| x == data[0]) && [2.0, 8.0].contains(&data[0]), "{}", data[0]);
    Ok(())
}

fn a_new_program_replaces_the_old(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    scale(&fixture, &[1.0; 10], 2.0)?;
    scale(&fixture, &[5.0; 7], 3.0)?;
    device(&fixture)?.run(WAIT_TIMEOUT)?;
    expect_equal("the new program", &result(&fixture)?, &[15.0; 7])
}

fn seeds_make_the_same_data(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    let filled = |seed| -> Result<Vec<f32>, Failure> {
        let tensor = device(&fixture)?.tensor_from_seed(DType::F32, &[4, 25], seed)?;
        device(&fixture)?.flash(&program(&fixture, "scale_f32")?, &scale_args(&fixture, &tensor, 1.0)?)?;
        device(&fixture)?.run(WAIT_TIMEOUT)?;
        assert_eq!(device(&fixture)?.read(0)?.shape(), [4, 25]);
        result(&fixture)
    };
    let first = filled(1)?;
    assert!(first.iter().all(|x| (0.0..1.0).contains(x)), "seeded floats lie between 0 and 1");
    expect_equal("the same seed", &filled(1)?, &first)?;
    assert_ne!(filled(2)?, first, "another seed");
    Ok(())
}

fn scalars_reach_the_program(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    for factor in [0.0, -1.5, 1e30] {
        scale(&fixture, &[1.0; 3], factor)?;
        device(&fixture)?.run(WAIT_TIMEOUT)?;
        expect_equal("scaled", &result(&fixture)?, &[factor; 3])?;
    }
    Ok(())
}

fn zero_size_tensors_are_flashed(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    scale(&fixture, &[], 2.0)?;
    device(&fixture)?.run(WAIT_TIMEOUT)?;
    expect_equal("nothing", &result(&fixture)?, &[])
}

fn running_nothing_is_refused(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    expect_error("run", device(&fixture)?.run(WAIT_TIMEOUT), ErrorKind::InvalidArgument, &["run", "flash"])
        .map(drop)
}

fn reading_nothing_is_refused(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    expect_error("before", device(&fixture)?.read(0), ErrorKind::InvalidArgument, &["read", "flash"])?;
    scale(&fixture, &[1.0], 2.0)?;
    expect_error("beyond", device(&fixture)?.read(1), ErrorKind::InvalidArgument, &["tensor 1"]).map(drop)
}

fn a_tensor_of_another_opening_is_refused(context: &Context) -> Verdict {
    let (fixture, other) = (opened(context)?, opened(context)?);
    let tensor = device(&other)?.tensor_from_seed(DType::F32, &[3], 1)?;
    let flashed = device(&fixture)?
        .flash(&program(&fixture, "scale_f32")?, &[Arg::read_write(&tensor), Arg::scalar(1.0f32)]);
    expect_error("tensor", flashed, ErrorKind::InvalidArgument, &["argument 0", "flash"]).map(drop)
}

fn a_program_that_is_too_slow_times_out(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    device(&fixture)?.flash(&program(&fixture, "spin")?, &[Arg::scalar(2_000_000i64)])?;
    expect_error("run", device(&fixture)?.run(Duration::from_millis(1)), ErrorKind::Timeout, &["run"])?;
    scale(&fixture, &[1.0; 3], 4.0)?;
    device(&fixture)?.run(WAIT_TIMEOUT)?;
    expect_equal("afterwards", &result(&fixture)?, &[4.0; 3])
}

fn a_wrong_image_is_refused(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    let Err(error) = device(&fixture)?.flash(&fixture.kernels()?.broken(), &[]) else {
        return Err(Failure::Failed("a broken image was flashed".to_owned()));
    };
    assert!(error.operation().contains("flash") && error.device() == Some(context.name()), "{error:?}");
    expect_error(
        "option",
        device(&fixture)?.flash(&program(&fixture, "noop")?.option("no_such", 1), &[]),
        ErrorKind::InvalidArgument,
        &["no_such"],
    )
    .map(drop)
}

fn a_failed_flash_does_not_poison_the_next(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    assert!(device(&fixture)?.flash(&fixture.kernels()?.broken(), &[]).is_err());
    a_program_runs_on_its_data(context)?;
    scale(&fixture, &[1.0; 3], 2.0)?;
    device(&fixture)?.run(WAIT_TIMEOUT)?;
    expect_equal("afterwards", &result(&fixture)?, &[2.0; 3])
}

fn a_reset_starts_the_program_over(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    scale(&fixture, &[1.0, 2.0, 3.0], 2.0)?;
    device(&fixture)?.run(WAIT_TIMEOUT)?;
    device(&fixture)?.reset()?;
    device(&fixture)?.run(WAIT_TIMEOUT)?;
    expect_equal("scaled once", &result(&fixture)?, &[2.0, 4.0, 6.0])?;
    device(&fixture)?.flash(&program(&fixture, "spin")?, &[Arg::scalar(2_000_000i64)])?;
    expect_error("run", device(&fixture)?.run(Duration::from_millis(1)), ErrorKind::Timeout, &["run"])?;
    Ok(device(&fixture)?.reset()?)
}

fn resetting_nothing_is_refused(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    expect_error("reset", device(&fixture)?.reset(), ErrorKind::InvalidArgument, &["reset", "flash"])
        .map(drop)
}

/// The registers of a flashed program, where the device can read them.
fn registers(fixture: &Fixture) -> Result<Vec<Register>, Failure> {
    match device(fixture)?.registers() {
        Err(error) if error.kind() == ErrorKind::Unsupported => Err(Failure::Unsupported(error.to_string())),
        read => Ok(read?),
    }
}

fn memory_and_registers_are_read(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    scale(&fixture, &[1.0, 2.0, 3.0], 2.0)?;
    let registers = registers(&fixture)?;
    let pc = registers.iter().find(|register| register.name == "pc");
    let pc = pc.ok_or_else(|| Failure::Failed(format!("there is no \"pc\" in {registers:?}")))?;
    let mut code = [0; 4];
    device(&fixture)?.read_memory(pc.value, &mut code)?;
    let mut first = [0; 2];
    device(&fixture)?.read_memory(pc.value, &mut first)?;
    expect_equal("the first bytes", &first, &code[..2])?;
    device(&fixture)?.read_memory(pc.value, &mut [])?;
    // Neither changes the program.
    device(&fixture)?.run(WAIT_TIMEOUT)?;
    expect_equal("scaled", &result(&fixture)?, &[2.0, 4.0, 6.0])?;
    let Err(error) = device(&fixture)?.read_memory(u64::MAX - 7, &mut code) else {
        return Err(Failure::Failed("memory was read where there is none".to_owned()));
    };
    assert!(error.operation().contains("read memory") && error.device() == Some(context.name()), "{error:?}");
    device(&fixture)?.run(WAIT_TIMEOUT)?;
    Ok(())
}

fn inspecting_nothing_is_refused(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    let error = match device(&fixture)?.registers() {
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            return Err(Failure::Unsupported(error.to_string()));
        }
        read => read,
    };
    expect_error("registers", error, ErrorKind::InvalidArgument, &["registers", "flash"])?;
    let read = device(&fixture)?.read_memory(0, &mut [0; 4]);
    expect_error("memory", read, ErrorKind::InvalidArgument, &["memory", "flash"]).map(drop)
}

fn a_failing_program_says_so(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    device(&fixture)?.flash(&program(&fixture, "fail")?, &[])?;
    expect_error("run", device(&fixture)?.run(WAIT_TIMEOUT), ErrorKind::Failed, &["run"]).map(drop)
}

fn it_has_no_queues(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    expect_error("queue", fixture.device().queue(), ErrorKind::Unsupported, &["open_queue"]).map(drop)
}

fn its_tensors_are_described(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    let tensor = fixture.device().empty::<f32>([2, 3])?;
    assert_eq!((tensor.shape(), tensor.dtype(), tensor.space()), (&[2, 3][..], DType::F32, "described"));
    expect_error("read", tensor.to_vec::<f32>(), ErrorKind::Unsupported, &["embedded", context.name()])?;
    expect_error("write", tensor.write(&[0.0f32; 6]), ErrorKind::Unsupported, &["embedded"])?;
    expect_error("map", tensor.map(), ErrorKind::Unsupported, &["embedded"])?;
    expect_error("slice", tensor.slice(0, 0..1), ErrorKind::Unsupported, &["embedded"])?;
    expect_error("freeze", tensor.freeze(), ErrorKind::Unsupported, &["embedded"])?;
    let overflow = device(&fixture)?.tensor_from_seed(DType::F32, &[usize::MAX, 2], 1);
    expect_error("shape", overflow, ErrorKind::InvalidArgument, &["shape"]).map(drop)
}

fn an_unaccepted_format_is_refused(context: &Context) -> Verdict {
    let fixture = opened(context)?;
    let words = ["no-such-format", context.info().formats[0].as_str(), "flash"];
    expect_error(
        "format",
        device(&fixture)?.flash(&kernels::unsupported_format(), &[]),
        ErrorKind::Unsupported,
        &words,
    )
    .map(drop)
}
