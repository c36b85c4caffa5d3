//! The process of an emulated board.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use runtime_core::{Error, ErrorKind, Result};

use super::spawner::{Group, INHERITED, Spawner};
use crate::boards::Emulator as Settings;

/// Arguments for every emulator: no window, no monitor, no configuration of the user.
const ARGUMENTS: [&str; 5] = ["-display", "none", "-monitor", "none", "-no-user-config"];
/// Stopped at the start, with the debugger on the inherited socket, which no other process can reach.
const DEBUGGER: [&str; 5] = ["-S", "-serial", "none", "-gdb", "chardev:link"];
/// The serial port is the inherited socket; an image follows.
const UART: [&str; 3] = ["-serial", "chardev:link", "-kernel"];
/// Bytes of the emulator's messages that an error repeats.
const MESSAGE_BYTES: u64 = 2000;

/// A running emulator; killed when dropped.
#[derive(Debug)]
pub(super) struct Emulator {
    process: Group,
    /// A file without a name.
    messages: File,
}

impl Emulator {
    /// Starts an emulator that runs in `folder`, with `image` and its serial port, or stopped with its debugger's stub.
    /// Returns the connection.
    ///
    /// # Errors
    /// `Unavailable` if it cannot be started; `Io` for the files and sockets.
    pub(super) fn start(
        settings: &Settings,
        image: Option<&Path>,
        spawner: &Spawner,
        folder: &Path,
    ) -> Result<(Self, UnixStream)> {
        let io = |error: std::io::Error| Error::new(ErrorKind::Io, format!("emulator: {error}"));
        let messages = open_unnamed(folder).map_err(io)?;
        let log = messages.try_clone().map_err(io)?;
        let (ours, theirs) = UnixStream::pair().map_err(io)?;
        let mut command = Command::new(&settings.program);
        command.args(&settings.arguments).args(ARGUMENTS);
        command.args(["-chardev", &format!("socket,id=link,fd={INHERITED}")]);
        match image {
            Some(image) => command.args(UART).arg(image),
            None => command.args(DEBUGGER),
        };
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = spawner
            .start(command, Some(theirs))
            .map_err(|error| Error::new(ErrorKind::Unavailable, format!("{}: {error}", settings.program)))?;
        Ok((Self { process, messages }, ours))
    }

    /// What the emulator has written, and how it ended, if it has.
    pub(super) fn last_words(&mut self) -> String {
        let state = match self.process.status() {
            Some(status) => format!("the emulator has ended ({status})"),
            None => "the emulator is running".to_owned(),
        };
        let mut messages = Vec::new();
        let _ = self.messages.rewind();
        let _ = (&self.messages).take(MESSAGE_BYTES).read_to_end(&mut messages);
        format!("{state} {}", String::from_utf8_lossy(&messages).trim()).trim().to_owned()
    }
}

/// A file that disappears with its last descriptor.
fn open_unnamed(folder: &Path) -> std::io::Result<File> {
    let path = folder.join(format!("emulator-{:?}.log", std::thread::current().id()));
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}
