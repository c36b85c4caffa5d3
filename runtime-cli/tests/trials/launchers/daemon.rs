//! Daemons that a test starts for itself.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Generous: a loaded machine must not fail a test.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A process in the foreground, which is killed when it is dropped.
pub(crate) struct Daemon(Child);

impl Daemon {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The full path of a program, also of one that is for the superuser.
pub(crate) fn program(name: &str) -> Option<String> {
    let folders = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];
    let mut paths = folders.iter().map(|folder| format!("{folder}/{name}"));
    paths.find(|path| Path::new(path).is_file())
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

pub(crate) fn wait_for_port(port: u16) {
    wait_for(&format!("port {port}"), || TcpStream::connect(("127.0.0.1", port)).is_ok());
}

pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < DEADLINE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
