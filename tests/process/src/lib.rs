//! Shared by tests of several packages: runs child processes with a deadline, collects log messages, samples sweeps, reuses what
//! cargo has built, and reads `RUNTIME_REQUIRE`.

mod built;
mod messages;
mod required;
mod sample;
mod sleeper;

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use built::{copy_built, copy_file, copy_time};
pub use messages::Messages;
pub use required::required;
pub use sample::{is_complete, sample};
pub use sleeper::{Sleeper, spawn_until_asleep};

/// The result of a process.
#[derive(Debug)]
pub struct Finished {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Finished {
    /// Its standard output, if it succeeded.
    ///
    /// # Errors
    /// The exit status and both outputs.
    pub fn success(self) -> Result<String, String> {
        let Self { status, stdout, stderr } = self;
        if status.success() { Ok(stdout) } else { Err(format!("{status}:\n{stdout}\n{stderr}")) }
    }

    /// Both outputs, one after the other.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Runs a command to its end, and kills it at the deadline.
///
/// # Errors
/// If it does not start, or hangs.
pub fn finish(command: &mut Command, deadline: Duration) -> Result<Finished, String> {
    let text = |error: std::io::Error| error.to_string();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let status = wait(&mut child, deadline).map_err(text)?;
    let said = |pipe: JoinHandle<String>| pipe.join().unwrap_or_default();
    let (stdout, stderr) = (said(stdout), said(stderr));
    match status {
        Some(status) => Ok(Finished { status, stdout, stderr }),
        None => Err(format!("it hangs after {deadline:?}:\n{stdout}\n{stderr}")),
    }
}

/// Reads while the process runs; it would block on a full pipe.
fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // The output so far is all there is.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The status; `None` for a process that was killed.
fn wait(child: &mut Child, deadline: Duration) -> std::io::Result<Option<ExitStatus>> {
    let begin = Instant::now();
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Some(status)),
            None if begin.elapsed() > deadline => {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, deadline: Duration) -> Result<Finished, String> {
        finish(Command::new("sh").args(["-c", script]), deadline)
    }

    #[test]
    fn both_outputs_are_read_to_their_end() {
        let patient = Duration::from_secs(60);
        let finished = shell("yes word | head -c 300000; echo last >&2", patient).unwrap();
        assert_eq!((finished.stdout.len(), finished.stderr.as_str()), (300_000, "last\n"));
        assert!(shell("echo why >&2; exit 3", patient).unwrap().success().unwrap_err().contains("why"));
    }

    #[test]
    fn a_hanging_process_is_killed() {
        let error = shell("echo begun; exec sleep 600", Duration::from_millis(300)).unwrap_err();
        assert!(error.contains("it hangs") && error.contains("begun"), "{error}");
    }
}
