//! A program beside a target: its emulator, or the server of its debug probe.

use std::io::{self, PipeReader, Read as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use runtime_core::backend::ProcessGroup;
use runtime_core::{Error, ErrorKind, Result};

use super::spawner::Spawner;

/// Bytes of its messages that an error repeats.
const MESSAGE_BYTES: usize = 2000;
/// For the messages of a program that has ended to arrive.
const ARRIVAL_TIME: Duration = Duration::from_millis(500);
/// The poll interval while waiting for them.
const INTERVAL: Duration = Duration::from_micros(200);

/// A running program; killed when dropped.
#[derive(Debug)]
pub(super) struct Program {
    /// What it is, for messages.
    what: &'static str,
    process: ProcessGroup,
    messages: Messages,
}

/// The beginning of what a program writes. A thread reads all of it, so that neither a disk nor a pipe fills up.
#[derive(Debug)]
struct Messages {
    kept: Arc<Mutex<Vec<u8>>>,
    /// Ends when no process has the pipe any more.
    reader: JoinHandle<()>,
}

impl Program {
    /// Starts a program that runs in `folder`, with `socket` as an inherited descriptor.
    ///
    /// # Errors
    /// `Unavailable` if it cannot be started; `Io` for its files.
    pub(super) fn start(
        what: &'static str,
        mut command: Command,
        socket: Option<UnixStream>,
        spawner: &Spawner,
        folder: &Path,
    ) -> Result<Self> {
        let io = |error: io::Error| Error::new(ErrorKind::Io, format!("{what}: {error}"));
        let (reader, output) = io::pipe().map_err(io)?;
        let errors = output.try_clone().map_err(io)?;
        let messages = Messages::of(reader).map_err(io)?;
        command.current_dir(folder).stdin(Stdio::null()).stdout(output).stderr(errors);
        let name = command.get_program().to_string_lossy().into_owned();
        let process = spawner
            .start(command, socket)
            .map_err(|error| Error::new(ErrorKind::Unavailable, format!("{name}: {error}")))?;
        Ok(Self { what, process, messages })
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.process.status(), Ok(None))
    }

    /// What it has written, and how it ended, if it has.
    pub(super) fn last_words(&mut self) -> String {
        let what = self.what;
        let status = self.process.status();
        let has_ended = !matches!(status, Ok(None));
        let state = match status {
            Ok(Some(status)) => format!("the {what} has ended ({status})"),
            Ok(None) => format!("the {what} is running"),
            Err(error) => format!("the {what} {}", error.message()),
        };
        let messages = self.messages.text(has_ended);
        format!("{state} {}", messages.trim()).trim().to_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.process.kill();
        // The reader closes the pipe.
        self.messages.wait();
    }
}

impl Messages {
    fn of(mut pipe: PipeReader) -> io::Result<Self> {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let keeps = Arc::clone(&kept);
        let read = move || {
            let mut buffer = [0; 4096];
            loop {
                let count = match pipe.read(&mut buffer) {
                    Ok(count @ 1..) => count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    _ => break,
                };
                let mut kept = keeps.lock();
                let room = MESSAGE_BYTES.saturating_sub(kept.len()).min(count);
                kept.extend_from_slice(&buffer[..room]);
            }
        };
        let reader = thread::Builder::new().name("runtime-embedded-messages".to_owned()).spawn(read)?;
        Ok(Self { kept, reader })
    }

    fn text(&self, has_ended: bool) -> String {
        if has_ended {
            self.wait();
        }
        String::from_utf8_lossy(&self.kept.lock()).into_owned()
    }

    /// Waits until the reader has the last messages and ends. Not for long: a process that has left its group may hold the pipe.
    fn wait(&self) {
        let until = Instant::now() + ARRIVAL_TIME;
        while !self.reader.is_finished() && Instant::now() < until {
            thread::sleep(INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(spawner: &Spawner, folder: &Path, script: &str) -> Program {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Program::start("server", command, None, spawner, folder).unwrap()
    }

    #[test]
    fn a_program_that_writes_without_end_takes_no_space() {
        let (folder, spawner) = (tempfile::tempdir().unwrap(), Spawner::default());
        let mut endless = start(&spawner, folder.path(), "echo begin; yes");
        let mut whole = start(&spawner, folder.path(), "echo begin; yes | head -c 10000000; exit 3");
        while !whole.has_ended() {
            thread::sleep(INTERVAL);
        }
        for program in [&mut endless, &mut whole] {
            let words = program.last_words();
            assert!(words.contains("begin\ny\n") && words.len() < MESSAGE_BYTES + 100, "{words}");
        }
        assert!(whole.last_words().contains("exit status: 3"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_dropped_program_leaves_no_pipe() {
        let (folder, spawner) = (tempfile::tempdir().unwrap(), Spawner::default());
        for _ in 0..100 {
            let program = start(&spawner, folder.path(), "yes");
            let kept = Arc::clone(&program.messages.kept);
            drop(program);
            assert_eq!(Arc::strong_count(&kept), 1, "the reader has ended");
        }
    }

    #[test]
    fn a_process_that_left_the_group_delays_nothing() {
        let (folder, spawner) = (tempfile::tempdir().unwrap(), Spawner::default());
        let mut program = start(&spawner, folder.path(), "setsid sleep 60 & echo $!");
        while !program.has_ended() {
            thread::sleep(INTERVAL);
        }
        let words = program.last_words();
        drop(program);
        let id = words.split_whitespace().last().unwrap();
        let ended = Command::new("kill").args(["-9", id]).status().unwrap();
        assert!(ended.success(), "it was still running: {words}");
    }
}
