//! The child process: cases from standard input, verdicts to standard output.
//!
//! A line in is the path of a case. Lines out: `run N` before launch `N` of it, `same N`, `different N …`, … after it,
//! `load …` where the module does not load, `done` at the end of the case.

use std::io::{BufRead, Write, stdin, stdout};
use std::process::ExitCode;

use crate::case::Case;
use crate::device::{Device, Verdict};
use crate::interpret::{Parsed, interpret};

/// Words of a verdict in the protocol.
#[must_use]
pub fn words(verdict: &Verdict) -> String {
    let (word, text) = match verdict {
        Verdict::Same => ("same", ""),
        Verdict::Unsupported(text) => ("unsupported", text.as_str()),
        Verdict::Refused(text) => ("refused", text.as_str()),
        Verdict::Failed(text) => ("failed", text.as_str()),
        Verdict::Different(text) => ("different", text.as_str()),
        Verdict::Crashed(text) => ("crashed", text.as_str()),
    };
    format!("{word} {}", text.replace('\n', "\\n"))
}

/// The verdict of some words.
#[must_use]
pub fn verdict(words: &str) -> Option<Verdict> {
    let (word, text) = words.split_once(' ').unwrap_or((words, ""));
    let text = text.replace("\\n", "\n");
    Some(match word {
        "same" => Verdict::Same,
        "unsupported" => Verdict::Unsupported(text),
        "refused" => Verdict::Refused(text),
        "failed" => Verdict::Failed(text),
        "different" => Verdict::Different(text),
        "crashed" => Verdict::Crashed(text),
        _ => return None,
    })
}

/// Runs cases until standard input ends.
#[must_use]
pub fn work(device: &str) -> ExitCode {
    let device = match Device::open(device) {
        Ok(device) => device,
        Err(error) => {
            say(&format!("absent {}", error.to_string().replace('\n', "\\n")));
            return ExitCode::FAILURE;
        }
    };
    say("ready");
    for path in stdin().lock().lines().map_while(Result::ok) {
        if let Err(reason) = case(&device, &path) {
            say(&format!("load refused {}", reason.replace('\n', "\\n")));
        }
        say("done");
    }
    ExitCode::SUCCESS
}

fn case(device: &Device, path: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let case = Case::parse(&text)?;
    let parsed = Parsed::new(&case.text)?;
    let expected: Result<Vec<_>, _> = case.launches.iter().map(|launch| interpret(&parsed, launch)).collect();
    let expected = expected.map_err(|invalid| format!("invalid: {invalid}"))?;
    let tell = |index, verdict: Option<Verdict>| match verdict {
        None => say(&format!("run {index}")),
        Some(verdict) => say(&format!("end {index} {}", words(&verdict))),
    };
    if let Err(verdict) = device.run(&case, &expected, tell) {
        say(&format!("load {}", words(&verdict)));
    }
    Ok(())
}

fn say(line: &str) {
    let mut out = stdout().lock();
    // Nobody is left to be told that nobody listens.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
