//! Moves bytes to and from a server.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The shortest timeout of a socket; zero would mean none.
const SHORTEST: Duration = Duration::from_micros(1);

/// A connection to a server.
pub trait Transport: Send {
    /// Sends all bytes.
    ///
    /// # Errors
    /// `TimedOut` at the deadline; other kinds if the connection fails.
    fn send(&mut self, bytes: &[u8], deadline: Instant) -> io::Result<()>;

    /// Receives at least one byte and returns the number; 0 if the server has closed the connection.
    ///
    /// # Errors
    /// `TimedOut` at the deadline; other kinds if the connection fails.
    fn receive(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize>;
}

macro_rules! sockets {
    ($($socket:ty),*) => {$(
        impl Transport for $socket {
            fn send(&mut self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
                while !bytes.is_empty() {
                    self.set_write_timeout(Some(left(deadline)?))?;
                    match self.write(bytes) {
                        Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                        Ok(sent) => bytes = &bytes[sent..],
                        Err(error) => continue_after(error)?,
                    }
                }
                Ok(())
            }

            fn receive(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
                loop {
                    self.set_read_timeout(Some(left(deadline)?))?;
                    match self.read(buffer) {
                        Ok(received) => return Ok(received),
                        Err(error) => continue_after(error)?,
                    }
                }
            }
        }
    )*};
}

sockets!(TcpStream, UnixStream);

/// Time until the deadline.
pub(crate) fn left(deadline: Instant) -> io::Result<Duration> {
    match deadline.checked_duration_since(Instant::now()) {
        Some(left) if !left.is_zero() => Ok(left.max(SHORTEST)),
        _ => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Passes on an error that a retry before the deadline does not cure.
pub(crate) fn continue_after(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => Ok(()),
        _ => Err(error),
    }
}
