//! Worker processes: each is asked one thing at a time, and replaced when it has died, hangs, or leaves something behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::job::{Answer, Ended, Job};

/// What a worker has beyond the deadline of its job: to open devices, and to wait until they are closed.
const GRACE: Duration = Duration::from_secs(60);
/// How much of a dead worker's last words is kept.
const LAST_WORDS: usize = 600;

/// Starts workers.
pub(super) type Start<'a> = &'a (dyn Fn() -> std::io::Result<Command> + Sync);

struct Worker {
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
    words: Arc<Mutex<Vec<u8>>>,
}

/// Runs all jobs on `count` workers; `each` is told of every answer, in no order.
pub(super) fn run_all(start: Start<'_>, count: usize, jobs: &[Job], each: &(dyn Fn(&Job, Answer) + Sync)) {
    let next = Mutex::new(jobs.iter());
    std::thread::scope(|scope| {
        for _ in 0..count.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                let mut worker = None;
                while let Some(job) = { next.lock().unwrap_or_else(PoisonError::into_inner).next() } {
                    each(job, ask(start, &mut worker, job));
                }
            });
        }
    });
}

/// Asks the worker, a new one if there is none.
fn ask(start: Start<'_>, worker: &mut Option<Worker>, job: &Job) -> Answer {
    let mut asked = match worker.take().map_or_else(|| Worker::start(start), Ok) {
        Ok(worker) => worker,
        Err(error) => return Answer::new(Ended::Unusable, format!("no worker: {error}")),
    };
    let answer = asked.ask(job);
    if answer.is_harmless() {
        *worker = Some(asked);
    }
    answer
}

impl Worker {
    fn start(start: Start<'_>) -> std::io::Result<Self> {
        let mut command = start()?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let missing = || std::io::Error::other("a pipe is missing");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let errors = child.stderr.take().ok_or_else(missing)?;
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let words = Arc::<Mutex<Vec<u8>>>::default();
        let kept = words.clone();
        std::thread::spawn(move || keep_last(errors, &kept));
        Ok(Self { child, input, answers, words })
    }

    fn ask(&mut self, job: &Job) -> Answer {
        // A worker that is dead answers nothing, which is seen below.
        let _ = writeln!(self.input, "{}", job.line()).and_then(|()| self.input.flush());
        loop {
            match self.answers.recv_timeout(job.deadline + GRACE) {
                // Code under test may print, too.
                Ok(line) => match Answer::parse(&line) {
                    Some(answer) => return answer,
                    None => continue,
                },
                Err(RecvTimeoutError::Timeout) => {
                    return Answer::new(Ended::Hangs, "its process does not answer any more");
                }
                Err(RecvTimeoutError::Disconnected) => return self.died(),
            }
        }
    }

    fn died(&mut self) -> Answer {
        let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let words = String::from_utf8_lossy(&words).trim().replace('\n', " | ");
        Answer::new(Ended::Died, format!("its process ended with {status}: {words}"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may hang; one that is dead already is only waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn keep_last(mut from: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..n]);
        let excess = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..excess);
    }
}
