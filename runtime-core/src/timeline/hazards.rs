//! The hazards of a buffer: its last writer, and its readers since.
//!
//! A submission depends on earlier ones that access the same buffer:
//!
//! - **Read after write, write after write**: it waits for the writer, and fails if the writer failed, since its result would
//!   depend on data that was not written. Everything that depends on it fails, too. To clear the failure, the program must
//!   overwrite the whole buffer from the host.
//! - **Write after read**: it waits for the reader to end, successfully or not, and never fails because of it.
//!
//! A failure has the same effect whether it is known when the submission is made or found later. Backends only keep the order:
//! a backend's [`Queue::wait_for`](crate::backend::Queue::wait_for) ends when the work it waits for ends, even if that failed.
//! [`Dependency::propagates_failure`] decides which failures core passes on, along the edges of a timeline.
//!
//! A virtual queue records its accesses under its own id while its submissions are listed; once they are submitted, the real
//! queue's take their place. A tensor that fusion promoted has [`PROMOTED`] as its writer, which always fails its readers.
//!
//! Buffers are tracked whole, since views alias. At most 64 readers are kept, one per queue; the first four
//! are stored inline. A further reader replaces the oldest one and waits for it, so when the new reader has ended, the replaced
//! one has too.

use smallvec::SmallVec;

use crate::{Access, Error, Result};

/// An access to a buffer: a ticket of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    /// Id of the queue.
    pub(crate) queue: u64,
    /// Its ticket.
    pub(crate) ticket: u64,
}

/// What a submission must wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) on: Use,
    /// Whether the dependent fails if `on` fails, because it uses what `on` wrote; otherwise it only comes later.
    pub(crate) propagates_failure: bool,
}

/// Dependencies of one submission.
pub(crate) type Dependencies = SmallVec<[Dependency; 8]>;

/// The most readers that are kept. A fuser that lists a launch is one, besides the queues that have read.
const READERS: usize = 64;
/// How many of them are kept in place.
const IN_PLACE: usize = 4;
/// Stands for the program itself, whose accesses have ended when they return. No queue has this id.
pub(crate) const HOST: u64 = 0;

/// Stands for fused code that kept the content out of memory.
pub(crate) const PROMOTED: u64 = u64::MAX;

const NOBODY: Use = Use { queue: HOST, ticket: 0 };

/// The accesses to one buffer that later submissions may depend on. What every launch reads lies together.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Hazards {
    /// The last writer; of `HOST` if there is none.
    writer: Use,
    /// Number of read-only host views, or -1 for a mutable one.
    mapped: i32,
    /// The readers since the last write, in the order in which their queues came.
    readers: SmallVec<[Use; IN_PLACE]>,
}

impl Default for Hazards {
    fn default() -> Self {
        Self { writer: NOBODY, mapped: 0, readers: SmallVec::new() }
    }
}

impl Hazards {
    /// Adds a reader of a queue without an entry; the oldest entry is dropped if there is no room.
    #[cold]
    fn push_reader(&mut self, reader: Use) {
        if self.readers.len() >= READERS {
            self.readers.remove(0);
        }
        self.readers.push(reader);
    }

    /// What an access by `queue` depends on: adds accesses of other queues to `foreign`, and returns the latest ticket of
    /// `queue` itself, or 0.
    #[inline]
    pub(crate) fn dependencies(&self, access: Access, queue: u64, foreign: &mut Dependencies) -> u64 {
        let mut after = 0;
        let mut depend = |on: Use, propagates_failure: bool| {
            if on.queue == queue {
                after = after.max(on.ticket);
            } else {
                foreign.push(Dependency { on, propagates_failure });
            }
        };
        if self.writer.queue != HOST {
            depend(self.writer, true);
        }
        if access.writes() {
            self.readers.iter().for_each(|&reader| depend(reader, false));
        } else if self.readers.len() >= READERS
            && queue != HOST
            && !self.readers.iter().any(|reader| reader.queue == queue)
        {
            depend(self.readers[0], false);
        }
        after
    }

