//! Who holds a lock, for those who wait for it.

use std::fmt;
use std::fs;

use crate::printable::is_obeyed;

/// How much of a command is shown.
const MAX_CHARACTERS: usize = 80;
/// A worker's supervisor and its inner process descend from the command that is looked for.
const MAX_ANCESTORS: usize = 2;

/// The process that holds a lock: the command that was started, if the holder is one of its workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its number; `None` if it is not visible from here, as a process of another container.
    pub process: Option<u32>,
    /// Its command, shortened; `None` if the system does not show it.
    pub command: Option<String>,
}

impl Holder {
    /// The command that `process` is or works for.
    pub(super) fn find(process: Option<u32>) -> Self {
        let Some(mut process) = process else { return Self { process: None, command: None } };
        let mut words = words_of(process);
        for _ in 0..MAX_ANCESTORS {
            let is_worker = words.get(1).is_some_and(|word| word == "worker");
            let Some(parent) = parent_of(process).filter(|parent| is_worker && *parent > 1) else { break };
            process = parent;
            words = words_of(process);
        }
        Self { process: Some(process), command: shown(&words) }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.process, &self.command) {
            (Some(process), Some(command)) => write!(formatter, "process {process} ({command})"),
            (Some(process), None) => write!(formatter, "process {process}"),
            (None, _) => write!(formatter, "a process of another container"),
        }
    }
}

/// The words of a command line; none if it cannot be read.
fn words_of(process: u32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words = bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    words.collect()
}

fn parent_of(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in front is in parentheses and may contain any character.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// A command on one line, without its program's folder, and without characters that would control a terminal.
fn shown(words: &[String]) -> Option<String> {
    let text = words.join(" ");
    let text = text.trim();
    let program = words.first().map_or("", String::as_str);
    let name = program.rsplit('/').next().unwrap_or(program);
    let text =
        if program.starts_with('/') { format!("{name}{}", &text[program.len()..]) } else { text.to_owned() };
    let mut shown: String = text.chars().take(MAX_CHARACTERS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    let shown: String = shown.chars().map(|c| if is_obeyed(c) { '?' } else { c }).collect();
    (!shown.is_empty()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_of(words: &[&str]) -> Option<String> {
        shown(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_command_is_shortened_and_harmless() {
        assert_eq!(shown_of(&["/usr/bin/runtime", "tune", "a.toml", ""]).unwrap(), "runtime tune a.toml");
        assert_eq!(shown_of(&["sshd: root@notty", "", ""]).unwrap(), "sshd: root@notty");
        assert_eq!(shown_of(&["a", "\u{1b}[2J\n\u{9b}"]).unwrap(), "a ?[2J??");
        let long = shown_of(&["a", &"ü".repeat(1000)]).unwrap();
        assert!(long.chars().count() == MAX_CHARACTERS + 1 && long.ends_with("ü…"), "{long}");
        for words in [&[][..], &[""], &["/"], &["", ""]] {
            assert!(shown_of(words).is_none_or(|text| text == "/"), "{words:?}");
        }
    }

    #[test]
    fn a_holder_is_this_process_or_unknown() {
        let own = Holder::find(Some(std::process::id()));
        assert_eq!(own.process, Some(std::process::id()));
        assert!(own.to_string().starts_with(&format!("process {} (", std::process::id())), "{own}");
        assert_eq!(Holder::find(None).to_string(), "a process of another container");
        assert_eq!(Holder::find(Some(u32::MAX)).to_string(), format!("process {}", u32::MAX));
    }
}
