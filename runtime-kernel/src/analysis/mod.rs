//! What is known of a module before it runs. Nothing here changes it.

pub(crate) mod features;
pub(crate) mod proof;
pub(crate) mod reflect;
pub(crate) mod uniformity;
