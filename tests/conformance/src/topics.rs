//! All cases, by topic.

use crate::case::Case;

mod arguments;
mod clocks;
mod compile;
mod counters;
mod dispatch;
mod embedded;
mod errors;
mod evaluation;
mod events;
mod failure;
mod faults;
mod fusion;
mod geometry;
mod graph_nodes;
mod graphs;
mod hazards;
mod held_queues;
mod host_hazards;
mod host_tasks;
mod identity;
#[allow(unsafe_code, reason = "reads and writes DLPack structures")]
mod interchange;
mod keep_alive;
mod launch;
mod lost;
mod memory;
mod modules;
#[allow(unsafe_code, reason = "hands work to drivers")]
mod native_work;
mod opening;
mod process;
mod programs;
mod queues;
mod recording;
mod signals;
mod structures;
mod tensors;
mod threads;
mod transfers;
mod validation;

/// Every topic with its cases.
pub(crate) const TOPICS: &[(&str, &[Case])] = &[
    ("identity", identity::CASES),
    ("opening", opening::CASES),
    ("memory", memory::CASES),
    ("transfers", transfers::CASES),
    ("interchange", interchange::CASES),
    ("tensors", tensors::CASES),
    ("modules", modules::CASES),
    ("compile", compile::CASES),
    ("launch", launch::CASES),
    ("arguments", arguments::CASES),
    ("structures", structures::CASES),
    ("fusion", fusion::CASES),
    ("fusion_graphs", fusion::graphs::CASES),
    ("fusion_order", fusion::order::CASES),
    ("fusion_repeated", fusion::repeated::CASES),
    ("geometry", geometry::CASES),
    ("queues", queues::CASES),
    ("events", events::CASES),
    ("dispatch", dispatch::CASES),
    ("host_tasks", host_tasks::CASES),
    ("held_queues", held_queues::CASES),
    ("hazards", hazards::CASES),
    ("host_hazards", host_hazards::CASES),
    ("native_work", native_work::CASES),
    ("programs", programs::CASES),
    ("signals", signals::CASES),
    ("keep_alive", keep_alive::CASES),
    ("failure", failure::CASES),
    ("faults", faults::CASES),
    ("lost", lost::CASES),
    ("recording", recording::CASES),
    ("graphs", graphs::CASES),
    ("graph_nodes", graph_nodes::CASES),
    ("evaluation", evaluation::CASES),
    ("clocks", clocks::CASES),
    ("validation", validation::CASES),
    ("errors", errors::CASES),
    ("embedded", embedded::CASES),
    ("counters", counters::CASES),
    ("threads", threads::CASES),
    ("process", process::CASES),
];
