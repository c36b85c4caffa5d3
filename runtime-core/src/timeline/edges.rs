//! Edges between timelines: a ticket that waits, on the device, for a ticket of another queue. Failures travel along them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::{Edge, LEAKED, Timeline};
use crate::Result;

/// With more open edges than this, a submission checks which of them can be closed.
pub(super) const LIMIT: usize = 16;

impl Edge {
    /// Whether this wait includes one for `ticket` of `source`.
    fn implies(&self, source: &Arc<Timeline>, ticket: u64) -> bool {
        Arc::ptr_eq(&self.source, source) && self.source_ticket >= ticket
    }
}

impl Timeline {
    #[inline]
    pub(super) fn has_open_edge(&self, ticket: u64) -> bool {
        self.edge_count.load(Ordering::Acquire) != 0
            && self.edges.lock().iter().any(|edge| edge.ticket <= ticket)
    }

    /// Polls this queue, and the queues that it depends on.
    pub(crate) fn poll_with_sources(self: &Arc<Self>) -> Result<()> {
        // That of a virtual queue also polls what its real queue depends on.
        self.poll_queue()?;
        if self.has_edges() { self.resolve_edges(true) } else { Ok(()) }
    }

    /// Whether the failure of another queue may still reach this one.
    pub(crate) fn has_edges(&self) -> bool {
        self.edge_count.load(Ordering::Acquire) != 0
    }

    /// Whether the next submission waits for that ticket of another queue anyway.
    pub(crate) fn waits_for(&self, source: &Arc<Self>, ticket: u64) -> bool {
        self.has_edges() && self.edges.lock().iter().any(|edge| edge.implies(source, ticket))
    }

    /// Records that `ticket`, the next one, waits for a ticket of another queue.
    pub(crate) fn push_edge(self: &Arc<Self>, ticket: u64, source: &Arc<Self>, source_ticket: u64) {
        if self.edge_count.load(Ordering::Acquire) >= self.edge_limit.load(Ordering::Relaxed) {
            // Nobody has polled for a while. The sources were flushed when they were joined; their submission locks must not
            // be taken while this queue's is held.
            let _ = self.resolve_edges(false);
            let left = self.edge_count.load(Ordering::Acquire);
            self.edge_limit.store(LIMIT.max(2 * left), Ordering::Relaxed);
        }
        let mut edges = self.edges.lock();
        // All later tickets wait for what an earlier one waits for. Never merge the other way: an earlier ticket that waited
        // for a later source could wait for itself.
        if !edges.iter().any(|edge| edge.implies(source, source_ticket)) {
            edges.push(Edge { ticket, source: source.clone(), source_ticket });
        }
        self.edge_count.store(edges.len(), Ordering::Release);
    }

    /// Polls every queue that this one depends on, directly or not, and propagates failures until nothing changes.
    ///
    /// # Errors
    /// The error of a source that cannot be polled, if an edge stays open: its end would never be seen.
    #[cold]
    pub(crate) fn resolve_edges(self: &Arc<Self>, signal_and_flush: bool) -> Result<()> {
        let mut reachable = vec![self.clone()];
        let mut next = 0;
        while next < reachable.len() {
            let sources: Vec<_> =
                reachable[next].edges.lock().iter().map(|edge| edge.source.clone()).collect();
            for source in sources {
                if !reachable.iter().any(|known| Arc::ptr_eq(known, &source)) {
                    reachable.push(source);
                }
            }
            next += 1;
        }
        let mut broken = Ok(());
        for source in &reachable[1..] {
            broken = broken.and(source.poll_for_dependent(signal_and_flush));
        }
        while reachable.iter().any(|timeline| timeline.propagate_failures()) {}
        if self.has_edges() { broken } else { Ok(()) }
    }

    /// Polls this queue because another one depends on it.
    fn poll_for_dependent(self: &Arc<Self>, signal_and_flush: bool) -> Result<()> {
        let polled = match self.device.upgrade() {
            Some(_open) if signal_and_flush => {
                self.signal_and_flush(self.signaled.load(Ordering::Acquire)).and_then(|()| self.poll_queue())
            }
            Some(_open) => self.poll_queue(),
            // A closed device has recorded its queues' final state.
            None if self.end.load(Ordering::Acquire) == LEAKED => Err(self.cancelled()),
            None => Ok(()),
        };
        polled.map_err(|error| error.with_note("other work depends on it"))
    }

    /// Closes the edges whose source has a result; returns whether there were any.
    fn propagate_failures(&self) -> bool {
        // `status` of a source locks its edges, and queues may depend on each other: hold no lock meanwhile.
        let open: SmallVec<[(Arc<Self>, u64); 4]> =
            self.edges.lock().iter().map(|edge| (edge.source.clone(), edge.source_ticket)).collect();
        let results = open
            .into_iter()
            .filter_map(|(source, ticket)| source.status(ticket).map(|outcome| (source, ticket, outcome)))
            .collect::<SmallVec<[_; 4]>>();
        let mut edges = self.edges.lock();
        let before = edges.len();
        edges.retain(|edge| {
            let ended = results.iter().find(|(source, ticket, _)| {
                *ticket == edge.source_ticket && Arc::ptr_eq(source, &edge.source)
            });
            if let Some((_, _, Err(error))) = ended {
                self.fail_from(edge.ticket, error);
            }
            ended.is_none()
        });
        self.edge_count.store(edges.len(), Ordering::Release);
        edges.len() != before
    }
}
