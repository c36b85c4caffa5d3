//! Opened chips, shared by a device and its sub-devices, and the shims of each SDK.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use runtime_core::backend::{Level, Log};
use runtime_core::{Error, Result};

use super::shim::compile_folder;
use super::simulator::{Simulator, SimulatorPlan};
use super::{Chip, LoadedModules, Shim};
use crate::config::Platform;

/// A chip, and how it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) platform: Platform,
    /// Its position in the library's list.
    pub(crate) position: u32,
    /// As the library takes it.
    pub(crate) firmware: String,
    /// `None` for a board.
    pub(crate) simulator: Option<SimulatorPlan>,
}

impl Wanted {
    /// Its name in messages.
    fn name(&self) -> String {
        match self.platform {
            Platform::Hardware => format!("chip {}", self.position),
            simulator => format!("the simulator ({})", simulator.name()),
        }
    }
}

/// A chip with its modules.
#[derive(Debug)]
pub(crate) struct OpenChip {
    pub(super) modules: LoadedModules,
    pub(super) chip: Arc<Chip>,
    opened: Wanted,
}

/// Where a chip is, while it is open.
type Place = Arc<Mutex<Weak<OpenChip>>>;

/// What is opened in this process. Different chips are opened side by side, a chip by one thread at a time.
#[derive(Debug, Default)]
pub(crate) struct OpenChips {
    shims: Mutex<BTreeMap<PathBuf, Arc<Shim>>>,
    chips: Mutex<BTreeMap<(Platform, u32), Place>>,
}

impl OpenChips {
    /// A chip, opened unless it is open already.
    ///
    /// # Errors
    /// `Unavailable` without the SDK; `InvalidArgument` if it is open in another way; as [`Shim::build`], [`Shim::open`] and
    /// [`Simulator::start`].
    ///
    /// # Safety
    /// As for [`Shim::build`].
    #[allow(unsafe_code, reason = "the caller vouches for the SDK")]
    pub(crate) unsafe fn open(&self, sdk: &Path, wanted: Wanted, log: Log) -> Result<Arc<OpenChip>> {
        let place = Arc::clone(self.chips.lock().entry((wanted.platform, wanted.position)).or_default());
        let mut place = place.lock();
        let (name, firmware) = (wanted.name(), &wanted.firmware);
        if let Some(open) = place.upgrade() {
            open.chip.check_running()?;
            return if open.opened == wanted {
                Ok(open)
            } else {
                Err(opened_otherwise(&open.opened, &wanted))
            };
        }
        // SAFETY: as the caller's.
        let shim = unsafe { self.shim(sdk) }?;
        log.write(
            Level::Info,
            "mppa",
            &format!("opening {name} with firmware {firmware}; this takes several seconds"),
        );
        let simulator = wanted.simulator.as_ref().map(|plan| Simulator::start(plan, log)).transpose()?;
        let chip = shim.open_on(wanted.position, firmware, simulator)?;
        let open = Arc::new(OpenChip { modules: LoadedModules::new(&chip), chip, opened: wanted });
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

fn opened_otherwise(open: &Wanted, wanted: &Wanted) -> Error {
    let name = open.name();
    Error::invalid(if open.firmware == wanted.firmware {
        format!("{name} is open with other options; close it before it is opened with these")
    } else {
        format!(
            "{name} is open with firmware \"{}\"; close it before it is opened with \"{}\"",
            open.firmware, wanted.firmware
        )
    })
}
