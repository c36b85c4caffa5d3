//! A lock as a listening socket with an abstract name: who has bound the name holds the lock, and who connects to it
//! waits until the connection ends.

use std::io::{self, ErrorKind, Read};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use super::Holder;
use crate::platform;

/// Interval at which a bound name without a listener is looked at again.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);
/// A bound socket without a listener for this long is considered abandoned. A holder needs microseconds between binding and
/// listening; only a process that a kernel has forked keeps the name bound for longer.
const ABANDONED_AFTER: Duration = Duration::from_secs(1);
/// Number of names of a lock: one more than may be abandoned at the same time.
const NAMES: u32 = 8;
/// Pause before this process may ask for the lock again, so that a waiting process gets it first.
const TURN: Duration = Duration::from_millis(5);

/// A bound name.
#[derive(Debug)]
pub(super) struct BoundName(Option<UnixListener>);

impl BoundName {
    /// Binds the name of `key`, when nobody else has it.
    ///
    /// # Errors
    /// Any error of the system but that the name is in use.
    pub(super) fn acquire(key: &str, on_wait: &mut dyn FnMut(&Holder)) -> io::Result<Self> {
        for number in 0..NAMES {
            let address = SocketAddr::from_abstract_name(format!("runtime-device-lock {number} {key}"))?;
            if let Some(listener) = bind(&address, on_wait)? {
                return Ok(Self(Some(listener)));
            }
        }
        Err(ErrorKind::AddrInUse.into())
    }
}

impl Drop for BoundName {
    fn drop(&mut self) {
        let Some(listener) = self.0.take() else { return };
        let had_waiters = release(&listener).unwrap_or(false);
        drop(listener);
        if had_waiters {
            std::thread::sleep(TURN);
        }
    }
}

/// Ends every connection, so that those who wait go on even if a forked process keeps the socket; returns whether there
/// were any.
fn release(listener: &UnixListener) -> io::Result<bool> {
    UnixStream::from(OwnedFd::from(listener.try_clone()?)).shutdown(Shutdown::Both)?;
    listener.set_nonblocking(true)?;
    let mut had_waiters = false;
    while listener.accept().is_ok() {
        had_waiters = true;
    }
    Ok(had_waiters)
}

/// Binds a name when its holder has released it; `None` if the holder is gone and the name is still bound.
fn bind(address: &SocketAddr, on_wait: &mut dyn FnMut(&Holder)) -> io::Result<Option<UnixListener>> {
    let mut announced = None;
    let mut refused: Option<Instant> = None;
    loop {
        match UnixListener::bind_addr(address) {
            Ok(listener) => return Ok(Some(listener)),
            Err(error) if error.kind() != ErrorKind::AddrInUse => return Err(error),
            Err(_) => {}
        }
        match UnixStream::connect_addr(address) {
            Ok(connection) => {
                refused = None;
                let process = platform::listening_process(&connection);
                if announced.replace(process) != Some(process) {
                    on_wait(&Holder::find(process));
                }
                wait_for_end(connection);
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                if refused.get_or_insert_with(Instant::now).elapsed() > ABANDONED_AFTER {
                    return Ok(None);
                }
                std::thread::sleep(RETRY_INTERVAL);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn wait_for_end(mut connection: UnixStream) {
    // Nobody writes. Any error means that the other end is gone.
    let _ = io::copy(&mut connection.by_ref(), &mut io::sink());
}
