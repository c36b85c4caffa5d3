//! Ends the processes of a simulator when this process ends without doing so, for example by `SIGKILL`.

use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use runtime_core::{Error, ErrorKind, Result};

/// Waits for the end of its input, which comes when this process ends, and kills its own process group.
const SCRIPT: &str = "trap '' HUP INT TERM; read -r line; kill -9 0";

/// A shell in the process group of a simulator. Its input comes from this process. On drop, what is left of the group is killed.
#[derive(Debug)]
pub(super) struct DeathGuard {
    shell: Child,
    /// A socket, because it can be shut down while children that this process has forked still hold a copy.
    input: UnixStream,
}

impl DeathGuard {
    /// Guards a process group whose leader has not been waited for.
    ///
    /// # Errors
    /// `Unavailable` if the shell cannot be started.
    pub(super) fn of(group: u32) -> Result<Self> {
        let fails = |error: std::io::Error| {
            let message = format!("no simulator is started without a process that ends it: /bin/sh: {error}");
            Error::new(ErrorKind::Unavailable, message).with_source(error)
        };
        let (input, shells) = UnixStream::pair().map_err(fails)?;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT]).current_dir("/").process_group(group.cast_signed());
        shell.stdin(OwnedFd::from(shells)).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { shell: shell.spawn().map_err(fails)?, input })
    }
}

impl Drop for DeathGuard {
    fn drop(&mut self) {
        // Without its input the shell would wait forever for a connection that cannot be ended.
        if self.input.shutdown(Shutdown::Both).is_err() {
            // It has ended if it cannot be killed.
            let _ = self.shell.kill();
        }
        // It ends by its own signal, so the result carries no information.
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use runtime_core::backend::Process;

    use super::*;

    #[test]
    fn a_copy_of_its_connection_does_not_keep_the_group_alive() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sleep");
        let mut process = Process::start(command.arg("1000"), &folder.path().join("output")).unwrap();
        let guard = DeathGuard::of(process.id()).unwrap();
        // As a forked child of this process holds it.
        let copy = guard.input.try_clone().unwrap();
        let (ended, has_ended) = mpsc::channel();
        std::thread::spawn(move || {
            drop(guard);
            ended.send(()).unwrap();
        });
        has_ended.recv_timeout(Duration::from_secs(60)).expect("the guard is dropped");
        let status = process.wait(Duration::from_secs(60)).unwrap();
        assert!(!status.success(), "{status}");
        drop(copy);
    }
}
