//! Embedded devices: flash, run with a deadline, read.

use std::time::Duration;

use runtime_core::{
    Arg, DType, DeviceKind, EmbeddedDevice, ErrorKind, HostArray, ModuleSource, Options, Placement,
    QueueOptions,
};

use crate::case::{Failure, Need, Verdict, cases};
use crate::context::Context;
use crate::data::{refused, same};
use crate::kernels;
use crate::lab::Lab;
use crate::wait::PATIENCE;

cases! {
    [Need::Program("scale_f32")] => a_program_runs_on_its_data, a_program_can_run_again,
        a_new_program_replaces_the_old, seeds_make_the_same_data, scalars_reach_the_program,
        zero_size_tensors_are_flashed, running_nothing_is_refused, reading_nothing_is_refused,
        a_tensor_of_another_opening_is_refused, a_program_that_is_too_slow_times_out,
        a_wrong_image_is_refused, a_failed_flash_does_not_poison_the_next;
    [Need::Program("fail")] => a_failing_program_says_so;
    [Need::Kind(DeviceKind::Embedded)] => it_has_no_queues, its_tensors_are_described,
        an_unaccepted_format_is_refused;
}

fn opened(context: &Context) -> Result<Lab, Failure> {
    context.reopen(&Options::new())
}

fn device(lab: &Lab) -> Result<&EmbeddedDevice, Failure> {
    lab.device()
        .as_embedded()
        .ok_or_else(|| Failure::Failed("it does not open as an embedded device".to_owned()))
}

fn program(lab: &Lab, name: &str) -> Result<ModuleSource, Failure> {
    lab.kernels()?
        .program(name)
        .ok_or_else(|| Failure::Unsupported("the suite has no programs in this format".to_owned()))
}

fn scale(lab: &Lab, data: &[f32], factor: f32) -> Verdict {
    let tensor = device(lab)?.tensor_from_array(HostArray::from_slice(&[data.len()], data)?)?;
    Ok(device(lab)?.flash(&program(lab, "scale_f32")?, &[Arg::read_write(&tensor), Arg::scalar(factor)])?)
}

fn result(lab: &Lab) -> Result<Vec<f32>, Failure> {
    Ok(device(lab)?.read(0)?.as_slice::<f32>()?.to_vec())
}

fn a_program_runs_on_its_data(context: &Context) -> Verdict {
    let lab = opened(context)?;
    scale(&lab, &[1.0, 2.0, 3.0], 2.0)?;
    let report = device(&lab)?.run(PATIENCE)?;
    assert_eq!(report.exit_code, 0, "{report:?}");
    same("scaled", &result(&lab)?, &[2.0, 4.0, 6.0])
}

fn a_program_can_run_again(context: &Context) -> Verdict {
    let lab = opened(context)?;
    scale(&lab, &[1.0; 1000], 2.0)?;
    for _ in 0..3 {
        device(&lab)?.run(PATIENCE)?;
    }
    let data = result(&lab)?;
    assert!(data.iter().all(|&x| x == data[0]) && [2.0, 8.0].contains(&data[0]), "{}", data[0]);
    Ok(())
}

fn a_new_program_replaces_the_old(context: &Context) -> Verdict {
    let lab = opened(context)?;
    scale(&lab, &[1.0; 10], 2.0)?;
    scale(&lab, &[5.0; 7], 3.0)?;
    device(&lab)?.run(PATIENCE)?;
    same("of the new one", &result(&lab)?, &[15.0; 7])
}

fn seeds_make_the_same_data(context: &Context) -> Verdict {
    let lab = opened(context)?;
    let filled = |seed| -> Result<Vec<f32>, Failure> {
        let tensor = device(&lab)?.tensor_from_seed(DType::F32, &[4, 25], seed)?;
        device(&lab)?
            .flash(&program(&lab, "scale_f32")?, &[Arg::read_write(&tensor), Arg::scalar(1.0f32)])?;
        device(&lab)?.run(PATIENCE)?;
        assert_eq!(device(&lab)?.read(0)?.shape(), [4, 25]);
        result(&lab)
    };
    let first = filled(1)?;
    assert!(first.iter().all(|x| (0.0..1.0).contains(x)), "floats of a seed lie between 0 and 1");
    same("the same seed", &filled(1)?, &first)?;
    assert_ne!(filled(2)?, first, "another seed");
    Ok(())
}

fn scalars_reach_the_program(context: &Context) -> Verdict {
    let lab = opened(context)?;
    for factor in [0.0, -1.5, 1e30] {
        scale(&lab, &[1.0; 3], factor)?;
        device(&lab)?.run(PATIENCE)?;
        same("scaled", &result(&lab)?, &[factor; 3])?;
    }
    Ok(())
}

fn zero_size_tensors_are_flashed(context: &Context) -> Verdict {
    let lab = opened(context)?;
    scale(&lab, &[], 2.0)?;
    device(&lab)?.run(PATIENCE)?;
    same("nothing", &result(&lab)?, &[])
}

