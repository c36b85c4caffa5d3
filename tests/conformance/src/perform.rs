//! Runs one case on a thread of its own, which is left behind if it does not end.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::case::{Case, Failure, Verdict};
use crate::context::Context;

/// How a case ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// It said so itself.
    Verdict(Verdict),
    /// An assertion of it did not hold.
    Panicked(String),
    /// It did not end in time.
    Hangs(Duration),
}

impl From<Ending> for Verdict {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Verdict(verdict) => verdict,
            Ending::Panicked(message) => Err(Failure::Failed(message)),
            Ending::Hangs(deadline) => Err(Failure::Failed(format!("it hangs: no end after {deadline:?}"))),
        }
    }
}

/// Runs a case for at most `deadline`. The context is dropped before this returns, unless the case hangs.
pub(crate) fn perform(context: Arc<Context>, case: &'static Case, name: &str, deadline: Duration) -> Ending {
    let (sender, receiver) = mpsc::channel();
    let body = move || {
        let verdict = catch_unwind(AssertUnwindSafe(|| (case.run)(&context)));
        drop(context);
        // Nobody listens to a case that took too long.
        let _ = sender.send(match verdict {
            Ok(verdict) => Ending::Verdict(verdict),
            Err(panic) => Ending::Panicked(message(&*panic)),
        });
    };
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(body);
    if let Err(error) = spawned {
        return Ending::Verdict(Err(Failure::Failed(format!("no thread for the case: {error}"))));
    }
    receiver.recv_timeout(deadline).unwrap_or(Ending::Hangs(deadline))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it panicked").to_owned()
}
