//! Borrowed memory of the program, which must not be touched once the device is known to be lost.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Who touches borrowed memory, and whether anybody may.
#[derive(Debug, Default)]
pub(crate) struct Lending {
    ended: AtomicBool,
    copying: AtomicUsize,
}

impl Lending {
    /// Runs `copy`, which touches borrowed memory, unless lending has ended: then its owner may have taken it back.
    pub(crate) fn copy(&self, copy: impl FnOnce()) -> bool {
        self.copying.fetch_add(1, Ordering::SeqCst);
        let allowed = !self.ended.load(Ordering::SeqCst);
        if allowed {
            copy();
        }
        self.copying.fetch_sub(1, Ordering::SeqCst);
        allowed
    }

    /// Ends all lending: returns when nobody touches borrowed memory any more.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        while self.copying.load(Ordering::SeqCst) != 0 {
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_touched_after_the_end() {
        let lending = Lending::default();
        let mut copies = 0;
        assert!(lending.copy(|| copies += 1));
        lending.end();
        assert!(!lending.copy(|| copies += 1));
        assert_eq!(copies, 1);
    }
}
