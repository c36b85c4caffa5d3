//! A runner, as the judge sees it.

use std::fs::File;
use std::io::{BufReader, ErrorKind as IoErrorKind};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use runtime_core::backend::{Sandbox, SandboxPolicy};
use runtime_core::{Error, ErrorKind, Result};

use super::protocol::{self, Answer, Load, Order};
use crate::platform::{self, ExitKind, ProcessHandle};

/// How often the handshake is measured; the shortest time counts.
const HANDSHAKES: usize = 5;
/// Stopping takes no longer if all threads wait.
const STOPPING: Duration = Duration::from_micros(200);
/// How long a thread may need to leave its processor.
const SETTLING: Duration = Duration::from_micros(20);
/// What the system may still add to the time of a stopped process: a tick, where the machine itself is slow.
const LAG: Duration = Duration::from_millis(5);

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
    /// The processor time that it had used then.
    stopped_at: Duration,
    handshake: WindowTime,
    /// How it has ended, if it has.
    end: Option<ExitKind>,
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
        let mut runner = Self {
            child,
            process: outside,
            handle,
            output: ours,
            input,
            windows: 0,
            threads: 0,
            stopped_at: Duration::ZERO,
            handshake: WindowTime::default(),
            end: None,
        };
        match runner.answer()? {
            Answer::Hello => {}
            _ => return Err(failed("it does not say that it is ready")),
        }
        // Nothing foreign runs yet, so these are its processes.
        while let Some(inner) = platform::child_of(runner.process) {
            runner.process = inner;
        }
        runner.handle = handle_of(runner.process)?;
        runner.measure_handshake()?;
        Ok(runner)
    }

    /// Loads the code, and stops the runner.
    ///
    /// # Errors
    /// Those of loading; how the runner has ended.
    pub(super) fn load(&mut self, load: Load) -> Result<()> {
        self.handle.signal(libc::SIGCONT);
        self.order(&Order::Load(Box::new(load)))?;
        match self.answer()? {
            Answer::Loaded => self.stop(),
            Answer::Failed(message) => Err(Error::new(ErrorKind::Failed, message)),
            other => Err(failed(&format!("{other:?} is no answer to `load`"))),
        }
    }

    /// Gives the word for calls with a set of tensors, or of an empty function, and returns how long they took. The runner is stopped
    /// before and after, and finds the word when it goes on: all that it does is in the time.
    ///
    /// # Errors
    /// That of a call; how the runner has ended; `Failed` if it has computed while it was stopped, or answered before it was asked.
    pub(super) fn window(&mut self, set: Option<usize>, number: u64) -> Result<WindowTime> {
        if !self.input.buffer().is_empty() || platform::has_data(self.output.as_raw_fd()) {
            // Nothing can be read of one that has ended.
            self.answer()?;
            return Err(failed("it has answered before it was asked"));
        }
        self.windows += 1;
        let window = self.windows;
        self.order(&Order::Call { window, set, number })?;
        self.check_stopped()?;
        let (processor_begin, begin) = (self.stopped_at, Instant::now());
        self.handle.signal(libc::SIGCONT);
        let called = match self.answer()? {
            Answer::Done(done) if done == window => Ok(()),
            Answer::Failed(message) => Err(Error::new(ErrorKind::Failed, message)),
            other => Err(failed(&format!("{other:?} is no answer to window {window}"))),
        };
        let returned = begin.elapsed();
        self.stop_threads()?;
        // What may have computed behind its answer is in the time.
        let stopped = begin.elapsed();
        self.settle();
        let elapsed = if stopped - returned > STOPPING { stopped } else { returned };
        called.map(|()| WindowTime { elapsed, processor: self.stopped_at.saturating_sub(processor_begin) })
    }

    /// Checks that it has not computed since it was stopped.
    ///
    /// # Errors
    /// `Failed` if it has.
    pub(super) fn check_stopped(&self) -> Result<()> {
        match platform::processor_time(self.process).saturating_sub(self.stopped_at) > LAG {
            true => Err(failed("it has computed while it was stopped")),
            false => Ok(()),
        }
    }

    /// How long the least takes that a window can do, measured before any foreign code was loaded.
    pub(super) const fn handshake(&self) -> WindowTime {
        self.handshake
    }

    fn measure_handshake(&mut self) -> Result<()> {
        self.stop()?;
        let mut least = WindowTime { elapsed: Duration::MAX, processor: Duration::MAX };
        for _ in 0..HANDSHAKES {
            let WindowTime { elapsed, processor } = self.window(None, 1)?;
            least =
                WindowTime { elapsed: least.elapsed.min(elapsed), processor: least.processor.min(processor) };
        }
        self.handshake = least;
        Ok(())
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

    fn stop(&mut self) -> Result<()> {
        self.stop_threads()?;
        self.settle();
        Ok(())
    }

    /// Waits until the system has counted all the time that the stopped threads used: what one has used since the last tick is added when
    /// it leaves its processor, a moment after it counts as stopped.
    fn settle(&mut self) {
        loop {
            let used = platform::processor_time(self.process);
            std::thread::sleep(SETTLING);
            self.stopped_at = platform::processor_time(self.process);
            if self.stopped_at == used {
                return;
            }
        }
    }

    /// Stops all threads.
    fn stop_threads(&mut self) -> Result<()> {
        self.handle.signal(libc::SIGSTOP);
        loop {
            let states = platform::thread_states(self.process);
            // Its number may be another process's by now.
            if states.is_empty() || !matches!(self.child.try_wait(), Ok(None)) {
                return Err(self.ended());
            }
            self.threads = states.len();
            if states.iter().all(|state| matches!(state, 'T' | 't' | 'Z' | 'X')) {
                return Ok(());
            }
            std::thread::yield_now();
        }
    }

    /// Its process.
    pub(super) const fn process(&self) -> i32 {
        self.process
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
