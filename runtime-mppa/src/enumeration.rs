//! The devices: boards, simulators whose tools are installed, and the stand-in if it was asked for.

mod offload;

use runtime_core::backend::{Level, Log};
use runtime_core::device::MemorySpace;
use runtime_core::{CodeFormat, DeviceInfo, DeviceKind, Error, Result};

use crate::board_diag;
use crate::config::{Arch, MppaConfig, Platform};
use crate::counters::CLUSTER_COUNT;
use crate::driver_tree::{Board, Chip, DriverTree};
use crate::environment::Environment;
use crate::offload::MIN_ALIGNMENT_BYTES;
use crate::template::Template;
use crate::tools::Tools;
use crate::unavailable;

/// The stand-in's name, also in results.
pub(crate) const STAND_IN: &str = "stand-in (PoCL), not an MPPA";
const CHIP: &str = "MPPA Coolidge";
const VENDOR: &str = "Kalray";
const NO_TRACES: &str = "simulators record no traces; unset BENCHMARK and MPPA_TRACE_ENABLE";

/// How a device is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Device of Kalray's OpenCL library.
    OpenCl(u32),
    /// Device of the system's OpenCL loader.
    StandIn(u32),
    /// Chip of the offload library, by its position in the driver's tree.
    Offload(u32),
    /// A simulator behind the offload library.
    Simulator(Platform),
    /// A command that runs a whole program.
    Program(Platform),
    /// It cannot be opened; its description says why.
    Nowhere,
}

/// A device, its description and those of its clusters, without indices.
#[derive(Clone, Debug)]
pub(crate) struct ListedDevice {
    pub(crate) info: DeviceInfo,
    pub(crate) clusters: Vec<DeviceInfo>,
    pub(crate) route: Route,
}

impl ListedDevice {
    /// The descriptions.
    fn infos_mut(&mut self) -> impl Iterator<Item = &mut DeviceInfo> {
        std::iter::once(&mut self.info).chain(&mut self.clusters)
    }

    /// The descriptions, with the device's index.
    pub(crate) fn infos(&self, index: u32) -> impl Iterator<Item = DeviceInfo> {
        std::iter::once(&self.info).chain(&self.clusters).map(move |info| {
            let mut info = info.clone();
            info.id.index = index;
            info
        })
    }
}

/// What the devices are listed from.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    pub(crate) config: &'a MppaConfig,
    pub(crate) environment: &'a Environment,
    pub(crate) tools: &'a Tools,
    /// The devices of Kalray's OpenCL library, or why there are none.
    pub(crate) opencl: Result<Vec<DeviceInfo>>,
    /// The devices of PoCL, if the stand-in was asked for.
    pub(crate) pocl: Option<Result<Vec<DeviceInfo>>>,
    pub(crate) log: Log,
}

