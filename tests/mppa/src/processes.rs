//! Whether processes that a test has started still run.

use std::time::{Duration, Instant};

use opencl::DEADLINE;

/// Whether a process is there, and no zombie: one that has ended may wait for its parent.
#[must_use]
pub fn is_running(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Waits for the end of a process. Returns whether it came.
#[must_use]
pub fn ends(id: &str) -> bool {
    becomes(|| !is_running(id))
}

/// Waits until a condition holds. Returns whether it does.
#[must_use]
pub fn becomes(condition: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while !condition() && started.elapsed() < DEADLINE {
        std::thread::sleep(Duration::from_millis(2));
    }
    condition()
}
