//! Releases driver objects with a deadline: some drivers never return from releasing them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use runtime_core::{Error, ErrorKind, Result};

/// How long a driver may take to release an object. Drivers that return at all do so in milliseconds.
pub const DEADLINE: Duration = Duration::from_secs(20);

static STUCK: AtomicBool = AtomicBool::new(false);

/// Drops `value`, which owns `what` on `device`.
///
/// # Errors
/// `Timeout` if the driver does not return in time. The thread that called it is abandoned.
pub fn release<T: Send + 'static>(value: T, what: &str, device: &str, deadline: Duration) -> Result<()> {
    let (done, released) = mpsc::channel();
    let dropping = move || {
        drop(value);
        // The receiver may have timed out.
        let _ = done.send(());
    };
    // If no thread can be started, the value is dropped here.
    let _ = std::thread::Builder::new().name("release".to_owned()).spawn(dropping);
    if released.recv_timeout(deadline) != Err(mpsc::RecvTimeoutError::Timeout) {
        return Ok(());
    }
    STUCK.store(true, Ordering::Relaxed);
    let message = format!(
        "the driver of {device} did not release {what} within {} s, which is a defect in that driver; {device} is no \
         longer used",
        deadline.as_secs_f64()
    );
    Err(Error::new(ErrorKind::Timeout, message))
}

/// Whether a thread is stuck in a driver; the process must not wait for it on exit.
#[must_use]
pub fn is_driver_stuck() -> bool {
    STUCK.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Slow(Duration);

    impl Drop for Slow {
        fn drop(&mut self) {
            std::thread::sleep(self.0);
        }
    }

    #[test]
    fn a_driver_that_never_returns_is_named() {
        release(Slow(Duration::ZERO), "\"k\"", "x:0", DEADLINE).unwrap();
        let error =
            release(Slow(Duration::from_secs(60)), "\"k\"", "x:0", Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(
            error.message().starts_with("the driver of x:0 did not release \"k\" within 0.02 s"),
            "{error}"
        );
    }
}
