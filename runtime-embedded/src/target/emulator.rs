//! The process of an emulated board.

#![allow(unsafe_code, reason = "ends a process group")]

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use runtime_core::{Error, ErrorKind, Result};

use super::spawner::{INHERITED, Spawner};
use crate::boards::Board;

/// Arguments for every emulator: stopped at the start, no window, no monitor, and the debugger on the inherited socket, which
/// no other process can reach.
const ARGUMENTS: [&str; 10] = [
    "-S",
    "-display",
    "none",
    "-monitor",
    "none",
    "-serial",
    "none",
    "-no-user-config",
    "-gdb",
    "chardev:gdb",
];
/// Bytes of the emulator's messages that an error repeats.
const MESSAGE_BYTES: u64 = 2000;

/// A running emulator; killed when dropped.
#[derive(Debug)]
pub(super) struct Emulator {
    child: Child,
    /// A file without a name.
    messages: File,
}

impl Emulator {
    /// Starts the emulator of a board; it runs in `folder`. Returns the connection to its debugger's stub.
    ///
    /// # Errors
    /// `Unavailable` if it cannot be started; `Io` for the files and sockets.
    pub(super) fn start(board: &Board, spawner: &Spawner, folder: &Path) -> Result<(Self, UnixStream)> {
        let io = |error: std::io::Error| Error::new(ErrorKind::Io, format!("emulator: {error}"));
        let messages = open_unnamed(folder).map_err(io)?;
        let log = messages.try_clone().map_err(io)?;
        let (ours, theirs) = UnixStream::pair().map_err(io)?;
        let mut command = Command::new(&board.emulator.program);
        command
            .args(&board.emulator.arguments)
            .args(ARGUMENTS)
            .args(["-chardev", &format!("socket,id=gdb,fd={INHERITED}")])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = spawner.start(command, theirs).map_err(|error| {
            Error::new(ErrorKind::Unavailable, format!("{}: {error}", board.emulator.program))
        })?;
        Ok((Self { child, messages }, ours))
    }

    /// Whether it has not ended. Another part of the process may have waited for it.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What the emulator has written, and how it ended, if it has.
    pub(super) fn last_words(&mut self) -> String {
        let state = match self.child.try_wait() {
            Ok(Some(status)) => format!("the emulator has ended ({status})"),
            _ => "the emulator is running".to_owned(),
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

impl Drop for Emulator {
    fn drop(&mut self) {
        if let Ok(group) = i32::try_from(self.child.id()) {
            // SAFETY: a system call without pointers. The process is our child and not yet waited for, so its number is not
            // reused; if `last_words` has waited for it, no group has the number and the call fails.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
