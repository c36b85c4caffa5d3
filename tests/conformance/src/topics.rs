//! The cases, by topic.

use crate::case::Case;

mod embedded;
mod errors;
mod evaluation;
mod events;
mod failure;
mod faults;
mod geometry;
mod graphs;
mod hazards;
mod host_hazards;
mod identity;
mod keep_alive;
mod launch;
mod marks;
mod memory;
mod modules;
mod programs;
mod queues;
mod tensors;
mod transfers;

/// Every topic with its cases.
pub(crate) const TOPICS: &[(&str, &[Case])] = &[
    ("identity", identity::CASES),
    ("memory", memory::CASES),
    ("transfers", transfers::CASES),
    ("tensors", tensors::CASES),
    ("modules", modules::CASES),
    ("launch", launch::CASES),
    ("geometry", geometry::CASES),
    ("queues", queues::CASES),
    ("events", events::CASES),
    ("hazards", hazards::CASES),
    ("host_hazards", host_hazards::CASES),
    ("programs", programs::CASES),
    ("marks", marks::CASES),
    ("keep_alive", keep_alive::CASES),
    ("failure", failure::CASES),
    ("faults", faults::CASES),
    ("graphs", graphs::CASES),
    ("evaluation", evaluation::CASES),
    ("errors", errors::CASES),
    ("embedded", embedded::CASES),
];
