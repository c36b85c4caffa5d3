//! Devices, options and the program itself as JSON.

use runtime_core::{DeviceInfo, OptionSpec, OptionValue, Options, Telemetry, abi};
use serde_json::{Map, Value, json};

use crate::devices::kind;

/// The program that writes the report.
pub(crate) fn program() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "abi": format!("{}.{}", abi::MAJOR, abi::MINOR),
        "os": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
    })
}

/// A device with all its properties.
pub(crate) fn device(info: &DeviceInfo) -> Value {
    let spaces: Vec<Value> = info
        .spaces
        .iter()
        .map(|space| {
            json!({
                "name": space.name,
                "total_bytes": space.total_bytes.unwrap_or(0),
                "alignment_bytes": space.alignment_bytes,
                "host_visible": space.host_visible,
                "kernel_visible": space.kernel_visible,
            })
        })
        .collect();
    json!({
        "id": info.id.to_string(),
        "target": info.id.target,
        "index": info.id.index,
        "sub": info.id.sub,
        "kind": kind(info.kind),
        "name": info.name,
        "arch": info.arch,
        "vendor": info.vendor,
        "driver_version": info.driver_version,
        "unavailable_reason": info.unavailable_reason,
        "uuid": info.uuid.map(uuid),
        "pci_address": info.pci_address,
        "compute_units": info.compute_units,
        "clock_hz": info.clock_hz,
        "capabilities": info.capabilities.names(),
        "limits": {
            "groups": info.limits.groups,
            "group_size": info.limits.group_size,
            "group_items": info.limits.group_items,
            "shared_bytes": info.limits.shared_bytes,
            "allocation_bytes": info.limits.allocation_bytes,
        },
        "spaces": spaces,
        "formats": info.format_names(),
        "properties": options(&info.properties),
    })
}

/// The current values of a device; null for those that it does not report.
pub(crate) fn telemetry(telemetry: &Telemetry) -> Value {
    json!({
        "clock_hz": telemetry.clock_hz,
        "memory_clock_hz": telemetry.memory_clock_hz,
        "temperature_millicelsius": telemetry.temperature_millicelsius,
        "power_milliwatts": telemetry.power_milliwatts,
        "energy_microjoules": telemetry.energy_microjoules,
    })
}

fn uuid(bytes: [u8; 16]) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let parts = [&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]];
    parts.map(hex).join("-")
}

/// Options as an object. The values of a repeated key form an array.
pub(crate) fn options(options: &Options) -> Value {
    let mut object: Map<String, Value> = Map::new();
    for (key, value) in options.iter() {
        let value = option(value);
        match object.get_mut(key) {
            None => {
                object.insert(key.to_owned(), value);
            }
            Some(Value::Array(list)) => list.push(value),
            Some(single) => *single = Value::Array(vec![single.take(), value]),
        }
    }
    Value::Object(object)
}

fn option(value: &OptionValue) -> Value {
    match value {
        OptionValue::Flag(value) => json!(value),
        OptionValue::Integer(value) => json!(value),
        OptionValue::Number(value) => json!(value),
        OptionValue::Text(value) => json!(value),
    }
}

/// The specification of a backend option.
pub(crate) fn option_spec(spec: &OptionSpec) -> Value {
    let scope = match spec.scope {
        runtime_core::OptionScope::Device => "device",
        runtime_core::OptionScope::Module => "module",
    };
    json!({
        "key": spec.key,
        "scope": scope,
        "default": option(&spec.default),
        "choices": spec.choices,
        "doc": spec.doc,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_options_are_lists() {
        let given = Options::new().with("define", "A=1").with("fast", true).with("define", "B=2");
        assert_eq!(options(&given), json!({ "define": ["A=1", "B=2"], "fast": true }));
    }

    #[test]
    fn a_uuid_is_written_in_groups() {
        assert_eq!(uuid([0xab; 16]), "abababab-abab-abab-abab-abababababab");
    }
}
