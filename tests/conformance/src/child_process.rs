//! Child processes that exit, fork or exec with work in flight. A case cannot do that in the suite's own process, so it
//! starts the same program again with an environment variable that selects the role of the child.

use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::Mutex;
use std::task::{Context as TaskContext, Waker};
use std::time::{Duration, Instant};

use runtime_core::{Arg, Error, ErrorKind, Event, Queue, Result, Runtime, Tensor};

use crate::case::Failure;
use crate::context::Context;
use crate::fixture::Fixture;
use crate::kernels::{self, KernelProvider};
use crate::wait;

/// `role|device|library`.
const CHILD_VARIABLE: &str = "RUNTIME_CONFORMANCE_CHILD";
/// Duration of the work of a child.
const WORK_US: i64 = 1_500_000;
/// A child that takes longer than this hangs.
const CHILD_TIMEOUT: Duration = Duration::from_secs(90);
/// The exit code of a child that succeeded.
pub(crate) const EXIT_DONE: u8 = 7;
/// The exit code of a child that failed.
const EXIT_BROKEN: u8 = 3;

/// What a child does with work in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Calls `exit`.
    Exit,
    /// Returns from `main`.
    Return,
    /// Drops everything in exit handlers, both before and after core's own handler.
    AtExit,
    /// Calls `abort`.
    Abort,
    /// Calls `abort`, and exits in its own signal handler.
    AbortHandler,
    /// Calls `exec`.
    Exec,
    /// Forks: every call fails in the child, and the parent continues.
    Fork,
}

const ROLES: [(&str, Role); 7] = [
    ("exit", Role::Exit),
    ("return", Role::Return),
    ("at_exit", Role::AtExit),
    ("abort", Role::Abort),
    ("abort_handler", Role::AbortHandler),
    ("exec", Role::Exec),
    ("fork", Role::Fork),
];

/// Runs as a child process if the environment says so; the program must then exit with the returned code.
#[must_use]
pub fn child() -> Option<ExitCode> {
    let wanted = std::env::var(CHILD_VARIABLE).ok()?;
    let mut words = wanted.splitn(3, '|');
    let role = words.next().and_then(|name| ROLES.iter().find(|(known, _)| *known == name));
    let (Some((_, role)), Some(device), Some(library)) = (role, words.next(), words.next()) else {
        return Some(ExitCode::from(EXIT_BROKEN));
    };
    Some(run_role(*role, library, device).unwrap_or_else(|failure| {
        let _ = writeln!(std::io::stderr(), "{failure}");
        ExitCode::from(EXIT_BROKEN)
    }))
}

