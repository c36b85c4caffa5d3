//! What few events have, apart from the others, so that these stay small and are dropped inline.

#![allow(unsafe_code, reason = "drops a box out of line")]

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::timeline::event::retained::Retained;
use crate::timeline::event::times::Stamps;
use crate::timeline::event::{Event, Source};

/// What few events have.
#[derive(Default)]
pub(super) struct More {
    /// What it is, if it is not a ticket.
    pub(super) source: Option<Source>,
    /// Its registration with a wait thread or signal; 0: it was never awaited.
    pub(super) registration: u64,
    /// The events of a group that a future waits for, with their positions.
    pub(super) waiting: Vec<(usize, Event)>,
    /// What the work was told to wait for. These remember no dependencies of their own, so that a chain of events does not grow.
    pub(super) dependencies: Arc<[Event]>,
    /// When the work started and ended.
    pub(super) stamps: Option<Arc<Stamps>>,
    /// What the program has the event retain.
    pub(super) retained: Option<Arc<Retained>>,
}

/// A box that is dropped out of line. An event may own others, and the compiler does not inline a drop that calls itself.
pub(super) struct Extra(ManuallyDrop<Box<More>>);

impl Extra {
    #[cold]
    pub(super) fn new(more: More) -> Self {
        Self(ManuallyDrop::new(Box::new(more)))
    }
}

impl Drop for Extra {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: it is not used any more.
        unsafe { ManuallyDrop::drop(&mut self.0) }
    }
}

impl Deref for Extra {
    type Target = More;

    fn deref(&self) -> &More {
        &self.0
    }
}

impl DerefMut for Extra {
    fn deref_mut(&mut self) -> &mut More {
        &mut self.0
    }
}
