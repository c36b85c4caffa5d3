//! Servers of debug probes.

use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::process::Command;
use std::time::{Duration, Instant};

use runtime_core::{Error, ErrorKind, Result};

use super::program::Program;
use super::surroundings::Surroundings;
use crate::boards::Server;

/// For a server to start.
const START_DEADLINE: Duration = Duration::from_secs(15);
/// For a server that was killed to close its port.
const CLOSING_TIME: Duration = Duration::from_millis(500);
/// Between attempts to connect.
const INTERVAL: Duration = Duration::from_millis(20);

/// Connects to a server, and starts it before if the board file says how.
///
/// # Errors
/// `Unavailable` if there is no server, or it does not start.
pub(super) fn connect(server: &Server, around: &Surroundings) -> Result<(Option<Program>, TcpStream)> {
    let mut program = match server.command.split_first() {
        Some((name, arguments)) => {
            check_free(&server.address)?;
            let mut command = Command::new(name);
            command.args(arguments);
            Some(Program::start("server", command, None, &around.folder)?)
        }
        None => None,
    };
    let until = Instant::now() + START_DEADLINE;
    loop {
        let dialled = dial(&server.address, until);
        // A server that runs already answers at once.
        let is_starting = program.as_mut().is_some_and(|program| !program.has_ended());
        let error = match dialled {
            Ok(stream) if is_starting || program.is_none() => return Ok((program, stream)),
            Ok(_) => io::Error::other("another program listens there"),
            Err(error) => error,
        };
        if !is_starting || Instant::now() > until {
            let message = format!("the debugger's server at {}: {error}", server.address);
            let note = program.map_or_else(
                || "start it, or set `server.command` in the board file".to_owned(),
                |mut program| program.last_words(),
            );
            return Err(Error::new(ErrorKind::Unavailable, message).with_note(note));
        }
        std::thread::sleep(INTERVAL);
    }
}

/// Refuses an address at which something listens, whose board would be flashed in place of the right one.
fn check_free(address: &str) -> Result<()> {
    let is_free = || dial(address, Instant::now() + CLOSING_TIME).is_err();
    if is_free() {
        return Ok(());
    }
    // The server of the last session may be ending.
    std::thread::sleep(CLOSING_TIME);
    if is_free() {
        return Ok(());
    }
    let message = format!("something listens at {address} already");
    let note = "end it, or remove `server.command` from the board file to use it";
    Err(Error::new(ErrorKind::Unavailable, message).with_note(note))
}

/// Connects to an address before a deadline.
///
/// # Errors
/// Those of the system.
pub(super) fn dial(address: &str, until: Instant) -> io::Result<TcpStream> {
    let mut last = io::ErrorKind::AddrNotAvailable.into();
    for address in address.to_socket_addrs()? {
        let left = until.saturating_duration_since(Instant::now()).max(INTERVAL);
        match TcpStream::connect_timeout(&address, left) {
            // Where nothing listens, the system may have chosen the very same port for our end.
            Ok(stream) if stream.local_addr()? == address => last = io::ErrorKind::ConnectionRefused.into(),
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux may give a connection the port to which it goes, if that is one of those for any program.
    #[test]
    fn a_connection_to_itself_is_refused() {
        let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
        let ports: Vec<u16> = range.split_whitespace().map(|port| port.parse().unwrap()).collect();
        let until = Instant::now() + START_DEADLINE;
        let is_refused = |port: u16| {
            let address = format!("127.0.0.1:{port}");
            (ports[0]..=ports[1]).all(|_| match dial(&address, until) {
                Ok(stream) => {
                    assert_ne!(stream.local_addr().unwrap(), stream.peer_addr().unwrap());
                    // Another program has begun to listen there.
                    false
                }
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
                    true
                }
            })
        };
        let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
        assert!((ports[0]..ports[1]).filter(is_free).any(is_refused));
    }
}
