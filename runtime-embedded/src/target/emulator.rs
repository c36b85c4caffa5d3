//! Emulated boards.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use runtime_core::{Error, ErrorKind, Result};

use super::program::Program;
use super::surroundings::Surroundings;
use crate::boards::Emulator;

/// Arguments for every emulator: no window, no monitor, no configuration of the user.
const ARGUMENTS: [&str; 5] = ["-display", "none", "-monitor", "none", "-no-user-config"];
/// The socket is standard input, which no other process can reach.
const LINK: [&str; 2] = ["-chardev", "socket,id=link,fd=0"];
/// Stopped at the start, with the debugger on the socket.
const DEBUGGER: [&str; 5] = ["-S", "-serial", "none", "-gdb", "chardev:link"];
/// The serial port is the socket; an image follows.
const UART: [&str; 3] = ["-serial", "chardev:link", "-kernel"];

/// Starts an emulator with `image` and its serial port, or stopped with its debugger's stub. Returns the connection.
///
/// # Errors
/// `Unavailable` if it cannot be started; `Io` for the files and sockets.
pub(super) fn start(
    emulator: &Emulator,
    image: Option<&Path>,
    around: &Surroundings,
) -> Result<(Program, UnixStream)> {
    let pair = UnixStream::pair();
    let (ours, theirs) = pair.map_err(|error| Error::new(ErrorKind::Io, format!("emulator: {error}")))?;
    let mut command = Command::new(&emulator.program);
    command.args(&emulator.arguments).args(ARGUMENTS).args(LINK);
    match image {
        Some(image) => command.args(UART).arg(image),
        None => command.args(DEBUGGER),
    };
    let program = Program::start("emulator", command, Some(theirs), &around.folder)?;
    Ok((program, ours))
}
