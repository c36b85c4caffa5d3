//! Runs a program with a deadline, and captures what it prints.

use std::io::{self, Read};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// What a command prints, and how it ends, without input; `None` if it was killed after `limit`.
///
/// # Errors
/// Those of starting the program, and of waiting for it.
pub(crate) fn output_within(command: &mut Command, limit: Duration) -> io::Result<Option<Output>> {
    let deadline = Instant::now() + limit;
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (send, outputs) = mpsc::channel();
    let pipes: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|pipe| Box::new(pipe) as _),
        child.stderr.take().map(|pipe| Box::new(pipe) as _),
    ];
    for (index, pipe) in pipes.into_iter().enumerate() {
        let send = send.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // After an error, keep the part that was read.
            let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
            let _ = send.send((index, bytes));
        });
    }
    let mut captured = [Vec::new(), Vec::new()];
    for _ in 0..2 {
        let Ok((index, bytes)) = outputs.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        else {
            // The child may have exited in the meantime.
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        };
        captured[index] = bytes;
    }
    let [stdout, stderr] = captured;
    Ok(Some(Output { status: child.wait()?, stdout, stderr }))
}
