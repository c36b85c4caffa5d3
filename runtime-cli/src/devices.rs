//! `runtime devices`: lists devices, and why any of them cannot be used.

use runtime_core::{DeviceInfo, Result, Runtime, Target, Telemetry};
use runtime_harness::crash_context::CrashContext;
use runtime_harness::describe::{self, Program};
use runtime_harness::release::{self, release};
use serde_json::{Value, json};

use crate::arguments::DevicesArguments;
use crate::output;
use crate::registry;
use crate::table::Table;

pub(crate) fn list(arguments: &DevicesArguments) -> Result<()> {
    let runtime = registry::runtime();
    let targets = runtime.targets();
    let telemetry_of = arguments.telemetry.then_some(&runtime);
    output::print(&if arguments.json { json(&targets, telemetry_of) } else { table(&targets) })
}

fn table(targets: &[Target]) -> String {
    let mut table = Table::new(&["device", "status", "kind", "name", "arch", "units", "memory", "formats"]);
    for target in targets {
        match &target.devices {
            Ok(devices) if devices.is_empty() => table.row(absent_row(&target.name, "no devices")),
            Ok(devices) => devices.iter().for_each(|device| table.row(row(device))),
            Err(error) => table.row(absent_row(&target.name, &format!("unavailable: {}", error.message()))),
        }
    }
    match targets.is_empty() {
        true => "no backend was found; `runtime doctor` shows the search paths\n".to_owned(),
        false => table.to_string(),
    }
}

fn absent_row(target: &str, reason: &str) -> Vec<String> {
    let mut cells = vec![target.to_owned(), reason.to_owned()];
    cells.resize(8, "—".to_owned());
    cells
}

fn row(device: &DeviceInfo) -> Vec<String> {
    let status = device
        .unavailable_reason
        .as_ref()
        .map_or_else(|| "available".to_owned(), |reason| format!("unusable: {reason}"));
    let memory = device.spaces.first().and_then(|space| space.total_bytes);
    vec![
        device.id.to_string(),
        status,
        describe::kind(device.kind).to_owned(),
        device.name.clone(),
        device.arch.clone().unwrap_or_default(),
        device.compute_units.map_or_else(String::new, |units| units.to_string()),
        memory.map_or_else(String::new, memory_size),
        device.format_names().join(" "),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
fn memory_size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    match bytes {
        0 => "—".to_owned(),
        _ => format!("{value:.1} {}", units[unit]),
    }
}

fn json(targets: &[Target], telemetry_of: Option<&Runtime>) -> String {
    let targets: Vec<Value> = targets.iter().map(|target| target_json(target, telemetry_of)).collect();
    let document = json!({
        "schema": "runtime.devices",
        "version": 1,
        "runtime": Program::current(),
        "targets": targets,
    });
    format!("{document:#}\n")
}

fn target_json(target: &Target, telemetry_of: Option<&Runtime>) -> Value {
    let device = |info: &DeviceInfo| match telemetry_of {
        None => describe::device(info),
        Some(runtime) => with_telemetry(describe::device(info), read_telemetry(runtime, info)),
    };
    let (devices, reason) = match &target.devices {
        Ok(devices) => (devices.iter().map(device).collect(), Value::Null),
        Err(error) => (Vec::new(), error.to_string().into()),
    };
    let options: Vec<Value> = target.options.iter().map(describe::option_spec).collect();
    json!({
        "target": target.name,
        "version": target.version,
        "path": target.path,
        "reason": reason,
        "options": options,
        "devices": devices,
    })
}

fn with_telemetry(mut device: Value, telemetry: Result<Telemetry>) -> Value {
    (device["telemetry"], device["telemetry_reason"]) = match telemetry {
        Ok(telemetry) => (describe::telemetry(&telemetry), Value::Null),
        Err(error) => (Value::Null, error.to_string().into()),
    };
    device
}

/// Opens a device and reads its telemetry once.
fn read_telemetry(runtime: &Runtime, info: &DeviceInfo) -> Result<Telemetry> {
    let name = info.id.to_string();
    let _context = CrashContext::enter(format!("while the telemetry of {name} was read"));
    let device = runtime.open(&name)?;
    let telemetry = device.telemetry();
    release(device, "the device", &name, release::DEADLINE)?;
    telemetry
}

#[cfg(test)]
mod tests {
    use runtime_core::DeviceKind;

    use super::*;

    #[test]
    fn an_unusable_device_is_listed_with_the_reason() {
        let mut broken = DeviceInfo::new(DeviceKind::Accelerator, 1, "Old");
        broken.id.target = "x".to_owned();
        broken.unavailable_reason = Some("driver too old".to_owned());
        assert_eq!(row(&broken)[..3], ["x:1", "unusable: driver too old", "accelerator"]);
        broken.unavailable_reason = None;
        assert_eq!(row(&broken)[1], "available");
        assert_eq!(row(&broken).len(), absent_row("cuda", "unavailable: no libcuda.so.1").len());
        assert!(table(&[]).contains("runtime doctor"));
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(memory_size(0), "—");
        assert_eq!(memory_size(512), "512.0 B");
        assert_eq!(memory_size(3 << 29), "1.5 GiB");
    }
}
