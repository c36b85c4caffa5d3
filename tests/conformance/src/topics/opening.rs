//! Opening devices: by every kind of name, with options, repeatedly, concurrently.

use std::sync::Arc;

use runtime_core::{CommonRuntime, ErrorKind, OptionValue, Options};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_error};
use crate::fixture::Fixture;

cases! {
    [] => a_bare_target_is_index_zero, a_name_opens_its_device, a_wrong_index_lists_the_right_ones,
        a_wrong_target_lists_the_right_ones, an_empty_name_is_refused, an_unknown_option_is_refused,
        an_option_of_the_wrong_type_is_refused, opens_from_many_threads, two_runtimes_live_side_by_side,
        a_diagnosis_has_titled_texts, an_open_device_needs_no_other_process;
    [Requirement::Queues] => two_openings_are_apart, a_failing_open_does_not_poison_the_next,
        a_device_outlives_its_runtime, everything_made_from_a_device_keeps_it_open,
        peers_are_of_one_runtime;
}

fn a_bare_target_is_index_zero(context: &Context) -> Verdict {
    match context.runtime().open(&context.target().name) {
        Ok(device) => assert_eq!((device.device_id().index, device.device_id().sub), (0, None)),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
    }
    Ok(())
}

fn a_name_opens_its_device(context: &Context) -> Verdict {
    let name = &context.info().name;
    let devices = context.runtime().devices();
    let same = |info: &&runtime_core::DeviceInfo| {
        info.id.target == context.target().name
            && info.name.eq_ignore_ascii_case(name)
            && info.id.sub.is_none()
    };
    let opened = context.runtime().open(&format!("{}:{}", context.target().name, name.to_uppercase()));
    if devices.iter().filter(same).count() == 1 {
        assert_eq!(opened?.device_id(), &context.info().id);
    } else {
        expect_error("a name of several devices", opened, ErrorKind::InvalidArgument, &["use the index"])?;
    }
    Ok(())
}

fn a_diagnosis_has_titled_texts(context: &Context) -> Verdict {
    match context.runtime().diagnose(&context.target().name) {
        Err(error) if error.kind() == ErrorKind::Unsupported => Err(Failure::Unsupported(error.to_string())),
        diagnosis => {
            let is_text = |(title, text): (&str, &OptionValue)| {
                !title.is_empty() && matches!(text, OptionValue::Text(_))
            };
            let diagnosis = diagnosis?;
            assert!(diagnosis.iter().all(is_text), "{diagnosis:?}");
            Ok(())
        }
    }
}

fn an_open_device_needs_no_other_process(context: &Context) -> Verdict {
    let device = context.info().id.to_string();
    context.runtime().open(&device)?;
    let variables = context.runtime().process_variables(&device, &Options::new())?;
    assert!(variables.is_empty(), "{variables:?}");
    Ok(())
}

fn a_wrong_index_lists_the_right_ones(context: &Context) -> Verdict {
    for wrong in ["4711", "0.4711", "no-such-name"] {
        let device = format!("{}:{wrong}", context.target().name);
        expect_error(
            wrong,
            context.runtime().open(&device),
            ErrorKind::NotFound,
            &[&device, context.name()],
        )?;
    }
    Ok(())
}

fn a_wrong_target_lists_the_right_ones(context: &Context) -> Verdict {
    let target = &context.target().name;
    expect_error(
        "target",
        context.runtime().open(&format!("{target}x")),
        ErrorKind::NotFound,
        &[&format!("did you mean \"{target}\""), "x"],
    )?;
    Ok(())
}

fn an_empty_name_is_refused(context: &Context) -> Verdict {
    for name in ["", ":", ":0", &format!("{}:", context.target().name)] {
        expect_error(name, context.runtime().open(name), ErrorKind::InvalidArgument, &["target:index"])?;
    }
    Ok(())
}

fn an_unknown_option_is_refused(context: &Context) -> Verdict {
    let options = Options::new().with("no_such_option", 1);
    let error = expect_error(
        "option",
        context.runtime().open_with(context.name(), &options),
        ErrorKind::InvalidArgument,
        &["no_such_option"],
    )?;
    assert_eq!(error.device(), Some(context.name()), "{error}");
    Ok(())
}

