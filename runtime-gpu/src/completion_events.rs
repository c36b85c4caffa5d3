//! Completion events: driver events recorded after tickets, only on request, and reused once complete.

#![allow(unsafe_code, reason = "calls the driver")]

use std::collections::VecDeque;

use runtime_core::Result;

use crate::context::PrimaryContext;
use crate::driver::abi::{Event, Stream};

/// Events created at once when none is free. Few, so that the driver's part of them stays in the cache.
const BATCH: usize = 64;

/// An event that completes when a ticket, and all before it, have ended.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CompletionEvent {
    ticket: u64,
    event: Event,
    /// Returns to the free events when it is complete; otherwise it belongs to a timestamp.
    reusable: bool,
}

/// The completion events of a queue, in the order of their tickets.
#[derive(Debug, Default)]
pub(crate) struct CompletionEvents {
    pending: VecDeque<CompletionEvent>,
    free: Vec<Event>,
    /// The latest ticket whose event is known to be complete.
    completed: u64,
}

impl CompletionEvents {
    /// Records an event for `ticket`, the last submission.
    #[inline]
    pub(crate) fn record(&mut self, primary: &PrimaryContext, stream: Stream, ticket: u64) -> Result<()> {
        if self.newest_ticket() >= ticket {
            return Ok(());
        }
        let event = match self.free.pop() {
            Some(event) => event,
            None => self.grow(primary)?,
        };
        // SAFETY: event and stream are alive and of one context.
        let code = unsafe { (primary.driver.cuEventRecord)(event.0, stream.0) };
        if !code.is_success() {
            self.free.push(event);
            return Err(primary.fail("cuEventRecord", code));
        }
        self.pending.push_back(CompletionEvent { ticket, event, reusable: true });
        Ok(())
    }

    /// Uses the event of a timestamp as the completion event of its ticket.
    pub(crate) fn push_timestamp(&mut self, ticket: u64, event: Event) {
        if self.newest_ticket() < ticket {
            self.pending.push_back(CompletionEvent { ticket, event, reusable: false });
        }
    }

    /// The newest ticket with a pending event; 0 if there is none.
    #[inline]
    pub(crate) fn newest_ticket(&self) -> u64 {
        self.pending.back().map_or(0, |newest| newest.ticket)
    }

