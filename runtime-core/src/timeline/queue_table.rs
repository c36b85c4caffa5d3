//! Finds the timeline of a queue by its id. The hazards of a buffer may name queues of any device of the `Runtime`.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::Error;
use crate::timeline::Timeline;
use crate::timeline::hazards::PROMOTED;

/// Hashes an id by one multiplication, which is enough: ids count up, and no attacker chooses them.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = (self.0 ^ id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

type ById<T> = HashMap<u64, T, BuildHasherDefault<IdHasher>>;

#[cold]
fn promoted() -> Error {
    Error::invalid(
        "the tensor was promoted by fusion, so its content was never written; overwrite all of it first",
    )
}

/// All queues of one `Runtime`, and the failures of closed ones.
#[derive(Debug, Default)]
pub(crate) struct QueueTable {
    live: Mutex<ById<Arc<Timeline>>>,
    failed: Mutex<ById<(u64, Error)>>,
}

/// The state of a queue, by its id.
pub(crate) enum QueueStatus {
    /// Open; its work may be in flight.
    Live(Arc<Timeline>),
    /// Closed; its work had failed from this ticket on.
    Failed(u64, Error),
    /// Closed; all its work had succeeded.
    Gone,
}

impl QueueTable {
    /// A new id, unique in the process.
    pub(crate) fn next_id() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn insert(&self, timeline: &Arc<Timeline>) {
        self.live.lock().insert(timeline.id, timeline.clone());
    }

    pub(crate) fn find(&self, queue: u64) -> QueueStatus {
        if let Some(timeline) = self.live.lock().get(&queue) {
            return QueueStatus::Live(timeline.clone());
        }
        if queue == PROMOTED {
            return QueueStatus::Failed(0, promoted());
        }
        match self.failed.lock().get(&queue) {
            Some((ticket, error)) => QueueStatus::Failed(*ticket, error.clone()),
            None => QueueStatus::Gone,
        }
    }

    /// All queues of the `Runtime`.
    pub(crate) fn timelines(&self) -> Vec<Arc<Timeline>> {
        self.live.lock().values().cloned().collect()
    }

    /// Removes a timeline that only this table and `owned` other holders reference; returns whether it did.
    pub(crate) fn remove_unused(&self, timeline: &Arc<Timeline>, owned: usize) -> bool {
        let mut live = self.live.lock();
        // Under the lock it cannot be found, so a count that is low now stays low.
        if Arc::strong_count(timeline) > owned + 1 {
            return false;
        }
        // Everything that other holders did with the queue must happen before it is closed. The count was read relaxed; an
        // upgrade acquires. (A fence would do, but the thread sanitizer does not support fences.)
        let _seen = Arc::downgrade(timeline).upgrade();
        self.record_failure(timeline);
        live.remove(&timeline.id);
        true
    }

    /// Removes a timeline whose device is gone.
    pub(crate) fn remove(&self, timeline: &Timeline) {
        self.record_failure(timeline);
        self.live.lock().remove(&timeline.id);
    }

    fn record_failure(&self, timeline: &Timeline) {
        if let Some(failure) = timeline.failure() {
            self.failed.lock().insert(timeline.id, failure);
        }
    }
}
