//! The least time of a call: what `[cost]` says that any program needs, at the peaks of the device.
//!
//! A floor calls a time impossible, so it errs on the low side, where a [share](Peak::roofline) is the best estimate: the code may
//! compute in any type on any unit, and what can lie in faster caches costs nothing. What makes a call longer (a transfer, a cold
//! start, a flushed cache) does not raise it.

use super::{ComputePeak, Part, Peak};
use crate::row::{Bound, ComputeRoof, Floor, Limit, MemoryRoof, Row, Unit, UnknownFloor};

/// How much faster code may be than the fastest arithmetic that was measured, where matrix units were: `mma.sync` reaches 60% of what
/// `wgmma` does, and the narrowest types, which are not measured, are twice as fast as those that are.
const MATRIX_SLACK: f64 = 4.0;
/// The same where only vectors were measured. The device may have matrix units (AMX, tensor cores through OpenCL), which do up to
/// 16 times as much as vectors of the narrowest type that was measured, and a compiler may know few of these types.
const VECTOR_SLACK: f64 = 32.0;
/// How much faster code may move bytes than read, copy and triad of a compiler: writes past the caches save a third of the traffic,
/// two reads and a write per cycle are half as much again as two reads, and clocks differ from run to run.
const MEMORY_SLACK: f64 = 2.0;

/// The times that operations and bytes of a call take at least.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    known: Vec<Limited>,
    /// Why operations or bytes have no limit.
    unknown: Vec<&'static str>,
}

/// A limit, what to measure again if it is beaten, and what may have made its peak smaller than it is.
#[derive(Clone, Debug, PartialEq)]
struct Limited {
    bound: Bound,
    part: Part,
    disturbance: Option<String>,
}

impl Peak {
    /// The least times of a row, whose device this is the peak of.
    pub(crate) fn limits(&self, row: &Row) -> Limits {
        let mut limits = Limits::default();
        let cost = row.measurement.as_ref().map(|it| it.cost).unwrap_or_default();
        let some = |cost: Option<f64>| cost.filter(|cost| *cost > 0.0);
        if let Some(flops) = some(cost.flops) {
            limits.add(self.compute_limit(flops), "the peak of operations was not measured");
        }
        if let Some(bytes) = some(cost.bytes) {
            limits.add(self.memory_limit(bytes, row), "the bandwidth of memory was not measured");
        }
        limits
    }

    fn compute_limit(&self, flops: f64) -> Option<Limited> {
        let rate = |peak: &&ComputePeak| peak.gflops_per_s.best;
        let fastest = self.compute.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
        let has_matrix_units = self.compute.iter().any(|peak| peak.unit == Unit::Matrix);
        let slack = if has_matrix_units { MATRIX_SLACK } else { VECTOR_SLACK };
        let rate = fastest.gflops_per_s.best;
        let roof = ComputeRoof { dtype: fastest.dtype.clone(), unit: fastest.unit, gflops_per_s: rate };
        let bound =
            Bound { limit: Limit::Compute, least_ns: flops / (rate * slack), peak: roof.text(), rate, slack };
        // Another one may be faster than it seems.
        let disturbance = self.compute.iter().find_map(|peak| peak.gflops_per_s.disturbance.clone());
        Some(Limited { bound, part: Part::Compute, disturbance })
    }

    fn memory_limit(&self, bytes: f64, row: &Row) -> Option<Limited> {
        // A call that touches a part of its tensors finds this part in a cache.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let touched = row.working_set_bytes.unwrap_or(u64::MAX).min(bytes as u64).max(1);
        let at = self.memory.iter().position(|level| level.keeps(touched))?;
        let level = &self.memory[at];
        let faster =
            self.memory[..at].iter().filter_map(|level| level.keeps_bytes).fold(0, u64::saturating_add);
        let share = touched.saturating_sub(faster) as f64 / touched as f64;
        let rate = self.bandwidth_gbytes_per_s(&level.name);
        let roof = MemoryRoof { level: level.name.clone(), gbytes_per_s: rate };
        let bound = Bound {
            limit: Limit::Memory,
            least_ns: bytes * share / (rate * MEMORY_SLACK),
            peak: roof.text(),
            rate,
            slack: MEMORY_SLACK,
        };
        let disturbance = level.best().and_then(|figure| figure.disturbance.clone());
        let part = Part::Memory { level: level.name.clone(), working_set_bytes: touched };
        Some(Limited { bound, part, disturbance })
    }
}

impl Limits {
    fn add(&mut self, limit: Option<Limited>, otherwise: &'static str) {
        match limit {
            Some(limit) => self.known.push(limit),
            None => self.unknown.push(otherwise),
        }
    }

    /// The peaks that a call of this time beats.
    pub(crate) fn beaten(&self, median_ns: f64) -> impl Iterator<Item = &Part> {
        self.known.iter().filter(move |it| it.bound.least_ns > median_ns).map(|it| &it.part)
    }

    /// The longest of the times whose peaks nothing has disturbed. `obstacle` tells why measuring again has not confirmed a peak that a
    /// call of this time beats; the call is then as fast as the device for all that is known.
    pub(crate) fn floor(&self, median_ns: f64, obstacle: &dyn Fn(&Part) -> Option<String>) -> Floor {
        let mut longest: Option<&Bound> = None;
        let (mut unconfirmed, mut disturbed) = (None, None);
        for Limited { bound, part, disturbance } in &self.known {
            let doubt = if bound.least_ns > median_ns { obstacle(part) } else { None };
            if let Some(reason) = doubt {
                unconfirmed.get_or_insert_with(|| Floor::unknown(UnknownFloor::Unconfirmed, reason));
            } else if let Some(disturbance) = disturbance {
                let reason = format!("{}: {disturbance}", bound.peak);
                disturbed.get_or_insert_with(|| Floor::unknown(UnknownFloor::Disturbed, reason));
            } else if longest.is_none_or(|longest| longest.least_ns < bound.least_ns) {
                longest = Some(bound);
            }
        }
        let known = |bound: &Bound| Floor::Known(bound.clone());
        let broken = longest.filter(|bound| bound.least_ns > median_ns).map(known);
        let unmeasured = || {
            let reason = self.unknown.first().copied().unwrap_or("[cost] has neither operations nor bytes");
            Floor::unknown(UnknownFloor::Unmeasured, reason)
        };
        broken.or(unconfirmed).or_else(|| longest.map(known)).or(disturbed).unwrap_or_else(unmeasured)
    }
}
