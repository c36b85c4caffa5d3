//! Walks over naga's IR, and copies of it with changes, for every other part of the crate.

pub(crate) mod blocks;
pub(crate) mod operands;
pub(crate) mod rebuild;
pub(crate) mod variables;
