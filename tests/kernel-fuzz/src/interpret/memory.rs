//! The memory of the interpreter: slots, one per scalar, with a record of their accesses.
//!
//! The result of a kernel must not depend on the order of work-items between barriers: an access that could make it
//! depend on that order is a race.

use super::Invalid;

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// A plain or atomic load.
    Read,
    /// A store, or an atomic operation whose result is used.
    Write,
    /// An atomic operation without a used result; operations of the same class commute.
    Commutes(u8),
}

/// A work-item, its group, and the number of barriers its group has passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accessor {
    pub(super) item: u32,
    pub(super) group: u32,
    pub(super) epoch: u32,
}

const NONE: u32 = u32::MAX;
const MANY: u32 = u32::MAX - 1;

/// The unordered accesses of a slot, by one accessor or by many.
#[derive(Clone, Copy, Debug)]
struct AccessState {
    accessor: u32,
    what: Access,
}

impl AccessState {
    const NONE: Self = Self { accessor: NONE, what: Access::Read };

    /// Adds an access; false if its order relative to the others matters.
    fn add(&mut self, accessor: u32, what: Access) -> bool {
        if self.accessor == NONE {
            *self = Self { accessor, what };
            return true;
        }
        if self.accessor == accessor {
            // Keep the stronger one.
            if self.what != what {
                self.what = Access::Write;
            }
            return true;
        }
        self.accessor = MANY;
        self.what == what && what != Access::Write
    }
}

/// The accesses of one slot.
#[derive(Clone, Copy, Debug)]
struct Trace {
    /// Within a group, since its last barrier.
    items: AccessState,
    group: u32,
    epoch: u32,
    /// Between groups, which are never ordered.
    groups: AccessState,
}

/// A variable, or a tensor.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    pub(super) words: Vec<u64>,
    /// Slots per work-item; 0 if all work-items share the memory.
    pub(super) per_item: usize,
    traces: Vec<Trace>,
}

impl Memory {
    /// Memory with separate slots for each work-item.
    pub(super) fn private(words: Vec<u64>, per_item: usize) -> Self {
        Self { words, per_item, traces: Vec::new() }
    }

    /// Memory shared by work-items.
    pub(super) fn shared(words: Vec<u64>) -> Self {
        let none = Trace { items: AccessState::NONE, group: NONE, epoch: 0, groups: AccessState::NONE };
        Self { traces: vec![none; words.len()], words, per_item: 0 }
    }

    /// The number of slots that a work-item sees.
    pub(super) fn extent(&self) -> usize {
        if self.traces.is_empty() && self.per_item > 0 { self.per_item } else { self.words.len() }
    }

    /// The index of a work-item's slot in `words`.
    pub(super) fn slot(&self, lane: usize, offset: usize) -> usize {
        lane * self.per_item + offset
    }

    /// Records an access.
    ///
    /// # Errors
    /// It races with another access.
    pub(super) fn record(&mut self, slot: usize, accessor: Accessor, what: Access) -> Result<(), Invalid> {
        let Some(trace) = self.traces.get_mut(slot) else { return Ok(()) };
        if trace.group != accessor.group || trace.epoch != accessor.epoch {
            (trace.items, trace.group, trace.epoch) = (AccessState::NONE, accessor.group, accessor.epoch);
        }
        if trace.items.add(accessor.item, what) && trace.groups.add(accessor.group, what) {
            Ok(())
        } else {
            Err(Invalid::Race)
        }
    }
}
