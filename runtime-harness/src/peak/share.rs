//! A kernel's share of the peak of its device.

use super::Peak;
use crate::row::{ComputeRoof, MemoryRoof, Roofline, Row};

impl Peak {
    /// The roofline of a row, whose device this is the peak of; `None` if nothing was timed, the spec gives no cost, or no limit is known for
    /// it. A kernel whose bytes cross the bus in each call, and one that is timed cold, have other limits.
    #[must_use]
    pub fn roofline(&self, row: &Row) -> Option<Roofline> {
        let measurement = row.measurement.as_ref().filter(|it| it.transfer.is_none() && !it.cold)?;
        let some = |cost: Option<f64>| cost.filter(|cost| *cost > 0.0);
        let (flops, bytes) = (some(measurement.cost.flops), some(measurement.cost.bytes));
        let is_flushed = row.settings.flush_cache != "never";
        let working_set = row.working_set_bytes.filter(|_| !is_flushed).unwrap_or(u64::MAX);
        let compute = row.dtype.as_deref().and_then(|dtype| {
            let format = row.package.as_ref().map_or(&row.kernel.format, |package| &package.format);
            let found = self.compute_of(dtype, format)?;
            let (dtype, unit) = (found.dtype.clone(), found.unit);
            Some(ComputeRoof { dtype, unit, gflops_per_s: found.gflops_per_s.best })
        });
        let memory = self.level_of(working_set).map(|level| MemoryRoof {
            level: level.name.clone(),
            gbytes_per_s: self.bandwidth_gbytes_per_s(&level.name),
        });
        Roofline::from_roofs((flops, bytes), measurement.statistics.median_ns, (compute, memory))
    }
}
