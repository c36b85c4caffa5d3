//! Architectures of CUDA, by name: what code can be compiled for without a device, and what such a device has.

use runtime_core::{
    Capabilities, CodeFormat, DeviceInfo, DeviceKind, Error, ErrorKind, Limits, MemorySpace, Options, Result,
};

use super::ptx;
use crate::describe::{DLPACK_CUDA, architecture_capabilities};
use crate::memory::{ALIGNMENT_BYTES, Space};
use crate::module::FORMATS;
use crate::nvrtc::Nvrtc;

/// Work-items per sub-group of every architecture.
const WARP_ITEMS: i64 = 32;
/// Architectures of systems on a chip, whose code runs on no other.
const EMBEDDED: [u32; 6] = [53, 62, 72, 87, 101, 110];

/// An architecture, such as `sm_90`, `sm_90a` or `compute_80`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Architecture {
    /// Compute capability, `major * 10 + minor`.
    pub(crate) compute: u32,
    pub(crate) variant: Variant,
    /// Code for it is PTX (`compute_`), not binary (`sm_`).
    pub(crate) is_virtual: bool,
}

/// Which devices code may run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// Devices of the architecture, and later ones.
    Portable,
    /// Only devices of the very architecture, all of whose features it may use (`a`).
    Specific,
    /// Devices of the same family (`f`).
    Family,
}

impl Architecture {
    /// Parses a name; `None` if it is not one.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (is_virtual, rest) = match name.strip_prefix("sm_") {
            Some(rest) => (false, rest),
            None => (true, name.strip_prefix("compute_")?),
        };
        let (digits, variant) = match rest.as_bytes().last()? {
            b'a' => (&rest[..rest.len() - 1], Variant::Specific),
            b'f' => (&rest[..rest.len() - 1], Variant::Family),
            _ => (rest, Variant::Portable),
        };
        let is_number = (2..=3).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
        let compute = if is_number { digits.parse().ok()? } else { return None };
        Some(Self { compute, variant, is_virtual })
    }

    /// The architecture of this name, if the installed NVRTC can compile for it. Without NVRTC, any that is well-formed, if PTX
    /// can be assembled: the assembler rejects those that it does not know.
    ///
    /// # Errors
    /// `Unavailable` without NVRTC and an assembler; `NotFound`, with the architectures, for any other.
    pub(crate) fn find(name: &str) -> Result<Self> {
        let supported = match Nvrtc::load() {
            Ok(nvrtc) => nvrtc.supported_architectures(),
            Err(_) if ptx::can_assemble() => Vec::new(),
            Err(error) => return Err(error.with_note("PTX alone requires ptxas or nvJitLink instead")),
        };
        let supported: Vec<u32> = supported.into_iter().filter_map(|arch| u32::try_from(arch).ok()).collect();
        let found = Self::parse(name);
        let found = found.filter(|found| supported.is_empty() || supported.contains(&found.compute));
        found.filter(Self::has_variant).ok_or_else(|| {
            let names: Vec<_> = supported.iter().map(|arch| format!("sm_{arch}")).collect();
            let valid = if names.is_empty() { "sm_90, for example".to_owned() } else { names.join(", ") };
            let message = format!(
                "NVRTC cannot compile for architecture \"{name}\"; valid: {valid}, with \"a\" for one architecture's own \
                 features (from sm_90 on), \"f\" for its family's (from sm_100 on), and \"compute_\" for PTX"
            );
            Error::new(ErrorKind::NotFound, message)
        })
    }

    const fn has_variant(&self) -> bool {
        match self.variant {
            Variant::Portable => true,
            Variant::Specific => self.compute >= 90,
            Variant::Family => self.compute >= 100,
        }
    }

    /// Major version of the compute capability.
    pub(crate) const fn major(self) -> u32 {
        self.compute / 10
    }

    /// Whether it is that of a system on a chip.
    pub(crate) fn is_embedded(self) -> bool {
        EMBEDDED.contains(&self.compute)
    }

    /// Most bytes of work-group memory of a group (CUDA C++ Programming Guide, "Technical Specifications per Compute
    /// Capability"); what every device has for an architecture that is not in the table.
    const fn shared_bytes(self) -> u64 {
        match self.compute {
            70 | 72 => 96 << 10,
            75 => 64 << 10,
            80 | 87 => 163 << 10,
            86 | 89 | 120 | 121 => 99 << 10,
            90 | 100 | 101 | 103 | 110 => 227 << 10,
            _ => 48 << 10,
        }
    }

    /// The device that code for this architecture is compiled for.
    pub(crate) fn describe(self, name: &str) -> DeviceInfo {
        let mut info = DeviceInfo::new(DeviceKind::Accelerator, 0, &format!("CUDA {name}"));
        info.arch = Some(name.to_owned());
        info.vendor = Some("NVIDIA".to_owned());
        info.dlpack_type = DLPACK_CUDA;
        info.formats = FORMATS.map(CodeFormat::from).to_vec();
        info.limits = Limits {
            groups: [(1 << 31) - 1, 65535, 65535],
            group_size: [1024, 1024, 64],
            group_items: 1024,
            shared_bytes: self.shared_bytes(),
            allocation_bytes: None,
        };
        info.spaces = vec![MemorySpace {
            name: Space::NAMES[0].1.to_owned(),
            total_bytes: None,
            alignment_bytes: ALIGNMENT_BYTES as u64,
            host_visible: false,
            kernel_visible: true,
        }];
        info.capabilities = Capabilities(architecture_capabilities((self.major(), self.compute % 10)));
        info.properties = Options::new().with("warp_size", WARP_ITEMS);
        info
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_with_their_variants() {
        let arch = |compute, variant, is_virtual| Some(Architecture { compute, variant, is_virtual });
        assert_eq!(Architecture::parse("sm_90"), arch(90, Variant::Portable, false));
        assert_eq!(Architecture::parse("sm_90a"), arch(90, Variant::Specific, false));
        assert_eq!(Architecture::parse("sm_100f"), arch(100, Variant::Family, false));
        assert_eq!(Architecture::parse("compute_75"), arch(75, Variant::Portable, true));
        for wrong in
            ["", "sm_", "sm_a", "90", "sm_9", "sm_9999", "sm_90b", "sm_+90", "SM_90", "sm_90 ", "sm_9\u{664}"]
        {
            assert_eq!(Architecture::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_described_device_has_what_its_architecture_has() {
        let describe = |name: &str| Architecture::parse(name).unwrap().describe(name);
        let (hopper, ada) = (describe("sm_90a"), describe("sm_89"));
        assert_eq!((hopper.limits.shared_bytes, ada.limits.shared_bytes), (232_448, 101_376));
        assert_eq!(hopper.arch.as_deref(), Some("sm_90a"));
        assert!(hopper.capabilities.has(runtime_core::abi::CAP_CLUSTERS | runtime_core::abi::CAP_F16));
        assert!(!ada.capabilities.has(runtime_core::abi::CAP_CLUSTERS));
        assert_eq!(describe("sm_999").limits.shared_bytes, 49_152);
    }
}
