//! Reports what was running when a backend, its driver or a native kernel crashed or exited the process.
//!
//! Foreign code runs in this process and may take it down. A description of the current operation is kept in a static
//! buffer, which a signal handler can read.

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
/// Operations in progress, the innermost last.
static CONTEXTS: Mutex<Vec<(u64, String)>> = Mutex::new(Vec::new());
/// The handlers installed before ours: Rust's own reports stack overflows.
static PREVIOUS_HANDLERS: OnceLock<[libc::sigaction; SIGNALS.len()]> = OnceLock::new();

/// Installs the signal and exit handlers, once.
pub fn install_handlers() {
    if install_signal_handlers() {
        // SAFETY: the handler is a function of this program, valid until the process ends.
        unsafe { libc::atexit(on_exit) };
    }
}

/// Installs the signal handlers, which report what was running; returns whether they were not installed before.
pub fn install_signal_handlers() -> bool {
    let mut is_first = false;
    PREVIOUS_HANDLERS.get_or_init(|| {
        is_first = true;
        SIGNALS.map(|(signal, _)| install(signal))
    });
    is_first
}

/// Takes the report of a crash off the end of `output`, and returns the operation that it names.
#[must_use]
pub fn take_report(output: &mut String) -> Option<String> {
    let end = output.trim_end();
    let begin = end.rfind('\n').map_or(0, |at| at + 1);
    let report = end[begin..].strip_prefix("error: SIG")?;
    let operation = report.split_once(' ')?.1.to_owned();
    output.truncate(begin);
    Some(operation)
}

/// Marks foreign code as running until the value is dropped.
#[derive(Debug)]
pub struct CrashContext(u64);

impl CrashContext {
    /// Enters the operation `what`, a phrase that completes "error: SIGSEGV …" and may say what to do about it.
    pub fn enter(what: String) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed) as u64;
        update_contexts(|contexts| contexts.push((id, what)));
        Self(id)
    }
}

impl Drop for CrashContext {
    fn drop(&mut self) {
        update_contexts(|contexts| contexts.retain(|(id, _)| *id != self.0));
    }
}

fn update_contexts(change: impl FnOnce(&mut Vec<(u64, String)>)) {
    let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    change(&mut contexts);
    let text = contexts.last().map_or("", |(_, text)| text.as_str());
    CONTEXT_BYTES.store(0, Ordering::SeqCst);
    let bytes = text.as_bytes().iter().take(CAPACITY);
    let length = bytes.zip(&CONTEXT_TEXT).map(|(byte, slot)| slot.store(*byte, Ordering::SeqCst)).count();
    CONTEXT_BYTES.store(length, Ordering::SeqCst);
}

/// Installs the handler and returns the previous one.
fn install(signal: c_int) -> libc::sigaction {
    // SAFETY: a zeroed action is a valid one without flags, and with an empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    let handler: extern "C" fn(c_int, *const libc::siginfo_t, *const libc::c_void) = handle_signal;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    let mut previous = action;
    // SAFETY: both actions live during the call; the handler does only what a signal handler may.
    unsafe { libc::sigaction(signal, &raw const action, &raw mut previous) };
    previous
}

/// Writes the current operation, then passes the signal to the previous handler.
extern "C" fn handle_signal(signal: c_int, info: *const libc::siginfo_t, _: *const libc::c_void) {
    let at = SIGNALS.iter().position(|(known, _)| *known == signal);
    if let Some((_, name)) = at.and_then(|at| SIGNALS.get(at)) {
        write_report(name);
    }
    if let Some(previous) = at.and_then(|at| PREVIOUS_HANDLERS.get()?.get(at)) {
        // SAFETY: the action was returned by the system.
        unsafe { libc::sigaction(signal, ptr::from_ref(previous), ptr::null_mut()) };
    }
    // SAFETY: the system passes the information to handlers with SA_SIGINFO.
    let sent = unsafe { info.as_ref() }.is_none_or(|info| info.si_code <= 0);
    if sent {
        // A faulting instruction faults again on return; a signal that was sent must be raised again.
        // SAFETY: `raise` may be called in a signal handler.
        unsafe { libc::raise(signal) };
    }
}

/// Makes an `exit(0)` in foreign code a failure. Runs after all other exit handlers; `process.rs` of `runtime-core`
/// shows their order.
extern "C" fn on_exit() {
    if write_report("`exit` was called") {
        // SAFETY: exits without running further handlers.
        unsafe { libc::_exit(1) };
    }
}

/// Writes "error: NAME WHAT" to standard error if foreign code is running, and returns whether it is.
fn write_report(name: &str) -> bool {
    let length = CONTEXT_BYTES.load(Ordering::SeqCst).min(CAPACITY);
    if length == 0 {
        return false;
    }
    let mut text = [0; CAPACITY];
    for (byte, slot) in text.iter_mut().zip(&CONTEXT_TEXT) {
        *byte = slot.load(Ordering::SeqCst);
    }
    for part in [b"error: ", name.as_bytes(), b" ", &text[..length], b"\n"] {
        // SAFETY: the part is memory of this function; `write` may be called in a signal handler.
        unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_taken_off_the_output() {
        let mut output = "printed\nerror: SIGSEGV while \"k\" ran on host:0\n".to_owned();
        assert_eq!(take_report(&mut output).as_deref(), Some("while \"k\" ran on host:0"));
        assert_eq!(output, "printed\n");
        assert_eq!(take_report(&mut output), None);
        assert_eq!(output, "printed\n");
    }
}
