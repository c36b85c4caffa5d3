//! A program beside a target: its emulator, or the server of its debug probe.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use runtime_core::backend::ProcessGroup;
use runtime_core::{Error, ErrorKind, Result};

use super::spawner::Spawner;

/// Bytes of its messages that an error repeats.
const MESSAGE_BYTES: u64 = 2000;

/// A running program; killed when dropped.
#[derive(Debug)]
pub(super) struct Program {
    /// What it is, for messages.
    what: &'static str,
    process: ProcessGroup,
    /// A file without a name.
    messages: File,
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
        let io = |error: std::io::Error| Error::new(ErrorKind::Io, format!("{what}: {error}"));
        let messages = open_unnamed(folder).map_err(io)?;
        let (output, errors) = (messages.try_clone().map_err(io)?, messages.try_clone().map_err(io)?);
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
        let state = match self.process.status() {
            Ok(Some(status)) => format!("the {what} has ended ({status})"),
            Ok(None) => format!("the {what} is running"),
            Err(error) => format!("the {what} {}", error.message()),
        };
        let mut messages = Vec::new();
        let _ = self.messages.rewind();
        let _ = (&self.messages).take(MESSAGE_BYTES).read_to_end(&mut messages);
        format!("{state} {}", String::from_utf8_lossy(&messages).trim()).trim().to_owned()
    }
}

/// A file that disappears with its last descriptor.
fn open_unnamed(folder: &Path) -> std::io::Result<File> {
    let path = folder.join(format!("program-{:?}.log", std::thread::current().id()));
    let file = OpenOptions::new().read(true).append(true).create(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}
