//! Who a device is, how it is found, and how it is opened.

use std::collections::HashSet;
use std::sync::Arc;

use runtime_core::{CommonRuntime, DeviceKind, ErrorKind, Options, Runtime, Tensor, abi};

use crate::case::{Failure, Need, Verdict, cases};
use crate::context::Context;
use crate::data::{all, refused};
use crate::lab::Lab;

cases! {
    [] => the_device_string_names_the_device, the_description_is_filled_in, the_kind_is_one_of_three,
        two_listings_are_alike, indices_are_unique, a_bare_target_is_index_zero, a_name_opens_its_device,
        a_wrong_index_lists_the_right_ones, a_wrong_target_lists_the_right_ones, an_empty_name_is_refused,
        an_unknown_option_is_refused, an_option_of_the_wrong_type_is_refused, every_option_is_documented,
        sub_devices_belong_to_their_device, siblings_are_the_others, opens_from_many_threads,
        two_runtimes_live_side_by_side;
    [Need::Queues] => two_openings_are_apart, a_failing_open_does_not_poison_the_next,
        a_device_outlives_its_runtime, everything_made_from_a_device_keeps_it_open;
    [Need::Capability(abi::CAP_TELEMETRY)] => telemetry_tells_something;
}

fn the_device_string_names_the_device(context: &Context) -> Verdict {
    let device = context.lab().device();
    assert_eq!(device.device_id().to_string(), context.name());
    assert_eq!(device.target_name(), context.target().name);
    assert_eq!(device.device_name(), device.info().name);
    assert_eq!(device.device_arch(), device.info().arch);
    Ok(())
}

fn the_description_is_filled_in(context: &Context) -> Verdict {
    let info = context.info();
    assert!(!info.name.is_empty() && !info.driver_version.is_empty() && !info.formats.is_empty(), "{info:?}");
    assert!(info.compute_units >= 1 && info.unusable.is_none(), "{info:?}");
    assert!(info.kind == DeviceKind::Embedded || !info.spaces.is_empty(), "{info:?}");
    for space in &info.spaces {
        assert!(space.alignment_bytes.is_power_of_two() && !space.name.is_empty(), "{space:?}");
        assert!(space.host_visible || space.kernel_visible, "nobody can use {space:?}");
    }
    let names: HashSet<_> = info.spaces.iter().map(|space| &space.name).collect();
    assert_eq!(names.len(), info.spaces.len(), "two memory spaces of one name");
    let limits = &info.limits;
    assert!(
        limits.group_items >= 1 && !limits.groups.contains(&0) && !limits.group_size.contains(&0),
        "{limits:?}"
    );
    Ok(())
}

fn the_kind_is_one_of_three(context: &Context) -> Verdict {
    let device = context.lab().device();
    let kinds =
        [device.as_host().is_some(), device.as_accelerator().is_some(), device.as_embedded().is_some()];
    let kind = device.info().kind;
    assert_eq!(
        kinds,
        [kind == DeviceKind::Host, kind == DeviceKind::Accelerator, kind == DeviceKind::Embedded]
    );
    Ok(())
}

fn two_listings_are_alike(context: &Context) -> Verdict {
    let list = || {
        context
            .runtime()
            .devices()
            .into_iter()
            .map(|info| (info.id, info.name, info.uuid))
            .collect::<Vec<_>>()
    };
    assert_eq!(list(), list());
    Ok(())
}

fn indices_are_unique(context: &Context) -> Verdict {
    let devices = context.runtime().devices();
    let ids: HashSet<_> = devices.iter().map(|info| &info.id).collect();
    assert_eq!(ids.len(), devices.len(), "two devices of one identity");
    for part in devices.iter().filter(|info| info.id.sub.is_some()) {
        let whole =
            |info: &&runtime_core::DeviceInfo| info.id.index == part.id.index && info.id.sub.is_none();
        assert!(
            devices.iter().filter(|info| info.id.target == part.id.target).any(|info| whole(&info)),
            "{} has no whole",
            part.id
        );
    }
    Ok(())
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
        refused("a name of several devices", opened, ErrorKind::InvalidArgument, &["use the index"])?;
    }
    Ok(())
}

fn a_wrong_index_lists_the_right_ones(context: &Context) -> Verdict {
    for wrong in ["4711", "0.4711", "no-such-name"] {
        let device = format!("{}:{wrong}", context.target().name);
        refused(wrong, context.runtime().open(&device), ErrorKind::NotFound, &[&device, context.name()])?;
    }
    Ok(())
}

fn a_wrong_target_lists_the_right_ones(context: &Context) -> Verdict {
    let target = &context.target().name;
    refused(
        "target",
        context.runtime().open(&format!("{target}x")),
        ErrorKind::NotFound,
        &[&format!("did you mean \"{target}\""), "x"],
    )?;
    Ok(())
}

