//! The overloads of a kernel: found by the types of the arguments, compiled once, and bounded in number.

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHasher;

use crate::dispatch::Variant;
use crate::dispatch::arg_type::ArgType;
use crate::dispatch::prepared::Prepared;
use crate::model::code_load::CodeLoad;
use crate::timeline::open_device::OpenDevice;
use crate::{Error, ErrorKind, Queue, Result};

/// An overload of a kernel: the code for one combination of argument types on one device.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Overload {
    /// The entry point.
    pub kernel: String,
    /// The device string.
    pub device: String,
    /// The types of the arguments.
    pub types: Vec<ArgType>,
    /// The constants that [`Dispatcher::constant`](crate::dispatch::Dispatcher::constant) set.
    pub constants: Vec<(String, String)>,
    /// Where its code came from, and how long each stage took; `None` if it could not be loaded.
    pub load: Option<CodeLoad>,
    /// Why it cannot be called, if it cannot.
    pub error: Option<Error>,
}

impl fmt::Display for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types: Vec<_> = self.types.iter().map(ToString::to_string).collect();
        write!(f, "{}({}) on {}", self.kernel, types.join(", "), self.device)
    }
}

/// An overload that is being compiled, or was.
#[derive(Debug)]
pub(super) struct Slot {
    overload: Overload,
    /// Keeps the address of the device, which is a part of the key, from being used again.
    device: Weak<OpenDevice>,
    /// Keeps the variant's number for the same constants.
    _variant: Arc<Variant>,
    /// Held while it is compiled. Others wait for it.
    compiling: Mutex<()>,
    /// The result, which is kept also if it is an error that another attempt would repeat.
    outcome: OnceLock<Result<Prepared>>,
    /// The number of misses when it was last used.
    last_used: AtomicU64,
}

impl Slot {
    pub(super) fn new(overload: Overload, device: &OpenDevice, variant: Arc<Variant>) -> Self {
        Self {
            overload,
            device: device.weak(),
            _variant: variant,
            compiling: Mutex::default(),
            outcome: OnceLock::new(),
            last_used: AtomicU64::new(0),
        }
    }

    /// The result, if it is known.
    #[inline]
    pub(super) fn outcome(&self) -> Option<&Result<Prepared>> {
        self.outcome.get()
    }

    /// Whether it can be called as it is: its result is known, and its queue has not failed if that is to be used.
    #[inline]
    pub(super) fn is_usable(&self, queue: Option<&Queue>) -> bool {
        match self.outcome.get() {
            Some(Ok(prepared)) => queue.is_some() || prepared.queue.timeline.check_healthy().is_ok(),
            outcome => outcome.is_some(),
        }
    }

    /// The overload as it stands; `None` while it is being compiled.
    fn describe(&self) -> Option<Overload> {
        let (load, error) = match self.outcome.get()? {
            Ok(prepared) => (Some(prepared.load.clone()), None),
            Err(error) => (None, Some(error.clone())),
        };
        Some(Overload { load, error, ..self.overload.clone() })
    }
}

type Slots = HashMap<Box<[u64]>, Arc<Slot>, BuildHasherDefault<FxHasher>>;

/// The overloads by the words that identify them.
#[derive(Debug)]
pub(super) struct Overloads {
    slots: RwLock<Slots>,
    misses: AtomicU64,
    limit: usize,
}

impl Overloads {
    pub(super) fn new(limit: usize) -> Self {
        Self { slots: RwLock::default(), misses: AtomicU64::new(0), limit: limit.max(1) }
    }

    /// The overload for `words`.
    #[inline]
    pub(super) fn find(&self, words: &[u64]) -> Option<Arc<Slot>> {
        let slots = self.slots.read();
        let slot = slots.get(words)?;
        // Only its order among the misses matters, since only a miss drops an overload.
        slot.last_used.store(self.misses.load(Ordering::Relaxed), Ordering::Relaxed);
        Some(slot.clone())
    }

    /// The overload for `words`, or `new` in its place.
    pub(super) fn insert(&self, words: &[u64], new: Slot) -> Arc<Slot> {
        let now = self.misses.load(Ordering::Relaxed);
        new.last_used.store(now, Ordering::Relaxed);
        let mut slots = self.slots.write();
        let slot = slots.entry(words.into()).or_insert_with(|| Arc::new(new)).clone();
        let dropped = if slots.len() > self.limit { drop_oldest(&mut slots, words) } else { None };
        drop(slots);
        // Dropping a kernel calls the backend.
        drop(dropped);
        slot
    }

    /// Compiles the overload, unless another thread has done so or is about to, in which case this waits for it. Returns the
    /// overload if this call has compiled it.
    ///
    /// # Errors
    /// The error of `compile`.
    pub(super) fn compile(
        &self,
        words: &[u64],
        slot: &Arc<Slot>,
        compile: impl FnOnce() -> Result<Prepared>,
    ) -> Result<Option<Overload>> {
        let compiling = slot.compiling.lock();
        if slot.outcome.get().is_some() {
            return Ok(None);
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let outcome = compile();
        if let Err(error) = &outcome
            && !is_lasting(error.kind())
        {
            drop(compiling);
            self.remove(words, slot);
            return Err(error.clone());
        }
        let _ = slot.outcome.set(outcome);
        Ok(slot.describe())
    }

    /// Removes an overload, if it has not been replaced.
    pub(super) fn remove(&self, words: &[u64], slot: &Arc<Slot>) {
        let mut slots = self.slots.write();
        let is_same = slots.get(words).is_some_and(|found| Arc::ptr_eq(found, slot));
        let removed = if is_same { slots.remove(words) } else { None };
        drop(slots);
        drop(removed);
    }

    /// Removes all overloads.
    pub(super) fn clear(&self) {
        let cleared = std::mem::take(&mut *self.slots.write());
        drop(cleared);
    }

    /// The overloads that are not being compiled.
    pub(super) fn list(&self) -> Vec<Overload> {
        let slots: Vec<_> = self.slots.read().values().cloned().collect();
        slots.iter().filter_map(|slot| slot.describe()).collect()
    }

    pub(super) fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }
}

/// Removes the overload that was not used for the longest time, an overload of a closed device first, and never `kept`.
fn drop_oldest(slots: &mut Slots, kept: &[u64]) -> Option<Arc<Slot>> {
    let age = |slot: &Slot| {
        let is_open = slot.device.strong_count() > 0;
        (is_open, slot.last_used.load(Ordering::Relaxed))
    };
    let others = slots.iter().filter(|(words, _)| ***words != *kept);
    let oldest = others.min_by_key(|(_, slot)| age(slot)).map(|(words, _)| words.clone())?;
    slots.remove(&oldest)
}

/// Whether another attempt would end in the same error.
const fn is_lasting(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::InvalidArgument | ErrorKind::CompileFailed | ErrorKind::Unsupported | ErrorKind::NotFound
    )
}
