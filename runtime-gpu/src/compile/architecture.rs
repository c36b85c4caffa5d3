//! Architectures of CUDA, by name.

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
    /// Runs on the architecture and later ones.
    Portable,
    /// Runs on exactly this architecture and may use all its features (suffix `a`).
    Specific,
    /// Runs on devices of the same family (suffix `f`).
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

    pub(crate) const fn has_variant(&self) -> bool {
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
    pub(crate) const fn shared_bytes(self) -> u64 {
        match self.compute {
            70 | 72 => 96 << 10,
            75 => 64 << 10,
            80 | 87 => 163 << 10,
            86 | 89 | 120 | 121 => 99 << 10,
            90 | 100 | 101 | 103 | 110 => 227 << 10,
            _ => 48 << 10,
        }
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
}
