//! Timeline semaphores, signaled by the device or the host.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ash::vk;
use runtime_core::Result;

use super::LogicalDevice;

/// Sleep between polls under the validation layer.
const VALIDATED_POLL_INTERVAL: Duration = Duration::from_micros(50);

/// A timeline semaphore: a counter that only grows.
#[derive(Debug)]
pub(crate) struct Semaphore {
    pub(super) logical: Arc<LogicalDevice>,
    pub(super) handle: vk::Semaphore,
}

impl Semaphore {
    /// Creates a semaphore with value 0.
    ///
    /// # Errors
    /// The driver's error.
    pub(crate) fn new(logical: &Arc<LogicalDevice>) -> Result<Self> {
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the device is open.
        let created = unsafe { logical.handle.create_semaphore(&info, None) };
        let handle = logical.check("vkCreateSemaphore", created)?;
        Ok(Self { logical: Arc::clone(logical), handle })
    }

    /// Its value.
    ///
    /// # Errors
    /// `DeviceLost`.
    #[inline]
    pub(crate) fn value(&self) -> Result<u64> {
        let _polling = self.logical.lock_polling();
        self.logical.check_alive()?;
        // SAFETY: the semaphore is alive.
        let value = unsafe { self.logical.handle.get_semaphore_counter_value(self.handle) };
        let value = self.logical.check("vkGetSemaphoreCounterValue", value)?;
        if value < u64::MAX {
            return Ok(value);
        }
        // On a lost device, some drivers report only this value and no error.
        Err(self.logical.fail("vkGetSemaphoreCounterValue", vk::Result::ERROR_DEVICE_LOST))
    }

    /// Waits until it reaches `value`, or until `slice` has passed; returns whether it did.
    ///
    /// # Errors
    /// `DeviceLost`.
    pub(crate) fn wait(&self, value: u64, slice: Duration) -> Result<bool> {
        if self.logical.instance.messenger.is_some() {
            return self.wait_by_polling(value, slice);
        }
        self.logical.check_alive()?;
        let (semaphores, values) = ([self.handle], [value]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        let slice_ns = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: the semaphore is alive.
        match unsafe { self.logical.handle.wait_semaphores(&info, slice_ns) } {
            Ok(()) => Ok(true),
            Err(vk::Result::TIMEOUT) => Ok(false),
            Err(code) => Err(self.logical.fail("vkWaitSemaphores", code)),
        }
    }

    /// Polls, so that other threads can poll meanwhile.
    fn wait_by_polling(&self, value: u64, slice: Duration) -> Result<bool> {
        let begin = Instant::now();
        while self.value()? < value {
            let left = slice.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(left.min(VALIDATED_POLL_INTERVAL));
        }
        Ok(true)
    }

    /// Sets it to `value`, which must be greater than its value and less than any that the device will signal.
    ///
    /// # Errors
    /// `DeviceLost`.
    pub(crate) fn signal(&self, value: u64) -> Result<()> {
        self.logical.check_alive()?;
        let info = vk::SemaphoreSignalInfo::default().semaphore(self.handle).value(value);
        // SAFETY: the semaphore is alive.
        let signaled = unsafe { self.logical.handle.signal_semaphore(&info) };
        self.logical.check("vkSignalSemaphore", signaled)
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        self.logical.retire(self.handle);
    }
}
