//! The child process: reads paths of cases from standard input, and writes verdicts to standard output.
//!
//! Lines written: `ready` (or `absent …`) once; then for each case `run N` before launch `N`, `end N VERDICT` after
//! it, `load VERDICT` if the module does not load, and `done` at the end.

use std::io::{BufRead, Write, stdin, stdout};
use std::process::ExitCode;

use crate::case::Case;
use crate::device::{Device, Verdict};
use crate::interpret::{Parsed, interpret};
use crate::transforms;

/// The name of the pseudo-device that interprets the modules that the lowering prints.
const TRANSFORMS: &str = "transforms";

/// Encodes a verdict for the protocol.
#[must_use]
pub fn encode(verdict: &Verdict) -> String {
    let (word, text) = match verdict {
        Verdict::Same => ("same", ""),
        Verdict::Unsupported(text) => ("unsupported", text.as_str()),
        Verdict::Rejected(text) => ("rejected", text.as_str()),
        Verdict::Failed(text) => ("failed", text.as_str()),
        Verdict::Different(text) => ("different", text.as_str()),
        Verdict::Crashed(text) => ("crashed", text.as_str()),
    };
    format!("{word} {}", text.replace('\n', "\\n"))
}

/// Decodes a verdict.
#[must_use]
pub fn decode(words: &str) -> Option<Verdict> {
    let (word, text) = words.split_once(' ').unwrap_or((words, ""));
    let text = text.replace("\\n", "\n");
    Some(match word {
        "same" => Verdict::Same,
        "unsupported" => Verdict::Unsupported(text),
        "rejected" => Verdict::Rejected(text),
        "failed" => Verdict::Failed(text),
        "different" => Verdict::Different(text),
        "crashed" => Verdict::Crashed(text),
        _ => return None,
    })
}

/// Runs cases until standard input ends.
#[must_use]
pub fn serve(device: &str) -> ExitCode {
    let device = match (device != TRANSFORMS).then(|| Device::open(device)).transpose() {
        Ok(device) => device,
        Err(error) => {
            send(&format!("absent {}", error.to_string().replace('\n', "\\n")));
            return ExitCode::FAILURE;
        }
    };
    send("ready");
    for path in stdin().lock().lines().map_while(Result::ok) {
        if let Err(reason) = run_case(device.as_ref(), &path) {
            send(&format!("load rejected {}", reason.replace('\n', "\\n")));
        }
        send("done");
    }
    ExitCode::SUCCESS
}

/// Runs a case on a device, or without one in the modules that the lowering prints.
fn run_case(device: Option<&Device>, path: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let case = Case::parse(&text)?;
    let parsed = Parsed::new(&case.text)?;
    let expected: Result<Vec<_>, _> = case.launches.iter().map(|launch| interpret(&parsed, launch)).collect();
    let expected = expected.map_err(|invalid| format!("invalid: {invalid}"))?;
    let report = |index, verdict: Option<Verdict>| match verdict {
        None => send(&format!("run {index}")),
        Some(verdict) => send(&format!("end {index} {}", encode(&verdict))),
    };
    let outcome = match device {
        Some(device) => device.run(&case, &expected, report),
        None => transforms::run(&case, &expected, report),
    };
    if let Err(verdict) = outcome {
        send(&format!("load {}", encode(&verdict)));
    }
    Ok(())
}

fn send(line: &str) {
    let mut out = stdout().lock();
    // Ignore errors: the parent process has gone.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
