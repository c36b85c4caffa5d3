//! A runner, as the judge sees it.

use std::fs::File;
use std::io::{BufReader, ErrorKind as IoErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use runtime_core::backend::{Sandbox, SandboxPolicy};
use runtime_core::{Error, ErrorKind, Result};

use super::protocol::{self, Answer, Load, Order};
use crate::platform::{self, ExitKind, ProcessHandle};

/// A process that has a candidate's code. It is stopped except in windows.
#[derive(Debug)]
pub(super) struct Runner {
    /// The process that stays outside of the sandbox, and ends as the runner does.
    child: Child,
    /// The process that runs the code, by its number.
    process: i32,
    /// The same, for signals.
    handle: ProcessHandle,
    output: UnixStream,
    input: BufReader<UnixStream>,
    windows: u64,
    /// How many threads it had when it was stopped last.
    threads: usize,
    /// How it has ended, if it has.
    end: Option<ExitKind>,
}

/// The calls of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calls {
    /// The set of tensors; `None` for an empty function.
    pub(super) set: Option<usize>,
    pub(super) number: u64,
    /// What precedes them, outside of the time.
    pub(super) first: First,
}

/// What the runner does in a window before its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    Nothing,
    /// It makes a call with a set of tensors; with none, of an empty function.
    Call(Option<usize>),
}

/// How long a window took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowTime {
    pub(super) elapsed: Duration,
    /// The time of all processors that the runner used.
    pub(super) processor: Duration,
}

impl Runner {
    /// Starts this program as a runner that can read `readable`, with the tensors' memory.
    ///
    /// # Errors
    /// Those of [`Sandbox::spawn`]; `Failed` if it does not say that it is ready.
    pub(super) fn start(policy: SandboxPolicy, readable: &[PathBuf], memory: File) -> Result<Self> {
        let program =
            std::env::current_exe().map_err(|error| failed(&format!("cannot find this program: {error}")))?;
        let (ours, theirs) = UnixStream::pair().map_err(|error| failed(&error.to_string()))?;
        let mut command = Command::new(&program);
        command.args(["worker", "--runner"]);
        if policy != SandboxPolicy::Off {
            command.current_dir("/").env("TMPDIR", "/.scratch");
        }
        command.stdin(OwnedFd::from(theirs)).stdout(memory).stderr(Stdio::inherit());
        let sandbox = readable
            .iter()
            .fold(Sandbox::new().give_up_root().show_machine().read(&program), |sandbox, path| {
                sandbox.read(path)
            });
        let child = sandbox.spawn(policy, &mut command)?;
        // The command holds the runner's end, whose closing tells that the runner has ended.
        drop(command);
        let input = BufReader::new(ours.try_clone().map_err(|error| failed(&error.to_string()))?);
        let outside = child.id().cast_signed();
        let handle = handle_of(outside)?;
        let mut runner =
            Self { child, process: outside, handle, output: ours, input, windows: 0, threads: 0, end: None };
        match runner.answer()? {
            Answer::Hello => {}
            _ => return Err(failed("it does not say that it is ready")),
        }
        // Nothing foreign runs yet, so these are its processes.
        while let Some(inner) = platform::children_of(runner.process).first() {
            runner.process = *inner;
        }
        runner.handle = handle_of(runner.process)?;
        Ok(runner)
    }

    /// Loads the code, and stops the runner.
    ///
    /// # Errors
    /// Those of loading; how the runner has ended.
    pub(super) fn load(&mut self, load: Load) -> Result<()> {
        self.order(&Order::Load(Box::new(load)))?;
        match self.answer()? {
            Answer::Loaded => self.stop().map(drop),
            Answer::Failed(message) => Err(Error::new(ErrorKind::Failed, message)),
            other => Err(failed(&format!("{other:?} is no answer to `load`"))),
        }
    }

    /// Gives the word for a window, and returns how long it took. The runner is stopped before and after.
    ///
    /// # Errors
    /// That of a call; how the runner has ended.
    pub(super) fn window(&mut self, calls: Calls) -> Result<WindowTime> {
        let Calls { set, number, first } = calls;
        self.handle.signal(libc::SIGCONT);
        if let First::Call(set) = first {
            self.call(set, 1)?;
        }
        let (processor_begin, begin) = (platform::processor_time(self.process), Instant::now());
        let called = self.call(set, number);
        let returned = begin.elapsed();
        let had_running = self.stop()?;
        // What computed behind its answer is in the time.
        let elapsed = if had_running { begin.elapsed() } else { returned };
        let processor = platform::processor_time(self.process).saturating_sub(processor_begin);
        called.map(|()| WindowTime { elapsed, processor })
    }

    /// Gives the word, and waits for the answer.
    fn call(&mut self, set: Option<usize>, number: u64) -> Result<()> {
        self.windows += 1;
        let window = self.windows;
        self.order(&Order::Call { window, set, number })?;
        match self.answer()? {
            Answer::Done(done) if done == window => Ok(()),
            Answer::Failed(message) => Err(Error::new(ErrorKind::Failed, message)),
            other => Err(failed(&format!("{other:?} is no answer to window {window}"))),
        }
    }

    fn order(&mut self, order: &Order) -> Result<()> {
        protocol::write(&mut self.output, order).map_err(|_| self.ended())
    }

    fn answer(&mut self) -> Result<Answer> {
        match protocol::read_answer(&mut self.input) {
            Ok(Some(answer)) => Ok(answer),
            Err(error) if error.kind() == IoErrorKind::InvalidData => {
                Err(failed("it writes to the judge's channel"))
            }
            _ => Err(self.ended()),
        }
    }

    /// Stops all threads; returns whether one of them other than the first was still running.
    fn stop(&mut self) -> Result<bool> {
        let is_running = |state: &char| *state == 'R';
        let running = platform::thread_states(self.process).iter().skip(1).any(is_running);
        self.handle.signal(libc::SIGSTOP);
        loop {
            let states = platform::thread_states(self.process);
            // Its number may be another process's by now.
            if states.is_empty() || !matches!(self.child.try_wait(), Ok(None)) {
                return Err(self.ended());
            }
            self.threads = states.len();
            if states.iter().all(|state| matches!(state, 'T' | 't' | 'Z' | 'X')) {
                return Ok(running);
            }
            std::thread::yield_now();
        }
    }

    /// How many threads it had when it was stopped last.
    pub(super) const fn threads(&self) -> usize {
        self.threads
    }

    /// How it has ended, if it has.
    pub(super) const fn end(&self) -> Option<ExitKind> {
        self.end
    }

    /// The error of a runner that has ended, or does not answer any more.
    fn ended(&mut self) -> Error {
        self.handle.signal(libc::SIGKILL);
        let status = match self.child.wait() {
            Ok(status) => status,
            Err(error) => return failed(&error.to_string()),
        };
        match (status.signal(), status.code()) {
            (Some(signal), _) => {
                self.end = Some(ExitKind::Signal(signal));
                Error::new(ErrorKind::Crashed, format!("its code was ended by signal {signal}"))
            }
            (None, code) => {
                let code = code.unwrap_or(-1);
                self.end = Some(ExitKind::Code(code));
                Error::new(ErrorKind::Failed, format!("its code has exited with code {code}"))
            }
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.handle.signal(libc::SIGKILL);
        // It ends as the runner does.
        let _ = self.child.wait();
    }
}

fn handle_of(process: i32) -> Result<ProcessHandle> {
    ProcessHandle::open(process).map_err(|error| failed(&format!("process {process}: {error}")))
}

fn failed(message: &str) -> Error {
    Error::new(ErrorKind::Failed, format!("the runner of the kernel: {message}"))
}
