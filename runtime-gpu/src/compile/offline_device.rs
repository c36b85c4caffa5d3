//! Devices that are not there: the architectures that code can be compiled for, and what such a device has.

use runtime_core::device::{Capabilities, Limits, MemorySpace};
use runtime_core::{CodeFormat, DeviceInfo, DeviceKind, Error, ErrorKind, Options, Result};

use super::architecture::Architecture;
use super::nvrtc::Nvrtc;
use super::ptx;
use crate::describe::{DLPACK_CUDA, architecture_capabilities};
use crate::formats::FORMATS;
use crate::memory::{ALIGNMENT_BYTES, Space};

/// Work-items per sub-group of every architecture.
const WARP_ITEMS: i64 = 32;

/// The architecture of this name, if the installed NVRTC can compile for it. Without NVRTC, any that is well-formed, if PTX
/// can be assembled: the assembler rejects those that it does not know.
///
/// # Errors
/// `Unavailable` without NVRTC and an assembler; `NotFound`, with the architectures, for any other.
pub(crate) fn find(name: &str) -> Result<Architecture> {
    let supported = match Nvrtc::load() {
        Ok(nvrtc) => nvrtc.supported_architectures(),
        Err(_) if ptx::can_assemble() => Vec::new(),
        Err(error) => return Err(error.with_note("PTX alone requires ptxas or nvJitLink instead")),
    };
    let supported: Vec<u32> = supported.into_iter().filter_map(|arch| u32::try_from(arch).ok()).collect();
    let found = Architecture::parse(name);
    let found = found.filter(|found| supported.is_empty() || supported.contains(&found.compute));
    found.filter(Architecture::has_variant).ok_or_else(|| {
        let names: Vec<_> = supported.iter().map(|arch| format!("sm_{arch}")).collect();
        let valid = if names.is_empty() { "sm_90, for example".to_owned() } else { names.join(", ") };
        let message = format!(
            "NVRTC cannot compile for architecture \"{name}\"; valid: {valid}, with \"a\" for one architecture's own \
             features (from sm_90 on), \"f\" for its family's (from sm_100 on), and \"compute_\" for PTX"
        );
        Error::new(ErrorKind::NotFound, message)
    })
}

/// The device that code for this architecture is compiled for.
pub(crate) fn describe(architecture: Architecture, name: &str) -> DeviceInfo {
    let mut info = DeviceInfo::new(DeviceKind::Accelerator, 0, &format!("CUDA {name}"));
    info.arch = Some(name.to_owned());
    info.vendor = Some("NVIDIA".to_owned());
    info.dlpack_type = DLPACK_CUDA;
    info.formats = FORMATS.map(CodeFormat::from).to_vec();
    info.limits = Limits {
        groups: [(1 << 31) - 1, 65535, 65535],
        group_size: [1024, 1024, 64],
        group_items: 1024,
        shared_bytes: architecture.shared_bytes(),
        allocation_bytes: None,
    };
    info.spaces = vec![MemorySpace {
        name: Space::NAMES[0].1.to_owned(),
        total_bytes: None,
        alignment_bytes: ALIGNMENT_BYTES as u64,
        host_visible: false,
        kernel_visible: true,
    }];
    info.capabilities =
        Capabilities(architecture_capabilities((architecture.major(), architecture.compute % 10)));
    info.properties = Options::new().with("warp_size", WARP_ITEMS);
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_described_device_has_what_its_architecture_has() {
        let described = |name: &str| describe(Architecture::parse(name).unwrap(), name);
        let (hopper, ada) = (described("sm_90a"), described("sm_89"));
        assert_eq!((hopper.limits.shared_bytes, ada.limits.shared_bytes), (232_448, 101_376));
        assert_eq!(hopper.arch.as_deref(), Some("sm_90a"));
        assert!(hopper.capabilities.has(runtime_core::abi::CAP_CLUSTERS | runtime_core::abi::CAP_F16));
        assert!(!ada.capabilities.has(runtime_core::abi::CAP_CLUSTERS));
        assert_eq!(described("sm_999").limits.shared_bytes, 49_152);
    }
}
