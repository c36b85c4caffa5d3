//! Counters of the processing elements: names, events, passes, and reductions of raw values.
//!
//! A name is `mppa.<EVENT>.cluster.<id|avg|min|max|sum>.pe.<id|avg|min|max|sum>`, for example `mppa.PCC.cluster.max.pe.avg`. Values
//! are reduced over the processing elements of each cluster first, then over the clusters.

mod event;
mod plan;
mod request;
mod set;

pub use event::Event;
pub use plan::{Plan, SLOTS};
pub use request::{Reduction, Request};
pub use set::{CounterSource, Counters};

/// Clusters of a chip.
pub const CLUSTERS: usize = 5;
/// The same as a number of descriptions and of the offload library.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
pub(crate) const CLUSTER_COUNT: u32 = CLUSTERS as u32;
/// Processing elements of a cluster.
pub const ELEMENTS: usize = 16;

/// The values of an event, by cluster and processing element.
pub type RawValues = [[u64; ELEMENTS]; CLUSTERS];

#[cfg(test)]
mod tests;
