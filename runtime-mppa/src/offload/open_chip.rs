//! Opened chips, shared by a device and its sub-devices, and the shims of each SDK.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use runtime_core::backend::{Level, Log};
use runtime_core::{Error, Result};

use super::shim::compile_folder;
use super::{Chip, LoadedModules, Shim};

/// A chip with its modules.
#[derive(Debug)]
pub(crate) struct OpenChip {
    pub(super) modules: LoadedModules,
    pub(super) chip: Arc<Chip>,
    firmware: String,
}

/// What is opened in this process. Different chips are opened side by side, a chip by one thread at a time.
#[derive(Debug, Default)]
pub(crate) struct OpenChips {
    shims: Mutex<BTreeMap<PathBuf, Arc<Shim>>>,
    chips: Mutex<BTreeMap<u32, Arc<Mutex<Weak<OpenChip>>>>>,
}

impl OpenChips {
    /// The chip at a position of the list, opened unless it is open already.
    ///
    /// # Errors
    /// `Unavailable` without the SDK; `InvalidArgument` if it is open with another firmware; as [`Shim::build`] and [`Shim::open`].
    ///
    /// # Safety
    /// As for [`Shim::build`].
    #[allow(unsafe_code, reason = "the caller vouches for the SDK")]
    pub(crate) unsafe fn open(
        &self,
        sdk: &Path,
        position: u32,
        firmware: &str,
        log: Log,
    ) -> Result<Arc<OpenChip>> {
        let place = Arc::clone(self.chips.lock().entry(position).or_default());
        let mut place = place.lock();
        if let Some(open) = place.upgrade() {
            return match open.firmware == firmware {
                true => Ok(open),
                false => Err(Error::invalid(format!(
                    "chip {position} is open with firmware \"{}\"; close it before it is opened with \"{firmware}\"",
                    open.firmware
                ))),
            };
        }
        // SAFETY: as the caller's.
        let shim = unsafe { self.shim(sdk) }?;
        log.write(
            Level::Info,
            "mppa",
            &format!("opening chip {position} with firmware {firmware}; this takes several seconds"),
        );
        let chip = shim.open(position, firmware)?;
        let open =
            Arc::new(OpenChip { modules: LoadedModules::new(&chip), chip, firmware: firmware.to_owned() });
        *place = Arc::downgrade(&open);
        Ok(open)
    }

    /// The shim of an SDK, compiled once.
    #[allow(unsafe_code, reason = "the caller vouches for the SDK")]
    unsafe fn shim(&self, sdk: &Path) -> Result<Arc<Shim>> {
        let mut shims = self.shims.lock();
        if let Some(shim) = shims.get(sdk) {
            return Ok(Arc::clone(shim));
        }
        let folder = compile_folder()?;
        // SAFETY: as the caller's.
        let shim = unsafe { Shim::build(sdk, folder.path()) }?;
        shims.insert(sdk.to_owned(), Arc::clone(&shim));
        Ok(shim)
    }
}