    /// Refuses an access that a mapped host view forbids.
    ///
    /// # Errors
    /// `InvalidArgument`.
    #[inline]
    pub(crate) fn check_unmapped(&self, access: Access) -> Result<()> {
        let is_free = if access.writes() { self.mapped == 0 } else { self.mapped >= 0 };
        if is_free {
            return Ok(());
        }
        Err(Error::invalid("the tensor is mapped by a host view; drop the view first"))
    }

    /// Records an access that was submitted.
    #[inline]
    pub(crate) fn record(&mut self, access: Access, by: Use) {
        if access.writes() {
            self.writer = by;
            self.readers.clear();
            return;
        }
        match self.readers.iter_mut().find(|reader| reader.queue == by.queue) {
            Some(known) => known.ticket = by.ticket,
            // `dependencies` made this submission wait for the one that it replaces.
            None => self.push_reader(by),
        }
    }

    /// All recorded accesses; some may have ended.
    pub(crate) fn uses(&self) -> impl Iterator<Item = Use> {
        let writer = Some(self.writer).filter(|writer| writer.queue != HOST);
        writer.into_iter().chain(self.readers.iter().copied())
    }

    /// Forgets the accesses of `queue`: they have succeeded.
    pub(crate) fn forget(&mut self, queue: u64) {
        if self.writer.queue == queue {
            self.writer = NOBODY;
        }
        self.take_reader(queue);
    }

    /// Removes the access of a queue that reads. A queue is among the readers once.
    fn take_reader(&mut self, queue: u64) -> Option<Use> {
        let at = self.readers.iter().position(|reader| reader.queue == queue)?;
        Some(self.readers.remove(at))
    }

    /// Replaces the accesses of a virtual queue by those of the real queue that `handed_over` returns for their tickets.
    pub(crate) fn replace(&mut self, queue: u64, handed_over: impl Fn(u64) -> Option<Use>) {
        if self.writer.queue == queue
            && let Some(real) = handed_over(self.writer.ticket)
        {
            self.writer = real;
        }
        let listed = self.readers.iter().find(|reader| reader.queue == queue);
        let Some(real) = listed.and_then(|reader| handed_over(reader.ticket)) else { return };
        self.take_reader(queue);
        match self.readers.iter().position(|reader| reader.queue == real.queue) {
            Some(known) => self.readers[known].ticket = self.readers[known].ticket.max(real.ticket),
            None => self.push_reader(real),
        }
    }

    /// The last writer, for [`Hazards::restore_writer`].
    pub(crate) fn writer(&self) -> Use {
        self.writer
    }

    /// Undoes the record of a write that had no effect, so that the failure of the writer before it is kept.
    pub(crate) fn restore_writer(&mut self, writer: Use) {
        self.writer = writer;
    }

    /// Begins a host view.
    ///
    /// # Errors
    /// `InvalidArgument` while another view excludes it.
    pub(crate) fn map(&mut self, write: bool) -> Result<()> {
        match (write, self.mapped) {
            (true, 0) => self.mapped = -1,
            (false, 0..) => self.mapped += 1,
            _ => {
                return Err(Error::invalid(
                    "the tensor is already mapped by another host view; drop it first",
                ));
            }
        }
        Ok(())
    }

