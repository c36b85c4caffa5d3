//! The instructions that QEMU executes, from its log: one line each, through a pipe, so that it may be of any length.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind as IoErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use runtime_core::backend::TemporaryFolder;
use runtime_core::{Error, ErrorKind, Result};

use super::named_pipe;

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

/// Commands of QEMU's monitor that log each instruction. An unknown one does nothing: `singlestep` is the name in older versions.
pub(super) const START: [&str; 3] = ["singlestep on", "one-insn-per-tb on", "log exec,nochain"];
/// The commands that end the log, run at full speed again, and close the pipe.
pub(super) const STOP: [&str; 4] = ["log none", "singlestep off", "one-insn-per-tb off", "logfile /dev/null"];

/// A named pipe for the log, in a folder of its own; removed when dropped.
#[derive(Debug)]
pub(super) struct Pipe {
    folder: TemporaryFolder,
    /// Opened before QEMU opens the pipe, so that neither waits for the other.
    reader: File,
}

impl Pipe {
    /// Makes a pipe.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn new() -> Result<Self> {
        let make = || {
            let folder = TemporaryFolder::new("runtime-trace-")?;
            let path = folder.path().join(PIPE);
            named_pipe::create(&path)?;
            let reader = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
            Ok(Self { folder, reader })
        };
        make().map_err(|error| io(&error))
    }

    /// The command of QEMU's monitor that makes this pipe its log.
    pub(super) fn command(&self) -> String {
        let path = self.path().display().to_string();
        format!("logfile \"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(PIPE)
    }

    /// Counts the lines in a thread, which ends when QEMU closes the pipe, or has ended: those between two readings of the counter there, or
    /// all.
    ///
    /// # Errors
    /// `Io`, also if QEMU has not opened the pipe.
    pub(super) fn count(self, reading: Option<u64>) -> Result<JoinHandle<std::io::Result<Counts>>> {
        let path = self.path();
        let mut log = BufReader::with_capacity(1 << 16, self.reader);
        match log.fill_buf() {
            // Without a writer, a pipe is at its end.
            Ok([]) => {
                let message = format!("the emulator did not open {}", path.display());
                return Err(io(&std::io::Error::other(message)));
            }
            Err(error) if error.kind() != IoErrorKind::WouldBlock => return Err(io(&error)),
            _ => {}
        }
        named_pipe::set_blocking(log.get_ref()).map_err(|error| io(&error))?;
        let thread = thread::Builder::new().name("runtime-embedded-trace".to_owned());
        thread.spawn(move || count(log, reading)).map_err(|error| io(&error))
    }
}

/// The counts of a thread that has read the whole log.
pub(super) fn join(thread: JoinHandle<std::io::Result<Counts>>) -> Result<Counts> {
    let panicked = |_| Err(std::io::Error::other("a thread panicked"));
    thread.join().unwrap_or_else(panicked).map_err(|error| io(&error))
}

fn io(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot read the emulator's log: {error}"))
}

/// Counts the instructions from the reading of the counter before the calls to that after them, or all.
fn count(mut log: impl BufRead, reading: Option<u64>) -> std::io::Result<Counts> {
    let (mut counts, mut line, mut readings) = (Counts::new(), Vec::new(), 0);
    // An instruction that was logged is executed, unless the next line withdraws it.
    let mut last = None;
    while log.read_until(b'\n', &mut line)? > 0 {
        match event(&line) {
            Some(Event::Executed(address)) => {
                add(&mut counts, &mut readings, reading, last.replace(address));
            }
            Some(Event::Withdrawn) => last = None,
            None => {}
        }
        line.clear();
    }
    add(&mut counts, &mut readings, reading, last);
    Ok(counts)
}

fn add(counts: &mut Counts, readings: &mut u32, reading: Option<u64>, address: Option<u64>) {
    let Some(address) = address else { return };
    *readings += u32::from(reading == Some(address));
    if reading.is_none() || *readings == READINGS {
        *counts.entry(address).or_default() += 1;
    }
}

/// What a line of the log reports.
enum Event {
    /// The instruction at this address begins: `Trace 0: HOST [BASE/PC/FLAGS/FLAGS] NAME`.
    Executed(u64),
    /// The last instruction was not executed, or is executed once more.
    Withdrawn,
}

/// How the lines begin that withdraw an instruction: something interrupted the processor before it, or it accesses a device, for which QEMU
/// translates it again.
const WITHDRAWALS: [&str; 2] = ["Stopped execution ", "cpu_io_recompile: rewound "];

/// The event of a line; `None` for other lines.
fn event(line: &[u8]) -> Option<Event> {
    let text = std::str::from_utf8(line).ok()?;
    if WITHDRAWALS.iter().any(|begin| text.starts_with(begin)) {
        return Some(Event::Withdrawn);
    }
    let (_, fields) = text.strip_prefix("Trace ")?.split_once('[')?;
    let address = fields.split(['/', ']']).nth(1)?;
    Some(Event::Executed(u64::from_str_radix(address, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

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
        let counts = count(log.as_bytes(), Some(0x100)).unwrap();
        assert_eq!(counts, Counts::from([(0x100, 1), (0x8000_0530, 1), (0x532, 2)]));
        let all = count(log.as_bytes(), None).unwrap();
        assert_eq!(
            all,
            Counts::from([(0x100, 4), (0x8000_0530, 4), (0x532, 8)]),
            "wherever the counter is read"
        );
    }

    #[test]
    fn accesses_to_devices_are_counted_once() {
        let reading = "Trace 0: 0x7f90 [00800000/00000100/0020f003/ff020201] \n";
        let access = "Trace 0: 0x7f96 [00800000/00000532/0020f003/ff020201] \n";
        let again = "cpu_io_recompile: rewound execution of TB to 00000532\n";
        let log = [reading, reading, reading, access, again, access, reading, access].concat();
        assert_eq!(count(log.as_bytes(), Some(0x100)).unwrap(), Counts::from([(0x100, 1), (0x532, 1)]));
    }

    #[test]
    fn a_log_is_read_to_its_end() {
        let pipe = Pipe::new().unwrap();
        let mut writer = OpenOptions::new().write(true).open(pipe.path()).unwrap();
        let counting = pipe.count(Some(0x100)).unwrap();
        for address in [0x100, 0x100, 0x100, 0x104] {
            writeln!(writer, "Trace 0: 0x7f90 [00800000/{address:08x}/0020f003/ff020201] ").unwrap();
        }
        drop(writer);
        assert_eq!(join(counting).unwrap(), Counts::from([(0x100, 1), (0x104, 1)]));
    }

    #[test]
    fn a_log_that_was_not_opened_is_an_error() {
        let pipe = Pipe::new().unwrap();
        let path = pipe.path();
        assert_eq!(pipe.command(), format!("logfile \"{}\"", path.display()));
        let error = pipe.count(Some(0x100)).unwrap_err();
        assert!(error.kind() == ErrorKind::Io && error.message().contains("did not open"), "{error}");
        assert!(!path.exists());
    }
}
