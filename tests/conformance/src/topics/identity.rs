//! Identity of devices: device strings, descriptions, options.

use std::collections::HashSet;

use runtime_core::backend::OptionScope;
use runtime_core::device::Telemetry;
use runtime_core::{DeviceInfo, DeviceKind, ErrorKind, abi};

use crate::case::{Requirement, Verdict, cases};
use crate::context::Context;

cases! {
    [] => the_device_string_names_the_device, the_description_is_filled_in, the_kind_is_one_of_three,
        two_listings_are_alike, indices_are_unique, every_option_is_documented,
        sub_devices_belong_to_their_device, siblings_are_the_others, telemetry_has_values_or_is_unsupported;
    [Requirement::Capability(abi::CAP_TELEMETRY)] => telemetry_has_values;
}

fn the_device_string_names_the_device(context: &Context) -> Verdict {
    let device = context.fixture().device();
    assert_eq!(device.device_id().to_string(), context.name());
    assert_eq!(device.target_name(), context.target().name);
    assert_eq!(device.device_name(), device.info().name);
    assert_eq!(device.device_arch(), device.info().arch.as_deref());
    Ok(())
}

fn the_description_is_filled_in(context: &Context) -> Verdict {
    let info = context.info();
    assert!(!info.name.is_empty() && info.driver_version.is_some() && !info.formats.is_empty(), "{info:?}");
    assert!(info.unavailable_reason.is_none(), "{info:?}");
    assert!(info.kind == DeviceKind::Embedded || !info.spaces.is_empty(), "{info:?}");
    for space in &info.spaces {
        assert!(space.alignment_bytes.is_power_of_two() && !space.name.is_empty(), "{space:?}");
        assert!(space.host_visible || space.kernel_visible, "neither the host nor kernels can use {space:?}");
    }
    let names: HashSet<_> = info.spaces.iter().map(|space| &space.name).collect();
    assert_eq!(names.len(), info.spaces.len(), "two memory spaces with the same name");
    let limits = &info.limits;
    assert!(
        limits.group_items >= 1 && !limits.groups.contains(&0) && !limits.group_size.contains(&0),
        "{limits:?}"
    );
    Ok(())
}

fn the_kind_is_one_of_three(context: &Context) -> Verdict {
    let device = context.fixture().device();
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
    assert_eq!(ids.len(), devices.len(), "two devices with the same id");
    for part in devices.iter().filter(|info| info.id.sub.is_some()) {
        let whole = |info: &&DeviceInfo| info.id.index == part.id.index && info.id.sub.is_none();
        assert!(
            devices.iter().filter(|info| info.id.target == part.id.target).any(|info| whole(&info)),
            "{} has no parent device",
            part.id
        );
    }
    Ok(())
}

fn every_option_is_documented(context: &Context) -> Verdict {
    let mut keys = HashSet::new();
    for spec in &context.target().options {
        assert!(!spec.key.is_empty() && !spec.doc.is_empty(), "{spec:?}");
        assert!(keys.insert((spec.key.clone(), spec.scope != OptionScope::Module)), "{} twice", spec.key);
    }
    Ok(())
}

fn sub_devices_belong_to_their_device(context: &Context) -> Verdict {
    for info in context.fixture().device().sub_devices()? {
        assert!(info.id.sub.is_some() && info.id.index == context.info().id.index, "{}", info.id);
        if info.unavailable_reason.is_none() {
            assert_eq!(context.runtime().open(&info.id.to_string())?.device_id(), &info.id);
        }
    }
    Ok(())
}

fn siblings_are_the_others(context: &Context) -> Verdict {
    let siblings = context.fixture().device().sibling_devices()?;
    assert!(siblings.iter().all(|info| info.id.target == context.target().name && info.id.sub.is_none()));
    assert!(siblings.iter().all(|info| info.id != context.info().id));
    Ok(())
}

fn telemetry_has_values(context: &Context) -> Verdict {
    let device = context.fixture().device();
    let (first, second) = (device.telemetry()?, device.telemetry()?);
    check_telemetry(&first);
    check_telemetry(&second);
    if let (Some(before), Some(after)) = (first.energy_microjoules, second.energy_microjoules) {
        assert!(before <= after, "energy went from {before} back to {after} microjoules");
    }
    Ok(())
}

/// Without the capability a device may still report values, e.g. if it only knows after a first call.
fn telemetry_has_values_or_is_unsupported(context: &Context) -> Verdict {
    match context.fixture().device().telemetry() {
        Ok(telemetry) => check_telemetry(&telemetry),
        Err(error) => {
            assert!(!context.info().capabilities.has(abi::CAP_TELEMETRY), "declared, but: {error}");
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            assert!(!error.message().is_empty());
        }
    }
    Ok(())
}

/// At least one value, and each in a range that catches a wrong unit: 1 MHz to 100 GHz, -60 to 150 degrees, at most 100 kW.
fn check_telemetry(telemetry: &Telemetry) {
    assert_ne!(*telemetry, Telemetry::default(), "no error, but no value");
    let within = |value: Option<u64>, least, most| value.is_none_or(|value| (least..=most).contains(&value));
    let (mhz, ghz) = (1_000_000, 1_000_000_000);
    assert!(within(telemetry.clock_hz, mhz, 100 * ghz), "{telemetry:?}");
    assert!(within(telemetry.memory_clock_hz, mhz, 100 * ghz), "{telemetry:?}");
    assert!(within(telemetry.power_milliwatts, 0, 100_000_000), "{telemetry:?}");
    let temperature = telemetry.temperature_millicelsius;
    assert!(temperature.is_none_or(|value| (-60_000..=150_000).contains(&value)), "{telemetry:?}");
}