fn an_option_of_the_wrong_type_is_refused(context: &Context) -> Verdict {
    let scope = runtime_core::backend::OptionScope::Device;
    let Some(spec) = context.target().options.iter().find(|spec| spec.scope == scope) else {
        return Err(Failure::Unsupported("the backend has no device options".to_owned()));
    };
    let wrong = if spec.default.type_name() == "a number" { OptionValue::from(true) } else { 0.5.into() };
    let options = Options::new().with(&spec.key, wrong);
    expect_error(
        "type",
        context.runtime().open_with(context.name(), &options),
        ErrorKind::InvalidArgument,
        &[&spec.key, "takes"],
    )?;
    Ok(())
}

fn opens_from_many_threads(context: &Context) -> Verdict {
    std::thread::scope(|scope| {
        let open = || context.runtime().open(context.name()).map(|device| device.device_id().to_string());
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().try_for_each(|thread| {
            let name = thread.join().map_err(|_| Failure::Failed("a thread panicked".to_owned()))??;
            assert_eq!(name, context.name());
            Ok(())
        })
    })
}

fn two_openings_are_apart(context: &Context) -> Verdict {
    let (first, second) = (context.reopen(&Options::new())?, context.reopen(&Options::new())?);
    let (a, b) = (first.full(100, 1.0)?, second.full(100, 2.0)?);
    let queue = first.queue()?;
    expect_error("a tensor of another opening", queue.fill(&b, &[0]), ErrorKind::InvalidArgument, &["fill"])?;
    drop(first);
    expect_all("second", &b, 2.0)?;
    expect_all("first", &a, 1.0)
}

fn a_failing_open_does_not_poison_the_next(context: &Context) -> Verdict {
    for _ in 0..3 {
        let bad = context.runtime().open_with(context.name(), &Options::new().with("no_such_option", 1));
        expect_error("bad option", bad, ErrorKind::InvalidArgument, &[])?;
        if context.has_option("open_fails") {
            let bad = context.runtime().open_with(context.name(), &Options::new().with("open_fails", true));
            expect_error("open_fails", bad, ErrorKind::Driver, &[])?;
        }
        let fixture = context.reopen(&Options::new())?;
        expect_all("after a failure", &fixture.full(10, 3.0)?, 3.0)?;
    }
    Ok(())
}

fn peers_are_of_one_runtime(context: &Context) -> Verdict {
    let other = context.another_runtime()?.open(context.name())?;
    let (first, second) = (context.reopen(&Options::new())?, context.reopen(&Options::new())?);
    let all = [first.device(), second.device(), &*other].map(CommonRuntime::as_accelerator);
    let [Some(device), Some(peer), Some(stranger)] = all else {
        return Err(Failure::Unsupported("only accelerators have peers".to_owned()));
    };
    // Whether a device is its own peer depends on the driver, but both directions must agree.
    assert_eq!(device.can_access(peer)?, peer.can_access(device)?);
    assert!(!device.can_access(stranger)?, "a device of another runtime");
    Ok(())
}

fn two_runtimes_live_side_by_side(context: &Context) -> Verdict {
    let (first, second) = (context.another_runtime()?, context.another_runtime()?);
    let device = first.open(context.name())?;
    drop(first);
    assert_eq!(second.open(context.name())?.device_id(), device.device_id());
    Ok(())
}

fn a_device_outlives_its_runtime(context: &Context) -> Verdict {
    let runtime = context.another_runtime()?;
    let fixture = Fixture::new(runtime.open(context.name())?, context.kernel_provider().clone());
    drop(runtime);
    expect_all("without a runtime", &fixture.full(10, 4.0)?, 4.0)
}

fn everything_made_from_a_device_keeps_it_open(context: &Context) -> Verdict {
    let device: Arc<dyn CommonRuntime> = context.runtime().open(context.name())?;
    let tensor = device.tensor([3], &[5.0f32; 3])?;
    drop(device);
    expect_all("without a device", &tensor, 5.0)
}
