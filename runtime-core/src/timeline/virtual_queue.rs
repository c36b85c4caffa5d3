//! The timeline of a virtual queue: its submissions are listed first, and reach the driver later, through a real queue.
//!
//! ```text
//!      1 … resolved                    │ resolved+1 … last_submitted
//!      each has a ticket of the real   │ listed: the driver does not have them
//!      queue, or has failed            │
//! ```
//!
//! Whatever needs the driver to have a ticket hands the list over first ([`Timeline::hand_over`]), and then goes on with the
//! ticket of the real queue. A list is handed over whole: its tickets are resolved at once, when all of it is submitted.
//!
//! Locks: `tickets` is locked last, and only for a moment. Handing over takes the lock of the list, which is held while its
//! submissions are made, so it must be called without any lock. With the hazards of a buffer or the submission lock of a queue
//! locked, only [`Timeline::locate`] may be called.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::{DeviceServices, Timeline};
use crate::Result;
use crate::timeline::device_state::DeviceState;

/// Why a list is handed over without being fused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The program asked for it.
    Cancelled,
    Dropped,
    /// One of its events was waited for, polled or awaited, or the virtual queue was.
    Event,
    HostAccess,
    Submission,
    /// Something other than a launch was submitted to the virtual queue.
    NotALaunch,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cancelled => "the program cancelled it",
            Self::Dropped => "the fuser was dropped",
            Self::Event => "its queue was flushed, or an event of it was waited for, polled or awaited",
            Self::HostAccess => "the program accessed a tensor that it uses",
            Self::Submission => "other work depends on it",
            Self::NotALaunch => "something other than a launch was submitted to its queue",
        })
    }
}

/// The submissions of a virtual queue that the driver does not have. `FusionList` implements it once; it is a trait because `queue`
/// lies above `timeline`.
pub(crate) trait Unsubmitted: fmt::Debug + Send + Sync {
    /// Submits all of them as they are, in order, and resolves their tickets. Call it without any lock.
    fn submit_all(&self, timeline: &Timeline, cause: Cause);
}

/// What the timeline of a virtual queue has in addition.
#[derive(Debug)]
pub(super) struct VirtualQueue {
    real: Arc<Timeline>,
    list: Arc<dyn Unsubmitted>,
    tickets: Mutex<Tickets>,
}

#[derive(Debug, Default)]
struct Tickets {
    /// The last ticket that was handed over.
    resolved: u64,
    /// Tickets in ascending order, with those of the real queue; those that are over are removed.
    real: VecDeque<(u64, u64)>,
    /// Values that are retained until what is listed has been handed over.
    retained: Vec<Box<dyn Any + Send>>,
}

/// Where the work of a ticket is.
pub(crate) enum Location {
    /// On the queue of the timeline itself, which is not virtual.
    Here,
    /// Listed, so the driver does not have it.
    Listed,
    /// On this queue, with this ticket.
    Real(Arc<Timeline>, u64),
    /// It has ended, or was never submitted because it failed.
    Over,
}

impl VirtualQueue {
    fn locate(&self, ticket: u64) -> Location {
        let tickets = self.tickets.lock();
        if ticket > tickets.resolved {
            return Location::Listed;
        }
        match tickets.real.binary_search_by_key(&ticket, |(own, _)| *own) {
            Ok(at) => Location::Real(self.real.clone(), tickets.real[at].1),
            Err(_) => Location::Over,
        }
    }

    /// The result of a ticket that has not failed on the virtual queue itself.
    pub(super) fn status(&self, ticket: u64) -> Option<Result<()>> {
        match self.locate(ticket) {
            Location::Real(real, at) => real.status(at),
            Location::Over => Some(Ok(())),
            Location::Here | Location::Listed => None,
        }
    }

    pub(super) fn has_ended(&self, ticket: u64) -> bool {
        match self.locate(ticket) {
            Location::Real(real, at) => real.has_ended(at),
            Location::Over => true,
            Location::Here | Location::Listed => false,
        }
    }
}

impl Timeline {
    /// The timeline of a virtual queue in front of `real`.
    pub(crate) fn new_virtual(
        id: u64,
        real: &Arc<Self>,
        list: Arc<dyn Unsubmitted>,
        device: Weak<dyn DeviceServices>,
        state: &DeviceState,
    ) -> Self {
        let own = VirtualQueue { real: real.clone(), list, tickets: Mutex::default() };
        Self { virtual_queue: Some(Box::new(own)), ..Self::new(id, std::ptr::null_mut(), device, state) }
    }

    /// Whether it is that of a virtual queue.
    #[inline]
    pub(crate) fn is_virtual(&self) -> bool {
        self.virtual_queue.is_some()
    }