impl Machine<'_> {
    /// Lists the devices, those of the configured platform first.
    ///
    /// # Errors
    /// `Unavailable`, with every reason and remedy, if there are none.
    pub(crate) fn list(&self) -> Result<Vec<ListedDevice>> {
        let read = DriverTree::read(&self.config.root);
        let none = DriverTree::default();
        let tree = read.as_ref().inspect_err(|error| self.log.write(Level::Debug, "mppa", error.message()));
        let tree = tree.unwrap_or(&none);
        let mut devices = self.boards(tree);
        let has_board = !devices.is_empty();
        let board_arch = tree.boards.iter().find_map(offload::board_arch);
        for (_, platform) in Platform::NAMES {
            if platform != Platform::Hardware {
                devices.extend(self.program(platform, self.config.arch()));
                devices.extend(self.simulator(platform));
            } else if has_board {
                devices.extend(self.program(platform, self.config.arch.or(board_arch).unwrap_or_default()));
                devices.extend(self.offload(tree));
            }
        }
        devices.sort_by_key(|device| device.platform() != self.config.platform);
        devices.extend(self.pocl.iter().flat_map(stand_ins));
        match devices.is_empty() {
            true => Err(self.nothing(&read)),
            false => Ok(devices),
        }
    }

    /// The chips of the driver's tree, matched by order with the devices of the OpenCL library.
    fn boards(&self, tree: &DriverTree) -> Vec<ListedDevice> {
        let chips: Vec<_> = tree.chips().collect();
        let offered: &[DeviceInfo] = self.opencl.as_deref().unwrap_or_default();
        let roots: Vec<_> = offered.iter().filter(|info| info.id.sub.is_none()).collect();
        let merged = (0..chips.len().max(roots.len())).map(|position| {
            let mut device = match roots.get(position) {
                Some(root) => offered_device(root, offered),
                None => self.missing(position, roots.len()),
            };
            if let Some((board, chip)) = chips.get(position) {
                self.describe(&mut device, tree, board, chip);
            }
            device
        });
        let empty = tree.boards.iter().filter(|board| board.chips.is_empty()).map(empty_board);
        merged.chain(empty).collect()
    }

    /// A chip that the OpenCL library does not offer.
    fn missing(&self, position: usize, offered: usize) -> ListedDevice {
        let reason = match (&self.opencl, missing_firmware(self.config, self.config.arch())) {
            (Err(error), _) if library(self.config).is_err() => error.message().to_owned(),
            (_, Some(reason)) => reason,
            (Err(error), None) => error.message().to_owned(),
            (Ok(_), None) => format!(
                "Kalray's OpenCL library offers {offered} devices, and the driver lists more: chip {position} is in use or did not \
                 start; see the kernel's log (dmesg)"
            ),
        };
        not_usable(CHIP, reason)
    }

    /// Adds what the driver's tree says.
    fn describe(&self, device: &mut ListedDevice, tree: &DriverTree, board: &Board, chip: &Chip) {
        let wrong = board.arch.as_deref().and_then(|arch| self.wrong_arch(board.number, arch));
        for info in device.infos_mut() {
            info.arch = info.arch.take().or_else(|| board.arch.clone());
            info.driver_version = info.driver_version.take().or_else(|| Some(tree.version.clone()));
            info.clock_hz = chip.clock_hz().or(info.clock_hz);
            for (key, text) in [
                ("board_type", &board.model),
                ("board_revision", &board.revision),
                ("board_serial", &board.serial),
                ("clock_problem", &chip.problem),
            ] {
                if let Some(text) = text {
                    info.properties.push(key, text.as_str());
                }
            }
            info.properties.push("board", i64::from(board.number));
            info.properties.push("chip", i64::from(chip.number));
            let lock = format!("mppa {}.{} {}", board.number, chip.number, self.config.root.display());
            info.properties.push("lock", lock.as_str());
            // Kalray's libraries are assumed to write traces to the working directory.
            if self.config.trace
                && let Ok(folder) = std::env::current_dir()
            {
                info.properties.push("trace_folder", folder.to_string_lossy().as_ref());
            }
            if let Some(reason) = &wrong {
                info.unavailable_reason = Some(reason.clone());
            }
        }
        if wrong.is_some() {
            device.route = Route::Nowhere;
        }
    }

    /// Why a board of this architecture cannot be used.
    fn wrong_arch(&self, board: u32, arch: &str) -> Option<String> {
        match (Arch::find(arch), self.config.arch) {
            (Some(known), Some(wanted)) if known != wanted => Some(format!(
                "wrong architecture: board {board} is {arch}, but {} was asked for; set RUNTIME_MPPA_ARCH={}",
                wanted.name(),
                known.name()
            )),
            // Other spellings are accepted: the form of this file is not documented.
            (None, _) if arch.contains("kv4") => Some(format!(
                "wrong architecture: board {board} is {arch}, and this backend supports kv3-1 and kv3-2; use another board"
            )),
            _ => None,
        }
    }

    /// A device that runs whole programs; `None` without its tool.
    fn program(&self, platform: Platform, arch: Arch) -> Option<ListedDevice> {
        let config = self.config.on(platform).ok();
        Template::of_platform(platform, arch, self.tools)?;
        let name = match platform {
            Platform::Hardware => "JTAG",
            Platform::Iss => "ISS",
            Platform::Qemu => "QEMU",
        };
        let mut info = DeviceInfo::new(DeviceKind::Embedded, 0, name);
        info.arch = Some(arch.name().to_owned());
        info.vendor = Some(VENDOR.to_owned());
        info.compute_units = Some(CLUSTER_COUNT);
        info.formats = vec![CodeFormat::ELF];
        info.spaces = vec![space("device", None)];
        info.properties.push("simulator", platform != Platform::Hardware);
        info.properties.push("run_clock", "host_wall");
        if let Some(folder) = config.as_ref().and_then(MppaConfig::trace_folder) {
            info.properties.push("trace_folder", folder.to_string_lossy().as_ref());
        }
        if config.is_none() {
            info.unavailable_reason = Some(NO_TRACES.to_owned());
        }
        Some(ListedDevice { info, clusters: Vec::new(), route: Route::Program(platform) })
    }

    fn nothing(&self, read: &Result<DriverTree>) -> Error {
        let mut reasons = Vec::new();
        match read {
            Err(error) => reasons.push(error.message().to_owned()),
            Ok(tree) => reasons.push(format!(
                "no board: Kalray's driver {} is loaded, but lists none; see the kernel's log (dmesg)",
                tree.version
            )),
        }
        reasons.extend(board_diag::explain(self.tools));
        reasons.extend(self.opencl.as_ref().err().map(|error| error.message().to_owned()));
        let tools = [Platform::Iss, Platform::Qemu].map(Template::tools).join(", ");
        reasons.push(format!("no simulator: none of {tools} is in PATH or in the SDK"));
        unavailable(reasons.join(". "))
    }
}

