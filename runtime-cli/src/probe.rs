//! Asks one backend for its devices in a child process: a driver that crashes or hangs takes only that with it.

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

/// How long a backend may take: drivers that start slowly need seconds.
const DEADLINE: Duration = Duration::from_secs(60);

/// What a backend answered.
#[derive(Debug)]
pub(crate) struct ProbeResult {
    pub(crate) target: String,
    version: String,
    devices: Result<Vec<Device>, String>,
}

#[derive(Debug)]
struct Device {
    id: String,
    /// Why it cannot be used, if it cannot.
    unusable: Option<String>,
}

/// Asks the backend library at `path`; `target` is its name, if it is known.
pub(crate) fn devices(path: &Path, target: Option<&str>) -> ProbeResult {
    let target = target.unwrap_or("?").to_owned();
    match run(path).and_then(|text| parse(&text)) {
        Ok(answer) => answer,
        Err(reason) => ProbeResult { target, version: String::new(), devices: Err(reason) },
    }
}

fn run(path: &Path) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot ask it: {error}"))?;
    let mut command = Command::new(program);
    command.args(["devices", "--json"]).env("RUNTIME_BACKENDS", path).stdin(Stdio::null());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("cannot ask it: {error}"))?;
    let (send, outputs) = mpsc::channel();
    let pipes: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|pipe| Box::new(pipe) as _),
        child.stderr.take().map(|pipe| Box::new(pipe) as _),
    ];
    for (index, pipe) in pipes.into_iter().enumerate() {
        let send = send.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What was read until then is all that there is.
            let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
            let _ = send.send((index, String::from_utf8_lossy(&bytes).into_owned()));
        });
    }
    let mut said = [String::new(), String::new()];
    for _ in 0..2 {
        let Ok((index, text)) = outputs.recv_timeout(DEADLINE) else {
            // It may have ended by now.
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!(
                "it does not answer for {} s; update or remove its driver",
                DEADLINE.as_secs()
            ));
        };
        said[index] = text;
    }
    let status = child.wait().map_err(|error| format!("cannot ask it: {error}"))?;
    let [stdout, stderr] = said;
    if status.success() { Ok(stdout) } else { Err(crashed(status, &stderr)) }
}

fn crashed(status: ExitStatus, stderr: &str) -> String {
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    format!("its process was ended while it listed its devices ({status}): {last}")
}

fn parse(text: &str) -> Result<ProbeResult, String> {
    let document: Value =
        serde_json::from_str(text).map_err(|error| format!("its answer is damaged: {error}"))?;
    let target = &document["targets"][0];
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let list = || {
        let devices = target["devices"].as_array()?.iter();
        let device =
            |device: &Value| Some(Device { id: word(&device["id"])?, unusable: word(&device["unusable"]) });
        devices.map(device).collect::<Option<Vec<_>>>()
    };
    let devices = match word(&target["reason"]) {
        Some(reason) => Err(format!("unavailable: {reason}")),
        None => Ok(list().ok_or("it was not loaded")?),
    };
    Ok(ProbeResult {
        target: word(&target["target"]).unwrap_or_default(),
        version: word(&target["version"]).unwrap_or_default(),
        devices,
    })
}

impl ProbeResult {
    /// What is missing for its devices to be used, a line for each reason.
    pub(crate) fn missing(&self) -> Vec<String> {
        match &self.devices {
            Ok(devices) => devices
                .iter()
                .filter_map(|device| Some(format!("{}: {}", device.id, device.unusable.as_ref()?)))
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
        let unusable = devices.iter().filter(|device| device.unusable.is_some()).count();
        let plural = if devices.len() == 1 { "" } else { "s" };
        write!(formatter, ": {} device{plural}", devices.len())?;
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
    fn an_answer_is_a_line() {
        let text = r#"{"targets": [{"target": "x", "version": "1", "reason": null, "devices": [
            {"id": "x:0", "unusable": null}, {"id": "x:1", "unusable": "too old"}]}]}"#;
        let answer = parse(text).unwrap();
        assert_eq!(answer.to_string(), "x 1: 2 devices, 1 unusable (`runtime devices` says why)");
        assert_eq!(answer.missing(), ["x:1: too old"]);
        let reason = text.replacen("null, \"devices\"", "\"no driver\", \"devices\"", 1);
        assert_eq!(parse(&reason).unwrap().to_string(), "x 1: unavailable: no driver");
        assert!(parse("").unwrap_err().contains("damaged"));
        assert!(parse("{\"targets\": []}").unwrap_err().contains("not loaded"));
    }
}
