//! Held queues: a barrier at the head of the queue waits for a user event, which is set when the hold ends.
//!
//! A driver's queue of commands is bounded, and a submission to a full one blocks. A hold therefore ends by itself after a number
//! of submissions, and before any submission during which the driver might wait for the queue.

#![allow(unsafe_code, reason = "creates and sets events of the driver")]

use std::sync::atomic::{AtomicU32, Ordering};

use cl3::ext::CL_COMPLETE;
use parking_lot::Mutex;
use runtime_core::Result;

use crate::context::SharedContext;
use crate::driver::handle::{Event, Owned};
use crate::driver::{call, create};

/// The hold ends after this many submissions: more than core makes, and fewer than drivers have room for.
const MAX_SUBMISSIONS: u32 = 1024;

/// The hold of a queue, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    /// The event that the barrier waits for.
    gate: Mutex<Option<Owned<Event>>>,
    /// How many submissions may still follow; 0 if the queue is not held.
    left: AtomicU32,
}

impl Hold {
    /// Whether the queue is held.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.left.load(Ordering::Acquire) != 0
    }

    /// Begins a hold with `gate`, which a barrier waits for.
    pub(crate) fn begin(&self, gate: Owned<Event>) {
        *self.gate.lock() = Some(gate);
        self.left.store(MAX_SUBMISSIONS, Ordering::Release);
    }

    /// Counts a submission to a held queue. Returns whether the hold must end.
    #[cold]
    pub(crate) fn is_full(&self) -> bool {
        let more = |left| if left > 1 { Some(left - 1) } else { None };
        self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, more) == Err(1)
    }

    /// Lets the barrier pass; returns whether there was a hold.
    ///
    /// # Errors
    /// Any error of the driver; the queue is still held.
    pub(crate) fn end(&self, context: &SharedContext) -> Result<bool> {
        let mut gate = self.gate.lock();
        let Some(event) = &*gate else { return Ok(false) };
        // SAFETY: the event is alive, and its status has not been set.
        unsafe { call!(context.check, clSetUserEventStatus(event.raw(), CL_COMPLETE)) }?;
        *gate = None;
        self.left.store(0, Ordering::Release);
        Ok(true)
    }
}

impl SharedContext {
    /// Creates an event that [`Hold::end`] sets.
    pub(crate) fn create_user_event(&self) -> Result<Owned<Event>> {
        // SAFETY: the context is alive, and the code is writable.
        unsafe { create!(self.driver.create, clCreateUserEvent(self.handle.raw())) }
    }
}
