//! Access to a buffer from the host: waits for conflicting work to end, then blocks new work on the buffer during the access.

use std::sync::Arc;

use crate::timeline::Timeline;
use crate::timeline::hazards::{Dependencies, Dependency, Hazards};
use crate::timeline::open_device::OpenDevice;
use crate::timeline::queue_table::QueueStatus;
use crate::timeline::virtual_queue::Cause;
use crate::timeline::word_lock::WordLock;
use crate::{Access, Result};

/// Waits for the work that conflicts with `access` by `queue`, or by [`HOST`](super::hazards::HOST), then runs `action` with
/// the hazards locked, so that nothing is submitted meanwhile.
pub(crate) fn with_host_access<T>(
    device: &OpenDevice,
    hazards: &WordLock<Hazards>,
    (access, queue): (Access, u64),
    action: impl FnOnce(&mut Hazards) -> Result<T>,
) -> Result<T> {
    device.check()?;
    loop {
        let mut guard = hazards.lock();
        match conflicting_use(device, &guard, (access, queue))? {
            None => return action(&mut guard),
            Some((timeline, ticket)) => {
                drop(guard);
                timeline.hand_over(ticket, Cause::HostAccess);
                // No lock is held during the wait. The next round handles a failure.
                timeline.wait_ended(ticket, None)?;
            }
        }
    }
}

/// A conflicting access that has not ended.
fn conflicting_use(
    device: &OpenDevice,
    hazards: &Hazards,
    (access, queue): (Access, u64),
) -> Result<Option<(Arc<Timeline>, u64)>> {
    let mut uses = Dependencies::new();
    hazards.dependencies(access, queue, &mut uses);
    let mut found = None;
    for Dependency { on, propagates_failure } in uses {
        // A plain write replaces everything, so it does not matter what a failed kernel left behind. To a read it does.
        let propagates_failure = propagates_failure && access.reads();
        match device.queues.find(on.queue) {
            QueueStatus::Live(timeline) => match timeline.status(on.ticket) {
                Some(Err(error)) if propagates_failure => return Err(error),
                Some(_) if !timeline.maybe_running(on.ticket) => {}
                _ => found = Some((timeline, on.ticket)),
            },
            QueueStatus::Failed(ticket, error) if propagates_failure && ticket <= on.ticket => {
                return Err(error);
            }
            QueueStatus::Failed(..) | QueueStatus::Gone => {}
        }
    }
    Ok(found)
}
