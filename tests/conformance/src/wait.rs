//! Waits with deadlines: no wait of the suite is unbounded.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use runtime_core::{Error, ErrorKind, Event, Queue, Result};

use crate::case::{Failure, Verdict};

/// A wait that takes longer than this counts as a hang.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Waits for an event.
pub(crate) fn event(event: &Event) -> Result<()> {
    event.wait_timeout(WAIT_TIMEOUT)
}

/// Waits until a queue is idle.
pub(crate) fn idle(queue: &Queue) -> Result<()> {
    queue.wait_idle_timeout(WAIT_TIMEOUT)
}

/// Polls until `condition` holds.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !condition()? {
        if Instant::now() > deadline {
            return Err(Error::new(ErrorKind::Timeout, format!("timed out waiting for {what}")));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}

/// Expects a timeout of `attempt`, which keeps a queue busy for the given microseconds and waits for a shorter time.
/// Retries with longer work, in case a busy machine delays the wait.
pub(crate) fn times_out(mut attempt: impl FnMut(i64) -> Result<Result<()>, Failure>) -> Verdict {
    for microseconds in [20_000, 200_000, 1_000_000, 3_000_000] {
        match attempt(microseconds)? {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Timeout => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failure::Failed("a wait of microseconds for work of seconds never timed out".to_owned()))
}

/// Polls a future once.
pub(crate) fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks this thread on a future.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let deadline = Instant::now() + WAIT_TIMEOUT * 2;
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::new(ErrorKind::Timeout, "the future was never woken"));
        }
        std::thread::park_timeout(left);
    }
}
