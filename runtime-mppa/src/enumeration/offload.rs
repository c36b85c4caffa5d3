//! The devices of the offload library: the chips of the driver's tree, if the SDK has the library.

use runtime_core::{Capabilities, CodeFormat, DeviceInfo, DeviceKind, MemorySpace, abi};

use super::{ListedDevice, Machine, Route, VENDOR};
use crate::config::{Arch, MppaConfig};
use crate::counters::CLUSTERS;
use crate::driver_tree::{Board, DriverTree};
use crate::offload::{MIN_ALIGNMENT_BYTES, has_header};

const NAME: &str = "Offload";

impl Machine<'_> {
    /// The chips, in the order of the tree. None without the library: the chips' other entries say what is missing.
    pub(super) fn offload(&self, tree: &DriverTree) -> Vec<ListedDevice> {
        if !self.config.sdk.as_deref().is_some_and(has_header) {
            return Vec::new();
        }
        let chips = tree.boards.iter().flat_map(|board| board.chips.iter().map(move |chip| (board, chip)));
        let devices = (0u32..).zip(chips).map(|(position, (board, chip))| {
            let arch = self.config.arch.or_else(|| board_arch(board)).unwrap_or_default();
            let mut device = describe(NAME, arch, Route::Offload(position));
            let reason = missing_firmware(self.config, arch);
            device.infos_mut().for_each(|info| info.unavailable_reason.clone_from(&reason));
            self.describe(&mut device, tree, board, chip);
            device
        });
        devices.collect()
    }
}

/// The architecture of a board, if its name is known.
pub(super) fn board_arch(board: &Board) -> Option<Arch> {
    Arch::find(board.arch.as_deref()?)
}

fn missing_firmware(config: &MppaConfig, arch: Arch) -> Option<String> {
    let path = config.firmware_path(arch).filter(|path| !path.is_file())?;
    Some(format!(
        "no firmware: {} does not exist; install AccessCore's firmware for {}, or choose one that is there with POCL_MPPA_FIRMWARE_NAME",
        path.display(),
        arch.name()
    ))
}

/// A chip with its clusters.
fn describe(name: &str, arch: Arch, route: Route) -> ListedDevice {
    let locals: Vec<_> = (0..CLUSTERS).map(|cluster| local_memory(cluster, arch)).collect();
    let chip = describe_one(name, arch, &locals);
    let clusters = (0u32..).zip(&locals).map(|(cluster, local)| {
        let mut info = describe_one(name, arch, std::slice::from_ref(local));
        info.id.sub = Some(cluster);
        info.compute_units = Some(1);
        info
    });
    ListedDevice { clusters: clusters.collect(), info: chip, route }
}

fn describe_one(name: &str, arch: Arch, locals: &[MemorySpace]) -> DeviceInfo {
    let mut info = DeviceInfo::new(DeviceKind::Accelerator, 0, name);
    info.arch = Some(arch.name().to_owned());
    info.vendor = Some(VENDOR.to_owned());
    info.compute_units = u32::try_from(CLUSTERS).ok();
    info.capabilities = Capabilities(abi::CAP_F64 | abi::CAP_COUNTERS);
    info.formats = vec![CodeFormat::ELF];
    let memory = MemorySpace {
        name: "device".to_owned(),
        total_bytes: None,
        alignment_bytes: MIN_ALIGNMENT_BYTES,
        host_visible: false,
        kernel_visible: true,
    };
    info.spaces = std::iter::once(memory).chain(locals.iter().cloned()).collect();
    info.properties.push("transport", "offload");
    info
}

/// The local memory of a cluster. The firmware uses a part of it.
fn local_memory(cluster: usize, arch: Arch) -> MemorySpace {
    MemorySpace {
        name: format!("cluster{cluster}"),
        total_bytes: Some(arch.local_memory_bytes()),
        alignment_bytes: MIN_ALIGNMENT_BYTES,
        host_visible: false,
        kernel_visible: true,
    }
}
