//! The events that the hardware counts.

use runtime_core::backend::did_you_mean;
use runtime_core::{Error, ErrorKind, Result};

use crate::config::Arch;

/// The events by number. The last ones exist on kv3-2 only.
const NAMES: [&str; 55] = [
    "PCC", "ICC", "EBE", "ENIE", "ENSE", "ICHE", "ICME", "ICMABE", "MNGIC", "MIMHE", "MIMME", "IATSC", "FE",
    "PBSC", "PNVC", "PSC", "TADBE", "TABE", "TBE", "MDMHE", "MDMME", "DATSC", "DCLHE", "DCHE", "DCLME",
    "DCME", "DARSC", "LDSC", "DCNGC", "DMAE", "LCFSC", "MNGDC", "MACC", "TACC", "IWC", "WISC", "SISC",
    "DDSC", "SC", "ELE", "ELNBE", "ELUE", "ELUNBE", "ESE", "ESNBE", "EAE", "CIRE", "CIE", "SE", "RE", "FSC",
    "CPIRE", "CPIE", "HUPEVICT", "HUPHIT",
];
/// Number of the events of kv3-1.
const KV3_1: usize = 51;
/// Events that simulators count, approximately.
const SIMULATED: [&str; 3] = ["PCC", "EBE", "ENIE"];

/// What is known about events, by name; more is not public.
const DESCRIPTIONS: [(&str, &str); 7] = [
    ("PCC", "Processor clock cycles"),
    ("ICC", "Idle cycles"),
    ("EBE", "Executed bundles"),
    ("ENIE", "Executed instructions"),
    ("DDSC", "Cycles stalled by data dependencies"),
    ("LDSC", "Cycles stalled by loads"),
    ("SISC", "Cycles stalled by synchronisation"),
];
/// What is known about groups of events, by the beginning of their names.
const GROUPS: [(&str, &str); 5] = [
    ("IC", "Event of the instruction cache"),
    ("DC", "Event of the data cache"),
    ("EL", "Executed loads of a kind"),
    ("ES", "Executed stores of a kind"),
    ("CI", "Coherency invalidations"),
];
/// The end of the names of stalls.
const STALLS: &str = "SC";

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event(u8);

impl Event {
    /// The events of an architecture, by number.
    pub fn all(arch: Arch) -> impl Iterator<Item = Self> {
        let count = match arch {
            Arch::Kv31 => KV3_1,
            Arch::Kv32 => NAMES.len(),
        };
        (0u8..).take(count).map(Self)
    }

    /// Finds an event of an architecture by its name.
    ///
    /// # Errors
    /// `NotFound`, with the valid names, or with the architecture that has the event.
    pub fn find(name: &str, arch: Arch) -> Result<Self> {
        if let Some(event) = Self::all(arch).find(|event| event.name() == name) {
            return Ok(event);
        }
        let elsewhere = Self::all(Arch::Kv32).any(|event| event.name() == name);
        let message = match elsewhere {
            true => format!(
                "event \"{name}\" exists on {} only, and this device is {}",
                Arch::Kv32.name(),
                arch.name()
            ),
            false => {
                let valid: Vec<_> = Self::all(arch).map(Self::name).collect();
                format!("no event \"{name}\"; {}", did_you_mean(name, &valid))
            }
        };
        Err(Error::new(ErrorKind::NotFound, message))
    }

    /// Its number in the hardware.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES[usize::from(self.0)]
    }

    /// What it counts, as far as that is public.
    #[must_use]
    pub fn description(self) -> &'static str {
        let name = self.name();
        let own = DESCRIPTIONS.iter().find(|(known, _)| *known == name);
        let group = || GROUPS.iter().find(|(start, _)| name.starts_with(start));
        match own.or_else(|| if name.ends_with(STALLS) { None } else { group() }) {
            Some((_, text)) => text,
            None if name.ends_with(STALLS) => "Stall cycles of a kind",
            None => "Event of the processing elements",
        }
    }

    /// The unit of its values; `None` for plain counts.
    #[must_use]
    pub fn unit(self) -> Option<&'static str> {
        let name = self.name();
        (name == "PCC" || name == "ICC" || name.ends_with(STALLS)).then_some("cycles")
    }

    /// Whether simulators count it. Their values are approximations.
    #[must_use]
    pub fn is_simulated(self) -> bool {
        SIMULATED.contains(&self.name())
    }
}
