//! Catches panics: they become `Internal` errors, and their location is logged to the host instead of
//! printed.

use std::cell::Cell;
use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::abi::Status;
use crate::backend::{Level, Log};
use crate::panics::{contain, message_of};
use crate::plugin::convert;
use crate::{Error, ErrorKind, Result};

thread_local! {
    /// Nesting depth of [`catch_panic`] on this thread.
    static CATCH_DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Set in a dynamic library. It has its own copy of std, so every panic that its hook sees comes from the
/// backend.
static IS_DYNAMIC_LIBRARY: AtomicBool = AtomicBool::new(false);

/// The log of the first instance, for all panics of this library.
static LOG: OnceLock<Log> = OnceLock::new();

/// Runs `call`; a panic in it becomes an `Internal` error that names `what`, and its location is logged, not
/// printed.
///
/// The shims wrap every method in this; a backend wraps the work of its own threads.
///
/// # Errors
/// `Internal` if `call` panicked.
#[inline]
pub fn catch_panic<T>(what: &str, call: impl FnOnce() -> T) -> Result<T> {
    if IS_DYNAMIC_LIBRARY.load(Ordering::Relaxed) {
        // In a dynamic library, accessing a thread-local costs a function call, and every launch passes
        // through here.
        return contain(call).map_err(|message| panicked(what, &message));
    }
    CATCH_DEPTH.with(|depth| {
        depth.set(depth.get() + 1);
        let outcome = contain(call).map_err(|message| panicked(what, &message));
        depth.set(depth.get() - 1);
        outcome
    })
}

/// Records that this is a dynamic library.
pub(super) fn set_dynamic_library() {
    IS_DYNAMIC_LIBRARY.store(true, Ordering::Relaxed);
}

/// Runs the body of a shim.
#[inline]
pub(super) fn guard(slot: &'static str, call: impl FnOnce() -> Result<()>) -> Status {
    match catch_panic(slot, call) {
        Ok(Ok(())) => null_mut(),
        Ok(Err(error)) | Err(error) => convert::into_status(error),
    }
}

#[cold]
fn panicked(what: &str, message: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("panicked in {what}: {message}"))
}

/// Installs the panic hook that logs caught panics to `log`, once per library.
pub(super) fn install_hook(log: Log) {
    if LOG.set(log).is_ok() {
        let previous = take_hook();
        set_hook(Box::new(move |info| {
            if IS_DYNAMIC_LIBRARY.load(Ordering::Relaxed) || CATCH_DEPTH.get() > 0 {
                log_panic(info);
            } else {
                previous(info);
            }
        }));
    }
}

fn log_panic(info: &PanicHookInfo<'_>) {
    let place = info.location().map_or_else(|| "an unknown location".to_owned(), ToString::to_string);
    if let Some(log) = LOG.get() {
        log.write(Level::Error, "panic", &format!("panicked at {place}: {}", message_of(info.payload())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_message() {
        install_hook(Log::silent());
        let error = catch_panic("launch", || panic!("{} is odd", 7)).map(|(): ()| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert_eq!(error.message(), "panicked in launch: 7 is odd");
        assert_eq!(CATCH_DEPTH.get(), 0);
        // SAFETY: a fresh status.
        let error =
            unsafe { convert::from_status(guard("signal", || std::panic::panic_any(3))) }.unwrap_err();
        assert_eq!(error.message(), "panicked in signal: no message");
    }

    #[test]
    #[cfg_attr(miri, ignore = "the payload of the second panic is leaked on purpose")]
    fn a_panic_while_dropping_the_payload_is_caught() {
        install_hook(Log::silent());
        let error = catch_panic("launch", || std::panic::panic_any(crate::panics::Bomb))
            .map(|(): ()| ())
            .unwrap_err();
        assert_eq!(error.message(), "panicked in launch: no message");
        assert_eq!(CATCH_DEPTH.get(), 0);
    }
}
