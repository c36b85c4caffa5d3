//! Values that the program has the runtime retain until an event has ended.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::process;
use crate::timeline::Timeline;
use crate::timeline::event::Event;
use crate::timeline::event::Source;
use crate::timeline::event::group::Kind;
use crate::timeline::event::host_job::HostJob;
use crate::timeline::host_pool::HostPool;
use crate::timeline::virtual_queue::Location;

/// Values that are dropped with this, but not before the event has ended. They are leaked where that cannot be seen.
pub(crate) struct Retained {
    fork_generation: u32,
    /// Mutex only for `Sync`; `drop` has exclusive access.
    content: Mutex<Option<(Event, Box<dyn Send>)>>,
}

impl Retained {
    pub(crate) fn new(until: Event, values: impl Send + 'static) -> Self {
        let content = Mutex::new(Some((until, Box::new(values) as _)));
        Self { fork_generation: process::generation(), content }
    }
}

impl Drop for Retained {
    fn drop(&mut self) {
        let Some((until, values)) = self.content.get_mut().take() else { return };
        if process::exiting() || self.fork_generation != process::generation() {
            return std::mem::forget(values);
        }
        // To retain something until a list has ended is no reason to submit it.
        let Err((until, values)) = retain_while_listed(until, values, self.fork_generation) else { return };
        if until.has_ended() {
            return drop(values);
        }
        // Without an open device, another thread may be closing one, which takes a while, or one was leaked.
        let pool = until.pool().unwrap_or_default();
        let guarded = Guarded(Some(values));
        // Without a thread the values are leaked.
        let _ = HostJob::start(&pool, until, Box::new(move |until, _| guarded.release(until)));
    }
}

/// Retains values until the list of a virtual queue that `until` waits for is handed over; returns both if there is none.
fn retain_while_listed(
    until: Event,
    values: Box<dyn Send>,
    fork_generation: u32,
) -> Result<(), (Event, Box<dyn Send>)> {
    let Some((timeline, ticket)) = until.listed() else { return Err((until, values)) };
    let retained = Retained { fork_generation, content: Mutex::new(Some((until, values))) };
    match timeline.retain_while_listed(ticket, retained) {
        None => Ok(()),
        // It was handed over meanwhile.
        Some(mut retained) => retained.content.get_mut().take().map_or(Ok(()), Err),
    }
}

/// Values that are leaked unless they are released.
struct Guarded(Option<Box<dyn Send>>);

impl Guarded {
    fn release(mut self, until: &Event) {
        if until.wait_ended() {
            drop(self.0.take());
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        std::mem::forget(self.0.take());
    }
}

impl Event {
    /// Whether the work has ended, successfully or not, after a poll. The work of a failed event may still be running.
    pub(crate) fn has_ended(&self) -> bool {
        if let Some(timeline) = &self.timeline {
            let _ = timeline.poll_result(self.ticket);
            return !timeline.maybe_running(self.ticket);
        }
        match self.source() {
            Some(Source::Signal(signal)) => signal.result().is_some(),
            Some(Source::Group(group)) => {
                let completed = group.kind() == Kind::Any && matches!(group.poll_result(), Ok(Some(Ok(()))));
                completed || group.parts().iter().all(Self::has_ended)
            }
            None => true,
        }
    }

    /// A ticket that it waits for and that a virtual queue lists.
    fn listed(&self) -> Option<(Arc<Timeline>, u64)> {
        if let Some(timeline) = &self.timeline {
            let is_listed = matches!(timeline.locate(self.ticket), Location::Listed);
            return is_listed.then(|| (timeline.clone(), self.ticket));
        }
        match self.source()? {
            Source::Group(group) => group.parts().iter().find_map(Self::listed),
            Source::Signal(_) => None,
        }
    }

    /// Waits until the work has ended, successfully or not; false if that cannot be seen any more.
    fn wait_ended(&self) -> bool {
        if self.has_ended() {
            return true;
        }
        match (&self.timeline, self.source()) {
            (Some(timeline), _) => {
                if let Some(device) = timeline.device.upgrade() {
                    timeline.wait_host_memory_released(self.ticket, &*device);
                }
                !timeline.maybe_running(self.ticket)
            }
            (None, Some(Source::Group(group))) => group.parts().iter().all(Self::wait_ended),
            (None, Some(Source::Signal(signal))) => {
                let _ = signal.wait(None);
                signal.result().is_some()
            }
            (None, None) => true,
        }
    }

    /// The threads of a device that it waits for, if one is open.
    fn pool(&self) -> Option<Arc<HostPool>> {
        if let Some(timeline) = &self.timeline {
            return timeline.device.upgrade().map(|device| device.host_pool().clone());
        }
        match self.source()? {
            Source::Signal(signal) => signal.pool().cloned(),
            Source::Group(group) => group.parts().iter().find_map(Self::pool),
        }
    }
}
