//! Devices, options and the program itself as JSON.

use runtime_core::backend::OptionSpec;
use runtime_core::{DeviceInfo, DeviceKind, OptionValue, Options, abi};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The program that writes a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its version.
    pub version: String,
    /// `major.minor` of the backend ABI.
    pub abi: String,
    /// The operating system.
    pub os: String,
    /// The processor architecture.
    pub architecture: String,
    /// How it was compiled: `debug` or `release`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The git commit that it was built from, if whoever built it has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

impl Program {
    /// This program.
    #[must_use]
    pub fn current() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            abi: format!("{}.{}", abi::MAJOR, abi::MINOR),
            os: std::env::consts::OS.to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            profile: Some(if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned()),
            commit: option_env!("RUNTIME_BUILD_COMMIT").map(str::to_owned),
        }
    }

    /// Its version and its build.
    #[must_use]
    pub fn text(&self) -> String {
        let build = self.build();
        if build.is_empty() { self.version.clone() } else { format!("{} ({build})", self.version) }
    }

    /// How and of which commit it was built; empty if unknown.
    pub(crate) fn build(&self) -> String {
        [&self.profile, &self.commit].into_iter().flatten().cloned().collect::<Vec<_>>().join(", ")
    }

    /// The same program, whatever its build.
    pub(crate) fn without_build(&self) -> Self {
        Self { profile: None, commit: None, ..self.clone() }
    }
}

/// The name of a device kind.
#[must_use]
pub const fn kind(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Host => "host",
        DeviceKind::Accelerator => "accelerator",
        DeviceKind::Embedded => "embedded",
    }
}

/// A device with all its properties.
#[must_use]
pub fn device(info: &DeviceInfo) -> Value {
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
        "limits": info.limits,
        "spaces": spaces,
        "formats": info.format_names(),
        "properties": options(&info.properties),
    })
}

fn uuid(bytes: [u8; 16]) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let parts = [&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]];
    parts.map(hex).join("-")
}

/// Options as an object. The values of a repeated key form an array.
#[must_use]
pub fn options(options: &Options) -> Map<String, Value> {
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
    object
}

/// An option's value.
pub(crate) fn option(value: &OptionValue) -> Value {
    match value {
        OptionValue::Flag(value) => json!(value),
        OptionValue::Integer(value) => json!(value),
        OptionValue::Number(value) => json!(value),
        OptionValue::Text(value) => json!(value),
    }
}

/// Reads what [`options`] writes.
///
/// # Errors
/// A message that names the key.
pub fn read_options(object: &Map<String, Value>) -> Result<Options, String> {
    let mut read = Options::new();
    for (key, value) in object {
        read_option_list(key, value)?.into_iter().for_each(|value| read.push(key, value));
    }
    Ok(read)
}

/// Reads the value of an option, or the list of its values.
pub(crate) fn read_option_list(key: &str, value: &Value) -> Result<Vec<OptionValue>, String> {
    let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let read = values.iter().map(|value| {
        read_option(value).ok_or_else(|| {
            format!("option \"{key}\" must be text, a number, true or false, or a list of these")
        })
    });
    read.collect()
}

fn read_option(value: &Value) -> Option<OptionValue> {
    match value {
        Value::Bool(flag) => Some(OptionValue::Flag(*flag)),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Some(OptionValue::Integer(integer)),
            None => number.as_f64().map(OptionValue::Number),
        },
        Value::String(text) => Some(OptionValue::Text(text.clone())),
        _ => None,
    }
}

/// Options as a field of plain data.
pub(crate) mod options_json {
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::{Serialize, Serializer};

    use super::*;

    pub(crate) fn serialize<S: Serializer>(options: &Options, serializer: S) -> Result<S::Ok, S::Error> {
        super::options(options).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Options, D::Error> {
        read_options(&Map::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// The specification of a backend option.
#[must_use]
pub fn option_spec(spec: &OptionSpec) -> Value {
    let scope = match spec.scope {
        runtime_core::backend::OptionScope::Device => "device",
        runtime_core::backend::OptionScope::DeviceCode => "device-code",
        runtime_core::backend::OptionScope::Module => "module",
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
        let written = options(&given);
        assert_eq!(json!(written), json!({ "define": ["A=1", "B=2"], "fast": true }));
        assert_eq!(options(&read_options(&written).unwrap()), written);
    }

    #[test]
    fn a_uuid_is_written_in_groups() {
        assert_eq!(uuid([0xab; 16]), "abababab-abab-abab-abab-abababababab");
    }
}
