//! Serial ports, and what stands in for them: sockets and pipes.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use serial2::SerialPort;

use crate::boards::Uart;
use crate::gdb::{Transport, continue_after, left};

/// A line to a target.
#[derive(Debug)]
pub(super) struct Port {
    input: SerialPort,
    output: SerialPort,
}

impl Port {
    /// Opens the port of a board: `unix:PATH`, `tcp:HOST:PORT`, `pipe:PATH`, or the path of a serial port.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn open(uart: &Uart) -> io::Result<Self> {
        match uart.port.split_once(':') {
            Some(("unix", path)) => Self::from_socket(UnixStream::connect(path)?),
            Some(("tcp", address)) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                Self::from_descriptor(stream.into())
            }
            // As QEMU names the two halves, from the target's side.
            Some(("pipe", path)) => {
                Ok(Self { input: pipe(&format!("{path}.out"))?, output: pipe(&format!("{path}.in"))? })
            }
            _ => {
                let input = SerialPort::open(&uart.port, uart.baud)?;
                reserve(input.as_fd())?;
                input.discard_buffers()?;
                Ok(Self { output: input.try_clone()?, input })
            }
        }
    }

    pub(super) fn from_socket(stream: UnixStream) -> io::Result<Self> {
        Self::from_descriptor(stream.into())
    }

    fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        let input = SerialPort::from(descriptor);
        Ok(Self { output: input.try_clone()?, input })
    }
}

/// Locks a port until its last descriptor is closed: another session would take the board's replies, and flash it.
fn reserve(port: BorrowedFd<'_>) -> io::Result<()> {
    let file = File::from(port.try_clone_to_owned()?);
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => {
            io::Error::new(io::ErrorKind::ResourceBusy, "it is in use by another session")
        }
        TryLockError::Error(error) => error,
    })
}

/// Opens a named pipe. With both directions, opening does not wait for the other side.
fn pipe(path: &str) -> io::Result<SerialPort> {
    let file: File = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    reserve(file.as_fd())?;
    Ok(OwnedFd::from(file).into())
}

impl Transport for Port {
    fn send(&mut self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            self.output.set_write_timeout(left(deadline)?)?;
            match self.output.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) => continue_after(error)?,
            }
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        loop {
            self.input.set_read_timeout(left(deadline)?)?;
            match self.input.read(buffer) {
                Ok(received) => return Ok(received),
                Err(error) => continue_after(error)?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    fn uart(port: &str) -> Uart {
        Uart {
            driver: "ns16550".to_owned(),
            address: 0,
            port: port.to_owned(),
            baud: 115_200,
            flash: Vec::new(),
            reset: Vec::new(),
        }
    }

    #[test]
    fn a_port_has_one_session() {
        let (terminal, board) = SerialPort::pair().unwrap();
        let link = format!("/proc/self/fd/{}", board.as_fd().as_raw_fd());
        let uart = uart(std::fs::read_link(link).unwrap().to_str().unwrap());
        let first = Port::open(&uart).unwrap();
        let error = Port::open(&uart).unwrap_err();
        assert!(error.to_string().contains("another session"), "{error}");
        drop(first);
        Port::open(&uart).unwrap();
        drop(terminal);
    }
}
