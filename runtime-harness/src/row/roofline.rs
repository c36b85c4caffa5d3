//! The share of the limit that binds a kernel, after the roofline model (Williams, Waterman and Patterson 2009).

use serde::{Deserialize, Serialize};

/// How close a kernel comes to the limits of its device.
///
/// A call cannot take less time than its operations at the peak of their element type, nor less than its bytes at the bandwidth of
/// the memory level that they are in. The longer of both times binds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Roofline {
    /// The shortest possible time divided by the median: 1 is the peak. Above 1, the bytes or operations of the spec are not those
    /// that the device moves or does, or its peaks were measured under a lower clock.
    pub share: f64,
    /// What binds.
    pub limit: Limit,
    /// Operations per byte; `None` unless the spec gives both.
    pub intensity_flops_per_byte: Option<f64>,
    /// The most that the kernel could reach, in 10⁹ operations per second; `None` if the spec gives no operations.
    pub attainable_gflops_per_s: Option<f64>,
    /// The peak of the element type.
    pub compute: Option<ComputeRoof>,
    /// The bandwidth of the memory level.
    pub memory: Option<MemoryRoof>,
}

/// What binds a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Arithmetic.
    Compute,
    /// Memory.
    Memory,
}

/// A kind of arithmetic unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Ordinary arithmetic, in vectors where the device has them.
    Vector,
    /// Matrix units, such as tensor cores.
    Matrix,
}

impl Unit {
    /// The name in listings and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vector => "vector",
            Self::Matrix => "matrix",
        }
    }
}

/// The peak of an element type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComputeRoof {
    /// The element type.
    pub dtype: String,
    /// The units that reach it.
    pub unit: Unit,
    /// 10⁹ operations per second.
    pub gflops_per_s: f64,
}

/// The bandwidth of a memory level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryRoof {
    /// The level that the arguments of the kernel fit into.
    pub level: String,
    /// 10⁹ bytes per second.
    pub gbytes_per_s: f64,
}

impl ComputeRoof {
    pub(crate) fn text(&self) -> String {
        match self.unit {
            Unit::Matrix => format!("{} matrix peak", self.dtype),
            Unit::Vector => format!("{} peak", self.dtype),
        }
    }
}

impl MemoryRoof {
    pub(crate) fn text(&self) -> String {
        // A level without a name, called by its size.
        match self.level.starts_with(|c: char| c.is_ascii_digit()) {
            true => format!("the bandwidth within {}", self.level),
            false => format!("{} bandwidth", self.level),
        }
    }
}

impl Roofline {
    /// The roofline of a call with these operations and bytes, by the limits that are known.
    pub(crate) fn from_roofs(
        (flops, bytes): (Option<f64>, Option<f64>),
        median_ns: f64,
        (compute, memory): (Option<ComputeRoof>, Option<MemoryRoof>),
    ) -> Option<Self> {
        let compute_ns = flops.zip(compute.as_ref()).map(|(flops, roof)| flops / roof.gflops_per_s);
        let memory_ns = bytes.zip(memory.as_ref()).map(|(bytes, roof)| bytes / roof.gbytes_per_s);
        let is_known = flops.is_none() == compute_ns.is_none() && bytes.is_none() == memory_ns.is_none();
        if !is_known {
            // Perhaps arithmetic binds, perhaps memory.
            return None;
        }
        let (limit, bound_ns) = match (compute_ns, memory_ns) {
            (Some(compute), Some(memory)) if compute >= memory => (Limit::Compute, compute),
            (_, Some(memory)) => (Limit::Memory, memory),
            (Some(compute), None) => (Limit::Compute, compute),
            (None, None) => return None,
        };
        let share = bound_ns / median_ns;
        share.is_finite().then_some(Self {
            share,
            limit,
            intensity_flops_per_byte: flops.zip(bytes).map(|(flops, bytes)| flops / bytes),
            attainable_gflops_per_s: flops.map(|flops| flops / bound_ns),
            compute: compute.filter(|_| flops.is_some()),
            memory: memory.filter(|_| bytes.is_some()),
        })
    }

    /// What binds, e.g. `DRAM bandwidth` or `f32 peak`.
    #[must_use]
    pub fn limit_text(&self) -> String {
        match (self.limit, &self.compute, &self.memory) {
            (Limit::Memory, _, Some(memory)) => memory.text(),
            (_, Some(compute), _) => compute.text(),
            _ => String::new(),
        }
    }

    /// The share with what binds, e.g. `63% of DRAM bandwidth` or `41% of f32 peak`.
    #[must_use]
    pub fn text(&self) -> String {
        let percent = 100.0 * self.share;
        let percent = if percent < 9.95 { format!("{percent:.1}%") } else { format!("{percent:.0}%") };
        format!("{percent} of {}", self.limit_text())
    }
}
