//! The tickets of a queue, and the kernels that they launch, for the error of a fault: it names the kernels that were running.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::interner::KernelNameId;

/// Launches whose kernels are recorded.
const LAUNCHES: usize = 256;
/// Bits of the kernel name in a recorded launch.
const NAME_BITS: u32 = 20;

/// How far the tickets of a queue have come, and its latest launches.
#[derive(Debug)]
pub(crate) struct LaunchLog {
    submitted: AtomicU64,
    completed: AtomicU64,
    launches: [AtomicU64; LAUNCHES],
}

impl LaunchLog {
    pub(crate) fn new() -> Self {
        let launches = [const { AtomicU64::new(0) }; LAUNCHES];
        Self { submitted: AtomicU64::new(0), completed: AtomicU64::new(0), launches }
    }

    /// The last ticket that was submitted.
    #[inline]
    pub(crate) fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    /// Records that `ticket` is submitted.
    #[inline]
    pub(crate) fn note_submitted(&self, ticket: u64) {
        self.submitted.store(ticket, Ordering::Release);
    }

    /// The completed prefix as of the last poll.
    #[inline]
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// Records that all tickets up to `ticket` have completed.
    pub(crate) fn note_completed(&self, ticket: u64) {
        self.completed.fetch_max(ticket, Ordering::AcqRel);
    }

    /// Records the kernel that `ticket` launches.
    #[inline]
    pub(crate) fn note_launch(&self, ticket: u64, name: KernelNameId) {
        let entry = ticket << NAME_BITS | u64::from(name.0 & ((1 << NAME_BITS) - 1));
        let index = usize::try_from(ticket % LAUNCHES as u64).unwrap_or(0);
        self.launches[index].store(entry, Ordering::Relaxed);
    }

    /// The oldest launch that is not known to have ended.
    pub(crate) fn oldest_running(&self) -> Option<(u64, KernelNameId)> {
        let (completed, submitted) = (self.completed(), self.submitted());
        let entries = self.launches.iter().map(|entry| entry.load(Ordering::Relaxed));
        let launches = entries.map(|entry| (entry >> NAME_BITS, (entry & ((1 << NAME_BITS) - 1)) as u32));
        let running = launches.filter(|(ticket, _)| *ticket > completed && *ticket <= submitted);
        running.min().map(|(ticket, name)| (ticket, KernelNameId(name)))
    }
}