impl ListedDevice {
    const fn platform(&self) -> Platform {
        match self.route {
            Route::Program(platform) | Route::Simulator(platform) => platform,
            _ => Platform::Hardware,
        }
    }
}

/// The path of Kalray's OpenCL library.
///
/// # Errors
/// `Unavailable`, with the remedy.
pub(crate) fn library(config: &MppaConfig) -> Result<std::path::PathBuf> {
    let no_sdk = |what: String| {
        let remedy =
            "install AccessCore and set KALRAY_TOOLCHAIN_DIR to its folder (its environment script does)";
        unavailable(format!("no SDK: {what}; {remedy}"))
    };
    let path = config.opencl_library().ok_or_else(|| no_sdk("KALRAY_TOOLCHAIN_DIR is not set".to_owned()))?;
    if path.is_file() { Ok(path) } else { Err(no_sdk(format!("{} does not exist", path.display()))) }
}

/// A device of the OpenCL library with its sub-devices, the clusters.
fn offered_device(root: &DeviceInfo, all: &[DeviceInfo]) -> ListedDevice {
    let of = |info: &&DeviceInfo| info.id.index == root.id.index && info.id.sub.is_some();
    let clusters = all.iter().filter(of).cloned().collect();
    ListedDevice { info: root.clone(), clusters, route: Route::OpenCl(root.id.index) }
}

fn empty_board(board: &Board) -> ListedDevice {
    let reason = board.problem.clone().unwrap_or_else(|| {
        format!("board {} has no MPPA: its chips did not start; see the kernel's log (dmesg)", board.number)
    });
    let mut device = not_usable(CHIP, reason);
    device.info.properties.push("board", i64::from(board.number));
    device
}

/// Why a firmware for this architecture cannot be started: it does not exist.
fn missing_firmware(config: &MppaConfig, arch: Arch) -> Option<String> {
    let path = config.firmware_path(arch).filter(|path| !path.is_file())?;
    Some(format!(
        "no firmware: {} does not exist; install AccessCore's firmware for {}, or choose one that is there with POCL_MPPA_FIRMWARE_NAME",
        path.display(),
        arch.name()
    ))
}

/// Memory that only kernels reach.
fn space(name: &str, total_bytes: Option<u64>) -> MemorySpace {
    MemorySpace {
        name: name.to_owned(),
        total_bytes,
        alignment_bytes: MIN_ALIGNMENT_BYTES,
        host_visible: false,
        kernel_visible: true,
    }
}

fn not_usable(name: &str, reason: String) -> ListedDevice {
    let mut info = DeviceInfo::new(DeviceKind::Accelerator, 0, name);
    info.vendor = Some(VENDOR.to_owned());
    info.compute_units = Some(CLUSTER_COUNT);
    info.unavailable_reason = Some(reason);
    info.spaces = vec![space("device", None)];
    ListedDevice { info, clusters: Vec::new(), route: Route::Nowhere }
}

/// PoCL's devices under the stand-in's name, which no driver or architecture may contradict.
fn stand_ins(pocl: &Result<Vec<DeviceInfo>>) -> Vec<ListedDevice> {
    let infos = match pocl {
        Ok(infos) => infos,
        Err(error) => {
            let remedy = "install PoCL (Debian: pocl-opencl-icd), or unset RUNTIME_MPPA_STAND_IN";
            return vec![not_usable(STAND_IN, format!("{}; {remedy}", error.message()))];
        }
    };
    let roots = infos.iter().filter(|info| info.id.sub.is_none());
    let devices = roots.map(|root| {
        let mut device = offered_device(root, infos);
        device.route = Route::StandIn(root.id.index);
        for info in device.infos_mut() {
            STAND_IN.clone_into(&mut info.name);
            info.properties.push("stand_in", true);
        }
        device
    });
    devices.collect()
}

#[cfg(test)]
mod tests;