/// Starts a child and waits until it exits.
pub(crate) fn run_child(context: &Context, role: Role) -> Result<(ExitStatus, String), Failure> {
    let library = context.target().path.as_ref();
    let library = library.ok_or_else(|| Failure::Unsupported("the backend is linked in".to_owned()))?;
    let name = ROLES.iter().find(|(_, known)| *known == role).map_or("", |(name, _)| name);
    let words = format!("{name}|{}|{}", context.name(), library.display());
    let failed = |error: std::io::Error| Failure::Failed(format!("cannot run the child process: {error}"));
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.envs(context.kernel_provider().folder().map(|folder| (kernels::FOLDER_VARIABLE, &folder.path)));
    let mut child = command
        .args(std::env::args_os().skip(1))
        .env(CHILD_VARIABLE, words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let deadline = Instant::now() + CHILD_TIMEOUT;
    while child.try_wait().map_err(failed)?.is_none() {
        if Instant::now() > deadline {
            child.kill().and_then(|()| child.wait()).map_err(failed)?;
            return Err(Failure::Failed(format!("the child process hung: no end after {CHILD_TIMEOUT:?}")));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.code() == Some(i32::from(EXIT_DONE)) {
        // Its work includes a launch.
        context.kernel_provider().launched();
    }
    Ok((output.status, String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// A device with work in flight: a launch, a write that depends on it, and a future polled by the wait thread.
#[derive(Debug)]
struct WorkInFlight {
    runtime: Runtime,
    fixture: Fixture,
    queue: Queue,
    tensor: Tensor,
    event: Event,
    /// A host task that waits for the event, and the event of which the program keeps a value.
    task: Event,
    keeping: Event,
}

/// Ends the process if it is dropped before the event has ended.
struct Kept(Event);

impl Drop for Kept {
    fn drop(&mut self) {
        if !matches!(self.0.is_done(), Ok(true)) {
            let _ = writeln!(std::io::stderr(), "a value was dropped too early");
            std::process::abort();
        }
    }
}

impl WorkInFlight {
    fn new(library: &str, device: &str) -> Result<Self, Failure> {
        // SAFETY: the user selected this library for the suite.
        let runtime = unsafe { crate::builder().discover(false).library(library) }.build();
        let fixture = Fixture::new(runtime.open(device)?, KernelProvider::from_environment());
        let (queue, tensor) = (fixture.queue()?, fixture.full(1000, 0.0)?);
        // The first launch may compile the kernel, and wait for the queue to do so.
        wait::event(&fixture.fill(&queue, &tensor, 0.0)?)?;
        fixture.launch(&queue, "spin", &[Arg::scalar(WORK_US)], 1)?;
        let mut event = fixture.fill(&queue, &tensor, 1.0)?;
        let task = queue.host_task(&[&event], || {})?;
        let keeping = Event::all(&[&event, &task]).keeping(Kept(event.clone()));
        queue.keep_until(&[&event], Kept(event.clone()))?;
        // The first poll starts the wait thread.
        match Pin::new(&mut event).poll(&mut TaskContext::from_waker(Waker::noop())) {
            std::task::Poll::Pending => Ok(Self { runtime, fixture, queue, tensor, event, task, keeping }),
            std::task::Poll::Ready(outcome) => {
                Err(Failure::Failed(format!("the work completed immediately: {outcome:?}")))
            }
        }
    }
}

/// Starts a host task that submits and waits for as long as it can: until the process exits.
fn keep_running(work: &WorkInFlight) -> Result<(), Failure> {
    let (queue, tensor) = (work.fixture.queue()?, work.fixture.full(10, 0.0)?);
    let (begin, begun) = std::sync::mpsc::channel();
    let runs = move || -> Result<()> {
        loop {
            queue.fill(&tensor, &[0])?.wait()?;
            let _ = begin.send(());
        }
    };
    work.queue.host_task(&[], runs)?;
    begun.recv().map_err(|_| Failure::Failed("the host task did not run".to_owned()))
}

/// Dropped by the exit handlers.
static DROPPED_AT_EXIT: Mutex<Vec<WorkInFlight>> = Mutex::new(Vec::new());

extern "C" fn drop_one() {
    drop(DROPPED_AT_EXIT.lock().ok().and_then(|mut kept| kept.pop()));
}

extern "C" fn exit_in_handler(_signal: libc::c_int) {
    // SAFETY: `_exit` is async-signal-safe.
    unsafe { libc::_exit(libc::c_int::from(EXIT_DONE)) }
}

fn run_role(role: Role, library: &str, device: &str) -> Result<ExitCode, Failure> {
    if role == Role::AtExit {
        // Handlers run in reverse order of registration: this one after those of core and of the drivers.
        // SAFETY: the handler is a static function.
        unsafe { libc::atexit(drop_one) };
    }
    let work = WorkInFlight::new(library, device)?;
    match role {
        Role::Exit => {
            keep_running(&work)?;
            std::process::exit(i32::from(EXIT_DONE))
        }
        Role::Return => {
            keep_running(&work)?;
            // Nothing is dropped, and the thread keeps using it.
            let work: &'static WorkInFlight = Box::leak(Box::new(work));
            std::thread::spawn(move || while work.event.wait().is_ok() && work.queue.flush().is_ok() {});
            Ok(ExitCode::from(EXIT_DONE))
        }
        Role::AtExit => {
            let mut kept = DROPPED_AT_EXIT.lock().map_err(|_| Failure::Failed("poisoned".to_owned()))?;
            kept.extend([WorkInFlight::new(library, device)?, work]);
            drop(kept);
            // SAFETY: as above.
            unsafe { libc::atexit(drop_one) };
            std::process::exit(i32::from(EXIT_DONE))
        }
        Role::Abort | Role::AbortHandler => {
            if role == Role::AbortHandler {
                let handler = exit_in_handler as *const () as libc::sighandler_t;
                // SAFETY: the handler is async-signal-safe.
                unsafe { libc::signal(libc::SIGABRT, handler) };
            }
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // No core file.
            // SAFETY: the structure is valid during the call.
            unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
            std::process::abort()
        }
        Role::Exec => {
            use std::os::unix::process::CommandExt;
            let error = Command::new("sh").args(["-c", &format!("exit {EXIT_DONE}")]).exec();
            Err(Failure::Failed(format!("exec: {error}")))
        }
        Role::Fork => fork(work),
    }
}

fn fork(mut work: WorkInFlight) -> Result<ExitCode, Failure> {
    // SAFETY: the forked child calls only this library, which must not need the parent's threads: that is what is tested.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        let code = if all_calls_are_refused(&mut work) { EXIT_DONE } else { EXIT_BROKEN };
        // Dropping objects of the parent leaks them.
        drop(work);
        // Not `exit`: driver exit handlers crash or hang in a forked child (NVIDIA's Vulkan and Intel's OpenCL do, in plain
        // programs too). The loader's tests cover core's own handlers.
        // SAFETY: no other code of this process runs after this.
        unsafe { libc::_exit(i32::from(code)) };
    }
    let mut status = 0;
    let deadline = Instant::now() + CHILD_TIMEOUT / 2;
    // SAFETY: `forked` is our child, and `status` is writable.
    while unsafe { libc::waitpid(forked, &raw mut status, libc::WNOHANG) } == 0 {
        if Instant::now() > deadline {
            // SAFETY: `forked` is our child.
            unsafe { libc::kill(forked, libc::SIGKILL) };
            return Err(Failure::Failed("the forked child hung".to_owned()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    if status != i32::from(EXIT_DONE) << 8 {
        return Err(Failure::Failed(format!("the forked child ended with status {status:#x}")));
    }
    wait::event(&work.event)?;
    crate::expect::expect_all("the parent's", &work.tensor, 1.0)?;
    Ok(ExitCode::from(EXIT_DONE))
}

fn all_calls_are_refused(work: &mut WorkInFlight) -> bool {
    let unavailable = |error: Error| error.kind() == ErrorKind::Unavailable;
    let name = work.fixture.device().device_id().to_string();
    let refused = [
        work.runtime.open(&name).err().is_some_and(unavailable),
        work.fixture.uninitialized::<f32>(10).err().is_some_and(unavailable),
        work.fixture.queue().err().is_some_and(unavailable),
        work.queue.fill(&work.tensor, &[0]).err().is_some_and(unavailable),
        work.tensor.to_vec::<f32>().err().is_some_and(unavailable),
        work.event.wait().err().is_some_and(unavailable),
        work.event.is_done().err().is_some_and(unavailable),
        matches!(
            Pin::new(&mut work.event).poll(&mut TaskContext::from_waker(Waker::noop())),
            std::task::Poll::Ready(Err(error)) if unavailable(error.clone())
        ),
        work.task.wait().err().is_some_and(unavailable),
        work.keeping.is_done().err().is_some_and(unavailable),
        Event::any(&[&work.task, &work.keeping]).wait().err().is_some_and(unavailable),
        work.queue.host_task(&[], || {}).err().is_some_and(unavailable),
        work.queue.keep_until(&[&work.event], ()).err().is_some_and(unavailable),
    ];
    if refused != [true; 13] {
        let _ = writeln!(std::io::stderr(), "refused: {refused:?}");
    }
    refused == [true; 13]
}
