//! How native code fits a device: by the architecture that it was compiled for, and by the version of its PTX.

use runtime_core::code::Fit;

use super::architecture::{Architecture, Variant};
use super::binary_check::{FatbinEntry, cubin_architecture, fatbin_entries};

/// The device that code is to run on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// Compute capability, `major * 10 + minor`.
    pub(crate) compute: u32,
    /// CUDA version of the driver, `major * 1000 + minor * 10`.
    pub(crate) cuda_version: u32,
}

impl Target {
    /// How code of a native format fits. Code that is not complete does not.
    pub(crate) fn fit(self, format: &str, code: &[u8]) -> Fit {
        match format {
            "cubin" => cubin_architecture(code).map_or(Fit::Unsupported, |arch| self.fit_binary(arch)),
            "fatbin" => self.fit_fatbin(code),
            "ptx" => self.fit_ptx(&String::from_utf8_lossy(code)),
            _ => Fit::Recompile,
        }
    }

    /// Binary code runs on its own architecture, and on later ones of the same major version.
    fn fit_binary(self, code: Architecture) -> Fit {
        let device = Architecture { compute: self.compute, variant: Variant::Portable, is_virtual: false };
        if code.compute == self.compute {
            return Fit::Optimal;
        }
        let is_exact = code.variant == Variant::Specific || code.is_embedded() || device.is_embedded();
        match !is_exact && code.major() == device.major() && code.compute < self.compute {
            true => Fit::Recompile,
            false => Fit::Unsupported,
        }
    }

    fn fit_fatbin(self, code: &[u8]) -> Fit {
        let fit = |entry: &FatbinEntry| match *entry {
            FatbinEntry::Binary { compute } => {
                self.fit_binary(Architecture { compute, variant: Variant::Portable, is_virtual: false })
            }
            FatbinEntry::Ptx { compute } if compute <= self.compute => Fit::Recompile,
            FatbinEntry::Ptx { .. } => Fit::Unsupported,
        };
        let fits: Vec<_> = fatbin_entries(code).iter().map(fit).collect();
        let best = [Fit::Optimal, Fit::Recompile].into_iter().find(|fit| fits.contains(fit));
        best.unwrap_or(Fit::Unsupported)
    }

    /// PTX runs on its target and on later devices, if the driver knows its version.
    fn fit_ptx(self, text: &str) -> Fit {
        let directive = |name: &str| {
            let mut lines = text.lines().map(str::trim_start);
            let rest = lines.find_map(|line| line.strip_prefix(name))?;
            rest.split([',', ' ', '\t', ';', '/']).find(|word| !word.is_empty())
        };
        let version = directive(".version").and_then(|version| {
            let (major, minor) = version.split_once('.')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        });
        let target = directive(".target").and_then(Architecture::parse);
        let (Some(version), Some(target)) = (version, target) else { return Fit::Unsupported };
        let newest = newest_ptx_version(self.cuda_version);
        let runs = match target.variant {
            Variant::Portable => target.compute <= self.compute,
            Variant::Specific => target.compute == self.compute,
            Variant::Family => target.major() == self.compute / 10 && target.compute <= self.compute,
        };
        if runs && version <= newest { Fit::Recompile } else { Fit::Unsupported }
    }
}

/// The newest PTX version that a driver compiles (PTX ISA, "Release Notes"). PTX 9.x belongs to CUDA 13.x; CUDA 12.6 has no
/// version of its own.
fn newest_ptx_version(cuda_version: u32) -> (u32, u32) {
    let minor = cuda_version % 1000 / 10;
    match cuda_version / 1000 {
        major @ 13.. => (major - 4, minor),
        12 => (8, if minor < 6 { minor } else { (minor - 1).min(8) }),
        11 => (7, minor.min(8)),
        _ => (6, 3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H100: Target = Target { compute: 90, cuda_version: 12_080 };

    fn binary(name: &str, compute: u32) -> Fit {
        Target { compute, ..H100 }.fit_binary(Architecture::parse(name).unwrap())
    }

    #[test]
    fn binary_code_runs_on_later_devices_of_its_major_version() {
        let cases = [
            ("sm_80", 80, Fit::Optimal),
            ("sm_80", 86, Fit::Recompile),
            ("sm_80", 89, Fit::Recompile),
            ("sm_86", 80, Fit::Unsupported),
            ("sm_80", 90, Fit::Unsupported),
            ("sm_90", 80, Fit::Unsupported),
            ("sm_90a", 90, Fit::Optimal),
            ("sm_100", 103, Fit::Recompile),
            ("sm_100f", 103, Fit::Recompile),
            ("sm_100a", 103, Fit::Unsupported),
            ("sm_80", 87, Fit::Unsupported),
            ("sm_87", 89, Fit::Unsupported),
            ("sm_87", 87, Fit::Optimal),
        ];
        for (name, compute, fit) in cases {
            assert_eq!(binary(name, compute), fit, "{name} on {compute}");
        }
    }

    #[test]
    fn ptx_is_compiled_by_a_driver_that_knows_its_version() {
        let fit = |text: &str| H100.fit("ptx", text.as_bytes());
        let cases = [
            ("//\n.version 8.7\n.target sm_90\n", Fit::Recompile),
            (".version 8.7\n.target sm_70, texmode_independent\n", Fit::Recompile),
            ("\t.version 6.3\n  .target sm_90a // Hopper\n", Fit::Recompile),
            (".version 8.8\n.target sm_90\n", Fit::Unsupported),
            (".version 8.0\n.target sm_100\n", Fit::Unsupported),
            (".version 8.0\n.target sm_80a\n", Fit::Unsupported),
            (".version 8\n.target sm_80\n", Fit::Unsupported),
            (".target sm_80\n", Fit::Unsupported),
            ("", Fit::Unsupported),
            ("\u{fffd}.version", Fit::Unsupported),
        ];
        for (text, expected) in cases {
            assert_eq!(fit(text), expected, "{text}");
        }
        assert_eq!(newest_ptx_version(11_020), (7, 2));
        assert_eq!(newest_ptx_version(12_060), (8, 5));
        assert_eq!(newest_ptx_version(12_090), (8, 8));
        assert_eq!(newest_ptx_version(13_010), (9, 1));
    }

    #[test]
    fn source_code_is_compiled_again() {
        assert_eq!(H100.fit("cuda-c", b"anything"), Fit::Recompile);
    }
}
