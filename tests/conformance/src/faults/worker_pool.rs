//! Worker processes. Each runs one job at a time, and is replaced when it dies, hangs, or leaks something.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::job::{Job, RunResult, RunStatus};

/// The time that a worker has beyond the time limit of its job, to open and close devices.
const WORKER_GRACE: Duration = Duration::from_secs(60);
/// How much of a dead worker's standard error is kept.
const STDERR_TAIL_BYTES: usize = 600;

/// Creates the command of a worker.
pub(super) type StartWorker<'a> = &'a (dyn Fn() -> std::io::Result<Command> + Sync);

struct Worker {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    stderr_tail: Arc<Mutex<Vec<u8>>>,
}

/// Runs all jobs on `count` workers; calls `each` with every result, in any order.
pub(super) fn run_all(
    start: StartWorker<'_>,
    count: usize,
    jobs: &[Job],
    each: &(dyn Fn(&Job, RunResult) + Sync),
) {
    let next = Mutex::new(jobs.iter());
    std::thread::scope(|scope| {
        for _ in 0..count.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                let mut worker = None;
                while let Some(job) = { next.lock().unwrap_or_else(PoisonError::into_inner).next() } {
                    each(job, run_job(start, &mut worker, job));
                }
            });
        }
    });
}

/// Runs a job on the worker, starting one if there is none.
fn run_job(start: StartWorker<'_>, worker: &mut Option<Worker>, job: &Job) -> RunResult {
    let mut active = match worker.take().map_or_else(|| Worker::start(start), Ok) {
        Ok(worker) => worker,
        Err(error) => return RunResult::new(RunStatus::Unusable, format!("cannot start a worker: {error}")),
    };
    let result = active.run_job(job);
    if result.leaves_worker_reusable() {
        *worker = Some(active);
    }
    result
}

impl Worker {
    fn start(start: StartWorker<'_>) -> std::io::Result<Self> {
        let mut command = start()?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let missing = || std::io::Error::other("the worker has no pipes");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let errors = child.stderr.take().ok_or_else(missing)?;
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let stderr_tail = Arc::<Mutex<Vec<u8>>>::default();
        let kept = stderr_tail.clone();
        std::thread::spawn(move || keep_tail(errors, &kept));
        Ok(Self { child, input, lines, stderr_tail })
    }

    fn run_job(&mut self, job: &Job) -> RunResult {
        // If the worker is dead, the read below fails too.
        let _ = writeln!(self.input, "{}", job.line()).and_then(|()| self.input.flush());
        loop {
            match self.lines.recv_timeout(job.deadline + WORKER_GRACE) {
                // Code under test may print too.
                Ok(line) => match RunResult::parse(&line) {
                    Some(result) => return result,
                    None => continue,
                },
                Err(RecvTimeoutError::Timeout) => {
                    return RunResult::new(RunStatus::Hangs, "the worker process does not respond");
                }
                Err(RecvTimeoutError::Disconnected) => return self.died(),
            }
        }
    }

    fn died(&mut self) -> RunResult {
        let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let stderr_tail = self.stderr_tail.lock().unwrap_or_else(PoisonError::into_inner);
        let stderr_tail = String::from_utf8_lossy(&stderr_tail).trim().replace('\n', " | ");
        RunResult::new(RunStatus::Died, format!("the worker process ended with {status}: {stderr_tail}"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may hang; if it is already dead, this only reaps it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn keep_tail(mut from: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..n]);
        let excess = kept.len().saturating_sub(STDERR_TAIL_BYTES);
        kept.drain(..excess);
    }
}
