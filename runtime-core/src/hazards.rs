//! What a buffer remembers of the work in flight on it: its last writer and the readers since.
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
    /// Whether the failure of `on` is the failure of the dependent (it reads what `on` wrote), not only an order.
    pub(crate) carries: bool,
}

/// Dependencies of one submission.
pub(crate) type Dependencies = SmallVec<[Dependency; 8]>;

const READERS: usize = 4;
/// The program itself, whose accesses are over when they return: no queue has this id, and nobody is displaced.
pub(crate) const HOST: u64 = 0;

/// The readers since the last write, in the order in which their queues came.
#[derive(Clone, Copy, Debug)]
struct Readers {
    uses: [Use; READERS],
    count: usize,
}

impl Default for Readers {
    fn default() -> Self {
        Self { uses: [Use { queue: HOST, ticket: 0 }; READERS], count: 0 }
    }
}

impl Readers {
    #[inline]
    fn as_slice(&self) -> &[Use] {
        &self.uses[..self.count]
    }

    /// Adds the reader of a queue that is not there yet; the first one goes if there is no room.
    #[inline]
    fn push(&mut self, reader: Use) {
        if self.count == READERS {
            self.uses.rotate_left(1);
            self.count -= 1;
        }
        self.uses[self.count] = reader;
        self.count += 1;
    }
}

/// Uses of one buffer that later submissions must respect.
#[derive(Debug, Default)]
pub(crate) struct Hazards {
    writer: Option<Use>,
    readers: Readers,
    /// Number of read views of the host, or -1 for a write view.
    mapped: i32,
}

impl Hazards {
    /// What an access by `queue` must wait for: into `foreign`, and as the returned ticket of `queue` itself.
    #[inline]
    pub(crate) fn before(&self, access: Access, queue: u64, foreign: &mut Dependencies) -> u64 {
        let mut after = 0;
        let mut depend = |on: Use, carries: bool| {
            if on.queue == queue {
                after = after.max(on.ticket);
            } else {
                foreign.push(Dependency { on, carries });
            }
        };
        if let Some(writer) = self.writer {
            depend(writer, true);
        }
        if access.writes() {
            self.readers.as_slice().iter().for_each(|&reader| depend(reader, false));
        } else if self.readers.count == READERS
            && queue != HOST
            && !self.readers.as_slice().iter().any(|reader| reader.queue == queue)
        {
            depend(self.readers.uses[0], false);
        }
        after
    }

    /// Refuses an access that a mapped host view forbids.
    ///
    /// # Errors
    /// `InvalidArgument`.
    #[inline]
    pub(crate) fn check_unmapped(&self, access: Access) -> Result<()> {
        if self.mapped == 0 || (self.mapped > 0 && !access.writes()) {
            return Ok(());
        }
        Err(Error::invalid("the tensor is mapped into the program by a host view; drop the view first"))
    }

    /// Records a submitted access.
    #[inline]
    pub(crate) fn record(&mut self, access: Access, by: Use) {
        if access.writes() {
            self.writer = Some(by);
            self.readers.count = 0;
            return;
        }
        match self.readers.as_slice().iter().position(|reader| reader.queue == by.queue) {
            Some(known) => self.readers.uses[known].ticket = by.ticket,
            // `before` made this submission wait for the one that is displaced.
            None => self.readers.push(by),
        }
    }

    /// Every use in flight, settled ones included.
    pub(crate) fn uses(&self) -> impl Iterator<Item = Use> {
        self.writer.into_iter().chain(self.readers.as_slice().iter().copied())
    }

    /// Forgets all uses: they have ended.
    pub(crate) fn clear_uses(&mut self) {
        self.writer = None;
        self.readers.count = 0;
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
        let after = hazards.before(access, queue, &mut foreign);
        (after, foreign.iter().map(|d| (d.on.queue, d.on.ticket, d.carries)).collect())
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
