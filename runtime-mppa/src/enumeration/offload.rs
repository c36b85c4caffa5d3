//! The devices of the offload library: the chips of the driver's tree, if the SDK has the library.

use runtime_core::device::{Capabilities, MemorySpace};
use runtime_core::{CodeFormat, DeviceInfo, DeviceKind, abi};

use super::{ListedDevice, Machine, NO_TRACES, Route, VENDOR, missing_firmware, space};
use crate::config::{Arch, Platform};
use crate::counters::CLUSTER_COUNT;
use crate::driver_tree::{Board, Chip, DriverTree};
use crate::offload::{HOST_MODULE, has_header, obstacle, tool};

const NAME: &str = "Offload";

impl Machine<'_> {
    /// The chips, in the order of the tree. None without the library: the chips' other entries say what is missing.
    pub(super) fn offload(&self, tree: &DriverTree) -> Vec<ListedDevice> {
        if !self.config.sdk.as_deref().is_some_and(has_header) {
            return Vec::new();
        }
        let devices = (0u32..).zip(tree.chips()).map(|(position, (board, chip))| {
            let arch = self.config.arch.or_else(|| board_arch(board)).unwrap_or_default();
            let mut device = describe(arch, Route::Offload(position), NAME);
            let reason = obstacle(Platform::Hardware, self.config, self.environment)
                .or_else(|| missing_firmware(self.config, arch));
            device.infos_mut().for_each(|info| info.unavailable_reason.clone_from(&reason));
            self.describe(&mut device, tree, board, chip);
            device.infos_mut().for_each(|info| describe_counter_clock(info, chip));
            device
        });
        devices.collect()
    }

    /// A chip on a simulator; `None` without the library or the simulator's tool.
    pub(super) fn simulator(&self, platform: Platform) -> Option<ListedDevice> {
        self.tools.find(tool(platform)?)?;
        self.config.sdk.as_deref().filter(|sdk| has_header(sdk))?;
        let name = format!("{NAME}-{}", platform.name().to_uppercase());
        let mut device = describe(self.config.arch(), Route::Simulator(platform), &name);
        let traces = self.config.on(platform).is_err().then(|| NO_TRACES.to_owned());
        let reason = traces.or_else(|| obstacle(platform, self.config, self.environment));
        for info in device.infos_mut() {
            info.properties.push("simulator", true);
            info.unavailable_reason.clone_from(&reason);
        }
        Some(device)
    }
}

/// The architecture of a board, if its name is known.
pub(super) fn board_arch(board: &Board) -> Option<Arch> {
    Arch::find(board.arch.as_deref()?)
}

/// Adds the clock of the counters of cycles, if all clusters of the device have the same one.
fn describe_counter_clock(info: &mut DeviceInfo, chip: &Chip) {
    let clocks: &[u64] = match info.id.sub.and_then(|cluster| chip.cluster_hz.get(cluster as usize)) {
        Some(own) => std::slice::from_ref(own),
        None => &chip.cluster_hz,
    };
    let is_same = clocks.iter().all(|hz| Some(hz) == clocks.first());
    if let Some(hz) = clocks.first().filter(|_| is_same).and_then(|hz| i64::try_from(*hz).ok()) {
        info.properties.push("counter_clock_hz", hz);
    }
}

/// A chip with its clusters.
fn describe(arch: Arch, route: Route, name: &str) -> ListedDevice {
    let locals: Vec<_> = (0..CLUSTER_COUNT).map(|cluster| local_memory(cluster, arch)).collect();
    let mut chip = describe_one(arch, name, &locals);
    chip.formats.push(CodeFormat::from(HOST_MODULE));
    let clusters = (0u32..).zip(&locals).map(|(cluster, local)| {
        let mut info = describe_one(arch, name, std::slice::from_ref(local));
        info.id.sub = Some(cluster);
        info.compute_units = Some(1);
        info
    });
    ListedDevice { clusters: clusters.collect(), info: chip, route }
}

fn describe_one(arch: Arch, name: &str, locals: &[MemorySpace]) -> DeviceInfo {
    let mut info = DeviceInfo::new(DeviceKind::Accelerator, 0, name);
    info.arch = Some(arch.name().to_owned());
    info.vendor = Some(VENDOR.to_owned());
    info.compute_units = Some(CLUSTER_COUNT);
    info.capabilities = Capabilities(abi::CAP_F64 | abi::CAP_COUNTERS);
    info.formats = vec![CodeFormat::ELF];
    info.spaces = std::iter::once(space("device", None)).chain(locals.iter().cloned()).collect();
    info.properties.push("transport", "offload");
    info
}

/// The local memory of a cluster. The firmware uses a part of it.
fn local_memory(cluster: u32, arch: Arch) -> MemorySpace {
    space(&format!("cluster{cluster}"), Some(arch.local_memory_bytes()))
}
