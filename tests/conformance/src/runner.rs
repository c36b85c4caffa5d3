//! Runs one case on its own thread, with a deadline; the thread is abandoned if the case hangs.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use runtime_core::backend::contain;

use crate::case::{Case, Failure, Verdict};
use crate::context::Context;

/// How a case ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The case returned.
    Verdict(Verdict),
    /// The case panicked: an assertion failed.
    Panicked(String),
    /// The case did not end in time.
    Hangs(Duration),
}

impl From<Ending> for Verdict {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Verdict(verdict) => verdict,
            Ending::Panicked(message) => Err(Failure::Failed(message)),
            Ending::Hangs(deadline) => Err(Failure::Failed(format!("hung: no end after {deadline:?}"))),
        }
    }
}

/// Runs a case for at most `deadline`. The context is dropped before this returns, unless the case hangs.
pub(crate) fn run_case(context: Arc<Context>, case: &'static Case, name: &str, deadline: Duration) -> Ending {
    let run = move || {
        let verdict = contain(|| (case.run)(&context));
        drop(context);
        verdict
    };
    run_for(name, deadline, run)
}

/// Runs `run`, which catches its own panics, on a thread of this name for at most `deadline`.
fn run_for(
    name: &str,
    deadline: Duration,
    run: impl FnOnce() -> Result<Verdict, String> + Send + 'static,
) -> Ending {
    let (sender, receiver) = mpsc::channel();
    let body = move || {
        // The receiver is gone if the case took too long.
        let _ = sender.send(match run() {
            Ok(verdict) => Ending::Verdict(verdict),
            Err(message) => Ending::Panicked(message),
        });
    };
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(body);
    if let Err(error) = spawned {
        return Ending::Verdict(Err(Failure::Failed(format!("cannot start a thread for the case: {error}"))));
    }
    receiver.recv_timeout(deadline).unwrap_or(Ending::Hangs(deadline))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(deadline: Duration, run: impl FnOnce() -> Verdict + Send + 'static) -> Verdict {
        run_for("a case", deadline, || contain(run)).into()
    }

    #[test]
    fn a_case_that_hangs_fails() {
        let (hold, held) = mpsc::channel::<()>();
        let hangs = verdict(Duration::from_millis(200), move || {
            let _ = held.recv();
            Ok(())
        });
        drop(hold);
        assert!(hangs.is_err_and(|failure| failure.to_string().contains("hung: no end after 200ms")));
    }

    #[test]
    fn a_verdict_or_a_panic_is_the_result_of_a_case() {
        // Printing a backtrace takes a while.
        let long = Duration::from_secs(60);
        assert!(verdict(long, || Ok(())).is_ok());
        assert!(verdict(long, || Err(Failure::Failed("no".to_owned()))).is_err());
        let panics = verdict(long, || panic!("it is {}", "wrong"));
        assert!(panics.is_err_and(|failure| failure.to_string() == "it is wrong"));
    }
}
