//! The outer process of a worker: it kills every process that the inner one leaves behind.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use runtime_core::backend::{TemporaryFolder, spawn_program};
use runtime_core::{Error, ErrorKind, Result};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use super::protocol::{self, Ended, Reply};
use crate::platform::{self, ExitKind, Watched};

/// How long the inner process may take to end by itself once its input is closed.
const GRACE: Duration = Duration::from_secs(1);
/// How long to retry killing processes. Only a process that waits in the kernel survives the first attempt.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);

/// Runs `inner`, which calls [`serve`](super::serve) and inherits the standard streams, until it ends, until standard input
/// is closed by everybody who could write to it, or until a signal asks this process to end. Then kills all that descends
/// from it, and writes how it ended as the last line of the protocol.
///
/// Must be called while this process has a single thread.
///
/// # Errors
/// As for [`spawn_program`](runtime_core::backend::spawn_program).
pub fn supervise(mut inner: Command) -> Result<()> {
    let failed = |error: io::Error| {
        Error::new(ErrorKind::OutOfResources, format!("cannot start a worker: {error}")).with_source(error)
    };
    let signals = Signals::register().map_err(failed)?;
    platform::adopt_orphans();
    // If it cannot be made, the first user of a temporary file reports that.
    let folder = TemporaryFolder::new("runtime-worker-").ok();
    if let Some(folder) = &folder {
        inner.env("TMPDIR", folder.path());
    }
    // In a group of its own, so that a signal that it sends to its group does not reach this process.
    let child = spawn_program(&mut inner)?;
    let mut tree = Tree { inner: child.id().cast_signed(), ended: None };
    tree.watch(&signals);
    // If this process was told to end, the inner one has not ended by itself.
    let ended = tree.ended.filter(|_| !signals.is_terminated());
    let left = tree.kill();
    drop(folder);
    report(ended, left);
    Ok(())
}

/// The inner process and all that descends from it.
struct Tree {
    inner: i32,
    /// How the inner process ended.
    ended: Option<ExitKind>,
}

impl Tree {
    /// Waits until the inner process has ended or must be killed.
    fn watch(&mut self, signals: &Signals) {
        let mut hung_up: Option<Instant> = None;
        loop {
            self.reap();
            let left = hung_up.map(|begin| GRACE.saturating_sub(begin.elapsed()));
            if self.ended.is_some() || signals.is_terminated() || left == Some(Duration::ZERO) {
                return;
            }
            let input = hung_up.is_none().then_some(libc::STDIN_FILENO);
            if signals.wait(input, left) {
                hung_up = Some(Instant::now());
            }
        }
    }

    /// Kills every descendant; returns those that survive.
    fn kill(&mut self) -> Vec<i32> {
        let begin = Instant::now();
        platform::kill(-self.inner, libc::SIGKILL);
        loop {
            self.reap();
            let children = platform::children();
            if children.is_empty() || begin.elapsed() > KILL_TIMEOUT {
                return children;
            }
            for child in children {
                platform::kill(child, libc::SIGKILL);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn reap(&mut self) {
        while let Some((process, kind)) = platform::reap() {
            if process == self.inner {
                self.ended = Some(kind);
            }
        }
    }
}

fn report(ended: Option<ExitKind>, left: Vec<i32>) {
    let (code, signal) = match ended {
        Some(ExitKind::Code(code)) => (Some(code), None),
        Some(ExitKind::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    let mut output = io::stdout().lock();
    // The inner process may have ended in the middle of a line.
    let written = output.write_all(b"\n").and_then(|()| {
        protocol::write_line(&mut output, &Reply::Ended { ended: Ended { code, signal, left } })
    });
    // The reader may be gone.
    let _ = written;
}

/// Signals as data on a pipe.
struct Signals {
    pipe: UnixStream,
    terminated: Arc<AtomicBool>,
}

impl Signals {
    fn register() -> io::Result<Self> {
        let (pipe, write) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let terminated = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            flag::register(signal, Arc::clone(&terminated))?;
        }
        for signal in [SIGCHLD, SIGTERM, SIGINT, SIGHUP] {
            low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(Self { pipe, terminated })
    }

    fn is_terminated(&self) -> bool {
        self.terminated.load(Ordering::SeqCst)
    }

    /// Waits for a signal, or until nobody can write to `input`; returns whether that is so.
    fn wait(&self, input: Option<i32>, timeout: Option<Duration>) -> bool {
        let hung_up = platform::wait(Some(self.pipe.as_raw_fd()), input.map(Watched::Input), timeout);
        while (&self.pipe).read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        hung_up
    }
}
