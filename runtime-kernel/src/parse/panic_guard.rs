//! Shields callers from naga: turns its panics into errors without printing them, and gives deep recursion a large
//! stack.

use std::cell::{Cell, RefCell};
use std::panic::{set_hook, take_hook};
use std::sync::Once;
use std::thread;

use runtime_core::backend::{contain, panic_message};
use runtime_core::{Error, ErrorKind, Result};

use super::limits::Depth;

/// Enough for the deepest text within the limits, in an unoptimised build.
const STACK_BYTES: usize = 256 << 20;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    /// The location of the last caught panic of this thread.
    static LOCATION: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs one step of a lowering, on a thread with a large stack if `depth` requires it.
///
/// # Errors
/// Those of `step`; `Internal`, with the panic's location and message, if it panicked.
pub(crate) fn run<T: Send>(what: &str, depth: Depth, step: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    match depth {
        Depth::Shallow => catch_panic(what, step),
        Depth::Deep => thread::scope(|scope| {
            let thread = thread::Builder::new().stack_size(STACK_BYTES).name("runtime-kernel".to_owned());
            match thread.spawn_scoped(scope, || catch_panic(what, step)) {
                Ok(thread) => {
                    let outcome = thread.join().map_err(panic_message);
                    outcome.unwrap_or_else(|message| Err(panic_error(what, &message)))
                }
                Err(error) => {
                    let message = format!("cannot start a thread for a deeply nested kernel: {error}");
                    Err(Error::new(ErrorKind::OutOfResources, message))
                }
            }
        }),
    }
}

fn catch_panic<T>(what: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
    install_hook();
    let outer = GUARDED.replace(true);
    let outcome = contain(step);
    GUARDED.set(outer);
    outcome.unwrap_or_else(|message| Err(panic_error(what, &message)))
}

#[cold]
fn panic_error(what: &str, message: &str) -> Error {
    let place = LOCATION.take();
    Error::new(ErrorKind::Internal, format!("panicked while {what}{place}: {message}"))
}

/// Installs a panic hook that stays silent inside guarded steps.
fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |info| {
            if GUARDED.get() {
                LOCATION.set(info.location().map(|place| format!(" at {place}")).unwrap_or_default());
            } else {
                previous(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        for depth in [Depth::Shallow, Depth::Deep] {
            let error = run("testing", depth, || -> Result<()> { panic!("{} is odd", 7) }).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal);
            let (before, words) = error.message().split_once(": ").unwrap();
            assert!(
                before.starts_with("panicked while testing at ") && before.contains("panic_guard.rs:"),
                "{before}"
            );
            assert_eq!(words, "7 is odd");
        }
        assert!(!GUARDED.get());
    }

    #[test]
    fn a_deep_step_gets_a_large_stack() {
        fn descend(levels: usize) -> usize {
            let room = std::hint::black_box([levels; 1000]);
            if levels == 0 { 0 } else { 1 + descend(levels - 1) + room[7] - levels }
        }
        assert_eq!(run("testing", Depth::Deep, || Ok(descend(10_000))).unwrap(), 10_000);
    }
}
