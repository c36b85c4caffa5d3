//! Processes that end, fork or become another program with work in flight. A case cannot do that to the suite's own
//! process, so it starts the same program again, which sees in its environment that it is to be such a process.

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
use crate::kernels::{self, Suite};
use crate::lab::Lab;
use crate::wait;

/// `role|device|library`.
const VARIABLE: &str = "RUNTIME_CONFORMANCE_CHILD";
/// How long the work of a child lasts.
const BUSY_US: i64 = 1_500_000;
/// No child takes this long.
const DEADLINE: Duration = Duration::from_secs(90);
/// How a child ends that did what it was to do.
pub(crate) const DONE: u8 = 7;
/// How a child ends that could not.
const BROKEN: u8 = 3;

/// What a child does with work in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Calls `exit`.
    Exit,
    /// Returns from `main`.
    Return,
    /// Drops everything in exit handlers: those that run before core's, and those that run after it.
    AtExit,
    /// Calls `abort`.
    Abort,
    /// Calls `abort`, and ends in a signal handler of its own.
    AbortHandler,
    /// Becomes another program.
    Exec,
    /// Forks: the child is refused everything, and its parent goes on.
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

/// Does what the environment says, if this process was started for that: then the program has nothing else to do.
#[must_use]
pub fn child() -> Option<ExitCode> {
    let wanted = std::env::var(VARIABLE).ok()?;
    let mut words = wanted.splitn(3, '|');
    let role = words.next().and_then(|name| ROLES.iter().find(|(known, _)| *known == name));
    let (Some((_, role)), Some(device), Some(library)) = (role, words.next(), words.next()) else {
        return Some(ExitCode::from(BROKEN));
    };
    Some(play(*role, library, device).unwrap_or_else(|failure| {
        let _ = writeln!(std::io::stderr(), "{failure}");
        ExitCode::from(BROKEN)
    }))
}

