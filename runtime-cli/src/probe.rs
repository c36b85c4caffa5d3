//! Lists the devices of one backend in a child process, so that a driver that crashes or hangs takes down only the child.

use std::fmt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use runtime_core::ErrorKind;
use runtime_core::backend::{counted, run_program};
use serde_json::Value;

/// How long a backend may take; slow drivers need seconds to start.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Room for the list of its devices.
const LIST_BYTES: usize = 64 << 20;

/// What probing a backend found.
#[derive(Debug)]
pub(crate) struct ProbeResult {
    pub(crate) target: String,
    version: String,
    devices: Result<Vec<Device>, String>,
    /// Whether the backend says why it has no devices, such as a missing driver.
    is_absent: bool,
}

#[derive(Debug)]
struct Device {
    id: String,
    /// Whether it is a part of another device.
    is_sub_device: bool,
    /// Whether it is flashed with an image to run it.
    is_embedded: bool,
    is_simulator: bool,
    /// Why the device cannot be used, if it cannot.
    unavailable_reason: Option<String>,
}

/// The property of simulators.
pub(crate) const SIMULATOR: &str = "simulator";

/// Whether a device is used when none is named: it can be used, is no part of another one, needs no flashing, which would replace
/// what a board holds, and is not a simulator: its times are not those of a chip, and a process may have only one.
pub(crate) const fn is_used_by_default(
    is_sub_device: bool,
    is_embedded: bool,
    is_simulator: bool,
    unavailable_reason: Option<&str>,
) -> bool {
    !is_sub_device && !is_embedded && !is_simulator && unavailable_reason.is_none()
}

/// Probes the backend library at `path`; `target` is its name, if known.
pub(crate) fn probe_library(path: &Path, target: Option<&str>) -> ProbeResult {
    let target = target.unwrap_or("?").to_owned();
    match devices_json(path).and_then(|text| parse(&text)) {
        Ok(result) => result,
        Err(reason) => ProbeResult { target, version: String::new(), devices: Err(reason), is_absent: false },
    }
}

/// What `runtime devices --json` prints for the backend library at `path`.
///
/// # Errors
/// How its process failed.
pub(crate) fn devices_json(path: &Path) -> Result<String, String> {
    let program =
        std::env::current_exe().map_err(|error| format!("cannot run the probe process: {error}"))?;
    let mut command = Command::new(program);
    command.args(["devices", "--json"]).env("RUNTIME_BACKENDS", path);
    match run_program(&mut command, TIMEOUT, LIST_BYTES) {
        Err(error) if error.kind() == ErrorKind::Timeout => {
            Err(format!("no response within {} s; update or remove its driver", TIMEOUT.as_secs()))
        }
        Err(error) => Err(format!("cannot run the probe process: {}", error.message())),
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => Err(crash_message(output.status, &String::from_utf8_lossy(&output.stderr))),
    }
}

fn crash_message(status: ExitStatus, stderr: &str) -> String {
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no output");
    format!("its process ended while listing its devices ({status}): {last}")
}

fn parse(text: &str) -> Result<ProbeResult, String> {
    let document: Value =
        serde_json::from_str(text).map_err(|error| format!("its output is not valid JSON: {error}"))?;
    let target = &document["targets"][0];
    let text_of = |value: &Value| value.as_str().map(str::to_owned);
    let list = || {
        let devices = target["devices"].as_array()?.iter();
        let device = |device: &Value| {
            Some(Device {
                id: text_of(&device["id"])?,
                is_sub_device: !device["sub"].is_null(),
                is_embedded: device["kind"] == "embedded",
                is_simulator: device["properties"][SIMULATOR] == true,
                unavailable_reason: text_of(&device["unavailable_reason"]),
            })
        };
        devices.map(device).collect::<Option<Vec<_>>>()
    };
    let reason = text_of(&target["reason"]);
    let is_absent = reason.is_some();
    let devices = match reason {
        Some(reason) => Err(format!("unavailable: {reason}")),
        None => Ok(list().ok_or("the library was not loaded")?),
    };
    Ok(ProbeResult {
        is_absent,
        target: text_of(&target["target"]).unwrap_or_default(),
        version: text_of(&target["version"]).unwrap_or_default(),
        devices,
    })
}

impl ProbeResult {
    /// The devices that are used when none is named; none if the backend says why it has none.
    ///
    /// # Errors
    /// Why its devices could not be listed.
    pub(crate) fn available(&self) -> Result<Vec<String>, String> {
        match &self.devices {
            Ok(devices) => {
                let is_used = |device: &&Device| {
                    let reason = device.unavailable_reason.as_deref();
                    is_used_by_default(device.is_sub_device, device.is_embedded, device.is_simulator, reason)
                };
                Ok(devices.iter().filter(is_used).map(|device| device.id.clone()).collect())
            }
            Err(_) if self.is_absent => Ok(Vec::new()),
            Err(reason) => Err(format!("{}: {reason}", self.target)),
        }
    }

    /// Why devices cannot be used, one line per device.
    pub(crate) fn missing(&self) -> Vec<String> {
        match &self.devices {
            Ok(devices) => devices
                .iter()
                .filter_map(|device| Some(format!("{}: {}", device.id, device.unavailable_reason.as_ref()?)))
                .collect(),
            Err(reason) => vec![format!("{}: {reason}", self.target)],
        }
    }
}

impl fmt::Display for ProbeResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.target)?;
        if !self.version.is_empty() {
            write!(formatter, " {}", self.version)?;
        }
        let devices = match &self.devices {
            Ok(devices) => devices,
            Err(reason) => return write!(formatter, ": {reason}"),
        };
        let unusable = devices.iter().filter(|device| device.unavailable_reason.is_some()).count();
        write!(formatter, ": {}", counted(devices.len(), "device"))?;
        match unusable {
            0 => Ok(()),
            _ => write!(formatter, ", {unusable} unusable (`runtime devices` says why)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_result_prints_as_one_line() {
        let text = r#"{"targets": [{"target": "x", "version": "1", "reason": null, "devices": [
            {"id": "x:0", "sub": null, "unavailable_reason": null},
            {"id": "x:0.1", "sub": 1, "unavailable_reason": null},
            {"id": "x:1", "sub": null, "unavailable_reason": "too old"},
            {"id": "x:2", "sub": null, "unavailable_reason": null, "properties": {"simulator": true}}]}]}"#;
        let probed = parse(text).unwrap();
        assert_eq!(probed.to_string(), "x 1: 4 devices, 1 unusable (`runtime devices` says why)");
        assert_eq!(probed.missing(), ["x:1: too old"]);
        assert_eq!(
            probed.available().unwrap(),
            ["x:0"],
            "neither what cannot be used, nor a part, nor a simulator"
        );
        let reason = text.replacen("null, \"devices\"", "\"no driver\", \"devices\"", 1);
        let absent = parse(&reason).unwrap();
        assert_eq!(absent.to_string(), "x 1: unavailable: no driver");
        assert_eq!(absent.available(), Ok(Vec::new()));
        assert!(parse("").unwrap_err().contains("not valid JSON"));
        assert!(parse("{\"targets\": []}").unwrap_err().contains("not loaded"));
    }
}
