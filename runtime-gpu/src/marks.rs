//! Marks: driver events behind tickets, recorded only when somebody asked, reused when they have passed.

#![allow(unsafe_code, reason = "calls the driver")]

use std::collections::VecDeque;

use runtime_core::Result;

use crate::context::Primary;
use crate::driver::Driver;
use crate::driver::abi::{Event, Stream};

/// Events that are made at once when none is left. Few, so that the driver's part of them stays in the cache.
const BATCH: usize = 64;

/// An event that passes when a ticket, and all before it, have ended.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Mark {
    ticket: u64,
    event: Event,
    /// Goes back to the list of free ones; else it is a timestamp's.
    ours: bool,
}

/// The marks of a queue, in the order of their tickets.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    pending: VecDeque<Mark>,
    free: Vec<Event>,
    /// The latest ticket whose mark has passed.
    passed: u64,
}

impl Marks {
    /// Records a mark of `ticket`, the last submission.
    #[inline]
    pub(crate) fn record(&mut self, primary: &Primary, stream: Stream, ticket: u64) -> Result<()> {
        if self.newest() >= ticket {
            return Ok(());
        }
        let event = match self.free.pop() {
            Some(event) => event,
            None => self.more(primary)?,
        };
        // SAFETY: event and stream are alive and of one context.
        let code = unsafe { (primary.driver.cuEventRecord)(event, stream) };
        if !code.is_success() {
            self.free.push(event);
            return Err(primary.fail("cuEventRecord", code));
        }
        self.pending.push_back(Mark { ticket, event, ours: true });
        Ok(())
    }

    /// Takes the event of a timestamp for the mark of its ticket.
    pub(crate) fn borrow(&mut self, ticket: u64, event: Event) {
        if self.newest() < ticket {
            self.pending.push_back(Mark { ticket, event, ours: false });
        }
    }

    /// The newest marked ticket that is not known to have ended; 0: none.
    #[inline]
    pub(crate) fn newest(&self) -> u64 {
        self.pending.back().map_or(0, |mark| mark.ticket)
    }

    /// Whether all marks have passed.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    #[cold]
    fn more(&mut self, primary: &Primary) -> Result<Event> {
        self.free_older(|event| primary.has_passed(event))?;
        // A few free ones would mean to look again soon, and looking costs as much as recording.
        if self.free.len() >= BATCH / 4
            && let Some(event) = self.free.pop()
        {
            return Ok(event);
        }
        for _ in 1..BATCH {
            self.free.push(primary.open_event(false)?);
        }
        primary.open_event(false)
    }

    /// Frees the older half of the events if they have passed, else a quarter, and so on, if it is worth it: one question as
    /// a rule, where to find the last one that has passed takes many.
    fn free_older(&mut self, mut has_passed: impl FnMut(Event) -> Result<bool>) -> Result<()> {
        let mut count = self.pending.len() / 2;
        while count >= BATCH / 4 {
            if has_passed(self.pending[count - 1].event)? {
                self.pass(count);
                break;
            }
            count /= 2;
        }
        Ok(())
    }

    /// Notes that so many marks, the oldest, have passed.
    fn pass(&mut self, count: usize) {
        if let Some(newest) = count.checked_sub(1).and_then(|at| self.pending.get(at)) {
            self.passed = newest.ticket;
        }
        let ours = self.pending.drain(..count).filter(|mark| mark.ours);
        self.free.extend(ours.map(|mark| mark.event));
    }

    /// The latest ticket whose mark has passed; 0: none.
    #[inline]
    pub(crate) fn look(&mut self, mut has_passed: impl FnMut(Event) -> Result<bool>) -> Result<u64> {
        let Some(newest) = self.pending.back().copied() else { return Ok(self.passed) };
        if has_passed(newest.event)? {
            self.pass(self.pending.len());
        } else {
            let passed = self.passed_marks(has_passed)?;
            self.pass(passed);
        }
        Ok(self.passed)
    }

    /// How many marks have passed, the newest not among them. They are a prefix, so that few of them are asked for.
    fn passed_marks(&self, mut has_passed: impl FnMut(Event) -> Result<bool>) -> Result<usize> {
        let (mut passed, mut open, mut bounded) = (0, self.pending.len().saturating_sub(1), false);
        while passed < open {
            let at = if bounded { passed.midpoint(open) } else { (2 * passed).min(open - 1) };
            if has_passed(self.pending[at].event)? {
                passed = at + 1;
            } else {
                (open, bounded) = (at, true);
            }
        }
        Ok(passed)
    }

