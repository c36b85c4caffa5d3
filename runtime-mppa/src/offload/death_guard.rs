//! Ends the processes of a simulator when this process ends without doing so, for example by `SIGKILL`.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use runtime_core::{Error, ErrorKind, Result};

/// Waits for the end of its input, which comes when this process ends, and kills its own process group.
const SCRIPT: &str = "trap '' HUP INT TERM; read -r line; kill -9 0";

/// A shell in the process group of a simulator. Its input is a pipe from this process. On drop, what is left of the group is killed.
#[derive(Debug)]
pub(super) struct DeathGuard(Child);

impl DeathGuard {
    /// Guards a process group whose leader has not been waited for.
    ///
    /// # Errors
    /// `Unavailable` if the shell cannot be started.
    pub(super) fn of(group: u32) -> Result<Self> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT]).current_dir("/").process_group(group.cast_signed());
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        shell.spawn().map(Self).map_err(|error| {
            let message = format!("no simulator is started without a process that ends it: /bin/sh: {error}");
            Error::new(ErrorKind::Unavailable, message).with_source(error)
        })
    }
}

impl Drop for DeathGuard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // It ends by its own signal, so the result carries no information.
        let _ = self.0.wait();
    }
}
