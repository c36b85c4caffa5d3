//! Transforms from module to module, after the checks and before the writers.

pub(crate) mod bounds_checks;
pub(crate) mod coarsening;
pub(crate) mod f16_push_constants;
pub(crate) mod inline;
pub(crate) mod pointer_arguments;
pub(crate) mod spirv_fixups;
pub(crate) mod subgroups;
pub(crate) mod zeroing;
