//! The one place that catches panics. What a program panics with may panic again when it is dropped, so the payload of a
//! caught panic never leaves this module.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs foreign code; returns the message of its panic.
///
/// # Errors
/// The message, if `run` panicked.
#[inline]
#[allow(clippy::disallowed_methods, reason = "the only caller; it drops payloads safely")]
pub fn contain<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(panic_message)
}

/// The message of a caught panic, such as one that [`JoinHandle::join`](std::thread::JoinHandle::join) returns. Drops the
/// payload, and contains a panic of that.
#[cold]
#[allow(clippy::disallowed_methods, reason = "the payload of the second panic is leaked")]
pub fn panic_message(payload: Box<dyn Any + Send>) -> String {
    let message = message_of(&*payload).to_owned();
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
    message
}

/// The text of a payload that somebody else drops.
pub(crate) fn message_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// Panics when it is dropped: as the payload of a panic, it catches whoever drops a payload bare.
#[cfg(test)]
pub(crate) struct Bomb;

#[cfg(test)]
impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_panic_is_returned() {
        assert_eq!(contain(|| 7), Ok(7));
        assert_eq!(contain(|| panic!("{} is odd", 7)).map(|(): ()| ()), Err("7 is odd".to_owned()));
        assert_eq!(contain(|| panic!("odd")).map(|(): ()| ()), Err("odd".to_owned()));
        assert_eq!(contain(|| std::panic::panic_any(3)).map(|(): ()| ()), Err("no message".to_owned()));
    }

    #[test]
    #[cfg_attr(miri, ignore = "the payload of the second panic is leaked on purpose")]
    fn a_payload_that_panics_when_it_is_dropped_is_contained() {
        assert_eq!(contain(|| std::panic::panic_any(Bomb)).map(|(): ()| ()), Err("no message".to_owned()));
        let joined = std::thread::spawn(|| std::panic::panic_any(Bomb)).join();
        assert_eq!(joined.map(|(): ()| ()).map_err(panic_message), Err("no message".to_owned()));
    }
}
