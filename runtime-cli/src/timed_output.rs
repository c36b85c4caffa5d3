//! Runs a program with a deadline, and captures what it prints.

use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use runtime_core::backend::{ProcessGroup, backoff};

/// What a command prints, and how it ends, without input; `None` if it was killed after `limit`. Processes that it started are
/// killed with it, and when it has ended.
///
/// # Errors
/// Those of starting the program, and of waiting for it.
pub(crate) fn output_within(command: &mut Command, limit: Duration) -> io::Result<Option<Output>> {
    let started = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    let pipes: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|pipe| Box::new(pipe) as _),
        child.stderr.take().map(|pipe| Box::new(pipe) as _),
    ];
    // Killed with its processes when this function returns.
    let mut group = ProcessGroup::new(child);
    let (send, outputs) = mpsc::channel();
    for (index, pipe) in pipes.into_iter().enumerate() {
        let send = send.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // After an error, keep the part that was read.
            let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
            let _ = send.send((index, bytes));
        });
    }
    let status = loop {
        if let Some(status) = group.status().map_err(io::Error::other)? {
            break status;
        }
        if started.elapsed() >= limit {
            return Ok(None);
        }
        backoff(started.elapsed(), false);
    };
    let mut captured = [Vec::new(), Vec::new()];
    for _ in 0..2 {
        // A process that left the group may keep the pipes open.
        let Ok((index, bytes)) = outputs.recv_timeout(limit.saturating_sub(started.elapsed())) else {
            return Ok(None);
        };
        captured[index] = bytes;
    }
    let [stdout, stderr] = captured;
    Ok(Some(Output { status, stdout, stderr }))
}
