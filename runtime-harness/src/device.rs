//! A device that kernels are evaluated on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use runtime_core::backend::LoadOutcome;
use runtime_core::{CodeFormat, CommonRuntime, DeviceInfo, DeviceKind, ErrorKind, Options, Result, Runtime};
use serde_json::Value;

use crate::candidate::Requirement;
use crate::describe;
use crate::device_lock::{DeviceLock, lock_key};
use crate::heartbeat::Heartbeat;
use crate::job::code_sha256;
use crate::peak::PeakStore;
use crate::spec::Spec;
use crate::traces::TraceFolders;

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
    /// For runners of native code; `None` if that runs in this process.
    pub(crate) runner: Option<RunnerSetup>,
    /// Told that an evaluation goes on, if somebody limits how long it may take.
    pub(crate) heartbeat: Option<Arc<Heartbeat>>,
    /// Where it leaves traces.
    pub(crate) traces: TraceFolders,
    /// The peaks that its rows are compared with.
    pub(crate) peaks: PeakStore,
}

/// What runners need of the process that judges them.
#[derive(Clone, Debug)]
pub(crate) struct RunnerSetup {
    /// For references.
    pub(crate) runtime: Runtime,
    /// The library of the host's backend.
    pub(crate) backend: PathBuf,
    /// Whether a kernel is refused that cannot have inputs that it has never seen.
    pub(crate) needs_fresh_inputs: bool,
    /// Whether native code is refused that cannot run in a runner.
    pub(crate) needs_sandbox: bool,
}

impl RunnerSetup {
    /// The setup of a runtime; `None` if its host backend is linked in.
    pub(crate) fn of(runtime: &Runtime, needs_fresh_inputs: bool) -> Option<Self> {
        let loaded = runtime.load_report().iter().filter(|line| line.outcome == LoadOutcome::Loaded);
        let mut host = loaded.filter(|line| line.target.as_deref() == Some("host"));
        let backend = host.next().map(|line| line.path.clone()).filter(|path| path.is_file())?;
        Some(Self { runtime: runtime.clone(), backend, needs_fresh_inputs, needs_sandbox: false })
    }

    /// The setup for a candidate that requires this.
    pub(crate) fn requiring(&self, required: &[Requirement]) -> Self {
        Self {
            needs_fresh_inputs: self.needs_fresh_inputs || required.contains(&Requirement::Fresh),
            needs_sandbox: required.contains(&Requirement::Sandbox),
            ..self.clone()
        }
    }
}

impl DeviceUnderTest {
    /// Opens the device `name`. If it cannot be opened, every evaluation on it gives a row with the reason.
    #[must_use]
    pub fn open(runtime: &Runtime, name: &str, options: &Options) -> Self {
        Self::of(runtime, name, options, runtime.open_with(name, options))
    }

    /// As [`DeviceUnderTest::open`], also with options that name code.
    ///
    /// # Safety
    /// As for [`Runtime::open_with_code`].
    #[must_use]
    #[allow(unsafe_code, reason = "the caller is responsible for the code that options name")]
    pub unsafe fn open_with_code(runtime: &Runtime, name: &str, options: &Options) -> Self {
        // SAFETY: guaranteed by the caller.
        let opened = unsafe { runtime.open_with_code(name, options) };
        Self::of(runtime, name, options, opened)
    }

    fn of(runtime: &Runtime, name: &str, options: &Options, opened: Result<Arc<dyn CommonRuntime>>) -> Self {
        match &opened {
            Ok(device) => {
                let name = device.device_id().to_string();
                let info = Some(device.info().clone());
                let traces = TraceFolders::of(device.info(), options);
                Self {
                    name,
                    info,
                    opened,
                    share: false,
                    runner: None,
                    heartbeat: None,
                    traces,
                    peaks: PeakStore::of_user(),
                }
            }
            Err(error) => {
                // A name that is wrong starts no other driver.
                let is_known = !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument);
                let mut known = if is_known { runtime.devices() } else { Vec::new() }.into_iter();
                let info = known.find(|info| info.id.to_string() == name);
                Self {
                    name: name.to_owned(),
                    info,
                    opened,
                    share: false,
                    runner: None,
                    heartbeat: None,
                    traces: TraceFolders::default(),
                    peaks: PeakStore::of_user(),
                }
            }
        }
    }

    /// Whether it is open and accepts the code of `spec`; a package may have code for every device, and portable code is
    /// flashed as well.
    #[must_use]
    pub fn accepts(&self, spec: &Spec) -> bool {
        let format = &spec.kernel.format;
        // Portable code is flashed as C.
        let is_flashed = |info: &DeviceInfo| {
            info.kind == DeviceKind::Embedded && *format == CodeFormat::WGSL && info.accepts(&CodeFormat::C)
        };
        let takes = |info: &DeviceInfo| spec.kernel.is_package() || info.accepts(format) || is_flashed(info);
        self.opened.is_ok() && self.info.as_ref().is_some_and(takes)
    }

    /// The hash of the code of `spec` that it loads, if it does.
    pub(crate) fn code_sha256(&self, spec: &Spec) -> Option<String> {
        let opened = self.opened.as_ref().ok().filter(|_| self.accepts(spec))?;
        code_sha256(spec, &**opened)
    }

    /// Waits until no other process times kernels on it. Calls `on_wait` with what it waits for.
    ///
    /// There is no lock if the device is shared, or has none.
    #[must_use = "the device is locked until the result is dropped"]
    pub fn lock(&self, on_wait: &mut dyn FnMut(&str)) -> Vec<DeviceLock> {
        Self::lock_all([self], on_wait)
    }

    /// Waits until no other process times kernels on any of the devices. Several of them may be one chip.
    pub(crate) fn lock_all<'a>(
        devices: impl IntoIterator<Item = &'a Self>,
        on_wait: &mut dyn FnMut(&str),
    ) -> Vec<DeviceLock> {
        let keys = devices.into_iter().filter(|device| !device.share);
        let keys = keys.filter_map(|device| Some((lock_key(device.info.as_ref()?)?, &device.name)));
        // Every process takes them in the same order, so that no two wait for each other.
        let keys: BTreeMap<String, &String> = keys.collect();
        let locks = keys.into_iter().map(|(key, name)| {
            DeviceLock::acquire(&key, &mut |holder| on_wait(&format!("while {name} is in use by {holder}")))
        });
        locks.collect()
    }

    /// Its description as in reports.
    pub(crate) fn describe(&self) -> Option<Value> {
        self.info.as_ref().map(describe::device)
    }
}

#[cfg(test)]
mod tests {
    use runtime_core::Error;

    use super::*;

    fn device(name: &str, uuid: u8, share: bool) -> DeviceUnderTest {
        let mut info = DeviceInfo::new(DeviceKind::Accelerator, 0, name);
        info.uuid = Some([uuid; 16]);
        let opened = Err(Error::new(ErrorKind::Unavailable, "not opened"));
        let traces = TraceFolders::default();
        let peaks = PeakStore::of_user();
        DeviceUnderTest {
            name: name.to_owned(),
            info: Some(info),
            opened,
            share,
            runner: None,
            heartbeat: None,
            traces,
            peaks,
        }
    }

    #[test]
    fn devices_of_one_chip_are_locked_once() {
        let devices =
            [device("cuda:0", 251, false), device("opencl:0", 251, false), device("cuda:1", 252, false)];
        let locks = DeviceUnderTest::lock_all(&devices, &mut |operation| panic!("waits {operation}"));
        assert_eq!(locks.len(), 2);
        drop(locks);
        assert!(device("cuda:0", 251, true).lock(&mut |_| {}).is_empty());
    }
}