/// Starts a child and waits for its end.
pub(crate) fn watch(context: &Context, role: Role) -> Result<(ExitStatus, String), Failure> {
    let library = context.target().path.as_ref();
    let library = library.ok_or_else(|| Failure::Unsupported("the backend is linked in".to_owned()))?;
    let name = ROLES.iter().find(|(_, known)| *known == role).map_or("", |(name, _)| name);
    let words = format!("{name}|{}|{}", context.name(), library.display());
    let failed = |error: std::io::Error| Failure::Failed(format!("the child: {error}"));
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.envs(context.suite().given().map(|given| (kernels::VARIABLE, &given.folder)));
    let mut child = command
        .args(std::env::args_os().skip(1))
        .env(VARIABLE, words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let deadline = Instant::now() + DEADLINE;
    while child.try_wait().map_err(failed)?.is_none() {
        if Instant::now() > deadline {
            child.kill().and_then(|()| child.wait()).map_err(failed)?;
            return Err(Failure::Failed(format!("it hangs: no end after {DEADLINE:?}")));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.code() == Some(i32::from(DONE)) {
        // It was at work, which begins with a launch.
        context.suite().launched();
    }
    Ok((output.status, String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// A device at work: a launch, a write that depends on it, and a future that the waiter thread watches.
#[derive(Debug)]
struct Busy {
    runtime: Runtime,
    lab: Lab,
    queue: Queue,
    tensor: Tensor,
    event: Event,
}

impl Busy {
    fn new(library: &str, device: &str) -> Result<Self, Failure> {
        // SAFETY: the suite is asked to run this library.
        let runtime = unsafe { crate::builder().discover(false).library(library) }.build();
        let lab = Lab::new(runtime.open(device)?, Suite::of_environment());
        let (queue, tensor) = (lab.queue()?, lab.full(1000, 0.0)?);
        // The first launch of a kernel may wait for the queue, where it is compiled then.
        wait::done(&lab.fill(&queue, &tensor, 0.0)?)?;
        lab.launch(&queue, "spin", &[Arg::scalar(BUSY_US)], 1)?;
        let mut event = lab.fill(&queue, &tensor, 1.0)?;
        // The first look starts the thread that waits for futures.
        match Pin::new(&mut event).poll(&mut TaskContext::from_waker(Waker::noop())) {
            std::task::Poll::Pending => Ok(Self { runtime, lab, queue, tensor, event }),
            std::task::Poll::Ready(outcome) => {
                Err(Failure::Failed(format!("the work was over at once: {outcome:?}")))
            }
        }
    }
}

/// What exit handlers drop.
static KEPT: Mutex<Vec<Busy>> = Mutex::new(Vec::new());

extern "C" fn drop_one() {
    drop(KEPT.lock().ok().and_then(|mut kept| kept.pop()));
}

extern "C" fn end_now(_signal: libc::c_int) {
    // SAFETY: ends the process; allowed in a signal handler.
    unsafe { libc::_exit(libc::c_int::from(DONE)) }
}

fn play(role: Role, library: &str, device: &str) -> Result<ExitCode, Failure> {
    if role == Role::AtExit {
        // Handlers run in the opposite order: this one after those of core and of the drivers.
        // SAFETY: the function lives as long as the program.
        unsafe { libc::atexit(drop_one) };
    }
    let busy = Busy::new(library, device)?;
    match role {
        Role::Exit => std::process::exit(i32::from(DONE)),
        Role::Return => {
            // Nothing is dropped, and the thread goes on to use it.
            let busy: &'static Busy = Box::leak(Box::new(busy));
            std::thread::spawn(move || while busy.event.wait().is_ok() && busy.queue.flush().is_ok() {});
            Ok(ExitCode::from(DONE))
        }
        Role::AtExit => {
            let mut kept = KEPT.lock().map_err(|_| Failure::Failed("poisoned".to_owned()))?;
            kept.extend([Busy::new(library, device)?, busy]);
            drop(kept);
            // SAFETY: as above.
            unsafe { libc::atexit(drop_one) };
            std::process::exit(i32::from(DONE))
        }
        Role::Abort | Role::AbortHandler => {
            if role == Role::AbortHandler {
                let handler = end_now as *const () as libc::sighandler_t;
                // SAFETY: the handler only ends the process.
                unsafe { libc::signal(libc::SIGABRT, handler) };
            }
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the structure lives during the call. No core file is wanted.
            unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
            std::process::abort()
        }
        Role::Exec => {
            use std::os::unix::process::CommandExt;
            let error = Command::new("sh").args(["-c", &format!("exit {DONE}")]).exec();
            Err(Failure::Failed(format!("exec: {error}")))
        }
        Role::Fork => fork(busy),
    }
}

fn fork(mut busy: Busy) -> Result<ExitCode, Failure> {
    // SAFETY: the forked child calls nothing that needs the threads of its parent: that is what is tested.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        let code = if is_refused_everything(&mut busy) { DONE } else { BROKEN };
        // What it holds of its parent is leaked when it is dropped.
        drop(busy);
        // SAFETY: nothing of this process runs any more. Handlers of drivers do not survive `exit` in a forked child (NVIDIA's
        // Vulkan and Intel's OpenCL crash or hang, also in programs of their own); ours do, which the loader's tests show.
        unsafe { libc::_exit(i32::from(code)) };
    }
    let mut status = 0;
    let deadline = Instant::now() + DEADLINE / 2;
    // SAFETY: the child is ours and `status` is writable.
    while unsafe { libc::waitpid(forked, &raw mut status, libc::WNOHANG) } == 0 {
        if Instant::now() > deadline {
            // SAFETY: the child is ours.
            unsafe { libc::kill(forked, libc::SIGKILL) };
            return Err(Failure::Failed("the forked child hangs".to_owned()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    if status != i32::from(DONE) << 8 {
        return Err(Failure::Failed(format!("the forked child ended with status {status:#x}")));
    }
    wait::done(&busy.event)?;
    crate::data::all("the parent's", &busy.tensor, 1.0)?;
    Ok(ExitCode::from(DONE))
}

fn is_refused_everything(busy: &mut Busy) -> bool {
    let unavailable = |error: Error| error.kind() == ErrorKind::Unavailable;
    let name = busy.lab.device().device_id().to_string();
    let refused = [
        busy.runtime.open(&name).err().is_some_and(unavailable),
        busy.lab.room::<f32>(10).err().is_some_and(unavailable),
        busy.lab.queue().err().is_some_and(unavailable),
        busy.queue.fill(&busy.tensor, &[0]).err().is_some_and(unavailable),
        busy.tensor.to_vec::<f32>().err().is_some_and(unavailable),
        busy.event.wait().err().is_some_and(unavailable),
        busy.event.is_done().err().is_some_and(unavailable),
        matches!(
            Pin::new(&mut busy.event).poll(&mut TaskContext::from_waker(Waker::noop())),
            std::task::Poll::Ready(Err(error)) if unavailable(error.clone())
        ),
    ];
    if refused != [true; 8] {
        let _ = writeln!(std::io::stderr(), "refused: {refused:?}");
    }
    refused == [true; 8]
}
