//! Plans in memory, for lists of the same shape.
//!
//! The key holds everything that a plan may depend on, and is compared as a whole. Work-groups count only by their
//! [bounds](crate::lowering::FusionRequest::group_bounds), because a plan refers to launches for them; scalars only if they become constants, or
//! if the plan says that it relies on them.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::code::portable::PortableText;
use crate::fusion::fusible_run::Run;
use crate::fusion::list_graphs::ListGraphs;
use crate::fusion::plan::Plan;
use crate::fusion::recently_used::RecentlyUsed;
use crate::fusion::shape::Shape;
use crate::{Kernel, Queue};

/// The maximum number of plans kept; the least recently used one is evicted first.
const LIMIT: usize = 256;
/// The key of the plans among a device's shared objects.
const KEY: [u8; 32] = *b"the plans of fusion of a device.";

/// What fusers of a queue share with later ones.
#[derive(Debug, Default)]
pub(super) struct QueueCache {
    pub(super) plans: Arc<PlanCache>,
    pub(super) graphs: ListGraphs,
}

/// The plans of a device. Its queues share them, as long as one that fuses is open.
#[derive(Debug)]
pub(super) struct PlanCache(Mutex<RecentlyUsed<(Key, Arc<Plan>)>>);

impl Default for PlanCache {
    fn default() -> Self {
        Self(Mutex::new(RecentlyUsed::new(LIMIT)))
    }
}

/// A shape with the code of its launches.
#[derive(Debug)]
struct Key {
    hash: u64,
    words: Box<[u64]>,
    code: Vec<(Arc<PortableText>, Arc<str>)>,
}

impl QueueCache {
    /// That of `queue`.
    pub(super) fn of(queue: &Queue) -> Arc<Self> {
        let shared_by_queue = queue.fusion_cache.get_or_init(|| {
            let shared = queue.device.loaded::<PlanCache>(&KEY);
            let plans = shared.unwrap_or_else(|| queue.device.share_loaded(KEY, Arc::default(), |_| true));
            Arc::new(Self { plans, graphs: ListGraphs::default() })
        });
        shared_by_queue.clone().downcast().unwrap_or_default()
    }
}

impl PlanCache {
    /// The plan for a run of this shape.
    pub(super) fn find(&self, shape: &Shape, run: &Run<'_>) -> Option<Arc<Plan>> {
        let mut plans = self.0.lock();
        plans.find(|(key, plan)| key.is_of(shape, run) && plan.fits(run)).map(|(_, plan)| plan.clone())
    }

    /// Adds the plan for a run, in place of another one that is right for it.
    pub(super) fn insert(&self, shape: &Shape, run: &Run<'_>, plan: &Arc<Plan>) {
        let entry = (Key::new(shape, run), plan.clone());
        let removed = self.0.lock().insert(entry, |(key, plan)| key.is_of(shape, run) && plan.fits(run));
        // Without the lock: dropping kernels takes locks of the device.
        drop(removed);
    }
}

impl Key {
    fn new(shape: &Shape, run: &Run<'_>) -> Self {
        let code = run
            .entries
            .iter()
            .filter_map(|entry| Some((entry.kernel.portable()?.clone(), entry.kernel.shared_name().clone())));
        Self { hash: shape.hash, words: shape.words[..].into(), code: code.collect() }
    }

    /// Whether a run has this shape and this code.
    fn is_of(&self, shape: &Shape, run: &Run<'_>) -> bool {
        let is_same_code = |((text, name), kernel): (&(Arc<PortableText>, Arc<str>), &Kernel)| {
            (Arc::ptr_eq(name, kernel.shared_name()) || name == kernel.shared_name())
                && kernel.portable().is_some_and(|other| text.is_same(other))
        };
        self.hash == shape.hash
            && *self.words == shape.words[..]
            && self.code.len() == run.entries.len()
            && self.code.iter().zip(run.entries.iter().map(|entry| &entry.kernel)).all(is_same_code)
    }
}
