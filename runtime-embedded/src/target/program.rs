//! A program beside a target: its emulator, or the server of its debug probe.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use runtime_core::Result;
use runtime_core::backend::Process;

/// Bytes of its messages, and as many of its errors, that an error repeats.
const MESSAGE_BYTES: usize = 2000;

/// A running program; ended when dropped.
#[derive(Debug)]
pub(super) struct Program {
    /// What it is, for messages.
    what: &'static str,
    process: Process,
}

impl Program {
    /// Starts a program that runs in `folder`, with `socket` as its standard input.
    ///
    /// # Errors
    /// As for [`Process::start`].
    pub(super) fn start(
        what: &'static str,
        mut command: Command,
        socket: Option<UnixStream>,
        folder: &Path,
    ) -> Result<Self> {
        let input = socket.map_or_else(Stdio::null, |socket| Stdio::from(OwnedFd::from(socket)));
        let process = Process::start(command.current_dir(folder), input, MESSAGE_BYTES)?;
        Ok(Self { what, process })
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.process.status(), Ok(None))
    }

    /// What it has written, and how it ended, if it has.
    pub(super) fn last_words(&mut self) -> String {
        let what = self.what;
        let state = match self.process.status() {
            Ok(Some(status)) => format!("the {what} has ended ({status})"),
            Ok(None) => format!("the {what} is running"),
            Err(error) => return format!("the {what} {}", error.message()),
        };
        format!("{state} {}", self.process.output()).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_writes_without_end_takes_no_space() {
        let folder = tempfile::tempdir().unwrap();
        let start = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Program::start("server", command, None, folder.path()).unwrap()
        };
        let mut endless = start("echo begin; yes");
        let mut whole = start("echo begin; yes | head -c 10000000; exit 3");
        while !whole.has_ended() || !endless.last_words().contains("left out") {
            std::thread::yield_now();
        }
        for program in [&mut endless, &mut whole] {
            let words = program.last_words();
            assert!(words.contains("begin\ny\n") && words.len() < MESSAGE_BYTES + 100, "{words}");
        }
        assert!(whole.last_words().contains("exit status: 3"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
