//! Opened chips, shared by a device and its sub-devices, and the shims of each SDK.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use runtime_core::backend::{Level, Log};
use runtime_core::{Error, ErrorKind, Result};

use super::call_timeout::Limits;
use super::call_watch::{CHECK_INTERVAL, Calls};
use super::chip::Opening;
use super::shim::{compile_folder, firmware_name};
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
    /// How to open it, with its simulator, if it has one, which is started here.
    ///
    /// # Errors
    /// As [`Simulator::start`].
    fn opening(&self, limits: Limits, calls: Arc<Calls>, log: Log) -> Result<Opening> {
        let (name, firmware) = (self.name(), &self.firmware);
        let text = format!("opening {name} with firmware {firmware}; this takes several seconds");
        log.write(Level::Info, "mppa", &text);
        let firmware = firmware_name(firmware)?;
        let simulator = self.simulator.as_ref().map(|plan| Simulator::start(plan, limits.open, log));
        let simulator = simulator.transpose()?;
        Ok(Opening { board: self.position, firmware, simulator, limits, calls })
    }

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

/// Chips by platform and position.
type Places = BTreeMap<(Platform, u32), Arc<Mutex<Place>>>;

/// A chip of this process.
#[derive(Debug, Default)]
struct Place {
    /// While it is open.
    chip: Weak<OpenChip>,
    /// Until it is closed.
    calls: Weak<Calls>,
}

impl Place {
    /// Waits until the chip is closed.
    ///
    /// # Errors
    /// `DeviceLost` if that takes longer than `limit`.
    fn wait_closed(&self, name: &str, limit: Duration) -> Result<()> {
        let checks = limit.as_millis() / CHECK_INTERVAL.as_millis();
        for _ in 0..=checks {
            match self.calls.upgrade() {
                None => return Ok(()),
                Some(calls) if calls.is_stuck() => return Err(stuck(name)),
                Some(_) => std::thread::sleep(CHECK_INTERVAL),
            }
        }
        let message = format!(
            "{name} is being closed, and a call to Kalray's library has not returned within {limit:?}: wait for its kernels, or restart \
             this process"
        );
        Err(Error::new(ErrorKind::DeviceLost, message))
    }
}

/// The chips of this process: all backends in it share Kalray's library.
pub(crate) static OPEN_CHIPS: OpenChips =
    OpenChips { shims: Mutex::new(BTreeMap::new()), chips: Mutex::new(BTreeMap::new()) };

/// Where messages go, and at which level those of compilers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BuildLog {
    pub(crate) log: Log,
    pub(crate) level: Level,
}

/// What is opened in this process. Different chips are opened side by side, a chip by one thread at a time.
#[derive(Debug)]
pub(crate) struct OpenChips {
    shims: Mutex<BTreeMap<PathBuf, Arc<Shim>>>,
    chips: Mutex<Places>,
}

impl OpenChips {
    /// A chip, opened unless it is open already.
    ///
    /// # Errors
    /// `Unavailable` without the SDK; `InvalidArgument` if it is open in another way; `DeviceLost` if it is lost, or is not closed in time; as
    /// [`Shim::build`], [`Chip::open`] and [`Simulator::start`].
    ///
    /// # Safety
    /// As for [`Shim::build`].
    #[allow(unsafe_code, reason = "the caller vouches for the SDK")]
    pub(crate) unsafe fn open(
        &self,
        sdk: &Path,
        wanted: Wanted,
        limits: Limits,
        log: BuildLog,
    ) -> Result<Arc<OpenChip>> {
        let place = Arc::clone(self.chips.lock().entry((wanted.platform, wanted.position)).or_default());
        let mut place = place.lock();
        let name = wanted.name();
        if place.calls.upgrade().is_some_and(|calls| calls.is_stuck()) {
            return Err(stuck(&name));
        }
        if let Some(open) = place.chip.upgrade() {
            open.chip.check_running().map_err(|error| still_in_use(&name, &error))?;
            return if open.opened == wanted {
                Ok(open)
            } else {
                Err(opened_otherwise(&open.opened, &wanted))
            };
        }
        place.wait_closed(&name, limits.call)?;
        // SAFETY: as the caller's.
        let shim = unsafe { self.shim(sdk, log) }?;
        let BuildLog { log, .. } = log;
        let calls = Arc::new(Calls::new(&name, wanted.simulator.is_none(), log));
        place.calls = Arc::downgrade(&calls);
        let chip = Chip::open(&shim, wanted.opening(limits, calls, log)?)?;
        let open = Arc::new(OpenChip { modules: LoadedModules::new(&chip), chip, opened: wanted });
        place.chip = Arc::downgrade(&open);
        Ok(open)
    }