    /// The timeline of the queue that the driver knows.
    pub(crate) fn real(self: &Arc<Self>) -> &Arc<Self> {
        self.virtual_queue.as_ref().map_or(self, |own| &own.real)
    }

    /// Where the work of a ticket is.
    pub(crate) fn locate(&self, ticket: u64) -> Location {
        self.virtual_queue.as_ref().map_or(Location::Here, |own| own.locate(ticket))
    }

    /// Makes sure that the driver has `ticket`, which other queues always ensure. Call it without any lock.
    pub(crate) fn hand_over(&self, ticket: u64, cause: Cause) {
        if let Some(own) = &self.virtual_queue
            && own.tickets.lock().resolved < ticket
            && self.device.upgrade().is_some_and(|device| !device.state().must_leak())
        {
            own.list.submit_all(self, cause);
        }
    }

    /// Hands `ticket` over, and returns where it is on the real queue; `None` if it is over. Ordinary queues return themselves.
    pub(crate) fn to_real(self: &Arc<Self>, ticket: u64, cause: Cause) -> Option<(Arc<Self>, u64)> {
        self.hand_over(ticket, cause);
        match self.locate(ticket) {
            Location::Here => Some((self.clone(), ticket)),
            Location::Real(real, at) => Some((real, at)),
            Location::Listed | Location::Over => None,
        }
    }

    /// What a virtual queue does instead of waiting, polling and so on: hands `ticket` over, and lets the real queue do it. `None`
    /// if the result of the ticket is known, which [`Timeline::status`] then returns.
    ///
    /// # Errors
    /// `Unavailable` in a forked child.
    pub(super) fn on_real<T>(
        self: &Arc<Self>,
        ticket: u64,
        act: impl FnOnce(Arc<Self>, u64) -> Result<T>,
    ) -> Result<Option<T>> {
        if let Some(device) = self.device.upgrade()
            && device.state().must_leak()
        {
            device.state().check()?;
        }
        let real = self.to_real(ticket, Cause::Event).filter(|_| !self.has_failed(ticket));
        real.map(|(real, at)| act(real, at)).transpose()
    }

    fn has_failed(&self, ticket: u64) -> bool {
        self.first_failed.load(Ordering::Acquire) <= ticket
    }

    /// Records that all tickets up to `resolved` are handed over; `tickets` are in ascending order, each with that of the real
    /// queue. Those without one have failed, and are not submitted. Returns what was retained while they were listed, to be dropped
    /// without any lock.
    #[must_use]
    pub(crate) fn resolve_tickets(&self, tickets: &[(u64, u64)], resolved: u64) -> Vec<Box<dyn Any + Send>> {
        let Some(own) = &self.virtual_queue else { return Vec::new() };
        self.remove_ended();
        let mut known = own.tickets.lock();
        known.real.extend(tickets);
        known.resolved = resolved;
        std::mem::take(&mut known.retained)
    }

    /// Retains a value until the list with `ticket` is handed over; returns it if it was already.
    pub(crate) fn retain_while_listed<T: Send + 'static>(&self, ticket: u64, value: T) -> Option<T> {
        let Some(own) = &self.virtual_queue else { return Some(value) };
        let mut tickets = own.tickets.lock();
        if ticket <= tickets.resolved {
            return Some(value);
        }
        tickets.retained.push(Box::new(value));
        None
    }

    /// Takes a ticket for work of the real queue that was submitted to it directly, after everything listed.
    pub(crate) fn adopt(&self, at: u64) -> u64 {
        let _submission = self.submission.lock();
        let ticket = self.last_submitted() + 1;
        if let Some(own) = &self.virtual_queue {
            let mut known = own.tickets.lock();
            if known.resolved + 1 == ticket {
                known.real.push_back((ticket, at));
                known.resolved = ticket;
                self.set_last_submitted(ticket);
                return ticket;
            }
        }
        // Another thread has listed more meanwhile. The last of that is later than this work.
        ticket - 1
    }

    /// Forgets the tickets of the real queue that are over, and records their end and failure.
    fn remove_ended(&self) {
        let Some(own) = &self.virtual_queue else { return };
        let mut tickets = own.tickets.lock();
        while let Some(&(ticket, at)) = tickets.real.front() {
            let Some(result) = own.real.status(at) else { break };
            if let Err(error) = result {
                self.fail_from(ticket, &error);
            }
            if !own.real.has_ended(at) {
                break;
            }
            self.complete(ticket);
            tickets.real.pop_front();
        }
        if tickets.real.is_empty() {
            self.complete(tickets.resolved);
        }
    }

    /// Polls the real queue of a virtual one; does nothing for a timeline of the program.
    #[cold]
    pub(super) fn poll_real_queue(&self) -> Result<()> {
        let Some(own) = &self.virtual_queue else { return Ok(()) };
        own.real.poll_with_sources()?;
        self.remove_ended();
        Ok(())
    }
}
