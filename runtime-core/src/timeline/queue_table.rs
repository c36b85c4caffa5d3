//! Finds a queue's timeline by its id: what a hazard of one device says of a queue of another.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::Error;
use crate::timeline::Timeline;

/// Hashes an id by one multiplication, which spreads it over all bits: ids count up, and nobody chooses them.
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

/// All timelines of one `Runtime`, and the failures of those that are gone.
#[derive(Debug, Default)]
pub(crate) struct QueueTable {
    live: Mutex<ById<Arc<Timeline>>>,
    failed: Mutex<ById<(u64, Error)>>,
}

/// What became of a queue.
pub(crate) enum QueueStatus {
    /// It exists; its work may be in flight.
    Live(Arc<Timeline>),
    /// It is gone, and from the given ticket on its work had failed.
    Failed(u64, Error),
    /// It is gone and its work ended well.
    Gone,
}

impl QueueTable {
    /// An id that no queue of the process has had.
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
        match self.failed.lock().get(&queue) {
            Some((ticket, error)) => QueueStatus::Failed(*ticket, error.clone()),
            None => QueueStatus::Gone,
        }
    }

    /// All queues of the `Runtime`.
    pub(crate) fn timelines(&self) -> Vec<Arc<Timeline>> {
        self.live.lock().values().cloned().collect()
    }

    /// Removes a timeline that only this table and `owned` further holders know; says whether it did.
    pub(crate) fn remove_unused(&self, timeline: &Arc<Timeline>, owned: usize) -> bool {
        let mut live = self.live.lock();
        // Under the lock nobody can find it, so a count that is low now stays low.
        if Arc::strong_count(timeline) > owned + 1 {
            return false;
        }
        // What the last of the others did with the queue has happened before it is closed: the count is read relaxed,
        // and an upgrade acquires. (A fence would do, but the thread sanitizer knows none.)
        let _seen = Arc::downgrade(timeline).upgrade();
        self.keep_failure(timeline);
        live.remove(&timeline.id);
        true
    }

    /// Removes a timeline whose device is gone.
    pub(crate) fn remove(&self, timeline: &Timeline) {
        self.keep_failure(timeline);
        self.live.lock().remove(&timeline.id);
    }

    fn keep_failure(&self, timeline: &Timeline) {
        if let Some(failure) = timeline.failure() {
            self.failed.lock().insert(timeline.id, failure);
        }
    }
}
