//! A device that kernels are evaluated on.

use std::sync::Arc;

use runtime_core::{CommonRuntime, DeviceInfo, ErrorKind, Options, Result, Runtime};
use serde_json::Value;

use crate::describe;
use crate::device_lock::{DeviceLock, lock_key};
use crate::spec::Spec;

/// A device to evaluate kernels on, or the reason why it cannot be used.
#[derive(Debug)]
pub struct DeviceUnderTest {
    /// The device string.
    pub name: String,
    /// Its description, if it exists.
    pub info: Option<DeviceInfo>,
    /// The opened device, or why it cannot be used.
    pub opened: Result<Arc<dyn CommonRuntime>>,
    /// Whether kernels are timed while other processes time theirs, without the device's [lock](crate::device_lock).
    pub share: bool,
}

impl DeviceUnderTest {
    /// Opens the device `name`. If it cannot be opened, every evaluation on it gives a row with the reason.
    #[must_use]
    pub fn open(runtime: &Runtime, name: &str, options: &Options) -> Self {
        let opened = runtime.open_with(name, options);
        match &opened {
            Ok(device) => {
                let name = device.device_id().to_string();
                Self { name, info: Some(device.info().clone()), opened, share: false }
            }
            Err(error) => {
                // A name that is wrong starts no other driver.
                let is_known = !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument);
                let mut known = if is_known { runtime.devices() } else { Vec::new() }.into_iter();
                let info = known.find(|info| info.id.to_string() == name);
                Self { name: name.to_owned(), info, opened, share: false }
            }
        }
    }

    /// Whether it is open and accepts the code of `spec`.
    #[must_use]
    pub fn accepts(&self, spec: &Spec) -> bool {
        let takes = |info: &DeviceInfo| info.accepts(&spec.kernel.format);
        self.opened.is_ok() && self.info.as_ref().is_some_and(takes)
    }

    /// Waits until no other process times kernels on it. Calls `on_wait` with what it waits for.
    ///
    /// `None` if the device is shared, or has no lock.
    pub(crate) fn lock(&self, on_wait: &mut dyn FnMut(&str)) -> Option<DeviceLock> {
        let key = self.info.as_ref().filter(|_| !self.share).and_then(lock_key)?;
        Some(DeviceLock::acquire(&key, &mut |holder| {
            on_wait(&format!("while {} is in use by {holder}", self.name));
        }))
    }

    /// Its description as in reports.
    pub(crate) fn describe(&self) -> Option<Value> {
        self.info.as_ref().map(describe::device)
    }
}
