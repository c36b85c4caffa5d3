//! Dependencies of a queue on events.

use crate::timeline::event::Event;
use crate::{Queue, Result};

impl Queue {
    /// Makes later submissions of this queue wait for an event; on the device, if it can, otherwise on this thread.
    ///
    /// # Errors
    /// The failure of the event's work, if already known. A failure that becomes known later fails the later submissions.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        self.wait_for_all(&[event])
    }

    /// Makes later submissions of this queue wait for all of these events, as [`Queue::wait_for`].
    ///
    /// # Errors
    /// As [`Queue::wait_for`]. Later submissions may already wait for some of the events.
    #[inline]
    pub fn wait_for_all(&self, deps: &[&Event]) -> Result<()> {
        deps.iter().try_for_each(|event| self.wait_for_event(event))
    }

    fn wait_for_event(&self, event: &Event) -> Result<()> {
        let Some(timeline) = event.timeline() else { return self.device.check() };
        self.wait_for_ticket(timeline, event.ticket()).map_err(|error| self.annotate(error, "wait_for"))
    }
}
