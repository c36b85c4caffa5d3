//! What a buffer remembers of the work in flight on it: its last writer and the readers since.
//!
//! What follows for a submission, whenever a failure comes to light, before it or after:
//!
//! - It *reads* or *writes* what an earlier submission *wrote* (read after write, write after write): it waits for that
//!   one, and fails if that one failed, for its content rests on what was not written. So does all that depends on it.
//!   Only the program's own writes, which replace everything, heal a tensor.
//! - It *writes* what an earlier submission only *read* (write after read), or takes the place of a reader: it waits for
//!   the end of that one, good or bad, and never fails because of it.
//!
//! Backends only ever keep the order: [`Queue::wait_for`](crate::backend::Queue::wait_for) ends with its source, however that
//! ended. Which failures travel is decided here, by [`Dependency::carries`], and carried over by the edges of a timeline.
//!
//! Whole buffers are tracked, since views alias. The reader set is bounded: one entry per queue, and when a
//! further queue comes, its submission also waits for the reader that it displaces, whose end its own end implies.

use smallvec::SmallVec;

use crate::{Access, Error, Result};

/// A use of a buffer: a ticket of a queue.
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
    /// Whether the failure of `on` is the failure of the dependent (it uses what `on` wrote), not only an order.
    pub(crate) propagates_failure: bool,
}

/// Dependencies of one submission.
pub(crate) type Dependencies = SmallVec<[Dependency; 8]>;

const READERS: usize = 4;
/// The program itself, whose accesses are over when they return: no queue has this id, and nobody is displaced.
pub(crate) const HOST: u64 = 0;

const NOBODY: Use = Use { queue: HOST, ticket: 0 };

/// Uses of one buffer that later submissions must respect. What every launch reads lies together.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Hazards {
    /// The last one; of `HOST` if there is none.
    writer: Use,
    /// Number of read views of the host, or -1 for a write view.
    mapped: i32,
    /// So many of `readers`.
    reader_count: u32,
    /// The readers since the last write, in the order in which their queues came.
    readers: [Use; READERS],
}

impl Default for Hazards {
    fn default() -> Self {
        Self { writer: NOBODY, mapped: 0, reader_count: 0, readers: [NOBODY; READERS] }
    }
}

impl Hazards {
    #[inline]
    fn readers(&self) -> &[Use] {
        &self.readers[..(self.reader_count as usize).min(READERS)]
    }

    /// Adds the reader of a queue that is not there yet; the first one goes if there is no room.
    #[cold]
    fn push_reader(&mut self, reader: Use) {
        if self.reader_count as usize >= READERS {
            self.readers.rotate_left(1);
            self.readers[READERS - 1] = reader;
        } else {
            self.readers[self.reader_count as usize] = reader;
            self.reader_count += 1;
        }
    }

    /// What an access by `queue` must wait for: into `foreign`, and as the returned ticket of `queue` itself.
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
            self.readers().iter().for_each(|&reader| depend(reader, false));
        } else if self.reader_count as usize == READERS
            && queue != HOST
            && !self.readers().iter().any(|reader| reader.queue == queue)
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
        Err(Error::invalid("the tensor is mapped into the program by a host view; drop the view first"))
    }

    /// Records a submitted access.
    #[inline]
    pub(crate) fn record(&mut self, access: Access, by: Use) {
        if access.writes() {
            self.writer = by;
            self.reader_count = 0;
            return;
        }
        let count = (self.reader_count as usize).min(READERS);
        match self.readers[..count].iter_mut().find(|reader| reader.queue == by.queue) {
            Some(known) => known.ticket = by.ticket,
            // `before` made this submission wait for the one that is displaced.
            None => self.push_reader(by),
        }
    }

    /// Every use in flight, settled ones included.
    pub(crate) fn uses(&self) -> impl Iterator<Item = Use> {
        let writer = Some(self.writer).filter(|writer| writer.queue != HOST);
        writer.into_iter().chain(self.readers().iter().copied())
    }

    /// Forgets all uses: they have ended.
    pub(crate) fn clear_uses(&mut self) {
        self.writer = NOBODY;
        self.reader_count = 0;
    }

    /// Forgets what `queue` did: it has ended well.
    pub(crate) fn forget(&mut self, queue: u64) {
        if self.writer.queue == queue {
            self.writer = NOBODY;
        }
        // A queue is among the readers once.
        if let Some(at) = self.readers().iter().position(|reader| reader.queue == queue) {
            self.readers[at..].rotate_left(1);
            self.reader_count -= 1;
        }
    }

    /// Begins a host view.
    ///
    /// # Errors
    /// `InvalidArgument` when another view excludes it.
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
    fn a_fifth_reader_waits_for_the_one_it_displaces() {
        let mut hazards = Hazards::default();
        for queue in 1..=4 {
            hazards.record(Access::Read, by(queue, queue * 10));
        }
        assert_eq!(before(&hazards, Access::Read, 4), (0, vec![]), "a known reader displaces nobody");
        assert_eq!(before(&hazards, Access::Read, 5), (0, vec![(1, 10, false)]));
        hazards.record(Access::Read, by(5, 50));
        assert_eq!(hazards.uses().map(|u| u.queue).collect::<Vec<_>>(), [2, 3, 4, 5]);
    }

    #[test]
    fn a_queue_that_is_forgotten_is_waited_for_no_more() {
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
