//! Descriptions and values of counters.

use serde::Serialize;

/// A counter of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CounterInfo {
    /// The name that opens it, e.g. `cache-misses`, `dram__bytes_read.sum`.
    pub name: String,
    /// What it counts, in one line.
    pub description: String,
    /// Unit of its values, e.g. `bytes`; `None` for plain counts.
    pub unit: Option<String>,
    /// Why it cannot be read on this machine, with the remedy; `None` if it can.
    pub unavailable_reason: Option<String>,
}

/// The value of a counter over the work between `begin` and `end`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterReading {
    /// The value in the unit of the counter, extrapolated to the whole time if `counted` is below 1.
    pub value: f64,
    /// Share of the time during which it counted, above 0 and at most 1. Below 1 if more counters share the hardware
    /// than it has registers.
    pub counted: f64,
    /// Whether the value is a ratio, a rate or a percentage, which does not grow with the amount of work.
    pub is_ratio: bool,
}
