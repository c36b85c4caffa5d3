//! Kernels that misbehave in worker processes: each gets its own outcome, the next one is right, and nothing is left.

mod chains;
mod ending;
mod hostile_lines;
mod listen;
mod outcomes;
mod protocol;
mod sandbox;
mod server;
mod torture;

use std::time::{Duration, Instant};

/// Generous: a loaded machine must not fail a test.
const DEADLINE: Duration = Duration::from_secs(120);

pub(super) fn wait_for(mut condition: impl FnMut() -> bool, what: &str) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < DEADLINE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