fn running_nothing_is_refused(context: &Context) -> Verdict {
    let lab = opened(context)?;
    refused("run", device(&lab)?.run(PATIENCE), ErrorKind::InvalidArgument, &["run", "flash"]).map(drop)
}

fn reading_nothing_is_refused(context: &Context) -> Verdict {
    let lab = opened(context)?;
    refused("before", device(&lab)?.read(0), ErrorKind::InvalidArgument, &["read", "flash"])?;
    scale(&lab, &[1.0], 2.0)?;
    refused("beyond", device(&lab)?.read(1), ErrorKind::InvalidArgument, &["tensor 1"]).map(drop)
}

fn a_tensor_of_another_opening_is_refused(context: &Context) -> Verdict {
    let (lab, other) = (opened(context)?, opened(context)?);
    let tensor = device(&other)?.tensor_from_seed(DType::F32, &[3], 1)?;
    let flashed =
        device(&lab)?.flash(&program(&lab, "scale_f32")?, &[Arg::read_write(&tensor), Arg::scalar(1.0f32)]);
    refused("tensor", flashed, ErrorKind::InvalidArgument, &["argument 0", "flash"]).map(drop)
}

fn a_program_that_is_too_slow_times_out(context: &Context) -> Verdict {
    let lab = opened(context)?;
    device(&lab)?.flash(&program(&lab, "spin")?, &[Arg::scalar(2_000_000i64)])?;
    refused("run", device(&lab)?.run(Duration::from_millis(1)), ErrorKind::Timeout, &["run"])?;
    scale(&lab, &[1.0; 3], 4.0)?;
    device(&lab)?.run(PATIENCE)?;
    same("afterwards", &result(&lab)?, &[4.0; 3])
}

fn a_wrong_image_is_refused(context: &Context) -> Verdict {
    let lab = opened(context)?;
    let Err(error) = device(&lab)?.flash(&lab.kernels()?.broken(), &[]) else {
        return Err(Failure::Failed("a broken image was flashed".to_owned()));
    };
    assert!(error.operation().contains("flash") && error.device() == Some(context.name()), "{error:?}");
    refused(
        "option",
        device(&lab)?.flash(&program(&lab, "noop")?.option("no_such", 1), &[]),
        ErrorKind::InvalidArgument,
        &["no_such"],
    )
    .map(drop)
}

fn a_failed_flash_does_not_poison_the_next(context: &Context) -> Verdict {
    let lab = opened(context)?;
    assert!(device(&lab)?.flash(&lab.kernels()?.broken(), &[]).is_err());
    a_program_runs_on_its_data(context)?;
    scale(&lab, &[1.0; 3], 2.0)?;
    device(&lab)?.run(PATIENCE)?;
    same("afterwards", &result(&lab)?, &[2.0; 3])
}

fn a_failing_program_says_so(context: &Context) -> Verdict {
    let lab = opened(context)?;
    device(&lab)?.flash(&program(&lab, "fail")?, &[])?;
    refused("run", device(&lab)?.run(PATIENCE), ErrorKind::Failed, &["run"]).map(drop)
}

fn it_has_no_queues(context: &Context) -> Verdict {
    let lab = opened(context)?;
    refused(
        "queue",
        lab.device().open_queue(&QueueOptions::default()),
        ErrorKind::Unsupported,
        &["open_queue"],
    )
    .map(drop)
}

fn its_tensors_are_described(context: &Context) -> Verdict {
    let lab = opened(context)?;
    let tensor = lab.device().allocate(DType::F32, &[2, 3], &Placement::default())?;
    assert_eq!((tensor.shape(), tensor.dtype(), tensor.space()), (&[2, 3][..], DType::F32, "described"));
    refused("read", tensor.to_vec::<f32>(), ErrorKind::Unsupported, &["described", context.name()])?;
    refused("write", tensor.write(&[0.0f32; 6]), ErrorKind::Unsupported, &["described"])?;
    refused("map", tensor.map(), ErrorKind::Unsupported, &["described"])?;
    refused("slice", tensor.slice(0, 0..1), ErrorKind::Unsupported, &["described"])?;
    refused("freeze", tensor.freeze(), ErrorKind::Unsupported, &["described"])?;
    let overflow = device(&lab)?.tensor_from_seed(DType::F32, &[usize::MAX, 2], 1);
    refused("shape", overflow, ErrorKind::InvalidArgument, &["shape"]).map(drop)
}

fn an_unaccepted_format_is_refused(context: &Context) -> Verdict {
    let lab = opened(context)?;
    let words = ["no-such-format", &context.info().formats[0], "flash"];
    refused("format", device(&lab)?.flash(&kernels::foreign(), &[]), ErrorKind::Unsupported, &words).map(drop)
}
