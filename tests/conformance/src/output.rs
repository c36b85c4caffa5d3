//! Forwards the output of the test runner to standard output. The runner panics on write errors, so it writes to a pipe,
//! and a thread copies the pipe to standard output.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use libtest_mimic::Arguments;

/// Set when standard output is closed: the run then ends early.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The pipe between the test runner and standard output.
#[derive(Debug)]
pub(crate) struct OutputPipe {
    writer: PipeWriter,
    forwarder: JoinHandle<io::Result<()>>,
}

impl OutputPipe {
    /// Redirects the runner's output to a pipe, unless standard output is a terminal, which has no reader that can go
    /// away, or a log file is given.
    ///
    /// # Errors
    /// The log file cannot be written.
    pub(crate) fn redirect(arguments: &Arguments, stop: &StopFlag) -> io::Result<(Option<Self>, Arguments)> {
        let mut arguments = arguments.clone();
        if let Some(path) = &arguments.logfile {
            // Check it here: the runner would panic.
            File::create(path).map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
            return Ok((None, arguments));
        }
        if io::stdout().is_terminal() {
            return Ok((None, arguments));
        }
        let (reader, writer) = io::pipe()?;
        let path = format!("/dev/fd/{}", writer.as_raw_fd());
        if !Path::new(&path).exists() {
            return Ok((None, arguments));
        }
        arguments.logfile = Some(path);
        let stop = stop.clone();
        let forwarder = std::thread::Builder::new().name("output".to_owned());
        let forwarder = forwarder.spawn(move || forward(reader, io::stdout(), &stop))?;
        Ok((Some(Self { writer, forwarder }), arguments))
    }

    /// Waits until everything has been forwarded.
    ///
    /// # Errors
    /// The reason that the output could not be written.
    pub(crate) fn end(self) -> Result<(), String> {
        drop(self.writer);
        match self.forwarder.join() {
            Ok(Err(error)) if error.kind() == ErrorKind::BrokenPipe => {
                Err("stopped: standard output was closed".to_owned())
            }
            Ok(Err(error)) => Err(format!("stopped: cannot write to standard output: {error}")),
            _ => Ok(()),
        }
    }
}

/// Copies everything up to the first write error; then sets `stop` and keeps reading, so that no writer fails.
fn forward(mut reader: PipeReader, mut to: impl Write, stop: &StopFlag) -> io::Result<()> {
    let mut piece = [0; 1 << 13];
    let mut outcome = Ok(());
    loop {
        let read = match reader.read(&mut piece) {
            Ok(0) => return outcome,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return outcome.and(Err(error)),
        };
        if outcome.is_ok() {
            outcome = to.write_all(&piece[..read]).and_then(|()| to.flush());
            stop.0.store(outcome.is_err(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts a few bytes, then fails like a closed pipe.
    struct Short(Vec<u8>);

    impl Write for Short {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() >= 3 {
                return Err(ErrorKind::BrokenPipe.into());
            }
            self.0.push(bytes[0]);
            Ok(1)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_output_stops_the_run_and_fails_no_writer() {
        let (reader, mut writer) = io::pipe().unwrap();
        let stop = StopFlag::default();
        std::thread::scope(|scope| {
            let forwarder = scope.spawn(|| forward(reader, Short(Vec::new()), &stop));
            // More than the pipe buffers: passes only if the forwarder keeps reading.
            writer.write_all(&vec![b'x'; 1 << 20]).unwrap();
            drop(writer);
            assert_eq!(forwarder.join().unwrap().unwrap_err().kind(), ErrorKind::BrokenPipe);
        });
        assert!(stop.is_set());
    }
}
