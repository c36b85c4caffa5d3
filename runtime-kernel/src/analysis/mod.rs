//! Facts about a module, derived before it runs. Nothing here modifies the module.

pub(crate) mod features;
pub(crate) mod interfaces;
pub(crate) mod private_memory;
pub(crate) mod proof;
pub(crate) mod signature;
pub(crate) mod uniformity;
