//! The inner process of a worker, which evaluates candidates.

use std::fs::File;
use std::io::BufReader;
use std::sync::{Arc, Mutex, PoisonError};

use runtime_core::backend::{SandboxPolicy, missing_sandbox_parts};
use runtime_core::{Error, ErrorKind, Result, Runtime};

use super::options::WorkerOptions;
use super::protocol::{self, Hello, Message, Reply, Request};
use super::session::{Report, Session};
use crate::crash_context;
use crate::platform;

/// Evaluates candidates from standard input until it ends, or until a device fails, whose process should not be used again.
///
/// Standard output becomes standard error, so that what a kernel prints does not mix with the protocol. `runtime` makes the
/// runtime that devices are opened with.
///
/// # Errors
/// `Io` if the streams cannot be used; `Unsupported` if the memory cannot be limited; `Unavailable` if this system lacks a part of
/// a sandbox that is required.
///
/// # Safety
/// That of [`Job::new`](crate::Job::new), for each spec that a request names. The options of its devices are trusted, too.
#[allow(unsafe_code, reason = "a worker runs the code that its requests name")]
pub unsafe fn serve(runtime: impl FnOnce() -> Runtime, options: WorkerOptions) -> Result<()> {
    platform::die_with_parent();
    platform::adopt_orphans();
    check_sandbox(options.sandbox)?;
    let io_error = |error: std::io::Error| {
        Error::new(ErrorKind::Io, format!("the streams of the protocol: {error}")).with_source(error)
    };
    let (input, output) = platform::take_standard_streams().map_err(io_error)?;
    if let Some(bytes) = options.memory_limit_bytes {
        platform::limit_data(bytes)
            .map_err(|error| Error::unsupported(format!("the memory cannot be limited: {error}")))?;
    }
    crash_context::install_signal_handlers();
    let runtime = runtime();
    let output = Arc::new(Output { process: std::process::id(), file: Mutex::new(output) });
    let mut connection = Connection { input: BufReader::new(input), output };
    connection.output.send(&Reply::Hello { hello: Hello::current() }).map_err(io_error)?;
    connection.answer_all(&mut Session::new(&runtime, options)).map_err(io_error)
}

/// Checks that a sandbox is whole that is required: nothing that a request says may be done without it.
fn check_sandbox(policy: SandboxPolicy) -> Result<()> {
    let missing = if policy == SandboxPolicy::Required { missing_sandbox_parts() } else { Vec::new() };
    if missing.is_empty() {
        return Ok(());
    }
    let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let message = format!("this system lacks a part of the sandbox: {}", missing.join("; "));
    Err(Error::new(ErrorKind::Unavailable, message))
}

struct Connection {
    input: BufReader<File>,
    output: Arc<Output>,
}

struct Output {
    process: u32,
    file: Mutex<File>,
}

impl Output {
    fn send(&self, reply: &Reply) -> std::io::Result<()> {
        if std::process::id() != self.process {
            // A kernel has forked and returned in both processes; only one is the worker.
            platform::exit_now();
        }
        protocol::write_line(&mut *self.file.lock().unwrap_or_else(PoisonError::into_inner), reply)
    }
}

impl Connection {
    fn answer_all(&mut self, session: &mut Session<'_>) -> std::io::Result<()> {
        while let Some(message) = Message::read(&mut self.input, protocol::MAX_FORWARDED_BYTES)? {
            let reply = match message {
                Ok((Message::Evaluate(request), _)) => self.answer(&request, session),
                Ok((Message::Cancel(_), _)) => Reply::Error {
                    id: None,
                    error: "a worker evaluates one candidate after the other; end it instead".to_owned(),
                },
                Err(reply) => reply,
            };
            self.output.send(&reply)?;
            if matches!(reply, Reply::Row { last: true, .. }) {
                break;
            }
        }
        Ok(())
    }

    fn answer(&mut self, request: &Request, session: &mut Session<'_>) -> Reply {
        let id = request.id;
        let output = Arc::clone(&self.output);
        // A reader that is gone is noticed at the last line.
        let report: Report = Arc::new(move |reply: Reply| drop(output.send(&reply)));
        match session.evaluate(id, &request.candidate, &report) {
            Ok((row, last)) => Reply::Row { id, row: Box::new(row), last },
            Err(error) => Reply::Error { id: Some(id), error: error.to_string() },
        }
    }
}
