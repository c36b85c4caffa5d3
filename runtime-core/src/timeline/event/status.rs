//! How far the work of an event has got.

use std::fmt;

use crate::Result;
use crate::timeline::event::Event;
use crate::timeline::event::Source;
use crate::timeline::event::group::Kind;

/// How far the work of an event has got: see [`Event::status`].
///
/// ```
/// # use runtime_core::{EventStatus, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let queue = runtime.open("null")?.queue()?;
/// let held = queue.hold()?; // nothing starts before it is resumed
/// let event = queue.launch_noop()?;
/// assert!(event.status()? < EventStatus::Running);
/// held.resume()?;
/// event.wait()?;
/// assert_eq!(event.status()?, EventStatus::Complete);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventStatus {
    /// It may not start yet: its queue is held, a batch was not handed to the driver, or a host task waits for its dependencies
    /// or for a thread.
    Recorded,
    /// The driver has it.
    Submitted,
    /// It has started and not ended. Host tasks report it, and work of [`Queue::timed`](crate::Queue::timed) once its first
    /// timestamp is known to be written; of other work, drivers report the end but not the start.
    Running,
    /// It has ended successfully.
    Complete,
    /// It has failed, or work that it depends on has. Waiting for it returns the error.
    Failed,
}

impl fmt::Display for EventStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Recorded => "recorded",
            Self::Submitted => "submitted",
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Failed => "failed",
        })
    }
}

impl Event {
    /// How far the work has got. Never blocks. A group of all events reports the least that its unfinished ones report, a group
    /// of any the most.
    ///
    /// # Errors
    /// What prevents the question: `DeviceLost`, `Unavailable` in a forked child. The failure of the work is
    /// [`EventStatus::Failed`].
    pub fn status(&self) -> Result<EventStatus> {
        match self.poll_result()? {
            Some(Ok(())) => Ok(EventStatus::Complete),
            Some(Err(_)) => Ok(EventStatus::Failed),
            None => Ok(self.unfinished_status()),
        }
    }

    /// The status as of the last poll, of work without a result.
    fn unfinished_status(&self) -> EventStatus {
        if let Some(timeline) = &self.timeline {
            return match self.stamps() {
                _ if timeline.is_recorded(self.ticket) => EventStatus::Recorded,
                Some(stamps) if timeline.real().has_ended(stamps.start) => EventStatus::Running,
                _ => EventStatus::Submitted,
            };
        }
        match self.source() {
            Some(Source::Signal(signal)) if signal.is_running() => EventStatus::Running,
            Some(Source::Group(group)) => {
                let unfinished = group.parts().iter().filter(|part| matches!(part.poll_result(), Ok(None)));
                let each = unfinished.map(Self::unfinished_status);
                let all = match group.kind() {
                    Kind::All => each.min(),
                    Kind::Any => each.max(),
                };
                all.unwrap_or(EventStatus::Submitted)
            }
            _ => EventStatus::Recorded,
        }
    }

    /// Whether it is known, without a poll, to have completed.
    pub(super) fn is_known_complete(&self) -> bool {
        match (&self.timeline, self.source()) {
            (Some(timeline), _) => matches!(timeline.status(self.ticket), Some(Ok(()))),
            (None, Some(Source::Signal(signal))) => matches!(signal.result(), Some(Ok(()))),
            (None, Some(Source::Group(_))) => false,
            (None, None) => true,
        }
    }
}
