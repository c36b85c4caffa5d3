//! What the contexts of a device share: what CUPTI reports about the GPU, and that only one set counts at a time.

use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use once_cell::sync::OnceCell;
use runtime_core::Result;

use crate::context::PrimaryContext;

use super::layouts::{self, Params};
use super::{Cupti, call, text, unavailable};

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
    /// What CUPTI reports about the GPU. It is asked once, because it refuses while a set counts; the lock ensures that no
    /// set does before that.
    ///
    /// # Errors
    /// The library's error, e.g. without the permission to read counters.
    pub(crate) fn gpu(&self, cupti: &Cupti, device: &PrimaryContext) -> Result<Arc<Gpu>> {
        let gpu = self.gpu.get_or_try_init(|| {
            let availability = availability(cupti, device)?;
            Ok(Arc::new(Gpu { chip_name: chip_name(cupti, device)?, availability }))
        });
        gpu.map(Arc::clone)
    }

    /// Marks the device as counting, until [`end`](Self::end).
    ///
    /// # Errors
    /// `Unavailable` if it is marked.
    pub(crate) fn begin(&self) -> Result<()> {
        if self.is_counting.swap(true, Ordering::Acquire) {
            let message = "another set of counters is in its passes on this device; end or drop it first";
            return Err(unavailable(message.to_owned()));
        }
        Ok(())
    }

    pub(crate) fn end(&self) {
        self.is_counting.store(false, Ordering::Release);
    }
}

fn chip_name(cupti: &Cupti, device: &PrimaryContext) -> Result<CString> {
    let mut params = layouts::GetChipName::new();
    params.device_index = usize::try_from(device.ordinal).unwrap_or_default();
    call!(cupti, cuptiDeviceGetChipName, params)?;
    Ok(CString::new(text(params.chip_name)).unwrap_or_default())
}

fn availability(cupti: &Cupti, device: &PrimaryContext) -> Result<Vec<u8>> {
    let mut params = layouts::GetCounterAvailability::new();
    params.context = device.context.0.cast();
    call!(cupti, cuptiProfilerGetCounterAvailability, params)?;
    let mut image = vec![0; params.image_bytes];
    params.image = image.as_mut_ptr();
    call!(cupti, cuptiProfilerGetCounterAvailability, params)?;
    image.truncate(params.image_bytes);
    Ok(image)
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
