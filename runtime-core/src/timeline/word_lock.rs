//! A mutex padded to one word, held during a submission. Rust orders the fields of a structure by alignment, so a
//! padded lock comes before the data it protects, in the cache line that every launch reads. `parking_lot`'s one-byte
//! lock would come after the data.

#![allow(unsafe_code, reason = "a lock's unsafe trait")]

use std::cell::Cell;

use parking_lot::lock_api::{GuardNoSend, Mutex, RawMutex};

thread_local! {
    /// Whether this thread runs code of the program with locks held.
    static IN_FOREIGN_WORK: Cell<bool> = const { Cell::new(false) };
}

/// Runs code of the program while this thread holds locks: where it would wait for one, it unwinds instead of waiting for ever.
pub(crate) fn holding_locks<T>(run: impl FnOnce() -> T) -> T {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            IN_FOREIGN_WORK.set(false);
        }
    }
    IN_FOREIGN_WORK.set(true);
    let _reset = Reset;
    run()
}

/// Protects a value by a [`RawWordLock`].
pub(crate) type WordLock<T> = Mutex<RawWordLock, T>;

/// The lock alone.
#[repr(align(8))]
pub(crate) struct RawWordLock(parking_lot::RawMutex);

impl RawWordLock {
    #[cold]
    fn lock_contended(&self) {
        if IN_FOREIGN_WORK.get() {
            // Caught by `Queue::native`, which returns it as an error; no panic that anybody should see.
            std::panic::resume_unwind(Box::new(
                "it uses a queue or tensor that its own submission locks; prepare everything before it",
            ));
        }
        self.0.lock();
    }
}

// SAFETY: it is parking_lot's lock, and nothing else.
unsafe impl RawMutex for RawWordLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait wants a constant")]
    const INIT: Self = Self(parking_lot::RawMutex::INIT);
    type GuardMarker = GuardNoSend;

    #[inline]
    fn lock(&self) {
        if !self.0.try_lock() {
            self.lock_contended();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: the caller's promise: this thread holds it.
        unsafe { self.0.unlock() };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}
