//! Names of events, as `perf list` shows them, and raw codes.

use runtime_core::backend::did_you_mean;
use runtime_core::{Error, ErrorKind, Result};

/// `PERF_TYPE_HARDWARE`, `PERF_TYPE_SOFTWARE`, `PERF_TYPE_HW_CACHE`, `PERF_TYPE_RAW` of `linux/perf_event.h`.
pub(crate) const HARDWARE: u32 = 0;
pub(crate) const SOFTWARE: u32 = 1;
const CACHE: u32 = 3;
const RAW: u32 = 4;

/// Generic events of the processor: `PERF_COUNT_HW_*`.
const HARDWARE_EVENTS: [(&str, u64, &str); 10] = [
    ("cycles", 0, "Clock cycles, at the frequency of the moment"),
    ("instructions", 1, "Retired instructions"),
    ("cache-references", 2, "Accesses to the last-level cache"),
    ("cache-misses", 3, "Accesses that missed the last-level cache"),
    ("branches", 4, "Retired branches"),
    ("branch-misses", 5, "Mispredicted branches"),
    ("bus-cycles", 6, "Bus cycles"),
    ("stalled-cycles-frontend", 7, "Cycles without instructions to issue"),
    ("stalled-cycles-backend", 8, "Cycles in which no instruction retired"),
    ("ref-cycles", 9, "Clock cycles at a fixed frequency"),
];

/// Events of the system: `PERF_COUNT_SW_*`, and whether they happen in the kernel.
const SOFTWARE_EVENTS: [(&str, u64, bool, &str); 8] = [
    ("task-clock", 1, false, "Processor time of all threads"),
    ("page-faults", 2, false, "Page faults"),
    ("context-switches", 3, true, "Context switches"),
    ("cpu-migrations", 4, true, "Moves to another processor"),
    ("minor-faults", 5, false, "Page faults without a read from disk"),
    ("major-faults", 6, false, "Page faults with a read from disk"),
    ("alignment-faults", 7, false, "Misaligned accesses that the kernel emulated"),
    ("emulation-faults", 8, false, "Instructions that the kernel emulated"),
];

/// Caches: `PERF_COUNT_HW_CACHE_*`.
const CACHES: [(&str, &str); 7] = [
    ("L1-dcache", "the first-level data cache"),
    ("L1-icache", "the first-level instruction cache"),
    ("LLC", "the last-level cache"),
    ("dTLB", "the data TLB"),
    ("iTLB", "the instruction TLB"),
    ("branch", "the branch predictor"),
    ("node", "the memory of the node"),
];

/// Suffixes of cache events: name, `PERF_COUNT_HW_CACHE_OP_*`, `PERF_COUNT_HW_CACHE_RESULT_*`, description.
const CACHE_OPERATIONS: [(&str, u64, u64, &str); 6] = [
    ("loads", 0, 0, "Loads from"),
    ("load-misses", 0, 1, "Loads that missed"),
    ("stores", 1, 0, "Stores to"),
    ("store-misses", 1, 1, "Stores that missed"),
    ("prefetches", 2, 0, "Prefetches into"),
    ("prefetch-misses", 2, 1, "Prefetches that missed"),
];

/// An event as `perf_event_open` takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    /// `PERF_TYPE_*`.
    pub(crate) kind: u32,
    pub(crate) config: u64,
    /// Whether it happens in the kernel, so that counting user code alone would count nothing.
    pub(crate) in_kernel: bool,
}

impl Event {
    /// The event of this name or raw code: `cycles`, `r01c2`, `cpu/event=0xc2,umask=0x01/`.
    pub(crate) fn parse(name: &str) -> Result<Self> {
        let named = all().into_iter().map(|(event, _)| event).find(|event| event.name == name);
        named.or_else(|| raw(name)).ok_or_else(|| {
            let names: Vec<_> = all().into_iter().map(|(event, _)| event.name).collect();
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            let hint = did_you_mean(name, &names);
            Error::new(
                ErrorKind::NotFound,
                format!("no counter \"{name}\"; {hint}, or a raw code such as r01c2"),
            )
        })
    }

