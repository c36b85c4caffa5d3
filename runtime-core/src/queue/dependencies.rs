//! Dependencies of a queue on events.

use crate::timeline::event::Event;
use crate::{Queue, Result};

impl Queue {
    /// Makes later submissions of this queue wait for an event of any queue, device or backend, or of none.
    ///
    /// The queue waits on its device where it can: for queues of the same backend, and for each of [`Event::all`]. Otherwise, for
    /// work of another backend, a host task, or [`Event::any`], this call blocks until the event has ended, for a minute at most.
    ///
    /// # Errors
    /// The failure of the event's work, if already known. A failure that becomes known later fails the later submissions.
    /// `Timeout` if the call blocks for a minute.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        self.wait_for_all(&[event])
    }

    /// Makes later submissions of this queue wait for all of these events, as [`Queue::wait_for`].
    ///
    /// # Errors
    /// As [`Queue::wait_for`]. Later submissions may then wait for some of the events.
    #[inline]
    pub fn wait_for_all(&self, deps: &[&Event]) -> Result<()> {
        deps.iter().try_for_each(|event| self.wait_for_event(event))
    }

    fn wait_for_event(&self, event: &Event) -> Result<()> {
        self.device.check()?;
        if let Some(record) = self.recorder() {
            return record.wait_for(event).map_err(|error| self.annotate(error, "wait_for"));
        }
        self.wait_for_point(event).map_err(|error| self.annotate(error, "wait_for"))
    }
}