    /// The latest ticket whose mark was seen to pass.
    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }

    /// The event whose passing says that `ticket` has ended.
    pub(crate) fn event(&self, ticket: u64) -> Option<Event> {
        let at = self.pending.partition_point(|mark| mark.ticket < ticket);
        self.pending.get(at).map(|mark| mark.event)
    }

    /// Forgets an event that has passed and belongs to a timestamp.
    pub(crate) fn give_back(&mut self, event: Event) {
        let Some(at) = self.pending.iter().position(|mark| mark.event == event) else { return };
        // All before it have passed too.
        self.pass(at + 1);
    }

    /// Ends all events. The context is current.
    pub(crate) fn close(&mut self, driver: &Driver) {
        let pending = self.pending.drain(..).filter(|mark| mark.ours).map(|mark| mark.event);
        for event in pending.chain(self.free.drain(..)) {
            // SAFETY: ours, and used by nobody any more; the driver keeps what it still needs.
            let _ = unsafe { (driver.cuEventDestroy_v2)(event) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: usize) -> Event {
        Event(std::ptr::without_provenance_mut(number))
    }

    fn marks(tickets: &[u64]) -> Marks {
        let mark =
            |&ticket: &u64| Mark { ticket, event: event(usize::try_from(ticket).unwrap()), ours: true };
        Marks { pending: tickets.iter().map(mark).collect(), free: Vec::new(), passed: 0 }
    }

    fn passed(until: usize) -> impl FnMut(Event) -> Result<bool> {
        move |event| Ok(event.0.addr() <= until)
    }

    #[test]
    fn what_has_passed_is_a_prefix_and_its_events_are_free() {
        let mut marks = marks(&[2, 5, 9]);
        assert_eq!(marks.look(passed(1)).unwrap(), 0);
        assert_eq!(marks.look(passed(5)).unwrap(), 5);
        assert_eq!((marks.pending.len(), marks.free.len()), (1, 2));
        assert_eq!(marks.look(passed(9)).unwrap(), 9);
        assert_eq!(marks.look(passed(9)).unwrap(), 9);
        assert!(marks.is_empty());
        assert_eq!(marks.free.len(), 3);
    }

    #[test]
    fn one_query_tells_that_everything_is_done() {
        let mut marks = marks(&[1, 2, 3, 4]);
        let mut queries = 0;
        let looked = marks.look(|_| {
            queries += 1;
            Ok(true)
        });
        assert_eq!((looked.unwrap(), queries), (4, 1));
    }

    #[test]
    fn few_of_many_marks_are_asked_for() {
        for until in [0, 1, 2, 3, 40, 500, 998, 999] {
            let mut marks = marks(&(1..=1000).collect::<Vec<_>>());
            let (mut queries, mut ask) = (0, passed(until));
            let looked = marks.look(|event| {
                queries += 1;
                ask(event)
            });
            assert_eq!((looked.unwrap(), marks.free.len()), (until as u64, until));
            assert!(queries <= 22, "{queries} queries for {until}");
        }
    }

    #[test]
    fn events_come_back_by_few_questions() {
        for (until, freed, asked) in [(1000, 500, 1), (400, 250, 2), (40, 31, 5), (10, 0, 5)] {
            let mut marks = marks(&(1..=1000).collect::<Vec<_>>());
            let (mut queries, mut ask) = (0, passed(until));
            marks
                .free_older(|event| {
                    queries += 1;
                    ask(event)
                })
                .unwrap();
            assert_eq!((marks.free.len(), queries, marks.passed()), (freed, asked, freed as u64), "{until}");
        }
    }

    #[test]
    fn a_ticket_between_marks_ends_with_the_next_one() {
        let marks = marks(&[2, 5]);
        assert_eq!(marks.event(2), Some(event(2)));
        assert_eq!(marks.event(3), Some(event(5)));
        assert_eq!(marks.event(6), None);
    }

    #[test]
    fn the_event_of_a_timestamp_is_never_reused_as_a_mark() {
        let mut marks = marks(&[1]);
        marks.borrow(2, event(2));
        assert_eq!(marks.look(passed(2)).unwrap(), 2);
        assert_eq!(marks.free, [event(1)]);
    }
}
