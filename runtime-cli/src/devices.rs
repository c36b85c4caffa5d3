//! `runtime devices`: lists devices, and why any of them cannot be used.

use clap::Args;
use runtime_core::device::Telemetry;
use runtime_core::{DeviceInfo, Result, Runtime, Target};
use runtime_harness::crash_context::CrashContext;
use runtime_harness::describe;
use runtime_harness::release::{self, release};
use serde_json::{Value, json};

use crate::output;
use crate::registry;
use crate::table::{Table, terminal_width};

#[derive(Debug, Args)]
pub(crate) struct DevicesArguments {
    /// Print everything that is known, as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Open each device, and add its current clocks, temperature, power and energy
    #[arg(long, requires = "json")]
    pub(crate) telemetry: bool,
}

pub(crate) fn list(arguments: &DevicesArguments) -> Result<()> {
    let runtime = registry::runtime();
    let targets = runtime.targets();
    let telemetry_of = arguments.telemetry.then_some(&runtime);
    let listed: Vec<Listed> = targets.iter().map(|target| (&*target.name, &target.devices)).collect();
    match arguments.json {
        true => output::print_exact(&json(&targets, telemetry_of)),
        false => output::print(&table(&listed, terminal_width())),
    }
}

/// A backend and its devices, or why it has none.
type Listed<'a> = (&'a str, &'a Result<Vec<DeviceInfo>>);

/// One line per device or absent backend, and below them the reasons why some cannot be used.
fn table(targets: &[Listed], width: Option<u16>) -> String {
    let header = ["device", "status", "name", "arch", "units", "memory", "formats"];
    let mut table = Table::one_line_rows(width, &header, &[2, 6]);
    let mut reasons = Table::within(width, &["not usable", "reason"]);
    let mut has_reasons = false;
    for (target, devices) in targets {
        let (rows, unusable) = rows(target, devices);
        rows.into_iter().for_each(|row| table.row(row));
        has_reasons |= !unusable.is_empty();
        unusable.into_iter().for_each(|(device, reason)| reasons.row(vec![device, reason]));
    }
    match (targets.is_empty(), has_reasons) {
        (true, _) => "no backend was found; `runtime doctor` shows the search paths\n".to_owned(),
        (false, true) => format!("{table}\n{reasons}"),
        (false, false) => table.to_string(),
    }
}

/// The rows of a backend, and the reasons why it or its devices cannot be used.
fn rows(target: &str, devices: &Result<Vec<DeviceInfo>>) -> (Vec<Vec<String>>, Vec<(String, String)>) {
    let absent = |reason: &str| {
        let mut cells = vec![target.to_owned(), "absent".to_owned()];
        cells.resize(7, "—".to_owned());
        (vec![cells], vec![(target.to_owned(), reason.to_owned())])
    };
    match devices {
        Ok(devices) if devices.is_empty() => absent("it has no devices"),
        Err(error) => absent(error.message()),
        Ok(devices) => {
            let reason =
                |device: &DeviceInfo| Some((device.id.to_string(), device.unavailable_reason.clone()?));
            (devices.iter().map(row).collect(), devices.iter().filter_map(reason).collect())
        }
    }
}

fn row(device: &DeviceInfo) -> Vec<String> {
    let memory = device.spaces.first().and_then(|space| space.total_bytes);
    vec![
        device.id.to_string(),
        if device.unavailable_reason.is_some() { "unusable" } else { "available" }.to_owned(),
        device.name.clone(),
        device.arch.clone().unwrap_or_default(),
        device.compute_units.map_or_else(String::new, |units| units.to_string()),
        memory.map_or_else(String::new, memory_size),
        device.format_names().join(" "),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub(crate) fn memory_size(bytes: u64) -> String {
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
    output::document("runtime.devices", 1, json!({ "targets": targets }))
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
        Ok(telemetry) => (json!(telemetry), Value::Null),
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
    use runtime_core::{DeviceKind, Error, ErrorKind};

    use super::*;

    fn listed(index: u32, name: &str, unavailable_reason: Option<&str>) -> DeviceInfo {
        let mut device = DeviceInfo::new(DeviceKind::Accelerator, index, name);
        device.id.target = "opencl".to_owned();
        device.arch = Some("vulkan-1.3".to_owned());
        device.unavailable_reason = unavailable_reason.map(str::to_owned);
        device
    }

    #[test]
    fn reasons_are_below_the_table_and_rows_are_one_line() {
        let name = "a device with a long name, several words and a version (LLVM 15.0.6)";
        let reason =
            "the driver is too old for this device, and this sentence is longer than a line of a terminal";
        let devices = vec![listed(0, name, None), listed(1, name, Some(reason))];
        let absent = Error::new(ErrorKind::Unavailable, "no libcuda.so.1");
        let (devices, absent, none) = (Ok(devices), Err(absent), Ok(Vec::new()));
        let targets: [Listed; 3] = [("opencl", &devices), ("cuda", &absent), ("none", &none)];
        let text = table(&targets, Some(80));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
        for (line, start) in [
            (1, "opencl:0  available"),
            (2, "opencl:1  unusable"),
            (3, "cuda      absent"),
            (4, "none      absent"),
        ] {
            assert!(lines[line].starts_with(start), "{text}");
        }
        assert!(lines[1].contains('…') && lines[5].is_empty(), "{text}");
        let rest: Vec<&str> = lines[6..].iter().flat_map(|line| line.split_whitespace()).collect();
        let rest = rest.join(" ");
        assert!(
            rest.contains(&format!("opencl:1 {reason}")) && rest.contains("cuda no libcuda.so.1"),
            "{text}"
        );
        let narrow = table(&targets, Some(60));
        assert!(narrow.contains("\nopencl:0  available") && narrow.contains(" vulkan-1.3\n"), "{narrow}");
        assert!(table(&targets, None).contains(name), "nothing is cut in a pipe");
        assert!(!table(&targets[..0], None).contains("reason"));
        assert!(table(&[], None).contains("runtime doctor"));
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(memory_size(0), "—");
        assert_eq!(memory_size(512), "512.0 B");
        assert_eq!(memory_size(3 << 29), "1.5 GiB");
    }
}
