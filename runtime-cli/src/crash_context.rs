//! Says what the program was context when code that it called crashed or ended the process.
//!
//! A backend, its driver and a native kernel run in this process, and may take it down. What they were asked to do stands
//! in a static buffer, which a signal handler may read.

#![allow(unsafe_code, reason = "installs signal handlers")]

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

const SIGNALS: [(c_int, &str); 5] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGABRT, "SIGABRT"),
];

const CAPACITY: usize = 1024;
static CONTEXT_TEXT: [AtomicU8; CAPACITY] = [const { AtomicU8::new(0) }; CAPACITY];
static CONTEXT_BYTES: AtomicUsize = AtomicUsize::new(0);
/// What is going on, the innermost last.
static CONTEXTS: Mutex<Vec<(u64, String)>> = Mutex::new(Vec::new());
/// The handlers that were there before: Rust's own, which tells a stack overflow.
static PREVIOUS_HANDLERS: OnceLock<[libc::sigaction; SIGNALS.len()]> = OnceLock::new();

/// Reports crashes from now on.
pub(crate) fn install_handlers() {
    let before = SIGNALS.map(|(signal, _)| install(signal));
    if PREVIOUS_HANDLERS.set(before).is_ok() {
        // SAFETY: the handler is a function of the program.
        unsafe { libc::atexit(on_exit) };
    }
}

/// Something foreign that is going on until the value is dropped.
#[derive(Debug)]
pub(crate) struct CrashContext(u64);

impl CrashContext {
    /// Notes that `what` begins: it follows "error: SIGSEGV ", and says what to do about it.
    pub(crate) fn enter(what: String) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed) as u64;
        update(|nested| nested.push((id, what)));
        Self(id)
    }
}

impl Drop for CrashContext {
    fn drop(&mut self) {
        update(|nested| nested.retain(|(id, _)| *id != self.0));
    }
}

fn update(how: impl FnOnce(&mut Vec<(u64, String)>)) {
    let mut nested = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    how(&mut nested);
    let text = nested.last().map_or("", |(_, text)| text.as_str());
    CONTEXT_BYTES.store(0, Ordering::SeqCst);
    let bytes = text.as_bytes().iter().take(CAPACITY);
    let length = bytes.zip(&CONTEXT_TEXT).map(|(byte, place)| place.store(*byte, Ordering::SeqCst)).count();
    CONTEXT_BYTES.store(length, Ordering::SeqCst);
}

/// Installs the handler, and returns the one before.
fn install(signal: c_int) -> libc::sigaction {
    // SAFETY: a zeroed action is a valid one without flags, and with an empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    let handler: extern "C" fn(c_int, *const libc::siginfo_t, *const libc::c_void) = handle_signal;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    let mut before = action;
    // SAFETY: both actions live during the call; the handler does only what a signal handler may.
    unsafe { libc::sigaction(signal, &raw const action, &raw mut before) };
    before
}

/// Writes what was going on, and lets the handler from before have the signal.
extern "C" fn handle_signal(signal: c_int, info: *const libc::siginfo_t, _: *const libc::c_void) {
    let at = SIGNALS.iter().position(|(known, _)| *known == signal);
    if let Some((_, name)) = at.and_then(|at| SIGNALS.get(at)) {
        write_report(name);
    }
    if let Some(before) = at.and_then(|at| PREVIOUS_HANDLERS.get()?.get(at)) {
        // SAFETY: the action was returned by the system.
        unsafe { libc::sigaction(signal, ptr::from_ref(before), ptr::null_mut()) };
    }
    // SAFETY: the system passes the information to handlers with SA_SIGINFO.
    let sent = unsafe { info.as_ref() }.is_none_or(|info| info.si_code <= 0);
    if sent {
        // An instruction that faults does so again, but a signal that was sent does not come again.
        // SAFETY: `raise` may be called in a signal handler.
        unsafe { libc::raise(signal) };
    }
}

/// Foreign code that calls `exit(0)` must not look like success.
extern "C" fn on_exit() {
    if write_report("the process was ended by `exit`") {
        // SAFETY: ends the process without further handlers.
        unsafe { libc::_exit(1) };
    }
}

/// Writes "error: NAME WHAT" to standard error, if something foreign is going on; whether it is.
fn write_report(name: &str) -> bool {
    let length = CONTEXT_BYTES.load(Ordering::SeqCst).min(CAPACITY);
    if length == 0 {
        return false;
    }
    let mut text = [0; CAPACITY];
    for (byte, place) in text.iter_mut().zip(&CONTEXT_TEXT) {
        *byte = place.load(Ordering::SeqCst);
    }
    for part in [b"error: ", name.as_bytes(), b" ", &text[..length], b"\n"] {
        // SAFETY: the part is memory of this function; `write` may be called in a signal handler.
        unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
    true
}
