//! Jobs: what a thread of core does once an event has a result.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

use crate::Result;
use crate::panics::contain;
use crate::timeline::event::Event;
use crate::timeline::host_pool::{HostPool, Job};

/// What to do with an event and its result. It runs once, or is dropped if no thread can be started.
type Action = Box<dyn FnOnce(&Event, Result<()>) + Send>;

/// Waits for an event without a thread of its own, then runs an action on a thread of the pool.
pub(crate) struct HostJob {
    pool: Arc<HostPool>,
    /// `None` once it runs. Never locked while the action runs.
    pending: Mutex<Option<Pending>>,
}

struct Pending {
    until: Event,
    /// Its result, once known.
    result: Option<Result<()>>,
    action: Action,
}

impl HostJob {
    /// Makes a job that runs `action` once `until` has a result.
    ///
    /// # Errors
    /// `OutOfResources` if no thread can be started. The action is dropped.
    pub(crate) fn start(pool: &Arc<HostPool>, until: Event, action: Action) -> Result<()> {
        let pending = Pending { until, result: None, action };
        let job = Arc::new(Self { pool: pool.clone(), pending: Mutex::new(Some(pending)) });
        if job.must_not_poll_here() || job.is_ready() { pool.push(job) } else { Ok(()) }
    }

    /// Whether a poll may block, because another thread is closing the device.
    fn must_not_poll_here(&self) -> bool {
        let slot = self.pending.lock();
        let timeline = slot.as_ref().and_then(|pending| pending.until.timeline());
        timeline.is_some_and(|timeline| timeline.device.strong_count() == 0)
    }

    /// Whether its event has a result. If not, the job will be pushed to its pool once it has.
    fn is_ready(self: &Arc<Self>) -> bool {
        let mut slot = self.pending.lock();
        let Some(pending) = slot.as_mut() else { return false };
        if pending.result.is_none() && pending.until.is_pending() {
            let waker = Waker::from(self.clone());
            match Pin::new(&mut pending.until).poll(&mut Context::from_waker(&waker)) {
                Poll::Pending => return false,
                Poll::Ready(result) => pending.result = Some(result),
            }
        }
        true
    }
}

impl Job for HostJob {
    /// Runs the action, unless the event has no result yet or the action has run already.
    fn run(self: Arc<Self>) {
        if !self.is_ready() {
            return;
        }
        let Some(Pending { until, result, action }) = self.pending.lock().take() else { return };
        // Actions contain the panics of the program; this contains those of what they drop.
        let _ = contain(|| action(&until, result.unwrap_or(Ok(()))));
        let _ = contain(|| drop(until));
    }
}

impl Wake for HostJob {
    fn wake(self: Arc<Self>) {
        let pool = self.pool.clone();
        if let Err(error) = pool.push(self) {
            tracing::error!(%error, "a host task is cancelled");
        }
    }
}

impl fmt::Debug for HostJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostJob")
    }
}
