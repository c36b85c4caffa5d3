//! Rules of WGSL that naga does not check. Imports `transform::inline`, since a barrier in a function may be
//! uniform only after inlining.

pub(crate) mod barriers;
pub(crate) mod continuing;
pub(crate) mod cooperative;
mod divergence;
#[cfg(test)]
mod subgroup_tests;
mod unreached;