    /// Ends a host view.
    pub(crate) fn unmap(&mut self) {
        self.mapped = if self.mapped < 0 { 0 } else { self.mapped - 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(queue: u64, ticket: u64) -> Use {
        Use { queue, ticket }
    }

    fn before(hazards: &Hazards, access: Access, queue: u64) -> (u64, Vec<(u64, u64, bool)>) {
        let mut foreign = Dependencies::new();
        let after = hazards.dependencies(access, queue, &mut foreign);
        (after, foreign.iter().map(|d| (d.on.queue, d.on.ticket, d.propagates_failure)).collect())
    }

    #[test]
    fn the_three_hazards_order_work() {
        let mut hazards = Hazards::default();
        hazards.record(Access::Write, by(1, 10));
        assert_eq!(before(&hazards, Access::Read, 1), (10, vec![]), "read after write, same queue");
        assert_eq!(before(&hazards, Access::Read, 2), (0, vec![(1, 10, true)]), "read after write");
        hazards.record(Access::Read, by(2, 4));
        hazards.record(Access::Read, by(2, 5));
        assert_eq!(
            before(&hazards, Access::Write, 3),
            (0, vec![(1, 10, true), (2, 5, false)]),
            "write after both"
        );
        hazards.record(Access::Write, by(3, 1));
        assert_eq!(before(&hazards, Access::Write, 3), (1, vec![]), "a write forgets what it waited for");
    }

    #[test]
    fn a_reader_beyond_the_most_waits_for_the_one_it_displaces() {
        let mut hazards = Hazards::default();
        let most = READERS as u64;
        for queue in 1..=most {
            assert_eq!(before(&hazards, Access::Read, queue), (0, vec![]), "there is room");
            hazards.record(Access::Read, by(queue, queue * 10));
        }
        assert_eq!(before(&hazards, Access::Read, most), (0, vec![]), "a known reader displaces no other");
        assert_eq!(before(&hazards, Access::Read, HOST), (0, vec![]), "the program is not recorded");
        assert_eq!(before(&hazards, Access::Read, most + 1), (0, vec![(1, 10, false)]));
        hazards.record(Access::Read, by(most + 1, 50));
        assert!(hazards.uses().map(|u| u.queue).eq(2..=most + 1));
    }

    #[test]
    fn a_forgotten_queue_is_no_dependency() {
        let mut hazards = Hazards::default();
        hazards.record(Access::Write, by(1, 10));
        for queue in 2..=5 {
            hazards.record(Access::Read, by(queue, 1));
        }
        hazards.forget(3);
        hazards.forget(6);
        assert_eq!(hazards.uses().map(|u| u.queue).collect::<Vec<_>>(), [1, 2, 4, 5]);
        hazards.forget(1);
        hazards.record(Access::Read, by(7, 1));
        assert_eq!(hazards.uses().map(|u| u.queue).collect::<Vec<_>>(), [2, 4, 5, 7]);
    }

    #[test]
    fn accesses_of_a_virtual_queue_become_those_of_its_real_queue() {
        let mut hazards = Hazards::default();
        hazards.record(Access::Write, by(9, 1));
        for reader in [by(1, 4), by(9, 2), by(2, 5)] {
            hazards.record(Access::Read, reader);
        }
        let handed_over = |ticket| (ticket <= 2).then(|| by(1, 10 + ticket));
        hazards.replace(9, handed_over);
        assert_eq!(hazards.uses().collect::<Vec<_>>(), [by(1, 11), by(1, 12), by(2, 5)], "merged");
        hazards.record(Access::Read, by(9, 3));
        hazards.replace(9, handed_over);
        assert_eq!(hazards.uses().last(), Some(by(9, 3)), "it is still listed");
        hazards.replace(9, |_| Some(by(3, 1)));
        assert_eq!(hazards.uses().collect::<Vec<_>>(), [by(1, 11), by(1, 12), by(2, 5), by(3, 1)]);
    }

    #[test]
    fn host_views_exclude_conflicting_launches() {
        let mut hazards = Hazards::default();
        hazards.map(false).unwrap();
        hazards.map(false).unwrap();
        assert!(hazards.check_unmapped(Access::Read).is_ok());
        assert!(hazards.check_unmapped(Access::Write).is_err());
        assert!(hazards.map(true).is_err());
        hazards.unmap();
        hazards.unmap();
        hazards.map(true).unwrap();
        assert!(hazards.check_unmapped(Access::Read).is_err());
        hazards.unmap();
        assert!(hazards.check_unmapped(Access::ReadWrite).is_ok());
    }
}
