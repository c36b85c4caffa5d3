//! Contains what naga may do to its caller: a panic becomes an error, and is not printed.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use runtime_core::{Error, ErrorKind, Result};

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Runs one step of a lowering.
///
/// # Errors
/// Those of `step`; `Internal`, with the panic's words, if it panicked.
pub(crate) fn step<T>(what: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
    silence();
    let outer = CONTAINED.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(step));
    CONTAINED.set(outer);
    outcome.unwrap_or_else(|payload| {
        let words = payload.downcast_ref::<&str>().copied();
        let words = words.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let words = words.unwrap_or("no message");
        Err(Error::new(ErrorKind::Internal, format!("panicked while {what}: {words}")))
    })
}

/// Panics inside a step reach nobody but the step's caller.
fn silence() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |info| {
            if !CONTAINED.get() {
                previous(info);
            }
        }));
    });
}
