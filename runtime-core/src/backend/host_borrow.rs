//! Guards the host memory that transfers borrow: nothing may access it after the device is reported lost, because the program may
//! then reuse it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Counts running accesses to borrowed host memory, and denies new ones after [`revoke`](Self::revoke).
#[derive(Debug, Default)]
pub struct HostBorrowGuard {
    revoked: AtomicBool,
    active: AtomicUsize,
}

impl HostBorrowGuard {
    /// Runs `access`, unless the memory is revoked and may have been reclaimed; returns whether it ran.
    #[must_use]
    pub fn access(&self, access: impl FnOnce()) -> bool {
        self.active.fetch_add(1, Ordering::SeqCst);
        let allowed = !self.revoked.load(Ordering::SeqCst);
        if allowed {
            access();
        }
        self.active.fetch_sub(1, Ordering::SeqCst);
        allowed
    }

    /// Denies new accesses, and returns once running ones have finished.
    pub fn revoke(&self) {
        self.revoked.store(true, Ordering::SeqCst);
        while self.active.load(Ordering::SeqCst) != 0 {
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_access_after_revocation() {
        let guard = HostBorrowGuard::default();
        let mut accesses = 0;
        assert!(guard.access(|| accesses += 1));
        guard.revoke();
        assert!(!guard.access(|| accesses += 1));
        assert_eq!(accesses, 1);
    }
}
