//! Processes of their own, with an end.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longer than anything takes that is not stuck.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// What a process left.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// What it said on standard output.
    pub stdout: String,
    /// What it said on standard error.
    pub stderr: String,
}

impl Finished {
    /// Its standard output, if it ended well.
    ///
    /// # Errors
    /// How it ended, and all that it said.
    pub fn success(self) -> Result<String, String> {
        let Self { status, stdout, stderr } = self;
        if status.success() { Ok(stdout) } else { Err(format!("{status}:\n{stdout}\n{stderr}")) }
    }
}

/// The path of this program, to be run again.
///
/// # Errors
/// It is not known.
pub fn again() -> Result<std::path::PathBuf, String> {
    std::env::current_exe().map_err(|error| error.to_string())
}

/// Runs a command to its end, and ends it when it does not do so itself.
///
/// # Errors
/// It does not start, or hangs.
pub fn finish(command: &mut Command, deadline: Duration) -> Result<Finished, String> {
    let text = |error: std::io::Error| error.to_string();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(text)?;
    let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let status = wait(&mut child, deadline).map_err(text)?;
    let said = |pipe: JoinHandle<String>| pipe.join().unwrap_or_default();
    let (stdout, stderr) = (said(stdout), said(stderr));
    match status {
        Some(status) => Ok(Finished { status, stdout, stderr }),
        None => Err(format!("it hangs after {deadline:?}:\n{stdout}\n{stderr}")),
    }
}

/// Reads beside the process, which could not go on with a full pipe.
fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read until then is all that there is.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The status, or none for a process that had to be ended.
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
