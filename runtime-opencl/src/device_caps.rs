//! The properties of a device on which the backend bases its decisions.

use cl3::ext::{
    CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR,
    CL_DEVICE_COMPILER_AVAILABLE, CL_DEVICE_EXTENSIONS, CL_DEVICE_EXTENSIONS_WITH_VERSION,
    CL_DEVICE_GLOBAL_MEM_SIZE, CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL, CL_DEVICE_HOST_UNIFIED_MEMORY,
    CL_DEVICE_IL_VERSION, CL_DEVICE_MAX_MEM_ALLOC_SIZE, CL_DEVICE_MEM_BASE_ADDR_ALIGN,
    CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL, CL_DEVICE_SVM_CAPABILITIES,
    CL_DEVICE_SVM_FINE_GRAIN_BUFFER, CL_DEVICE_VERSION, CL_NAME_VERSION_MAX_NAME_SIZE,
    CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL,
};

use runtime_core::backend::c_text;

use crate::device_filter::{CPU, GPU, KIND_BITS};
use crate::driver::extensions::{CommandBuffers, Usm};
use crate::driver::info::decode_u64;
use crate::driver::{Driver, Raw};
use crate::enumeration::ListedDevice;
use crate::quirks::Quirks;
use crate::space::Space;

/// The command buffer extension.
const COMMAND_BUFFER: &str = "cl_khr_command_buffer";
/// Size of a `cl_name_version`: the version, and the name.
const NAME_VERSION_BYTES: usize = size_of::<u32>() + CL_NAME_VERSION_MAX_NAME_SIZE;
/// The alignment that every driver guarantees: the size of the largest type.
pub(crate) const MIN_ALIGNMENT: usize = 128;

/// The capabilities of a device.
#[derive(Clone, Debug)]
pub(crate) struct DeviceCaps {
    /// Major and minor OpenCL version.
    pub(crate) version: (u32, u32),
    pub(crate) extensions: String,
    /// The device is the host's CPU and uses host memory directly.
    pub(crate) is_processor: bool,
    /// The alignment of sub-buffer origins and of every allocation.
    pub(crate) alignment_bytes: usize,
    pub(crate) allocation_bytes: u64,
    pub(crate) memory_bytes: u64,
    /// Fine-grained shared virtual memory is available, and is the device's own memory.
    pub(crate) svm: bool,
    pub(crate) usm: Option<Usm>,
    pub(crate) command_buffers: Option<CommandBuffers>,
    /// Command buffers take copies and fills with the signatures used here.
    pub(crate) can_record_copies: bool,
    /// Large transfers of pageable memory are staged through mapped buffers.
    pub(crate) stages_transfers: bool,
    /// A failure ends everything behind it.
    pub(crate) fails_for_good: bool,
    /// Releasing an object waits for every running kernel.
    pub(crate) releases_wait: bool,
    /// A kernel is compiled at its first launch, by a compiler that is not thread-safe.
    pub(crate) compiles_at_launch: bool,
    /// Launches of one kernel with different numbers of groups must not overlap.
    pub(crate) mistakes_grids: bool,
    /// A program can choose how many registers a kernel has.
    pub(crate) has_register_modes: bool,
    pub(crate) has_compiler: bool,
    pub(crate) accepts_spirv: bool,
    pub(crate) spaces: Vec<Space>,
}

