//! Peaks: the most that a device does, measured. Operations per second of each element type, the bandwidth of each memory level
//! and of transfers, and the time of launches.
//!
//! [`measure`] runs kernels of its own through the project's timing loop and checks their results; [`PeakStore`] keeps what it
//! found; [`Peak::roofline`] compares a kernel with it, and what no kernel can do follows from it, too.

mod bench;
mod compute;
mod effort;
mod figure;
mod floor;
mod launches;
mod measure;
mod memory;
mod merge;
mod native;
mod share;
mod store;
#[cfg(test)]
pub(crate) mod tests;
mod transfers;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::describe::Program;
use crate::row::{Row, Unit};
pub use effort::Effort;
pub use figure::Figure;
pub use measure::measure;
pub(crate) use measure::{Part, measure_again};
pub use store::{Lookup, PeakStore};

/// The schema of `runtime peak --json`.
pub const SCHEMA: &str = "runtime.peaks";
/// The version of that schema.
pub const VERSION: u64 = 1;

/// The measured peaks of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// What was measured; a peak is valid for nothing else.
    pub subject: Subject,
    /// When it was measured, in seconds since 1970.
    pub measured_unix_s: u64,
    /// Operations per second.
    pub compute: Vec<ComputePeak>,
    /// Bandwidth of memory, from the smallest level to the largest.
    pub memory: Vec<MemoryLevel>,
    /// Bandwidth between host and device.
    pub transfers: Vec<TransferPeak>,
    /// Times of empty launches.
    pub launches: Option<LaunchPeak>,
    /// What could not be measured, and why.
    pub missing: Vec<Missing>,
}

/// A device in the state that its peaks depend on. Devices of several machines may have the same device string.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Subject {
    /// The device string. Not part of the identity of a device that has a UUID or a PCI address.
    pub device: String,
    /// The target, e.g. `cuda`.
    pub target: String,
    /// The device's name.
    pub name: String,
    /// UUID or PCI address; the device string if there is neither.
    pub identity: String,
    /// Version of the driver.
    pub driver_version: Option<String>,
    /// The clock limit of the compute units.
    pub clock_hz: Option<u64>,
    /// Compute units.
    pub compute_units: Option<u64>,
    /// Version of the program that measured.
    pub program: String,
}

/// Operations per second of an element type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComputePeak {
    /// The element type; `tf32` for matrix units that take shortened `f32`.
    pub dtype: String,
    /// `vector`, or `matrix` for matrix units.
    pub unit: Unit,
    /// Format of the code that was measured.
    pub format: String,
    /// 10⁹ operations per second; a multiply-add counts as two.
    pub gflops_per_s: Figure,
}

/// Bandwidth of a memory level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryLevel {
    /// `L1`, `L2`, `L3`, `work-group memory`, `DRAM`; `4 MiB` is what a working set of this size gets on a device that does not tell
    /// its caches.
    pub name: String,
    /// The bytes that it keeps from one call of a kernel to the next, of all compute units together. `None`: unlimited, the last
    /// level; 0: none, so no kernel is compared with it.
    pub keeps_bytes: Option<u64>,
    /// The bytes that were read and written, of all arrays together.
    pub working_set_bytes: u64,
    /// Reading: 10⁹ bytes per second.
    pub read_gbytes_per_s: Option<Figure>,
    /// `c[i] = a[i]` of STREAM, counting both arrays.
    pub copy_gbytes_per_s: Option<Figure>,
    /// `c[i] = a[i] + s b[i]` of STREAM, counting three arrays.
    pub triad_gbytes_per_s: Option<Figure>,
}

impl MemoryLevel {
    /// The highest bandwidth measured, in 10⁹ bytes per second.
    #[must_use]
    pub fn best_gbytes_per_s(&self) -> f64 {
        self.best().map_or(0.0, |figure| figure.best)
    }

    fn keeps(&self, bytes: u64) -> bool {
        self.keeps_bytes.is_none_or(|keeps| keeps >= bytes)
    }

    /// The figure of the fastest pattern.
    fn best(&self) -> Option<&Figure> {
        let figures = [&self.read_gbytes_per_s, &self.copy_gbytes_per_s, &self.triad_gbytes_per_s];
        figures.into_iter().flatten().max_by(|a, b| a.best.total_cmp(&b.best))
    }

    const fn figures_mut(&mut self) -> [&mut Option<Figure>; 3] {
        [&mut self.read_gbytes_per_s, &mut self.copy_gbytes_per_s, &mut self.triad_gbytes_per_s]
    }
}

