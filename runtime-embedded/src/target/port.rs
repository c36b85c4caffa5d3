//! Serial ports, and what stands in for them: sockets and pipes.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serial2::{IntoSettings as _, SerialPort};

use super::server;
use crate::boards::Uart;
use crate::gdb::{Transport, continue_after, left};

/// For a connection to a TCP port.
const CONNECT_DEADLINE: Duration = Duration::from_secs(15);

/// A line to a target.
#[derive(Debug)]
pub(super) struct Port {
    input: SerialPort,
    output: SerialPort,
    /// What it holds while a session uses it.
    locks: Vec<Lock>,
    /// Bits per second of a serial port; `None` for what stands in for one.
    baud: Option<u32>,
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
                Self::from_descriptor(server::dial(address, Instant::now() + CONNECT_DEADLINE)?.into())
            }
            // As QEMU names the two halves, from the target's side.
            Some(("pipe", path)) => {
                let (input, output) = (open(&format!("{path}.out"))?, open(&format!("{path}.in"))?);
                let locks = vec![Lock::new(input.as_fd())?, Lock::new(output.as_fd())?];
                Ok(Self { input, output, locks, baud: None })
            }
            _ => {
                let input = open(&uart.port)?;
                let (output, locks) = (input.try_clone()?, vec![Lock::new(input.as_fd())?]);
                // Only now: the settings are those of all sessions.
                let mut port = Self { input, output, locks, baud: Some(uart.baud) };
                port.set_up()?;
                port.input.discard_buffers()?;
                Ok(port)
            }
        }
    }

    pub(super) fn from_socket(stream: UnixStream) -> io::Result<Self> {
        Self::from_descriptor(stream.into())
    }

    fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        let input = SerialPort::from(descriptor);
        Ok(Self { output: input.try_clone()?, input, locks: Vec::new(), baud: None })
    }

    /// Unlocks it for programs that lock it themselves, e.g. to flash the board.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn unlock(&self) -> io::Result<()> {
        self.locks.iter().try_for_each(|lock| lock.0.unlock())
    }

    /// Locks it again. A serial port gets its settings again, which such programs change.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn lock(&mut self) -> io::Result<()> {
        self.locks.iter().try_for_each(Lock::lock)?;
        self.set_up()
    }

    fn set_up(&mut self) -> io::Result<()> {
        let Some(baud) = self.baud else { return Ok(()) };
        let mut settings = self.input.get_configuration()?;
        baud.apply_to_settings(&mut settings)?;
        self.input.set_configuration(&settings)
    }
}

/// The lock of an open file: another session would take the board's replies, and flash it.
#[derive(Debug)]
struct Lock(File);

impl Lock {
    fn new(descriptor: BorrowedFd<'_>) -> io::Result<Self> {
        let lock = Self(descriptor.try_clone_to_owned()?.into());
        lock.lock()?;
        Ok(lock)
    }

    fn lock(&self) -> io::Result<()> {
        self.0.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                io::Error::new(io::ErrorKind::ResourceBusy, "it is in use by another session")
            }
            TryLockError::Error(error) => error,
        })
    }
}

impl Drop for Lock {
    /// Closing is not enough: a child process of another thread has duplicates of all descriptors until it runs its program.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Opens a serial port as it is, or a named pipe. With both directions, opening a pipe does not wait for the other side.
fn open(path: &str) -> io::Result<SerialPort> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
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

    /// The two ends of a serial line, and the path of the board's end.
    fn line() -> (SerialPort, SerialPort, String) {
        let (terminal, board) = SerialPort::pair().unwrap();
        let link = format!("/proc/self/fd/{}", board.as_fd().as_raw_fd());
        let path = std::fs::read_link(link).unwrap().to_str().unwrap().to_owned();
        (terminal, board, path)
    }

    fn baud(port: &SerialPort) -> u32 {
        port.get_configuration().unwrap().get_baud_rate().unwrap()
    }

    #[test]
    fn a_port_has_one_session() {
        let (_terminal, _board, path) = line();
        let uart = uart(&path);
        let first = Port::open(&uart).unwrap();
        let error = Port::open(&Uart { baud: 9600, ..uart.clone() }).unwrap_err();
        assert!(error.to_string().contains("another session"), "{error}");
        assert_eq!(baud(&first.input), 115_200, "the settings of the first session");
        // As a child process of another thread has one.
        let duplicate = first.input.try_clone().unwrap();
        drop(first);
        Port::open(&uart).unwrap();
        drop(duplicate);
    }

    #[test]
    fn an_unlocked_port_is_free_for_others() {
        let (_terminal, _board, path) = line();
        let uart = uart(&path);
        let mut port = Port::open(&uart).unwrap();
        port.unlock().unwrap();
        let other = Port::open(&Uart { baud: 9600, ..uart.clone() }).unwrap();
        assert!(port.lock().unwrap_err().to_string().contains("another session"));
        drop(other);
        port.lock().unwrap();
        assert_eq!(baud(&port.input), 115_200);
        assert!(Port::open(&uart).is_err());
    }
}
