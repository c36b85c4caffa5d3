//! What the contexts of a device share about its counters: what CUPTI reports about the GPU, and that only one set counts at a time.

use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use once_cell::sync::OnceCell;
use runtime_core::{Error, ErrorKind, Result};

/// What CUPTI reports about a GPU.
#[derive(Debug)]
pub(crate) struct Gpu {
    pub(crate) chip_name: CString,
    /// Which counters this process may use.
    pub(crate) availability: Vec<u8>,
}

/// Part of the state of a context.
#[derive(Debug, Default)]
pub(crate) struct CounterState {
    gpu: OnceCell<Arc<Gpu>>,
    is_counting: AtomicBool,
}

impl CounterState {
    /// What CUPTI reports about the GPU, by `ask`. It is asked once, because it refuses while a set counts; the lock ensures that
    /// no set does before that.
    ///
    /// # Errors
    /// Those of `ask`.
    pub(crate) fn gpu(&self, ask: impl FnOnce() -> Result<Gpu>) -> Result<Arc<Gpu>> {
        self.gpu.get_or_try_init(|| ask().map(Arc::new)).map(Arc::clone)
    }

    /// Marks the device as counting, until [`end`](Self::end).
    ///
    /// # Errors
    /// `Unavailable` if it is marked.
    pub(crate) fn begin(&self) -> Result<()> {
        if self.is_counting.swap(true, Ordering::Acquire) {
            let message = "another set of counters is in its passes on this device; end or drop it first";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        Ok(())
    }

    pub(crate) fn end(&self) {
        self.is_counting.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_set_counts_at_a_time() {
        let state = CounterState::default();
        state.begin().unwrap();
        assert!(state.begin().unwrap_err().message().contains("another set of counters"));
        state.end();
        state.begin().unwrap();
    }
}
