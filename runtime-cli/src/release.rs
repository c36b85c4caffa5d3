//! Gives what a driver holds back to it, with a deadline: some drivers never return from it.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use runtime_core::{Error, ErrorKind, Result};

/// How long a driver may take to release what it holds. Those that return do so in milliseconds.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

static STUCK: AtomicBool = AtomicBool::new(false);

/// Drops `value`, which holds `what` of `device`.
///
/// # Errors
/// `Timeout` when the driver has not returned in time. Its thread is left behind.
pub(crate) fn release<T: Send + 'static>(
    value: T,
    what: &str,
    device: &str,
    deadline: Duration,
) -> Result<()> {
    let (done, released) = mpsc::channel();
    let dropping = move || {
        drop(value);
        // Nobody may wait any more.
        let _ = done.send(());
    };
    // Without a thread the value is dropped here.
    let _ = std::thread::Builder::new().name("release".to_owned()).spawn(dropping);
    if released.recv_timeout(deadline) != Err(mpsc::RecvTimeoutError::Timeout) {
        return Ok(());
    }
    STUCK.store(true, Ordering::Relaxed);
    let message = format!(
        "the driver of {device} has not released {what} for {} s, which is a defect of that driver; {device} is not used \
         any more",
        deadline.as_secs_f64()
    );
    Err(Error::new(ErrorKind::Timeout, message))
}

/// Whether a thread was left behind in a driver: the process must not wait for it at its end.
pub(crate) fn is_driver_stuck() -> bool {
    STUCK.load(Ordering::Relaxed)
}

/// Ends the process without waiting for that thread.
pub(crate) fn exit_now(code: ExitCode) -> ExitCode {
    let known = [0, 1, 2].into_iter().find(|known| ExitCode::from(*known) == code);
    signal_hook::low_level::exit(known.map_or(2, i32::from))
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
    fn a_driver_that_does_not_return_is_named() {
        release(Slow(Duration::ZERO), "\"k\"", "x:0", DEADLINE).unwrap();
        let error =
            release(Slow(Duration::from_secs(60)), "\"k\"", "x:0", Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(
            error.message().starts_with("the driver of x:0 has not released \"k\" for 0.02 s"),
            "{error}"
        );
    }
}
