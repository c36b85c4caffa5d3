//! Holds a queue: work submitted meanwhile starts when the hold ends. Waiting for the queue ends the hold, so that nothing
//! waits for work that cannot start.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::sync::atomic::Ordering;

use super::Timeline;
use crate::{Error, Result};

impl Timeline {
    /// Holds the queue until [`Timeline::resume`].
    ///
    /// # Errors
    /// `InvalidArgument` if it is held already; `Unsupported`; any error of the driver.
    pub(crate) fn hold(&self) -> Result<()> {
        let _submission = self.submission.lock();
        self.check_healthy()?;
        if self.is_held.load(Ordering::Acquire) {
            return Err(Error::invalid("the queue is already held; resume it first"));
        }
        // A later signal would wait for the end of the hold, and so hide the end of earlier work.
        self.signal_last()?;
        // SAFETY: the queue is open, and its lock is held.
        self.raw("hold", |calls, queue| unsafe { (calls.hold)(queue) })?;
        self.is_held.store(true, Ordering::Release);
        Ok(())
    }

    /// Ends a hold, if there is one; returns whether the queue was held until now. The device must be open. Takes no lock: a
    /// submission may block in the driver because the queue is held.
    ///
    /// # Errors
    /// Any error of the driver.
    #[inline]
    pub(crate) fn resume(&self) -> Result<bool> {
        if self.is_held.load(Ordering::Acquire) { self.resume_held() } else { Ok(false) }
    }

    #[cold]
    fn resume_held(&self) -> Result<bool> {
        let mut lasted = 0;
        // SAFETY: the queue is open and the out-parameter is writable.
        self.raw("resume", |calls, queue| unsafe { (calls.resume)(queue, &raw mut lasted) })?;
        Ok(self.is_held.swap(false, Ordering::AcqRel) && lasted == 1)
    }
}