    pub(crate) fn unit(&self) -> Option<&'static str> {
        (self.kind == SOFTWARE && self.config == 1).then_some("ns")
    }
}

/// Every named event with its description.
pub(crate) fn all() -> Vec<(Event, String)> {
    let event = |name: &str, kind, config, in_kernel, description: &str| {
        (Event { name: name.to_owned(), kind, config, in_kernel }, description.to_owned())
    };
    let hardware = HARDWARE_EVENTS
        .iter()
        .map(|&(name, config, description)| event(name, HARDWARE, config, false, description));
    let software = SOFTWARE_EVENTS
        .iter()
        .map(|&(name, config, in_kernel, description)| event(name, SOFTWARE, config, in_kernel, description));
    let caches = CACHES.iter().zip(0u64..).flat_map(|(&(cache, what), id)| {
        CACHE_OPERATIONS.iter().map(move |&(suffix, operation, result, verb)| {
            let config = id | operation << 8 | result << 16;
            event(&format!("{cache}-{suffix}"), CACHE, config, false, &format!("{verb} {what}"))
        })
    });
    // `branch-misses` is both a generic event and a cache's; perf shows the generic one.
    let generic = |name: &str| HARDWARE_EVENTS.iter().any(|(generic, ..)| *generic == name);
    let caches = caches.filter(|(event, _)| !generic(&event.name));
    hardware.chain(software).chain(caches).collect()
}

/// A raw code: `r` and hexadecimal digits, or event and unit mask.
fn raw(name: &str) -> Option<Event> {
    let config = match name.strip_prefix("cpu/").and_then(|terms| terms.strip_suffix('/')) {
        Some(terms) => terms.split(',').try_fold(0, |config, term| Some(config | term_bits(term)?))?,
        None => hexadecimal(name.strip_prefix('r')?)?,
    };
    Some(Event { name: name.to_owned(), kind: RAW, config, in_kernel: false })
}

/// The bits of `event=0xc2` or `umask=0x01`, as `/sys/bus/event_source/devices/cpu/format` places them on x86.
fn term_bits(term: &str) -> Option<u64> {
    let (key, value) = term.split_once('=')?;
    let value = match value.strip_prefix("0x") {
        Some(digits) => hexadecimal(digits)?,
        None => value.parse().ok()?,
    };
    let shift = match key {
        "event" => 0,
        "umask" => 8,
        _ => return None,
    };
    (value <= 0xff).then_some(value << shift)
}

/// Digits only: `from_str_radix` would take a sign.
fn hexadecimal(digits: &str) -> Option<u64> {
    digits
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then(|| u64::from_str_radix(digits, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_parse_to_themselves() {
        let all = all();
        let names: HashSet<_> = all.iter().map(|(event, _)| &event.name).collect();
        assert_eq!(names.len(), all.len());
        for (event, _) in &all {
            assert_eq!(Event::parse(&event.name).unwrap(), *event);
        }
        let event = Event::parse("LLC-load-misses").unwrap();
        assert_eq!((event.kind, event.config), (CACHE, 0x1_0002));
    }

    #[test]
    fn raw_codes_are_hexadecimal() {
        for (name, config) in
            [("r01c2", 0x1c2), ("cpu/event=0xc2,umask=0x01/", 0x1c2), ("cpu/event=194/", 0xc2)]
        {
            let event = Event::parse(name).unwrap();
            assert_eq!((event.kind, event.config, &*event.name), (RAW, config, name));
        }
        for name in
            ["r", "r+1", "rx", "r11112222333344445", "cpu//", "cpu/event=256/", "cpu/cmask=1/", "", "cycle"]
        {
            let error = Event::parse(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{name}");
        }
        assert!(Event::parse("cycle").unwrap_err().message().contains("did you mean \"cycles\""));
    }
}
