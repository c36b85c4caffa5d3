//! Rules of WGSL that naga does not check.

pub(crate) mod barriers;
pub(crate) mod continuing;
