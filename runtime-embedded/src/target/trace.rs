//! The instructions that QEMU executes, from its log: one line each, through a pipe, so that it may be of any length.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::thread::{self, JoinHandle};

use runtime_core::backend::TemporaryFolder;
use runtime_core::{Error, ErrorKind, Result};

use crate::image::run_tool;

/// The part of a run that is traced, and the part of this that is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// The first instruction.
    pub(super) begin: u64,
    /// The instruction at which it ends.
    pub(super) end: u64,
    /// Where the firmware reads its counter: twice to know what that costs, and before and after the calls.
    pub(super) reading: u64,
}

/// The file of a pipe.
const PIPE: &str = "log";
/// Readings of the counter until the calls.
const READINGS: u32 = 3;

/// How often each address was executed.
pub(super) type Counts = HashMap<u64, u64>;

/// Commands of QEMU's monitor: first the names of older versions. An unknown command does nothing.
pub(super) const ONE_BY_ONE: [&str; 2] = ["singlestep on", "one-insn-per-tb on"];
pub(super) const FULL_SPEED: [&str; 2] = ["singlestep off", "one-insn-per-tb off"];
pub(super) const LOG: &str = "log exec,nochain";
pub(super) const NO_LOG: &str = "log none";
/// Closes the pipe.
pub(super) const CLOSE: &str = "logfile /dev/null";

/// A named pipe for the log, in a folder of its own; removed when dropped.
#[derive(Debug)]
pub(super) struct Pipe {
    folder: TemporaryFolder,
    /// Keeps QEMU from waiting for a reader when it opens the pipe.
    _reader: File,
}

impl Pipe {
    /// Makes a pipe.
    ///
    /// # Errors
    /// `Unavailable` without the program `mkfifo`; `Io`.
    pub(super) fn new() -> Result<Self> {
        let folder = TemporaryFolder::new("runtime-trace-").map_err(|error| io(&error))?;
        let (succeeded, log) = run_tool(Command::new("mkfifo").arg(PIPE), folder.path())?;
        if !succeeded {
            return Err(Error::new(ErrorKind::Io, log));
        }
        let reader =
            OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(folder.path().join(PIPE));
        Ok(Self { _reader: reader.map_err(|error| io(&error))?, folder })
    }

    /// The command of QEMU's monitor that makes this pipe its log.
    pub(super) fn command(&self) -> String {
        format!("logfile {}", self.path().display())
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(PIPE)
    }

    /// Counts the lines in a thread, which ends when QEMU closes the pipe, or has ended.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn count(&self, window: Window) -> Result<JoinHandle<std::io::Result<Counts>>> {
        // Does not block: QEMU has opened the pipe.
        let file = File::open(self.path()).map_err(|error| io(&error))?;
        let count = move || count(BufReader::with_capacity(1 << 16, file), window.reading);
        let thread = thread::Builder::new().name("runtime-embedded-trace".to_owned());
        thread.spawn(count).map_err(|error| io(&error))
    }
}

/// The counts of a thread that has read the whole log.
pub(super) fn join(thread: JoinHandle<std::io::Result<Counts>>) -> Result<Counts> {
    let panicked = |_| Err(std::io::Error::other("a thread panicked"));
    thread.join().unwrap_or_else(panicked).map_err(|error| io(&error))
}

fn io(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("the log of the emulator: {error}"))
}

/// Counts the instructions from the reading of the counter before the calls to that after them.
fn count(mut log: impl BufRead, reading: u64) -> std::io::Result<Counts> {
    let (mut counts, mut line, mut readings) = (Counts::new(), Vec::new(), 0);
    // An instruction that was logged is executed, unless the next line denies it.
    let mut last = None;
    while log.read_until(b'\n', &mut line)? > 0 {
        match executed(&line) {
            Some((address, true)) => {
                add(&mut counts, &mut readings, reading, last.replace(address));
            }
            Some((_, false)) => last = None,
            None => {}
        }
        line.clear();
    }
    add(&mut counts, &mut readings, reading, last);
    Ok(counts)
}

fn add(counts: &mut Counts, readings: &mut u32, reading: u64, address: Option<u64>) {
    let Some(address) = address else { return };
    *readings += u32::from(address == reading);
    if *readings == READINGS {
        *counts.entry(address).or_default() += 1;
    }
}

/// The address in a line of the log, and whether it was executed; `None` for other lines.
/// `Trace 0: HOST [BASE/PC/FLAGS/FLAGS] NAME`, or `Stopped execution of TB chain before HOST [PC] NAME`.
fn executed(line: &[u8]) -> Option<(u64, bool)> {
    let text = std::str::from_utf8(line).ok()?;
    let (is_executed, field) = match (text.starts_with("Trace "), text.starts_with("Stopped execution ")) {
        (true, _) => (true, 1),
        (_, true) => (false, 0),
        _ => return None,
    };
    let (_, fields) = text.split_once('[')?;
    let address = fields.split(['/', ']']).nth(field)?;
    Some((u64::from_str_radix(address, 16).ok()?, is_executed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executed_addresses_are_counted() {
        let log = "Trace 0: 0x7f95 [0000000000000000/0000000080000530/0020f003/ff020201] f\n\
                   Trace 0: 0x7f96 [00800000/00000532/0020f003/ff020201] \n\
                   Stopped execution of TB chain before 0x7f96 [0000000000000532] \n\
                   Linking TBs 0x7f 0x8 [00000532]\n\
                   Trace 0: 0x7f96 [00800000/00000532/0020f003/ff020201] \n\
                   Trace 0: 0x7f96 [00800000/00000532/0020f003/ff020201] \n";
        let reading = "Trace 0: 0x7f90 [00800000/00000100/0020f003/ff020201] \n";
        let log = [log, reading, log, reading, reading, log, reading, log].concat();
        let counts = count(log.as_bytes(), 0x100).unwrap();
        assert_eq!(counts, Counts::from([(0x100, 1), (0x8000_0530, 1), (0x532, 2)]));
    }
}
