//! Portable kernels on the devices of this machine: checks of indices, matrices, groups that run as loops, and sub-groups.

mod bounds;
mod matrices;
mod random_matrices;
mod serial;
mod subgroup_types;
mod subgroups;