impl DeviceCaps {
    pub(crate) fn query(driver: &Driver, listed: &ListedDevice, quirks: &Quirks) -> Self {
        let device = listed.device;
        let number = |key| driver.device_number(device, key);
        let extensions = format!(" {} ", driver.device_text(device, CL_DEVICE_EXTENSIONS));
        let has = |name: &str| extensions.contains(&format!(" {name} "));
        // Not for simulators, which claim to be several kinds of device.
        let is_nvidia = listed.identity.platform == "NVIDIA CUDA";
        let is_processor = listed.identity.types & KIND_BITS == CPU;
        let is_intel = is_processor && listed.identity.platform == "Intel(R) OpenCL";
        let unified = is_processor || number(CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
        let usm =
            (quirks.usm && has("cl_intel_unified_shared_memory")).then(|| Usm::find(driver, listed.platform));
        let svm = quirks.svm && number(CL_DEVICE_SVM_CAPABILITIES) & CL_DEVICE_SVM_FINE_GRAIN_BUFFER != 0;
        let usm = usm.flatten();
        let has_usm = |key| usm.is_some() && number(key) & CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL != 0;
        let host = has_usm(CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL);
        let shared = has_usm(CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL);
        let mut spaces = vec![Space::Device];
        spaces.push(match (host, svm && unified) {
            (true, _) => Space::UsmHost,
            (false, true) => Space::SvmHost,
            (false, false) => Space::Mapped,
        });
        spaces.extend((shared || svm).then_some(if shared { Space::UsmShared } else { Space::Svm }));
        let bits = usize::try_from(number(CL_DEVICE_MEM_BASE_ADDR_ALIGN)).unwrap_or(0);
        Self {
            version: version(&driver.device_text(device, CL_DEVICE_VERSION)),
            is_processor,
            alignment_bytes: (bits / 8).next_power_of_two().max(MIN_ALIGNMENT),
            allocation_bytes: number(CL_DEVICE_MAX_MEM_ALLOC_SIZE),
            memory_bytes: number(CL_DEVICE_GLOBAL_MEM_SIZE),
            svm: svm && unified,
            usm,
            command_buffers: if has(COMMAND_BUFFER) { command_buffers(driver, listed) } else { None },
            can_record_copies: extension_version(driver, device, COMMAND_BUFFER) >= (0, 9, 5),
            stages_transfers: spaces.contains(&Space::Mapped),
            // A kernel fault ends the whole context.
            fails_for_good: quirks.fails_for_good || is_nvidia,
            releases_wait: quirks.releases_wait || is_nvidia,
            compiles_at_launch: quirks.compiles_at_launch || is_intel,
            mistakes_grids: mistakes_grids(&listed.identity.platform, &listed.platform_version),
            // Intel's own driver for GPUs; Mesa's has no such options.
            has_register_modes: listed.identity.types & KIND_BITS == GPU
                && listed.identity.platform.starts_with("Intel(R) OpenCL"),
            has_compiler: number(CL_DEVICE_COMPILER_AVAILABLE) != 0,
            accepts_spirv: driver.device_text(device, CL_DEVICE_IL_VERSION).contains("SPIR-V"),
            extensions,
            spaces,
        }
    }

    pub(crate) fn has(&self, extension: &str) -> bool {
        self.extensions.contains(&format!(" {extension} "))
    }
}

/// Whether it is PoCL before 6.0.
fn mistakes_grids(platform: &str, version: &str) -> bool {
    let release = version.split_once("PoCL ").map(|(_, release)| release);
    let major = release.and_then(|release| release.split('.').next()?.parse::<u32>().ok());
    platform == "Portable Computing Language" && major.is_some_and(|major| major < 6)
}

/// The command buffer functions, if the device can replay a command buffer that is still running.
fn command_buffers(driver: &Driver, listed: &ListedDevice) -> Option<CommandBuffers> {
    let capabilities = driver.device_number(listed.device, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR);
    let repeats = capabilities & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR != 0;
    if repeats { CommandBuffers::find(driver, listed.platform) } else { None }
}

/// The version in `OpenCL 3.0 …`.
fn version(text: &str) -> (u32, u32) {
    let mut numbers = text.trim_start_matches("OpenCL ").split([' ', '.']).map(str::parse::<u32>);
    let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
    (next(), next())
}

/// The version of an extension; all zero if the driver does not report it.
fn extension_version(driver: &Driver, device: Raw, name: &str) -> (u32, u32, u32) {
    let list = driver.device_info(device, CL_DEVICE_EXTENSIONS_WITH_VERSION).unwrap_or_default();
    let named = list.chunks_exact(NAME_VERSION_BYTES).find(|entry| c_text(&entry[4..]) == name);
    let version = named.and_then(|entry| decode_u64(&entry[..4])).and_then(|word| u32::try_from(word).ok());
    version.map_or((0, 0, 0), |word| (word >> 22, word >> 12 & 0x3ff, word & 0xfff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_releases_of_pocl_are_recognised() {
        let is_old = |version| mistakes_grids("Portable Computing Language", version);
        assert!(is_old("OpenCL 3.0 PoCL 3.1+debian  Linux, None+Asserts, RELOC, SPIR, LLVM 15.0.6"));
        assert!(is_old("OpenCL 3.0 PoCL 5.0+debian  Linux, None+Asserts, RELOC, LLVM 16.0.6"));
        assert!(!is_old("OpenCL 3.0 PoCL 6.0  Linux, Release, RELOC, LLVM 18.1.8"));
        assert!(!is_old("OpenCL 3.0 PoCL 10.1"));
        assert!(!is_old("OpenCL 3.0"));
        assert!(!mistakes_grids("Intel(R) OpenCL", "OpenCL 3.0 PoCL 3.1"));
    }

    #[test]
    fn versions_are_read() {
        assert_eq!(version("OpenCL 3.0 PoCL HSTR: pthread"), (3, 0));
        assert_eq!(version("OpenCL 1.2"), (1, 2));
        assert_eq!(version("something"), (0, 0));
        assert!(version("OpenCL 1.2 ") < (2, 1));
    }
}