/// Bandwidth between host and device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferPeak {
    /// `host_to_device` or `device_to_host`.
    pub direction: Direction,
    /// Memory of the host: `pageable` or `pinned`.
    pub memory: HostMemory,
    /// Bytes of a transfer.
    pub bytes: u64,
    /// 10⁹ bytes per second.
    pub gbytes_per_s: Figure,
}

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the host to the device.
    HostToDevice,
    /// From the device to the host.
    DeviceToHost,
}

/// Memory of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostMemory {
    /// Ordinary memory.
    Pageable,
    /// Memory that the device accesses directly.
    Pinned,
}

/// Times of launches of an empty kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaunchPeak {
    /// Submit one and wait for it.
    pub latency_ns: Figure,
    /// Per launch, when many are submitted before a wait.
    pub throughput_ns: Figure,
}

/// Something that could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// What, e.g. `f16`.
    pub what: String,
    /// Why.
    pub reason: String,
}

impl Subject {
    /// The subject of a device, described as in reports ([`describe::device`](crate::describe::device)).
    #[must_use]
    pub fn of(device_info: &Value) -> Option<Self> {
        let text = |key: &str| device_info[key].as_str().map(str::to_owned);
        let device = text("id")?;
        let identity = text("uuid").or_else(|| text("pci_address")).unwrap_or_else(|| device.clone());
        // A part of a chip has the identity of the whole.
        let sub = device_info["sub"].as_u64().map(|sub| format!(".{sub}")).unwrap_or_default();
        Some(Self {
            target: text("target")?,
            name: text("name")?,
            identity: identity + &sub,
            device,
            driver_version: text("driver_version"),
            clock_hz: device_info["clock_hz"].as_u64(),
            compute_units: device_info["compute_units"].as_u64(),
            program: Program::current().version,
        })
    }

    /// That of a row's device; `None` if it is not described.
    pub(crate) fn of_row(row: &Row) -> Option<Self> {
        row.device_info.as_ref().and_then(Self::of)
    }

    /// Whether both devices are of one model, and in the same state: they differ in device string and identity at most.
    pub(crate) fn is_same_model(&self, other: &Self) -> bool {
        let Self { device, identity, .. } = other;
        Self { device: device.clone(), identity: identity.clone(), ..self.clone() } == *other
    }

    /// Whether both are the same device in the same state.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Self { device: other.device.clone(), ..self.clone() } == *other
    }
}

impl Peak {
    /// The highest rate for an element type, in 10⁹ operations per second, of the units that code of a format reaches: portable
    /// code reaches no matrix units.
    #[must_use]
    pub fn compute_of(&self, dtype: &str, format: &str) -> Option<&ComputePeak> {
        let reaches = |peak: &&ComputePeak| {
            peak.dtype == dtype
                && (peak.unit == Unit::Vector || format != runtime_core::CodeFormat::WGSL.as_str())
        };
        let rate = |peak: &&ComputePeak| peak.gflops_per_s.best;
        self.compute.iter().filter(reaches).max_by(|a, b| rate(a).total_cmp(&rate(b)))
    }

    /// The fastest level that keeps this many bytes from one call to the next.
    #[must_use]
    pub fn level_of(&self, working_set_bytes: u64) -> Option<&MemoryLevel> {
        self.memory.iter().find(|level| level.keeps(working_set_bytes.max(1)))
    }

    /// The highest bandwidth of a level, in 10⁹ bytes per second: what a larger one reaches, it reaches as well.
    #[must_use]
    pub fn bandwidth_gbytes_per_s(&self, level: &str) -> f64 {
        let from = self.memory.iter().skip_while(|other| other.name != level);
        from.map(MemoryLevel::best_gbytes_per_s).fold(0.0, f64::max)
    }

    /// Whether all figures are positive numbers: a damaged file may hold anything.
    pub(crate) fn is_sound(&self) -> bool {
        let compute = self.compute.iter().map(|peak| &peak.gflops_per_s);
        let memory = self.memory.iter().flat_map(|level| {
            [&level.read_gbytes_per_s, &level.copy_gbytes_per_s, &level.triad_gbytes_per_s]
                .into_iter()
                .flatten()
        });
        let transfers = self.transfers.iter().map(|transfer| &transfer.gbytes_per_s);
        let launches = self.launches.iter().flat_map(|launch| [&launch.latency_ns, &launch.throughput_ns]);
        compute.chain(memory).chain(transfers).chain(launches).all(Figure::is_sound)
    }
}
