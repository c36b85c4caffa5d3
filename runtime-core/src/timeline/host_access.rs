//! Access of the host to a buffer: waits for the work that excludes it, and keeps new work out meanwhile.

use std::sync::Arc;

use crate::timeline::Timeline;
use crate::timeline::hazards::{Dependencies, Dependency, Hazards};
use crate::timeline::open_device::OpenDevice;
use crate::timeline::queue_table::Found;
use crate::timeline::word_lock::Brief;
use crate::{Access, Result};

/// Waits for the uses of a buffer that exclude `access` by `queue`, or by [`HOST`](super::hazards::HOST), then runs `action` with the hazards
/// locked, so that nothing is submitted meanwhile.
pub(crate) fn with_exclusive<T>(
    device: &OpenDevice,
    hazards: &Brief<Hazards>,
    (access, queue): (Access, u64),
    action: impl FnOnce(&mut Hazards) -> Result<T>,
) -> Result<T> {
    device.check()?;
    loop {
        let mut guard = hazards.lock();
        match in_the_way(device, &guard, (access, queue))? {
            None => return action(&mut guard),
            Some((timeline, ticket)) => {
                drop(guard);
                // Waiting happens with no lock held; a failure is looked at in the next round.
                timeline.wait_ended(ticket, None)?;
            }
        }
    }
}

/// A use that excludes `access` and has not ended.
fn in_the_way(
    device: &OpenDevice,
    hazards: &Hazards,
    (access, queue): (Access, u64),
) -> Result<Option<(Arc<Timeline>, u64)>> {
    let mut uses = Dependencies::new();
    hazards.before(access, queue, &mut uses);
    let mut found = None;
    for Dependency { on, carries } in uses {
        // A plain write replaces everything: it heals what a failed kernel left behind. A read must not see that.
        let carries = carries && access.reads();
        match device.directory.find(on.queue) {
            Found::Live(timeline) => match timeline.settled(on.ticket) {
                Some(Err(error)) if carries => return Err(error),
                Some(_) if !timeline.may_run(on.ticket) => {}
                _ => found = Some((timeline, on.ticket)),
            },
            Found::Failed(ticket, error) if carries && ticket <= on.ticket => return Err(error),
            Found::Failed(..) | Found::Gone => {}
        }
    }
    Ok(found)
}
