//! Held queues: a barrier at the head of the queue waits for a user event, which is set when the hold ends.
//!
//! A driver's queue of commands is bounded, and a submission to a full one blocks. A hold therefore ends by itself after a number
//! of submissions, and before any submission during which the driver might wait for the queue.

#![allow(unsafe_code, reason = "creates and sets events of the driver")]

use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cl3::ext::CL_COMPLETE;
use parking_lot::{Mutex, MutexGuard};
use runtime_core::Result;

use crate::context::SharedContext;
use crate::driver::handle::{Event, Owned};
use crate::driver::{Raw, call, create};
use crate::grid_lock::{self, Grid, GridGuard};

/// The hold ends after this many submissions: more than core makes, and fewer than drivers have room for.
const MAX_SUBMISSIONS: u32 = 1024;

/// The hold of a queue, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    gate: Mutex<Option<Gate>>,
    /// How many submissions may still follow; 0 if the queue is not held.
    left: AtomicU32,
}

/// What a held queue waits for.
#[derive(Debug)]
struct Gate {
    /// The event that the barrier waits for.
    event: Owned<Event>,
    /// The launches that begin when it is set, where launches are kept apart.
    launches: Vec<HeldLaunch>,
}

#[derive(Debug)]
struct HeldLaunch {
    kernel: CString,
    shape: [[u32; 3]; 2],
    event: Arc<Owned<Event>>,
}

/// Held while launches are enqueued on a queue, where launches are kept apart.
#[derive(Debug)]
pub(crate) struct LaunchGuard<'a> {
    gate: MutexGuard<'a, Option<Gate>>,
    /// `None` if the queue is held.
    others: Option<GridGuard>,
    context: &'a Arc<SharedContext>,
}

impl LaunchGuard<'_> {
    /// Notes the launches, which have all ended when `event` has.
    pub(crate) fn note(mut self, grids: &[Grid<'_>], event: &Owned<Event>) {
        let Ok(event) = event.share().map(Arc::new) else {
            // Without a reference of its own, nobody could wait for it later.
            self.context.synchronise(event.raw());
            return;
        };
        if let Some(others) = &mut self.others {
            others.note(grids, &event, self.context);
        } else if let Some(gate) = &mut *self.gate {
            let held = |&(kernel, shape): &Grid<'_>| HeldLaunch {
                kernel: kernel.into(),
                shape,
                event: event.clone(),
            };
            gate.launches.extend(grids.iter().map(held));
        }
    }
}

impl Hold {
    /// Waits until these launches may begin, unless the queue is held; `None` for drivers whose launches need not be kept apart.
    #[inline]
    pub(crate) fn keep_apart<'a>(
        &'a self,
        context: &'a Arc<SharedContext>,
        queue: Raw,
        grids: &[Grid<'_>],
    ) -> Option<LaunchGuard<'a>> {
        context.caps.mistakes_grids.then(|| {
            let gate = self.gate.lock();
            let others = if gate.is_some() { None } else { Some(grid_lock::acquire(queue, grids)) };
            LaunchGuard { gate, others, context }
        })
    }

    /// Whether the queue is held.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.left.load(Ordering::Acquire) != 0
    }

    /// Begins a hold with `event`, which a barrier waits for.
    pub(crate) fn begin(&self, event: Owned<Event>) {
        *self.gate.lock() = Some(Gate { event, launches: Vec::new() });
        self.left.store(MAX_SUBMISSIONS, Ordering::Release);
    }

    /// Counts a submission to a held queue. Returns whether the hold must end.
    #[cold]
    pub(crate) fn is_full(&self) -> bool {
        let more = |left| if left > 1 { Some(left - 1) } else { None };
        self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, more) == Err(1)
    }

    /// Lets the barrier of `queue` pass; returns whether there was a hold.
    ///
    /// # Errors
    /// Any error of the driver; the queue is still held.
    pub(crate) fn end(&self, context: &Arc<SharedContext>, queue: Raw) -> Result<bool> {
        let mut gate = self.gate.lock();
        let Some(Gate { event, launches }) = &*gate else { return Ok(false) };
        let grids: Vec<Grid<'_>> = launches.iter().map(|launch| (&*launch.kernel, launch.shape)).collect();
        let mut others = if grids.is_empty() { None } else { Some(grid_lock::acquire(queue, &grids)) };
        // SAFETY: the event is alive, and its status has not been set.
        unsafe { call!(context.check, clSetUserEventStatus(event.raw(), CL_COMPLETE)) }?;
        for (launch, grid) in launches.iter().zip(&grids) {
            others.iter_mut().for_each(|others| others.note(&[*grid], &launch.event, context));
        }
        drop(others);
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