    /// Whether no event is pending.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    #[cold]
    fn grow(&mut self, primary: &PrimaryContext) -> Result<Event> {
        self.retire_older(|event| primary.is_event_complete(event))?;
        // With only a few free events the next poll would come soon, and a poll costs as much as recording.
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

    /// Retires the older half of the events if they are complete, else a quarter, and so on while it is worth it. As a rule this
    /// takes one query, where finding the last complete event takes many.
    fn retire_older(&mut self, mut is_complete: impl FnMut(Event) -> Result<bool>) -> Result<()> {
        let mut count = self.pending.len() / 2;
        while count >= BATCH / 4 {
            if is_complete(self.pending[count - 1].event)? {
                self.retire(count);
                break;
            }
            count /= 2;
        }
        Ok(())
    }

    /// Removes the `count` oldest events, which are complete.
    fn retire(&mut self, count: usize) {
        if let Some(newest) = count.checked_sub(1).and_then(|index| self.pending.get(index)) {
            self.completed = newest.ticket;
        }
        let reusable = self.pending.drain(..count).filter(|retired| retired.reusable);
        self.free.extend(reusable.map(|retired| retired.event));
    }

    /// Queries the pending events; returns the latest ticket whose event is complete, or 0.
    #[inline]
    pub(crate) fn poll(&mut self, mut is_complete: impl FnMut(Event) -> Result<bool>) -> Result<u64> {
        let Some(newest) = self.pending.back().copied() else { return Ok(self.completed) };
        if is_complete(newest.event)? {
            self.retire(self.pending.len());
        } else {
            let count = self.count_complete(is_complete)?;
            self.retire(count);
        }
        Ok(self.completed)
    }

    /// How many events are complete, not counting the newest. They are a prefix, so a galloping search queries only a few.
    fn count_complete(&self, mut is_complete: impl FnMut(Event) -> Result<bool>) -> Result<usize> {
        let (mut complete, mut open, mut bounded) = (0, self.pending.len().saturating_sub(1), false);
        while complete < open {
            let index = if bounded { complete.midpoint(open) } else { (2 * complete).min(open - 1) };
            if is_complete(self.pending[index].event)? {
                complete = index + 1;
            } else {
                (open, bounded) = (index, true);
            }
        }
        Ok(complete)
    }

    /// The latest ticket whose event is known to be complete.
    pub(crate) fn completed(&self) -> u64 {
        self.completed
    }

    /// The first pending event that completes no earlier than `ticket` ends.
    pub(crate) fn event_for(&self, ticket: u64) -> Option<Event> {
        let index = self.pending.partition_point(|pending| pending.ticket < ticket);
        self.pending.get(index).map(|pending| pending.event)
    }

    /// Removes the event of a timestamp, which is complete.
    pub(crate) fn release_timestamp(&mut self, event: Event) {
        let Some(index) = self.pending.iter().position(|pending| pending.event == event) else { return };
        // All events before it are complete too.
        self.retire(index + 1);
    }

    /// Removes all events, but for those of timestamps.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Event> {
        let pending = self.pending.drain(..).filter(|pending| pending.reusable).map(|pending| pending.event);
        pending.chain(self.free.drain(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: usize) -> Event {
        Event(std::ptr::without_provenance_mut(number))
    }

    fn events(tickets: &[u64]) -> CompletionEvents {
        let pending = |&ticket: &u64| CompletionEvent {
            ticket,
            event: event(usize::try_from(ticket).unwrap()),
            reusable: true,
        };
        CompletionEvents { pending: tickets.iter().map(pending).collect(), free: Vec::new(), completed: 0 }
    }

    fn complete_up_to(until: usize) -> impl FnMut(Event) -> Result<bool> {
        move |event| Ok(event.0.addr() <= until)
    }

    #[test]
    fn complete_events_are_a_prefix_and_become_free() {
        let mut events = events(&[2, 5, 9]);
        assert_eq!(events.poll(complete_up_to(1)).unwrap(), 0);
        assert_eq!(events.poll(complete_up_to(5)).unwrap(), 5);
        assert_eq!((events.pending.len(), events.free.len()), (1, 2));
        assert_eq!(events.poll(complete_up_to(9)).unwrap(), 9);
        assert_eq!(events.poll(complete_up_to(9)).unwrap(), 9);
        assert!(events.is_empty());
        assert_eq!(events.free.len(), 3);
    }

    #[test]
    fn one_query_suffices_when_everything_is_complete() {
        let mut events = events(&[1, 2, 3, 4]);
        let mut queries = 0;
        let polled = events.poll(|_| {
            queries += 1;
            Ok(true)
        });
        assert_eq!((polled.unwrap(), queries), (4, 1));
    }

    #[test]
    fn few_of_many_events_are_queried() {
        for until in [0, 1, 2, 3, 40, 500, 998, 999] {
            let mut events = events(&(1..=1000).collect::<Vec<_>>());
            let (mut queries, mut query) = (0, complete_up_to(until));
            let polled = events.poll(|event| {
                queries += 1;
                query(event)
            });
            assert_eq!((polled.unwrap(), events.free.len()), (until as u64, until));
            assert!(queries <= 22, "{queries} queries for {until}");
        }
    }

    #[test]
    fn older_events_are_retired_with_few_queries() {
        for (until, freed, queried) in [(1000, 500, 1), (400, 250, 2), (40, 31, 5), (10, 0, 5)] {
            let mut events = events(&(1..=1000).collect::<Vec<_>>());
            let (mut queries, mut query) = (0, complete_up_to(until));
            events
                .retire_older(|event| {
                    queries += 1;
                    query(event)
                })
                .unwrap();
            assert_eq!(
                (events.free.len(), queries, events.completed()),
                (freed, queried, freed as u64),
                "{until}"
            );
        }
    }

    #[test]
    fn a_ticket_between_events_completes_with_the_next_one() {
        let events = events(&[2, 5]);
        assert_eq!(events.event_for(2), Some(event(2)));
        assert_eq!(events.event_for(3), Some(event(5)));
        assert_eq!(events.event_for(6), None);
    }

    #[test]
    fn the_event_of_a_timestamp_is_never_reused_as_a_completion_event() {
        let mut events = events(&[1]);
        events.push_timestamp(2, event(2));
        assert_eq!(events.poll(complete_up_to(2)).unwrap(), 2);
        assert_eq!(events.free, [event(1)]);
    }
}
