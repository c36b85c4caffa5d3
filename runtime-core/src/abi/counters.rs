//! Hardware and software counters.

use super::Str;

/// Description of a counter. Frozen; borrowed from the device that listed it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// The name that opens it, e.g. `cache-misses`, `dram__bytes_read.sum`.
    pub name: Str,
    /// What it counts, in one line.
    pub description: Str,
    /// Unit of its values, e.g. `bytes`; empty for plain counts.
    pub unit: Str,
    /// Why it cannot be read on this machine, with the remedy; empty if it can.
    pub unavailable_reason: Str,
}

/// How an open set of counters is read.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CounterSetInfo {
    /// End of the last field.
    pub struct_size: u32,
    /// How often the same work must run until every counter has been read; at least 1.
    pub passes: u32,
    /// Per counter, why it cannot be read; an empty string if it can. Borrowed from the set. Null if all can.
    pub unavailable_reasons: *const Str,
    /// Number of `unavailable_reasons`: 0, or the number of counters.
    pub reason_count: usize,
}

/// The value of a counter over all passes. Frozen.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CounterReading {
    /// The value in the unit of the counter, extrapolated to the whole time if `counted` is below 1.
    pub value: f64,
    /// Share of the time between `begin` and `end` during which it counted, above 0 and at most 1. Below 1 if more
    /// counters share the hardware than it has registers.
    pub counted: f64,
    /// `READING_*` bits; 0 if there is no value.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

/// [`CounterReading::flags`]: there is a value.
pub const READING_VALID: u32 = 1;
/// [`CounterReading::flags`]: the value is a ratio, a rate or a percentage, which does not grow with the amount of work.
pub const READING_RATIO: u32 = 1 << 1;
