//! Timeline semaphores: a counter that the device, or the program, moves on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ash::vk;
use runtime_core::Result;

use super::Logical;

/// How long a wait sleeps at a time under the validation layer.
const VALIDATED_SLICE: Duration = Duration::from_micros(50);

/// A counter that only grows.
#[derive(Debug)]
pub(crate) struct Semaphore {
    pub(super) logical: Arc<Logical>,
    pub(super) handle: vk::Semaphore,
}

impl Semaphore {
    /// Makes a counter that stands at 0.
    ///
    /// # Errors
    /// Whatever the driver says.
    pub(crate) fn new(logical: &Arc<Logical>) -> Result<Self> {
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the device is open.
        let made = unsafe { logical.handle.create_semaphore(&info, None) };
        let handle = logical.check("vkCreateSemaphore", made)?;
        Ok(Self { logical: Arc::clone(logical), handle })
    }

    /// Where it stands.
    ///
    /// # Errors
    /// `DeviceLost`.
    #[inline]
    pub(crate) fn value(&self) -> Result<u64> {
        let _one = self.logical.look();
        self.logical.check_alive()?;
        // SAFETY: the semaphore is alive.
        let value = unsafe { self.logical.handle.get_semaphore_counter_value(self.handle) };
        let value = self.logical.check("vkGetSemaphoreCounterValue", value)?;
        if value < u64::MAX {
            return Ok(value);
        }
        // Some drivers answer so when the device is lost, and say it in no other way.
        Err(self.logical.fail("vkGetSemaphoreCounterValue", vk::Result::ERROR_DEVICE_LOST))
    }

    /// Waits until it stands at `value`, or until `slice` has passed; says which.
    ///
    /// # Errors
    /// `DeviceLost`.
    pub(crate) fn wait(&self, value: u64, slice: Duration) -> Result<bool> {
        if self.logical.instance.messenger.is_some() {
            return self.wait_validated(value, slice);
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

    /// Only looks, again and again: others must be able to look meanwhile.
    fn wait_validated(&self, value: u64, slice: Duration) -> Result<bool> {
        let begin = Instant::now();
        while self.value()? < value {
            let left = slice.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(left.min(VALIDATED_SLICE));
        }
        Ok(true)
    }

    /// Moves it on to `value`, which lies beyond where it stands and before whatever the device will move it to.
    ///
    /// # Errors
    /// `DeviceLost`.
    pub(crate) fn signal(&self, value: u64) -> Result<()> {
        self.logical.check_alive()?;
        let info = vk::SemaphoreSignalInfo::default().semaphore(self.handle).value(value);
        // SAFETY: the semaphore is alive.
        let signalled = unsafe { self.logical.handle.signal_semaphore(&info) };
        self.logical.check("vkSignalSemaphore", signalled)
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        self.logical.retire(self.handle);
    }
}