fn an_empty_name_is_refused(context: &Context) -> Verdict {
    for name in ["", ":", ":0", &format!("{}:", context.target().name)] {
        refused(name, context.runtime().open(name), ErrorKind::InvalidArgument, &["target:index"])?;
    }
    Ok(())
}

fn an_unknown_option_is_refused(context: &Context) -> Verdict {
    let options = Options::new().with("no_such_option", 1);
    let error = refused(
        "option",
        context.runtime().open_with(context.name(), &options),
        ErrorKind::InvalidArgument,
        &["no_such_option"],
    )?;
    assert_eq!(error.device(), Some(context.name()), "{error}");
    Ok(())
}

fn an_option_of_the_wrong_type_is_refused(context: &Context) -> Verdict {
    let scope = runtime_core::OptionScope::Device;
    let Some(spec) = context.target().options.iter().find(|spec| spec.scope == scope) else {
        return Err(Failure::Unsupported("the backend has no device options".to_owned()));
    };
    let wrong =
        if spec.default.type_name() == "a number" { runtime_core::Value::from(true) } else { 0.5.into() };
    let options = Options::new().with(&spec.key, wrong);
    refused(
        "type",
        context.runtime().open_with(context.name(), &options),
        ErrorKind::InvalidArgument,
        &[&spec.key, "wants"],
    )?;
    Ok(())
}

fn every_option_is_documented(context: &Context) -> Verdict {
    let mut keys = HashSet::new();
    for spec in &context.target().options {
        assert!(!spec.key.is_empty() && !spec.doc.is_empty(), "{spec:?}");
        assert!(
            keys.insert((spec.key.clone(), spec.scope == runtime_core::OptionScope::Device)),
            "{} twice",
            spec.key
        );
    }
    Ok(())
}

fn sub_devices_belong_to_their_device(context: &Context) -> Verdict {
    for info in context.lab().device().sub_devices()? {
        assert!(info.id.sub.is_some() && info.id.index == context.info().id.index, "{}", info.id);
        if info.unusable.is_none() {
            assert_eq!(context.runtime().open(&info.id.to_string())?.device_id(), &info.id);
        }
    }
    Ok(())
}

fn siblings_are_the_others(context: &Context) -> Verdict {
    let siblings = context.lab().device().sibling_devices()?;
    assert!(siblings.iter().all(|info| info.id.target == context.target().name && info.id.sub.is_none()));
    assert!(siblings.iter().all(|info| info.id != context.info().id));
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
    refused("a tensor of another opening", queue.fill(&b, &[0]), ErrorKind::InvalidArgument, &["fill"])?;
    drop(first);
    all("second", &b, 2.0)?;
    all("first", &a, 1.0)
}

fn a_failing_open_does_not_poison_the_next(context: &Context) -> Verdict {
    for _ in 0..3 {
        let bad = context.runtime().open_with(context.name(), &Options::new().with("no_such_option", 1));
        refused("bad option", bad, ErrorKind::InvalidArgument, &[])?;
        if context.has_option("open_fails") {
            let bad = context.runtime().open_with(context.name(), &Options::new().with("open_fails", true));
            refused("open_fails", bad, ErrorKind::Driver, &[])?;
        }
        let lab = context.reopen(&Options::new())?;
        all("after a failure", &lab.full(10, 3.0)?, 3.0)?;
    }
    Ok(())
}

/// A `Runtime` of its own with the same library.
fn another_runtime(context: &Context) -> Result<Runtime, Failure> {
    let path = context.target().path.as_ref();
    let path = path.ok_or_else(|| Failure::Unsupported("the backend is linked in".to_owned()))?;
    Ok(Runtime::builder().library(path).discover(false).build())
}

fn two_runtimes_live_side_by_side(context: &Context) -> Verdict {
    let (first, second) = (another_runtime(context)?, another_runtime(context)?);
    let device = first.open(context.name())?;
    drop(first);
    assert_eq!(second.open(context.name())?.device_id(), device.device_id());
    Ok(())
}

fn a_device_outlives_its_runtime(context: &Context) -> Verdict {
    let runtime = another_runtime(context)?;
    let lab = Lab::new(runtime.open(context.name())?);
    drop(runtime);
    all("without a runtime", &lab.full(10, 4.0)?, 4.0)
}

fn everything_made_from_a_device_keeps_it_open(context: &Context) -> Verdict {
    let device: Arc<dyn CommonRuntime> = context.runtime().open(context.name())?;
    let tensor = Tensor::from_slice(&*device, &[3], &[5.0f32; 3])?;
    drop(device);
    all("without a device", &tensor, 5.0)
}

fn telemetry_tells_something(context: &Context) -> Verdict {
    let telemetry = context.lab().device().telemetry()?;
    assert_ne!(telemetry, runtime_core::Telemetry::default(), "the capability is there, but no figure");
    Ok(())
}
