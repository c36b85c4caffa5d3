//! The cases, by topic.

use crate::case::Case;

mod identity;
mod memory;
mod tensors;
mod transfers;

/// Every topic with its cases.
pub(crate) const TOPICS: &[(&str, &[Case])] = &[
    ("identity", identity::CASES),
    ("memory", memory::CASES),
    ("transfers", transfers::CASES),
    ("tensors", tensors::CASES),
];
