//! Standard output of the test runner, which panics where it cannot write: here it writes to a pipe of this process, and a
//! thread passes on what comes out of it.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use libtest_mimic::Arguments;

/// Whether the run is to end early, since nobody learns what comes of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The way from the test runner to standard output.
#[derive(Debug)]
pub(crate) struct OutputPipe {
    writer: PipeWriter,
    forwarder: JoinHandle<io::Result<()>>,
}

impl OutputPipe {
    /// Turns what the runner prints on standard output into a pipe. A terminal, which has no reader that could go away, and a
    /// file that was named stay what they are.
    ///
    /// # Errors
    /// The file that was named cannot be written.
    pub(crate) fn redirect(arguments: &Arguments, stop: &StopFlag) -> io::Result<(Option<Self>, Arguments)> {
        let mut arguments = arguments.clone();
        if let Some(path) = &arguments.logfile {
            // The runner would panic.
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

    /// Waits until all has been passed on.
    ///
    /// # Errors
    /// What kept it from that, in a sentence.
    pub(crate) fn end(self) -> Result<(), String> {
        drop(self.writer);
        match self.forwarder.join() {
            Ok(Err(error)) if error.kind() == ErrorKind::BrokenPipe => {
                Err("stopped: nobody reads the output any more".to_owned())
            }
            Ok(Err(error)) => Err(format!("stopped: cannot write to standard output: {error}")),
            _ => Ok(()),
        }
    }
}

/// Passes everything on, up to the first failure; then sets `stop`, and goes on reading, so that nobody who writes fails.
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

    /// Takes a few bytes, then has nobody who reads it.
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
    fn a_reader_that_goes_away_stops_the_run_and_no_writer() {
        let (reader, mut writer) = io::pipe().unwrap();
        let stop = StopFlag::default();
        std::thread::scope(|scope| {
            let forwarder = scope.spawn(|| forward(reader, Short(Vec::new()), &stop));
            // More than a pipe holds: somebody goes on reading.
            writer.write_all(&vec![b'x'; 1 << 20]).unwrap();
            drop(writer);
            assert_eq!(forwarder.join().unwrap().unwrap_err().kind(), ErrorKind::BrokenPipe);
        });
        assert!(stop.is_set());
    }
}