    /// The shim of an SDK, compiled once.
    #[allow(unsafe_code, reason = "the caller vouches for the SDK")]
    unsafe fn shim(&self, sdk: &Path, log: BuildLog) -> Result<Arc<Shim>> {
        let mut shims = self.shims.lock();
        if let Some(shim) = shims.get(sdk) {
            return Ok(Arc::clone(shim));
        }
        let folder = compile_folder()?;
        // SAFETY: as the caller's.
        let shim = unsafe { Shim::build(sdk, folder.path()) }?;
        if !shim.output.is_empty() {
            let text = format!("the compiler of the offload library's shim printed: {}", shim.output);
            log.log.write(log.level, "mppa", &text);
        }
        shims.insert(sdk.to_owned(), Arc::clone(&shim));
        Ok(shim)
    }
}

/// The error of opening a lost chip again, while something of it is still used.
fn still_in_use(name: &str, error: &Error) -> Error {
    let message = format!("{name} is lost and still in use: close its devices; {}", error.message());
    Error::new(error.kind(), message)
}

/// The error of opening a chip again that the library may still use.
fn stuck(name: &str) -> Error {
    let message = format!("{name} is lost, and Kalray's library may still use it: restart this process");
    Error::new(ErrorKind::DeviceLost, message)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MppaConfig;
    use crate::environment::{Environment, SIMULATOR_FOLDER};
    use crate::fixture::FakeRoot;
    use crate::tools::Tools;

    #[test]
    fn a_chip_that_is_being_closed_is_waited_for() {
        let calls = Arc::new(Calls::new("chip 7", true, Log::silent()));
        let place = Place { chip: Weak::new(), calls: Arc::downgrade(&calls) };
        let error = place.wait_closed("chip 7", CHECK_INTERVAL).unwrap_err();
        assert!(error.kind() == ErrorKind::DeviceLost && error.message().contains("being closed"), "{error}");
        std::thread::scope(|scope| {
            let _closing = scope.spawn(move || {
                std::thread::sleep(5 * CHECK_INTERVAL);
                drop(calls);
            });
            place.wait_closed("chip 7", Duration::from_secs(60)).unwrap();
        });
    }

    /// The time for opening is no part of it.
    #[test]
    fn another_way_to_open_makes_another_chip() {
        let root = FakeRoot::new();
        root.tool("bin/kvx-cluster", "");
        let tools = Tools::new(None, &root.environment(&[]));
        let options = runtime_core::Options::new().with("platform", "iss");
        let config = MppaConfig::resolve(&Environment::default(), &options).unwrap();
        let process = [("MPPA_RPROC_PLATFORM_MODE", "sim"), (SIMULATOR_FOLDER, "/s")].into_iter().collect();
        let wanted = |text: Option<&str>| {
            let plan = SimulatorPlan::new(&config, &process, &tools, text.map(str::to_owned)).unwrap();
            let firmware = config.firmware.clone();
            Wanted { platform: Platform::Iss, position: 0, firmware, simulator: Some(plan) }
        };
        assert_eq!(wanted(None), wanted(None));
        assert_ne!(wanted(None), wanted(Some("ready")));
        assert_ne!(wanted(None), Wanted { platform: Platform::Hardware, simulator: None, ..wanted(None) });
    }
}
